"""The CUDA driver: what is asked of it (base), the one of NVIDIA (real), and one that needs no GPU (fake)."""
