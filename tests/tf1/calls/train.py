"""Calls of tf.train: optimizers, averages, what sessions begin with."""

from tests.tf1.calls import separated

_LOSS = "v = tf.get_variable('v', [5, 2])\nloss = tf.reduce_sum(v * v)\n"
_ROWS = "v = tf.get_variable('v', [5, 2])\nloss = tf.reduce_sum(tf.gather(v, [0, 2, 2]))\n"
_STEP = "step = tf.train.get_or_create_global_step()\n"

_OPTIMIZERS = (
    "FtrlOptimizer(0.1, l2_shrinkage_regularization_strength=0.1, beta=0.2, accum_name='acc')",
    "FtrlOptimizer(0.1)",
    "AdagradDAOptimizer(0.1, step, l1_regularization_strength=0.01)",
    "ProximalAdagradOptimizer(0.1, l2_regularization_strength=0.01, name='n')",
    "ProximalGradientDescentOptimizer(0.1, 0.01, 0.02)",
    "GradientDescentOptimizer(0.1)",
    "AdamOptimizer(0.1)",
)

CALLS = {
    "train.Optimizer": [
        f"{_STEP}{loss}tf.train.{optimizer}.minimize(loss, global_step=step)"
        for loss in (_LOSS, _ROWS)
        for optimizer in _OPTIMIZERS
    ],
    "train.ExponentialMovingAverage": separated("""
v = tf.Variable([1.0, 2.0])
ema = tf.train.ExponentialMovingAverage(0.9, num_updates=tf.Variable(0))
ema.apply([v, v * 2.0])
ema.apply([v])
---
ema = tf.train.ExponentialMovingAverage(0.9, zero_debias=True, name='E')
ema.apply([f(2)])
---
v = tf.get_variable('v', [2], tf.float64)
ema = tf.train.ExponentialMovingAverage(0.9)
ema.apply()
tf.train.Saver(ema.variables_to_restore())
"""),
    "train.Scaffold": separated("""
tf.train.get_or_create_global_step()
v = tf.get_variable('v', [2])
tf.train.Scaffold().finalize()
---
tf.train.get_or_create_global_step()
v = tf.get_local_variable('v', [2])
tf.summary.scalar('a', f())
tf.train.StopAtStepHook(3).begin()
tf.train.Scaffold(saver=tf.train.Saver(defer_build=True)).finalize()
---
step = tf.get_variable('global_step', [], tf.int64, tf.zeros_initializer(), trainable=False)
tf.train.StopAtStepHook(3).begin()
tf.train.Scaffold(init_op=tf.no_op(), local_init_op=tf.no_op()).finalize()
"""),
}
