"""Feature columns of tf.contrib.layers, whose variables are made in the scopes that are open."""
