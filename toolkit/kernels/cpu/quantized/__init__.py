"""Kernels of quantized numbers."""
