"""Kernels of GPUs for matrices: products, factors, systems, eigenvalues and singular values."""
