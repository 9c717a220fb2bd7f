"""How tensors lie in memory: the order of axes and rows, and transpositions that become strides of products."""
