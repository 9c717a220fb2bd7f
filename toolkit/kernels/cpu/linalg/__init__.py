"""Kernels of matrices: products, decompositions, functions, linear systems."""
