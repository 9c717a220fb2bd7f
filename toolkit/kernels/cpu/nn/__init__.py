"""Kernels of neural networks: convolutions, pools, norms, activations, recurrent networks, CTC."""
