"""tf.contrib.learn: the estimators from before tf.estimator, with what programs put around them."""
