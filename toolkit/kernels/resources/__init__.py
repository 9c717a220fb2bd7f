"""Values that are no arrays, and resources that kernels share: variables, tables, lists, stacks, readers, handles."""
