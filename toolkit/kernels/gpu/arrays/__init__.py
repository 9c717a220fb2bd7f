"""Kernels of GPUs for arrays: made, joined, cut, gathered, padded, sorted, cast."""
