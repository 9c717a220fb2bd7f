"""Points put into groups (tf.contrib.factorization)."""
