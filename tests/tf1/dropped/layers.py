"""tf.contrib.layers."""

_IMAGE = "f(2, 8, 8, 4)"
_L = "tf.contrib.layers"
_ZERO = "weights_initializer=tf.zeros_initializer()"
_UPDATES = "\ntf.group(*tf.get_collection(tf.GraphKeys.UPDATE_OPS))"


def _each(name: str, *arguments: str) -> list[str]:
    return [f"{_L}.{name}({each})" for each in arguments]


def _values(name: str, *arguments: str) -> list[str]:
    return [
        f"x = tf.constant(np.arange(-12., 12.).reshape(2, 3, 4).astype('f'))\nresult = {_L}.{name}({each})"
        for each in arguments
    ]


CALLS: dict[str, list[str]] = {
    "contrib.layers.xavier_initializer": [
        "tf.get_variable('v', [2, 3], initializer=tf.contrib.layers.xavier_initializer())",
        "tf.get_variable('v', [2, 3], initializer=tf.contrib.layers.xavier_initializer(seed=3))",
        "tf.get_variable('v', [3, 3, 2, 3], initializer=tf.contrib.layers.xavier_initializer(False, 3))",
    ],
    "contrib.layers.variance_scaling_initializer": [
        "tf.get_variable('v', [2, 3], initializer=tf.contrib.layers.variance_scaling_initializer())",
        "tf.get_variable('v', [5], initializer=tf.contrib.layers.variance_scaling_initializer(1., 'FAN_OUT', True, 3))",
        "tf.contrib.layers.variance_scaling_initializer(mode='FAN_AVG', seed=3)([3, 3, 2, 4])",
    ],
    "contrib.layers.fully_connected": [
        *_each("fully_connected", "f(4, 3), 5", "f(4, 3), 5, tf.tanh, weights_regularizer=tf.contrib.layers.l2_regularizer(0.1), scope='s'",
               "f(4, 2, 3), 5, None, biases_initializer=None", "f(4, 3), 5, normalizer_fn=tf.contrib.layers.batch_norm, normalizer_params={'is_training': True}",
               "f(4, 3), 5, variables_collections={'weights': ['w']}, outputs_collections='o', trainable=False"),
        f"with tf.variable_scope('net'):\n  {_L}.fully_connected(f(4, 3), 2, scope='a')\n  {_L}.fully_connected(f(4, 3), 2, scope='a', reuse=True)\n  {_L}.fully_connected(f(4, 3), 2)",
        f"with tf.contrib.framework.arg_scope([{_L}.fully_connected], activation_fn=None, {_ZERO}):\n  {_L}.fully_connected(f(4, 3), 2)",
        f"with tf.variable_scope('net', regularizer={_L}.l2_regularizer(0.1)):\n  {_L}.fully_connected(f(4, 3), 2)",
    ],
    "contrib.layers.relu": _each("relu", "f(4, 3), 5", "f(4, 3), 5, scope='s'"),
    "contrib.layers.relu6": _each("relu6", "f(4, 3), 5", "f(4, 3), 5, scope='s'"),
    "contrib.layers.elu": _each("elu", "f(4, 3), 5", "f(4, 3), 5, scope='s'"),
    "contrib.layers.linear": _each("linear", "f(4, 3), 5", f"f(4, 3), 5, {_ZERO}"),
    "contrib.layers.bias_add": _each("bias_add", "f(4, 3)", f"{_IMAGE}, tf.nn.relu, scope='s'", "f(2, 3, 8, 8), data_format='NCHW', regularizer=tf.nn.l2_loss"),
    "contrib.layers.legacy_fully_connected": _each("legacy_fully_connected", "f(4, 3), 5", "f(4, 2, 3), 5, tf.nn.relu, name='n'", "f(4, 3), 5, bias_init=None"),
    "contrib.layers.legacy_relu": _each("legacy_relu", "f(4, 3), 5", "f(4, 2, 3), 5, name='n'"),
    "contrib.layers.legacy_linear": _each("legacy_linear", "f(4, 3), 5", "f(4, 3), 5, name='n'"),
    "contrib.layers.convolution": _each("convolution", f"{_IMAGE}, 4, 3", "f(2, 4, 8, 8, 3), 4, 3, 2, 'VALID', scope='s'", f"{_IMAGE}, 4, 3, rate=2"),
    "contrib.layers.conv1d": _each("conv1d", "f(2, 8, 3), 4, 3", "f(2, 8, 3), 4, 3, 2, 'VALID', scope='s'"),
    "contrib.layers.conv2d": [
        *_each("conv2d", f"{_IMAGE}, 4, 3", f"{_IMAGE}, 4, [3, 2], (2, 1), 'VALID', activation_fn=None, scope='s'", "f(2, 3, 8, 8), 4, 3, data_format='NCHW'",
               f"{_IMAGE}, 4, 1, normalizer_fn={_L}.batch_norm, normalizer_params={{'decay': 0.9, 'scale': True}}",
               f"{_IMAGE}, 4, 3, biases_initializer=None, weights_regularizer={_L}.l1_regularizer(0.1)"),
        f"with tf.contrib.framework.arg_scope([{_L}.conv2d], padding='VALID', stride=2):\n  x = {_L}.conv2d({_IMAGE}, 4, 3)\n  {_L}.conv2d(x, 4, 3, stride=1)",
        f"with tf.contrib.framework.arg_scope([tf.contrib.framework.model_variable], device='/cpu:0'):\n  {_L}.conv2d({_IMAGE}, 4, 3)",
    ],
    "contrib.layers.conv3d": _each("conv3d", "f(2, 4, 8, 8, 3), 4, 3", "f(2, 4, 8, 8, 3), 4, 3, 2, 'VALID', scope='s'"),
    "contrib.layers.conv2d_transpose": _each("conv2d_transpose", f"{_IMAGE}, 4, 3", "f(None, 8, 8, 3), 4, 5, 2, scope='s'", f"{_IMAGE}, 4, 3, normalizer_fn={_L}.batch_norm, activation_fn=tf.nn.tanh"),
    "contrib.layers.conv3d_transpose": _each("conv3d_transpose", "f(2, 4, 4, 4, 3), 4, 3", "f(2, 4, 4, 4, 3), 4, 3, 2, scope='s'"),
    "contrib.layers.conv2d_in_plane": _each("conv2d_in_plane", f"{_IMAGE}, 3", f"{_IMAGE}, [3, 2], 2, activation_fn=None, normalizer_fn={_L}.batch_norm, scope='s'"),
    "contrib.layers.separable_conv2d": _each("separable_conv2d", f"{_IMAGE}, 4, 3", f"{_IMAGE}, 4, [3, 3], 2, stride=2, scope='s'", f"{_IMAGE}, None, 3", f"{_IMAGE}, None, 3, normalizer_fn={_L}.batch_norm, scope='s'"),
    **{f"contrib.layers.{kind}_pool2d": _each(f"{kind}_pool2d", f"{_IMAGE}, 2", f"{_IMAGE}, [3, 3], 1, 'SAME', scope='s'", "f(2, 3, 8, 8), 2, data_format='NCHW', outputs_collections='o'") for kind in ("avg", "max")},
    **{f"contrib.layers.{kind}_pool3d": _each(f"{kind}_pool3d", "f(2, 4, 4, 4, 3), 2", "f(2, 4, 4, 4, 3), 3, 1, 'SAME', scope='s'") for kind in ("avg", "max")},
    "contrib.slim.pool": [f"tf.contrib.slim.pool({each})" for each in (f"{_IMAGE}, 2, 'MAX'", f"{_IMAGE}, [3, 3], 'AVG', stride=2, scope='s'")],
    "contrib.layers.batch_norm": [
        *_each("batch_norm", f"{_IMAGE}", f"{_IMAGE}, is_training=False, scale=True, scope='s'", f"{_IMAGE}, updates_collections=None", "f(4, 3)", "f(4, 3), updates_collections=None",
               "f(4, 3), fused=False", "f(4, 3), fused=False, updates_collections=None, center=False, scale=True, activation_fn=tf.nn.relu",
               "f(2, 3, 8, 8), data_format='NCHW'", "f(2, 3, 8, 8), data_format='NCHW', fused=False, updates_collections=None", "f(4, 3), is_training=b()",
               "f(4, 3), fused=False, is_training=b(), updates_collections=None", "f(4, 3), updates_collections='other', is_training=b()", "f(4, 3), batch_weights=f(4)",
               "f(4, 3), variables_collections={'beta': ['b']}, param_initializers={'beta': tf.ones_initializer()}", "f(4, 2, 3), fused=False"),
        f"{_L}.batch_norm({_IMAGE}, decay=0.9){_UPDATES}", f"{_L}.batch_norm({_IMAGE}, is_training=b()){_UPDATES}",
    ],
    "contrib.layers.layer_norm": _each("layer_norm", "f(4, 3)", "f(4, 2, 3), begin_norm_axis=-1, activation_fn=tf.nn.relu, scope='s'", "f(4, 2, 3), center=False, begin_params_axis=1"),
    "contrib.layers.instance_norm": _each("instance_norm", f"{_IMAGE}", "f(2, 3, 8, 8), data_format='NCHW', scope='s'", f"{_IMAGE}, center=False, scale=False"),
    "contrib.layers.group_norm": _each("group_norm", f"{_IMAGE}, 2", f"{_IMAGE}, 2, scale=False, mean_close_to_zero=True, scope='s'", "f(None, 4, 8, 8), 2, 1, (2, 3)"),
    "contrib.layers.flatten": _each("flatten", "f(4, 3, 2)", "f(None, 3, 2), scope='s'"),
    "contrib.layers.one_hot_encoding": _each("one_hot_encoding", "l(4), 3", "i(4), 3, scope='s'"),
    "contrib.layers.dense_to_sparse": _each("dense_to_sparse", "i(4, 3)", "l(4, 3), -1, scope='s'"),
    "contrib.layers.images_to_sequence": _each("images_to_sequence", f"{_IMAGE}", "f(2, 3, 8, 8), 'NCHW', scope='s'"),
    "contrib.layers.sequence_to_images": _each("sequence_to_images", "f(8, 6, 3), 2", "f(8, 6, 3), 3, 'channels_first', scope='s'"),
    "contrib.layers.softmax": _each("softmax", "f(4, 3)", "f(None, 2, 3), scope='s'"),
    "contrib.layers.unit_norm": _each("unit_norm", "f(4, 3), 1", "f(4, 3, 2), 1, 0.1, scope='s'"),
    "contrib.layers.maxout": _each("maxout", "f(4, 6), 3", "f(None, 6, 4), 2, 1, scope='s'"),
    "contrib.layers.spatial_softmax": _each("spatial_softmax", f"{_IMAGE}", "f(2, 3, 8, 8), 0.5, 'n', data_format='NCHW'", f"{_IMAGE}, trainable=False"),
    "contrib.layers.repeat": _each("repeat", f"{_IMAGE}, 2, {_L}.conv2d, 3, [3, 3]", f"f(4, 3), 2, {_L}.relu, 3", f"{_IMAGE}, 2, {_L}.conv2d, 3, 1, scope='s'"),
    "contrib.layers.stack": _each("stack", f"f(4, 3), {_L}.fully_connected, [3, 2]", f"f(4, 3), {_L}.linear, [3]", f"{_IMAGE}, {_L}.conv2d, [(3, 1), (2, [2, 2])], padding='VALID', scope='s'"),
    "contrib.layers.l1_regularizer": [f"{_L}.l1_regularizer(0.1)(f(2))", f"{_L}.l1_regularizer(0.1, 's')(tf.get_variable('v', [2]))", f"{_L}.l1_regularizer(0.0)(f(2))"],
    "contrib.layers.l2_regularizer": [f"{_L}.l2_regularizer(0.1)(f(2))", f"{_L}.l2_regularizer(tf.constant(0.1), 's')(f(2))"],
    "contrib.layers.l1_l2_regularizer": [f"{_L}.l1_l2_regularizer(0.1, 0.2)(f(2))", f"{_L}.l1_l2_regularizer(0.0, 0.2)(f(2))", f"{_L}.l1_l2_regularizer(0.1, 0.0, 's')(f(2))"],
    "contrib.layers.sum_regularizer": [f"{_L}.sum_regularizer([{_L}.l1_regularizer(0.1), None, {_L}.l2_regularizer(0.1)])(f(2))", f"{_L}.sum_regularizer([{_L}.l1_regularizer(0.1)], 's')(f(2))"],
    "contrib.layers.apply_regularization": _each("apply_regularization", f"{_L}.l2_regularizer(0.1), [f(2), f(3)]", f"{_L}.l1_regularizer(0.0), [f(2)]"),
    "contrib.layers.embed_sequence": _each("embed_sequence", "i(4, 3), 10, 5", "l(4, 3), 10, 5, unique=True, scope='s'", "i(4, 3), 10, 5, trainable=False"),
    "contrib.layers.embedding_lookup_unique": _each("embedding_lookup_unique", "f(10, 3), i(4, 2)", "[f(5, 3), f(5, 3)], i(4), name='n'"),
    "contrib.layers.summarize_activation": _each("summarize_activation", "tf.nn.relu(f(3))", "tf.nn.relu6(f(3), name='n')", "tf.tanh(f(3))"),
    "contrib.layers.summarize_tensor": _each("summarize_tensor", "f(3)", "f(), 'tag'", "s(2)", "tf.get_variable('v', [2])"),
    "contrib.layers.summarize_tensors": _each("summarize_tensors", "[f(3), f()]", f"[tf.nn.relu(f(3))], {_L}.summarize_activation"),
    "contrib.layers.summarize_collection": [f"tf.add_to_collection('c', f(3, ))\n{_L}.summarize_collection('c')", f"tf.add_to_collection('c', f(3))\ntf.add_to_collection('c', tf.tanh(f()))\n{_L}.summarize_collection('c', 'T')"],
    "contrib.layers.summarize_activations": [f"{_L}.legacy_relu(f(4, 3), 2)\n{_L}.summarize_activations()", f"{_L}.legacy_relu(f(4, 3), 2)\n{_L}.summarize_activations('x')"],
    **{f"contrib.slim.summarize_{what}": [f"{_L}.legacy_relu(f(4, 3), 2)\ntf.contrib.slim.summarize_{what}()", f"{_L}.legacy_relu(f(4, 3), 2)\ntf.contrib.slim.summarize_{what}('.*w')"] for what in ("variables", "weights", "biases")},
}  # fmt: skip

_DATA = "x = tf.constant(np.arange(-12., 12.).reshape(4, 6).astype('f'))\n"
_LOSS = f"{_DATA}step = tf.train.get_or_create_global_step()\nloss = tf.reduce_mean(tf.square({_L}.linear(x, 2)))\n"
_IDS = "tf.SparseTensor([[0, 0], [0, 2], [2, 1]], tf.constant([1, 3, -1], tf.int64), [4, 3])"
_WEIGHTS = "tf.SparseTensor([[0, 0], [0, 2], [2, 1]], [1., -2., .5], [4, 3])"


def _optimized(*arguments: str) -> list[str]:
    """A step, then the loss, the number of summaries and steps."""
    return [
        (f"{_LOSS}op = {_L}.optimize_loss(loss, step, {each})\nwith tf.control_dependencies([op]):\n  again = tf.identity(step)\n"
         "result = [op, again, len(tf.get_collection(tf.GraphKeys.SUMMARIES)), str([v.name for v in tf.trainable_variables()])]")
        for each in arguments
    ]  # fmt: skip


VALUES: dict[str, list[str]] = {
    "contrib.layers.dropout": [f"{_DATA}result = [{_L}.dropout(x, is_training=False), tf.shape({_L}.dropout(x, 0.3, scope='s'))]", f"{_DATA}result = {_L}.dropout(x, 1.0, is_training=tf.constant(True))"],
    "contrib.layers.optimize_loss": _optimized("0.1, 'SGD'", "0.1, 'Adam', clip_gradients=0.5, learning_rate_decay_fn=lambda r, s: tf.train.exponential_decay(r, s, 10, 0.5)",
                                               "tf.constant(0.1), tf.train.GradientDescentOptimizer, gradient_multipliers={'fully_connected/weights:0': 2.}, summaries=['gradients', 'gradient_norm']",
                                               "None, lambda: tf.train.MomentumOptimizer(0.1, 0.5), increment_global_step=False, name='n'", "0.1, tf.train.GradientDescentOptimizer(0.2), variables=tf.trainable_variables()[:1]",
                                               "0.1, 'Momentum', clip_gradients=tf.contrib.slim.adaptive_clipping_fn(decay=0.9)"),
    "contrib.slim.adaptive_clipping_fn": [
        f"{_LOSS}pairs = tf.train.GradientDescentOptimizer(1.).compute_gradients(loss)\nresult = [g for g, v in tf.contrib.slim.adaptive_clipping_fn({each})(pairs)]"
        for each in ("", "3., 0.5, 0.1, step, True, name='n'")
    ],
    "contrib.layers.bow_encoder": [f"ids = tf.constant([[1, 2, 0], [3, 0, 0], [0, 0, 0]])\nresult = {_L}.bow_encoder(ids, 5, 4{each})" for each in ("", ", False", ", scope='s', trainable=False")],
    "contrib.layers.safe_embedding_lookup_sparse": [
        f"w = tf.get_variable('w', [5, 2])\nresult = {_L}.safe_embedding_lookup_sparse({each})"
        for each in (f"w, {_IDS}", f"[w], {_IDS}, {_WEIGHTS}, combiner='sum'", f"w, {_IDS}, {_WEIGHTS}, 'sqrtn', default_id=2, name='n'")
    ],
    **{f"contrib.layers.{name}": _values(name, *calls) for name, calls in {
        "maxout": ["x, 2", "x, 1, 1"], "softmax": ["x", "x, scope='s'"], "unit_norm": ["x, 1", "x, 0"], "layer_norm": ["x", "x, begin_norm_axis=2"],
        "instance_norm": ["tf.expand_dims(x, 3)", "tf.expand_dims(x, 3), epsilon=0.1"], "group_norm": ["tf.expand_dims(x, 1), 2", "tf.expand_dims(x, 1), 2, mean_close_to_zero=True"],
        "spatial_softmax": ["tf.expand_dims(x, 3)", "tf.expand_dims(x, 3), 0.5, data_format='NCHW'"], "batch_norm": ["x, fused=False", "x[0]", "x[0], is_training=False", "x[0], updates_collections=None, decay=0.5", "x[0], fused=False, batch_weights=[1., 2., 0.]"],
    }.items()},
}  # fmt: skip

DIFFERING: dict[str, str] = dict.fromkeys(
    (
        code
        for name in ("conv1d", "one_hot_encoding", "unit_norm", "spatial_softmax")
        for code in CALLS[f"contrib.layers.{name}"]
    ),
    "later releases count axes, and make ones, by other nodes, of the same values",
) | {"tf.contrib.layers.batch_norm(f(4, 3), batch_weights=f(4))": "later releases take weighted moments by DivNoNan"}
