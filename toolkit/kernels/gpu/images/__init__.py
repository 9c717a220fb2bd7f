"""Kernels of GPUs for images: colour, boxes, windows, resizing, projections."""
