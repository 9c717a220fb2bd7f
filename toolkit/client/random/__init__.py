"""Random tensors, and the seeds that they are drawn by."""
