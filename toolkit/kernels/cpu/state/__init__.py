"""Kernels of variables, optimizers, accumulators and what else lasts from step to step."""
