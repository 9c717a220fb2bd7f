"""Invertible functions of random variables, with the logarithms of their Jacobian determinants (tf.contrib)."""
