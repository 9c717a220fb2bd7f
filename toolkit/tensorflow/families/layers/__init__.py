"""tf.layers, tf.feature_column, tf.initializers, and what of tf.keras needs no Keras."""
