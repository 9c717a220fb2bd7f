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
    **{
        f"train.{name}": [f"{_STEP}tf.train.{call}" for call in calls]
        for name, calls in {
            "natural_exp_decay": [
                "natural_exp_decay(0.1, step, 100, 0.9, True)",
                "natural_exp_decay(d(), step, 9, 1.0)",
            ],
            "inverse_time_decay": [
                "inverse_time_decay(0.1, step, 100, 0.9)",
                "inverse_time_decay(0.1, step, 9, 0.9, True)",
            ],
            "polynomial_decay": [
                "polynomial_decay(0.1, step, 100)",
                "polynomial_decay(0.1, step, 9, 0.1, 2.0, True, 'n')",
            ],
            "cosine_decay": ["cosine_decay(0.1, step, 100)", "cosine_decay(0.1, step, 100, 0.1, name='n')"],
            "piecewise_constant_decay": [
                "piecewise_constant(step, [10, 20], [1.0, 0.5, 0.1])",
                "piecewise_constant(step, [10], [1.0, 0.5], 'n')",
            ],
            "cosine_decay_restarts": [
                "cosine_decay_restarts(0.1, step, 100)",
                "cosine_decay_restarts(0.1, step, 100, 1.5, 0.9, 0.1, 'n')",
            ],
            "linear_cosine_decay": [
                "linear_cosine_decay(0.1, step, 100)",
                "linear_cosine_decay(0.1, step, 100, 1.0, 0.1, 0.2, 'n')",
            ],
            "noisy_linear_cosine_decay": [
                "noisy_linear_cosine_decay(0.1, step, 100)",
                "noisy_linear_cosine_decay(0.1, step, 9, 2.0, 0.3, 1.0, 0.1, 0.2, 'n')",
            ],
        }.items()
    },
    "get_session_handle": ["tf.get_session_handle(f(2), name='h')", "tf.get_session_handle(s(2))"],
    "get_session_tensor": [
        "tf.get_session_tensor('h;0;/job:localhost/replica:0/task:0/device:CPU:0', tf.float32)",
        "tf.get_session_tensor('h;1;/job:localhost/replica:0/task:0/device:CPU:1', tf.int32, name='n')",
    ],
    "delete_session_tensor": [
        "tf.delete_session_tensor('h;0;/job:localhost/replica:0/task:0/device:CPU:0')",
        "tf.delete_session_tensor('h;0;/job:localhost/replica:0/task:0/device:CPU:0', name='n')",
    ],
    "make_template": separated("""
t = tf.make_template('scale', lambda x: x * tf.get_variable('w', [2]))
t(f(2))
t(f(2))
---
t = tf.make_template('scale', lambda x, y: x * tf.get_variable('w', [2]) * y, create_scope_now_=True, y=2.0)
u = tf.make_template('scale', lambda x: x * tf.get_variable('w', [2]))
u(f(2))
t(f(2))
t(f(2))
---
with tf.variable_scope('o'):
    t = tf.make_template('scale', lambda x: x * tf.get_variable('w', [2]), unique_name_='scale')
t(f(2))
"""),
    "create_partitioned_variables": [
        "tf.create_partitioned_variables([4, 2], [2, 1], tf.zeros_initializer(), name='p')",
        "tf.create_partitioned_variables([6], [3], tf.constant([1.0, 2.0, 3.0, 4.0, 5.0, 6.0]))",
    ],
    "variable_op_scope": separated("""
with tf.variable_op_scope([f(2)], 'a', 'b'):
    tf.get_variable('w', [2])
---
with tf.variable_op_scope([f(2)], None, 'b', initializer=tf.ones_initializer()):
    tf.get_variable('w', [2])
"""),
    "variable_creator_scope": separated("""
def renamed(make, **given):
    given['name'] = 'z_' + (given.get('name') or 'n')
    return make(**given)
with tf.variable_creator_scope(renamed):
    tf.Variable(1.0, name='q')
    tf.get_variable('g', [2])
tf.Variable(2.0)
---
def untrained(make, **given):
    given['trainable'] = False
    return make(**given)
with tf.variable_creator_scope(untrained):
    v = tf.Variable(1.0)
assert not tf.trainable_variables()
"""),
    "train.replica_device_setter": separated("""
with tf.device(tf.train.replica_device_setter(2)):
    a = tf.Variable(1.0)
    v = tf.get_variable('v', [2])
    a + 1.0
---
cluster = {'ps': ['a:1', 'b:2'], 'worker': ['c:3']}
with tf.device(tf.train.replica_device_setter(cluster=cluster, worker_device='/job:worker/task:0/cpu:0')):
    a = tf.Variable(1.0)
    v = tf.get_variable('v', [2])
    with tf.device('/gpu:1'):
        a * 2.0
---
with tf.device(tf.train.replica_device_setter(3, ps_strategy=lambda op: len(op.name) % 3, ps_ops=['VariableV2'])):
    a = tf.Variable(1.0, name='ab')
"""),
    "DeviceSpec": separated("""
with tf.device(tf.DeviceSpec(job='ps', task=1, device_type='CPU', device_index=0)):
    f(2)
"""),
}
