"""tf.test: test cases, benchmarks, and the functions beside them."""
