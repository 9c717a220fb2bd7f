"""Counter-based random number generators and the distributions TensorFlow draws from them, bit for bit."""
