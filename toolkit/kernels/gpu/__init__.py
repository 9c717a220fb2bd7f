"""Kernels of NVIDIA GPUs: device type GPU, over `toolkit.kernels.cuda`."""
