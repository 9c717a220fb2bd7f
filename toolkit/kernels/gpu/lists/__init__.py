"""Kernels of GPUs for arrays and lists of tensors."""
