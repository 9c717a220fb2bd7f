"""Kernels of GPUs for sparse tensors: products, order, parts, empty rows."""
