"""tf.contrib.learn."""

HOMES: dict[str, str] = {}
