"""Optimizers around optimizers: gradients of several replicas, scaled losses."""

from tests.tf1.calls import separated

_DYNAMIC = separated("""
s = tf.mixed_precision.DynamicLossScale(4., 2, 3.)
s()
s.update([f(2), None])
---
v = tf.Variable([1., 2.])
e = tf.get_variable('e', [4, 2], use_resource=False)
o = tf.mixed_precision.MixedPrecisionLossScaleOptimizer(tf.train.AdamOptimizer(0.1), 'dynamic')
o.minimize(tf.reduce_sum(tf.gather(e, [0, 1]) * v), global_step=tf.train.create_global_step())
---
v = tf.Variable(1.)
o = tf.train.GradientDescentOptimizer(0.1)
tf.mixed_precision.enable_mixed_precision_graph_rewrite(o).minimize(v * v)
""")
#: variables of resources, and a list reduced
DIFFERING = _DYNAMIC

CALLS: dict[str, list[str]] = {
    "train.SyncReplicasOptimizer": separated("""
v = tf.Variable([1., 2.], name='v')
step = tf.train.create_global_step()
o = tf.train.SyncReplicasOptimizer(tf.train.MomentumOptimizer(0.1, 0.9), 2, total_num_replicas=3)
o.minimize(tf.reduce_sum(v * v), global_step=step)
o.get_init_tokens_op()
o.get_init_tokens_op(0)
---
e = tf.get_variable('e', [4, 2], initializer=tf.zeros_initializer(), use_resource=False)
with tf.device('/job:ps/task:0'): w = tf.Variable(1.0)
u = tf.Variable(1.0)
step = tf.Variable(0, trainable=False, name='step', dtype=tf.int64)
ema = tf.train.ExponentialMovingAverage(0.9)
o = tf.train.SyncReplicasOptimizer(tf.train.GradientDescentOptimizer(0.1), 4, 2, ema, [w], name='n')
o.minimize(tf.reduce_sum(tf.gather(e, [0, 1]) * w), global_step=step, var_list=[e, w, u])
o.get_init_tokens_op(5)
"""),
    "mixed_precision.DynamicLossScale": [_DYNAMIC[0], "s = tf.mixed_precision.FixedLossScale(3)\ns()\ns.update([])"],
    "mixed_precision.MixedPrecisionLossScaleOptimizer": separated("""
v = tf.Variable([1., 2.])
o = tf.mixed_precision.MixedPrecisionLossScaleOptimizer(tf.train.GradientDescentOptimizer(0.1), 8)
o.minimize(tf.reduce_sum(v * v))
"""),
    "mixed_precision.enable_mixed_precision_graph_rewrite": _DYNAMIC[1:] + separated("""
v = tf.Variable(1.)
o = tf.train.AdamOptimizer(0.1)
tf.mixed_precision.enable_mixed_precision_graph_rewrite(o, 4.).minimize(v * v)
"""),
    "mixed_precision.disable_mixed_precision_graph_rewrite": [
        "tf.mixed_precision.disable_mixed_precision_graph_rewrite()",
        "f(2)\ntf.mixed_precision.disable_mixed_precision_graph_rewrite()",
    ],
}  # fmt: skip
