"""tf.contrib.training's hyperparameters."""

HOMES: dict[str, str] = {
    "toolkit.tensorflow.families.hyperparameters": "contrib.training.HParams contrib.training.parse_values",
}
