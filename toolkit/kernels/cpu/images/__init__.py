"""Kernels of images: files, colours, sizes, crops, boxes."""
