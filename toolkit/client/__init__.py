"""Making graphs: op constructors, variables, gradients, optimizers, savers, the YAML spec."""
