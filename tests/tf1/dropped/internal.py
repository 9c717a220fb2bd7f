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
    "python.training.moving_averages.assign_moving_average": [
        "w = tf.get_variable('w', [2])\ninternal('python.training.moving_averages').assign_moving_average(w, [1., 2.], 0.9, zero_debias=False)",
        "w = tf.get_variable('w', [2])\nwith tf.name_scope('s'):\n  internal('python.training.moving_averages').assign_moving_average(w, f(2), tf.constant(0.5), name='n')",
    ],
    "contrib.layers.utils.last_dimension": [
        "u = internal('contrib.layers.python.layers.utils')\ntf.zeros([u.last_dimension(f(2, 3).shape, 2)])",
        "u = internal('contrib.layers.python.layers.utils')\ntf.zeros([u.channel_dimension(f(2, 3, 4).shape, 'channels_first')])",
    ],
    "contrib.layers.conv2d": [
        "x = f(1, 4, 5, 2)\ntf.contrib.layers.conv2d(x, 3, x.get_shape()[1:3], padding='VALID')",
        "x = f(1, 4, 5, 2)\ntf.contrib.layers.avg_pool2d(x, x.get_shape()[1:3])\ntf.contrib.layers.conv2d(x, 3, (np.int32(2), 1))",
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
