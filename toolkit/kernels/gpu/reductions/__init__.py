"""Kernels of GPUs that put many numbers together: reductions over axes and segments, cumulative sums."""
