"""Kernels of datasets and iterators."""
