"""Helpers of TensorFlow's internal modules that programs import."""

_LINEAR = "internal('contrib.rnn.python.ops.core_rnn_cell')._linear"
_CONFUSION = "internal('python.ops.metrics_impl')._streaming_confusion_matrix"

CALLS: dict[str, list[str]] = {
    "nn.rnn_cell._linear": [
        f"with tf.variable_scope('s'):\n  {_LINEAR}([f(2, 3), f(2, 4)], 5, True)",
        f"with tf.variable_scope('s', initializer=tf.ones_initializer()):\n  {_LINEAR}(f(2, 3), 5, False)",
        f"{_LINEAR}(f(2, 3), 4, True, tf.ones_initializer(), tf.zeros_initializer())",
    ],
    "python.ops.metrics_impl.metric_variable": [
        "internal('python.ops.metrics_impl').metric_variable([2], tf.float32, name='m')",
        "internal('python.ops.metrics_impl').metric_variable([], tf.int64, validate_shape=False, name='n')",
    ],
    "python.ops.resources.initialize_resources": [
        "from_none = internal('python.ops.resources').initialize_resources(internal('python.ops.resources').shared_resources())",
        "op = tf.no_op(name='make')\ninternal('python.ops.resources').register_resource(tf.constant(1), op, tf.constant(True))\ninternal('python.ops.resources').initialize_resources(internal('python.ops.resources').shared_resources(), 'i')",
    ],
}

#: the nodes of the table itself are those of another release
VALUES: dict[str, list[str]] = {
    "python.ops.metrics_impl._streaming_confusion_matrix": [
        f"result = {_CONFUSION}(tf.constant([1, 0]), tf.constant([1, 1]), 3)[1]",
        f"result = {_CONFUSION}(tf.constant([[1, 0]]), tf.constant([[1, 1]]), 2, tf.constant([[1., 2.]]))[1]",
    ],
}
