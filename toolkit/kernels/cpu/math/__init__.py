"""Kernels of arithmetic element by element, special functions, reductions, segments and Fourier transforms."""
