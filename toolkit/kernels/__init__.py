"""Kernels: (op, device type, dtypes) to a function."""
