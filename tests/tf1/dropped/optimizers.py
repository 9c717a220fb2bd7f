"""tf.contrib.opt."""

_MADE = """
r = np.random.RandomState(6)
v = tf.get_variable('v', [4, 3])
loss = tf.reduce_sum(tf.square(%s - r.rand(3).astype('f')))
optimizer = tf.contrib.opt.%s
train = optimizer.minimize(loss)
with tf.control_dependencies([train]):
    loss = tf.identity(tf.reduce_sum(v.read_value() * v.read_value()))
result = loss
"""
#: in 1.15 nothing says whether a gradient is of the variable before it decays or after; here it is of neither
_MADE_LINEAR = _MADE.replace("tf.square(%s - r.rand(3).astype('f'))", "v * r.rand(3).astype('f')")
_DENSE, _ROWS = "v", "tf.gather(v, [0, 2])"


def _both(call: str) -> list[str]:
    return [_MADE % (part, call) for part in (_DENSE, _ROWS)]


_STEP = "step = tf.train.get_or_create_global_step()\n"


def _around(call: str, part: str = _DENSE) -> str:
    """The global step is counted, too."""
    return (
        (_MADE % (part, call))
        .replace("minimize(loss)", "minimize(loss, global_step=step)")
        .replace("loss = tf.reduce_sum", _STEP + "loss = tf.reduce_sum", 1)
    )


VALUES: dict[str, list[str]] = {
    "contrib.opt.AdaMaxOptimizer": _both("AdaMaxOptimizer(0.1, epsilon=0.01)"),
    "contrib.opt.AdamGSOptimizer": _both("AdamGSOptimizer(3, 0.1)"),
    "contrib.opt.LazyAdamGSOptimizer": _both("LazyAdamGSOptimizer(3, 0.1)"),
    "contrib.opt.RegAdagradOptimizer": [
        *_both("RegAdagradOptimizer(0.1)"),
        (_MADE % (_DENSE, "RegAdagradOptimizer(0.1)")).replace(
            "train = ", "with optimizer.avoid_updating_slots():\n    train = "
        ),
    ],
    "contrib.opt.AddSignOptimizer": [
        *_both("AddSignOptimizer(0.1)"),
        _around("AddSignOptimizer(0.1, 2.0, 0.5, lambda step: 0.7)"),
    ],
    "contrib.opt.PowerSignOptimizer": [
        *_both("PowerSignOptimizer(0.1)"),
        _around("PowerSignOptimizer(0.1, 3.0, 0.5, lambda step: 0.7)"),
    ],
    "contrib.opt.MovingAverageOptimizer": [
        _around(f"MovingAverageOptimizer(tf.train.GradientDescentOptimizer(0.1), 0.5{more})").replace(
            "result = loss",
            "with tf.control_dependencies([loss]):\n"
            "    result = [loss] + [tf.identity(w) for w in tf.moving_average_variables()]",
        )
        for more in ("", ", 3")
    ],
    "contrib.opt.VariableClippingOptimizer": [
        _around(f"VariableClippingOptimizer(tf.train.GradientDescentOptimizer(0.1), {{v: [{axis}]}}, 0.2{more})", part)
        for axis, more, part in ((1, "", _DENSE), (0, ", colocate_clip_ops_with_vars=True", _DENSE), (1, "", _ROWS))
    ],
    "contrib.opt.MultitaskOptimizerWrapper": [
        _around("MultitaskOptimizerWrapper(tf.train.MomentumOptimizer(0.1, 0.9))"),
        _around("MultitaskOptimizerWrapper(tf.train.AdamOptimizer(0.1))", "(0.0 * v)"),
    ],
    "contrib.opt.AdamWOptimizer": _both("AdamWOptimizer(0.01, 0.1)"),
    "contrib.opt.MomentumWOptimizer": [
        _MADE_LINEAR % call
        for call in ("MomentumWOptimizer(0.01, 0.1, 0.9)", "MomentumWOptimizer(0.1, 0.1, 0.9, use_nesterov=True)")
    ],
    "contrib.opt.NadamOptimizer": _both("NadamOptimizer(0.1)"),
    "contrib.opt.LazyAdamOptimizer": _both("LazyAdamOptimizer(0.1)"),
    "contrib.opt.LARSOptimizer": [_MADE % (_DENSE, "LARSOptimizer(0.1)"), _MADE % (_DENSE, "LARSOptimizer(1.0, 0.5)")],
    "contrib.opt.extend_with_decoupled_weight_decay": [
        _MADE_LINEAR % (f"extend_with_decoupled_weight_decay(tf.train.{base})(weight_decay=0.1, learning_rate=0.2)")
        for base in ("GradientDescentOptimizer", "AdagradOptimizer")
    ],
    "contrib.opt.clip_gradients_by_global_norm": [
        "v = tf.get_variable('v', [3])\n"
        f"pairs, norm = tf.contrib.opt.clip_gradients_by_global_norm([(v * 9.0, v), (v * 2.0, v)], {norm})\n"
        "result = [pairs[0][0], norm]"
        for norm in (0.5, 100.0)
    ],
}
