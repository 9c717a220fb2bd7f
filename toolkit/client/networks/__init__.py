"""Networks for images, with the variables of the checkpoints that were published for them (tf.contrib.slim.nets)."""
