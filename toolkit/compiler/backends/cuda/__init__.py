"""The backend of NVIDIA GPUs: fused kernels between those of the nodes, and whole steps as CUDA graphs."""
