"""Kernels of arrays, lists and maps of tensors, and of ragged tensors."""
