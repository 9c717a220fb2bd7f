"""Feature columns: how named features become the tensors of a model (tf.feature_column)."""
