"""Kernels of GPUs that draw random numbers, the same ones as the CPU."""
