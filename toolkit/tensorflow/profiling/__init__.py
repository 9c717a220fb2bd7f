"""tf.profiler: what a graph has of parameters and of floating point operations, by name scope or by op."""
