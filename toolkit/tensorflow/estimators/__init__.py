"""tf.estimator: models as functions that are trained, evaluated, asked and exported."""
