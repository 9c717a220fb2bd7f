"""Kernels of GPUs for what outlives a step: variables, their updates by optimizers, staging areas."""
