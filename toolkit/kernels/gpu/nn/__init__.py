"""Kernels of GPUs for neural networks: attention, convolutions, pools, norms, recurrent networks, losses."""
