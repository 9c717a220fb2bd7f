"""tf.contrib.layers."""

CALLS: dict[str, list[str]] = {
    "contrib.layers.xavier_initializer": [
        "tf.get_variable('v', [2, 3], initializer=tf.contrib.layers.xavier_initializer())",
        "tf.get_variable('v', [2, 3], initializer=tf.contrib.layers.xavier_initializer(seed=3))",
    ],
}
