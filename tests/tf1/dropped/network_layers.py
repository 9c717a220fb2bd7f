"""tf.layers."""

_IMAGE = "f(2, 8, 8, 3)"

CALLS: dict[str, list[str]] = {
    "layers.dense": [
        "tf.layers.dense(f(4, 3), 5, activation=tf.nn.relu)",
        "tf.layers.dense(f(4, 3), 5, name='a', kernel_regularizer=lambda w: tf.nn.l2_loss(w))\ntf.layers.dense(f(4, 3), 5, name='a', reuse=True)",
        "tf.layers.dense(f(None, 3), 5, use_bias=False)\ntf.layers.dense(f(None, 3), 2, tf.tanh)",
        "tf.layers.dense(f(4, 2, 3), 5)",
        "with tf.variable_scope('net', reuse=tf.AUTO_REUSE):\n  tf.layers.dense(f(4, 3), 2, name='a')\n  tf.layers.dense(f(4, 3), 2, name='a')",
        "tf.layers.dense(f(4, 3), 2, kernel_initializer=tf.zeros_initializer(), activity_regularizer=lambda y: tf.reduce_sum(y))",
    ],
    "layers.dropout": ["tf.layers.dropout(f(4, 3))", "tf.layers.dropout(f(4, 3), 0.25, training=True, seed=3, name='n')",
                       "tf.layers.dropout(f(4, 3), training=b())"],
    "layers.flatten": ["tf.layers.flatten(f(4, 3, 2))", "tf.layers.flatten(f(None, 3, 2), name='n')", "tf.layers.flatten(f(None, None, 2))"],
    "layers.conv1d": ["tf.layers.conv1d(f(2, 8, 3), 4, 3)", "tf.layers.conv1d(f(2, 8, 3), 4, 3, 2, 'same', activation=tf.nn.relu, name='n')"],
    "layers.conv2d": [
        f"tf.layers.conv2d({_IMAGE}, 4, 3)", f"tf.layers.conv2d({_IMAGE}, 4, [3, 2], (2, 1), 'same', activation=tf.nn.relu, name='n')",
        f"tf.layers.conv2d({_IMAGE}, 4, 3, dilation_rate=2)", "tf.layers.conv2d(f(2, 3, 8, 8), 4, 3, data_format='channels_first')",
        f"tf.layers.conv2d({_IMAGE}, 4, 1, use_bias=False)\ntf.layers.conv2d({_IMAGE}, 4, 1, use_bias=False)",
    ],
    "layers.conv3d": ["tf.layers.conv3d(f(2, 4, 8, 8, 3), 4, 3)", "tf.layers.conv3d(f(2, 4, 8, 8, 3), 4, 3, 2, 'same', name='n')"],
    "layers.conv2d_transpose": [
        f"tf.layers.conv2d_transpose({_IMAGE}, 4, 3)", "tf.layers.conv2d_transpose(f(None, 8, 8, 3), 4, 5, 2, 'same', name='n')",
    ],
    "layers.conv3d_transpose": ["tf.layers.conv3d_transpose(f(2, 4, 4, 4, 3), 4, 3)",
                                "tf.layers.conv3d_transpose(f(2, 4, 4, 4, 3), 4, 3, 2, 'same', name='n')"],
    "layers.separable_conv1d": ["tf.layers.separable_conv1d(f(2, 8, 3), 4, 3)", "tf.layers.separable_conv1d(f(2, 8, 3), 4, 3, padding='same', name='n')"],
    "layers.separable_conv2d": [f"tf.layers.separable_conv2d({_IMAGE}, 4, 3)",
                                f"tf.layers.separable_conv2d({_IMAGE}, 4, 3, padding='same', depth_multiplier=2, name='n')"],
    **{f"layers.{kind}_pooling{n}d": [
        f"tf.layers.{kind}_pooling{n}d(f(2, {'8, ' * n}3), 2, 2)", f"tf.layers.{kind}_pooling{n}d(f(2, {'8, ' * n}3), 3, 2, 'same', name='n')",
    ] for kind in ("max", "average") for n in (1, 2, 3)},
    "layers.batch_normalization": [
        f"tf.layers.batch_normalization({_IMAGE})", f"tf.layers.batch_normalization({_IMAGE}, training=True, name='n')",
        f"tf.layers.batch_normalization({_IMAGE}, training=b())", "tf.layers.batch_normalization(f(4, 3), training=True)",
        "tf.layers.batch_normalization(f(4, 3), training=b(), scale=False)", "tf.layers.batch_normalization(f(4, 3), center=False)",
        (f"tf.layers.batch_normalization({_IMAGE}, center=False, scale=False, momentum=0.9, training=True)\n"
        "tf.group(*tf.get_collection(tf.GraphKeys.UPDATE_OPS))"),
        "tf.layers.batch_normalization(f(2, 3, 8, 8), axis=1, training=True)",
    ],
    "layers.Dense": ["d = tf.layers.Dense(3)\nd(f(4, 3))\nd(f(4, 3))\ntf.layers.Dense(3)(f(4, 3))",
                     "a, b = tf.layers.Dense(3), tf.layers.Dense(3, name='x')\nb(f(2, 2))\na.apply(f(2, 2))\nb(f(2, 2))"],
    "layers.Layer": [
        ("class Scale(tf.layers.Layer):\n  def build(self, shape):\n    self.w = self.add_variable('w', [int(shape[-1])], tf.float32, tf.ones_initializer())\n"
         "  def call(self, x):\n    return x * self.w\nScale()(f(2, 3))\nScale(name='n', trainable=False)(f(2, 3))"),
        "class Twice(tf.layers.Layer):\n  def call(self, x):\n    return 2.0 * x\nt = Twice()\nt(t(f(2)))",
    ],
    "layers.Conv2D": [f"c = tf.layers.Conv2D(2, 3, activation='relu')\nc({_IMAGE})\nc({_IMAGE})", f"tf.layers.Conv2D(2, 3, trainable=False)({_IMAGE})"],
}  # fmt: skip

DIFFERING: dict[str, str] = {
    code: "later releases draw, scale and count axes by other nodes, of the same values"
    for name in ("layers.conv1d", "layers.dropout")
    for code in CALLS[name]
    if code != "tf.layers.dropout(f(4, 3))"
}
