"""tf.contrib: framework, layers, opt, slim, training and what else programs of TensorFlow 1 take from it."""
