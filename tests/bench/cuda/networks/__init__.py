"""What is measured: networks, each written for ours, PyTorch and JAX."""
