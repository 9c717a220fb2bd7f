"""Kernels and library calls made of several operations, and updates put together."""
