"""tf.train: optimizers, learning rates, savers and checkpoints, sessions with hooks."""
