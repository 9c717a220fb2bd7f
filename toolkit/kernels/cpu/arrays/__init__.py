"""Kernels of arrays: made, joined, cut, gathered, padded, sorted, cast."""
