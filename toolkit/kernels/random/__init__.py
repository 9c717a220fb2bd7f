"""Counter-based random numbers, vectorised: the bits that TensorFlow's CPU kernels give."""
