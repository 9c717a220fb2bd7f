"""The elementwise ops that kernels of GPUs compute, by one table, and what fills it."""
