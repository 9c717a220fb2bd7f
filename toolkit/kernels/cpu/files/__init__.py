"""Kernels of files, and of what is parsed from their records."""
