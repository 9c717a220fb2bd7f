"""Elementwise ops of GPUs as fused kernels: chains of ops in registers, with reductions of rows between them."""
