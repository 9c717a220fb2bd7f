"""NVIDIA GPUs: kernels as code (simt), the driver, streams and memory, and the libraries that are called."""
