"""Generators and discriminators that learn against each other (tf.contrib.gan).

Source: Goodfellow et al., "Generative Adversarial Networks", 2014; each loss names its own.
"""
