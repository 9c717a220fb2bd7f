"""Kernels of GPUs for numbers: elementwise functions, comparisons, Fourier transforms, counting, rounding."""
