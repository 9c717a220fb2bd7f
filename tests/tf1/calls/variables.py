"""Variables, their scopes, initializers, conditionals, gradients, training, summaries, savers."""


def _scatter(name: str) -> list[str]:
    variable = "v = tf.get_variable('v', [4, 2])"
    return [f"{variable}\ntf.{name}(v, [0], f(1, 2))", f"{variable}\ntf.{name}(v, i(2), f(2, 2), name='n')"]


def _optimizer(call: str) -> list[str]:
    model = "w = tf.get_variable('w', [3, 1])\nloss = tf.reduce_mean(tf.square(tf.matmul(f(4, 3), w)))"
    return [f"{model}\ntf.train.{call}.minimize(loss)",
            f"{model}\nstep = tf.train.get_or_create_global_step()\ntf.train.{call}.minimize(loss, step, name='n')"]  # fmt: skip


def _decay(call: str) -> list[str]:
    step = "step = tf.train.get_or_create_global_step()"
    return [f"{step}\ntf.train.{call})", f"{step}\ntf.train.{call}, name='n')"]


_SOME = "v = tf.get_variable('v', [2])\nu = tf.Variable(1.0, name='u')\n"

CALLS: dict[str, list[str]] = {
    "Variable": ["tf.Variable(1.0)", "tf.Variable(tf.zeros([2, 2]), name='v', trainable=False)",
                 "tf.Variable([1, 2], dtype=tf.int64)", "tf.Variable(tf.random_normal([2]), name='w') + 1.0"],
    "get_variable": [
        "tf.get_variable('v', [2, 3])", "tf.get_variable('v', initializer=[1.0, 2.0])",
        "with tf.variable_scope('a'):\n  with tf.variable_scope('b', reuse=tf.AUTO_REUSE):\n    tf.get_variable('v', [2])",
        "tf.get_variable('v', [4, 4], initializer=tf.truncated_normal_initializer(stddev=0.1, seed=1))",
        "tf.get_variable('v', [2], tf.int32)", "tf.get_variable('v', [2], use_resource=True)",
        "tf.get_variable('v', [4], initializer=tf.constant_initializer(0.5), regularizer=lambda x: tf.nn.l2_loss(x))",
        "tf.get_variable('v', [4, 4], initializer=tf.orthogonal_initializer())",
        "tf.get_variable('v', [4, 4], initializer=tf.random_uniform_initializer(-0.1, 0.1))",
        "tf.get_variable('v', [4, 4], initializer=tf.ones_initializer)",
        "tf.get_variable('v', [4, 4], initializer=tf.variance_scaling_initializer())",
        "tf.get_variable('v', [2, 4, 3], initializer=tf.uniform_unit_scaling_initializer())",
        "tf.get_variable('v', [5], initializer=tf.uniform_unit_scaling_initializer(1.5, seed=3))",
    ],
    "get_local_variable": ["tf.get_local_variable('v', [2])", "tf.get_local_variable('v', initializer=0)"],
    "initializers.global_variables": [_SOME + "tf.global_variables_initializer()", "tf.global_variables_initializer()"],
    "initialize_all_variables": [_SOME + "tf.initialize_all_variables()", "tf.initialize_all_variables()"],
    "initializers.local_variables": ["tf.local_variables_initializer()", _SOME + "tf.local_variables_initializer()"],
    "initialize_local_variables": ["tf.initialize_local_variables()", _SOME + "tf.initialize_local_variables()"],
    "initializers.variables": [_SOME + "tf.variables_initializer([v])", _SOME + "tf.variables_initializer([u], name='n')"],
    "initialize_variables": [_SOME + "tf.initialize_variables([v])", _SOME + "tf.initialize_variables([u], name='n')"],
    "initializers.tables_initializer": ["tf.tables_initializer()", "tf.tables_initializer(name='n')"],
    "initialize_all_tables": ["tf.initialize_all_tables()", "tf.initialize_all_tables(name='n')"],
    "report_uninitialized_variables": [_SOME + "tf.report_uninitialized_variables()",
                                       _SOME + "tf.report_uninitialized_variables([v], name='n')"],
    "is_variable_initialized": [_SOME + "tf.is_variable_initialized(v)", _SOME + "tf.is_variable_initialized(u)"],
    "assign": [_SOME + "tf.assign(v, [1.0, 2.0])", _SOME + "tf.assign(u, 2.0, name='n')", _SOME + "v.assign(f(2))"],
    "assign_add": [_SOME + "tf.assign_add(v, f(2))", _SOME + "tf.assign_add(u, 1.0, name='n')"],
    "assign_sub": [_SOME + "tf.assign_sub(v, f(2))", _SOME + "tf.assign_sub(u, 1.0, name='n')"],
    "count_up_to": ["tf.count_up_to(tf.Variable(0), 5)", "tf.count_up_to(tf.Variable(0), 5, name='n')"],
    **{name: _scatter(name) for name in (
        "scatter_add", "scatter_sub", "scatter_mul", "scatter_div", "scatter_max", "scatter_min", "scatter_update",
    )},
    "cond": ["tf.cond(b(), lambda: tf.constant(1.0), lambda: f())", "x = f(2)\ntf.cond(b(), lambda: x + 1, lambda: x, name='n')"],
    "case": ["tf.case([(b(), lambda: f()), (b(), lambda: f())], default=lambda: tf.constant(1.0))",
             "tf.case({b(): lambda: tf.constant(1.0)}, default=lambda: tf.constant(2.0), name='n')"],
    "while_loop": ["tf.while_loop(lambda n: n < 3, lambda n: n + 1, [tf.constant(0)])",
                   "x = f(2)\ntf.while_loop(lambda n, y: n < 3, lambda n, y: [n + 1, y * x], [0, x], name='n')"],
    "group": ["tf.group(f(2), f(2))", "tf.group(f(2).op, name='n')", "tf.group()", "tf.group([f(2), f(3)])"],
    "tuple": ["tf.tuple([f(2), f(2)])", "tf.tuple([f(2), None], name='n')"],
    "gradients": ["x = f(2)\ntf.gradients(tf.square(x), x)", "x = f(2)\ntf.gradients(tf.sin(x), [x], f(2), name='n')"],
    "hessians": ["x = f(2)\ntf.hessians(tf.reduce_sum(x * x), x)", "x = f(2)\ntf.hessians(tf.reduce_sum(x * x * x), [x], name='n')"],
    "train.exponential_decay": _decay("exponential_decay(0.1, step, 100, 0.9"),
    "train.natural_exp_decay": _decay("natural_exp_decay(0.1, step, 100, 0.9"),
    "train.inverse_time_decay": _decay("inverse_time_decay(0.1, step, 100, 0.9"),
    "train.polynomial_decay": _decay("polynomial_decay(0.1, step, 100"),
    "train.cosine_decay": _decay("cosine_decay(0.1, step, 100"),
    "train.piecewise_constant_decay": [
        "step = tf.train.get_or_create_global_step()\ntf.train.piecewise_constant(step, [10, 20], [1.0, 0.5, 0.1])",
        "step = tf.train.get_or_create_global_step()\ntf.train.piecewise_constant(step, [10], [1.0, 0.5], name='n')",
    ],
    "train.create_global_step": ["tf.train.create_global_step()", "f(2)\ntf.train.create_global_step() + 1"],
    "train.get_or_create_global_step": ["tf.train.get_or_create_global_step()",
                                        "tf.train.get_or_create_global_step()\ntf.train.get_or_create_global_step()"],
    "train.GradientDescentOptimizer": _optimizer("GradientDescentOptimizer(0.1)"),
    "train.MomentumOptimizer": _optimizer("MomentumOptimizer(0.1, 0.9)"),
    "train.AdamOptimizer": _optimizer("AdamOptimizer()"),
    "train.AdagradOptimizer": _optimizer("AdagradOptimizer(0.1)"),
    "train.AdadeltaOptimizer": _optimizer("AdadeltaOptimizer()"),
    "train.RMSPropOptimizer": _optimizer("RMSPropOptimizer(0.1)"),
    "train.Saver": [_SOME + "tf.train.Saver()", _SOME + "tf.train.Saver([v], max_to_keep=3, name='n')"],
    "summary.scalar": ["tf.summary.scalar('a', f(), family='all of it')", "tf.summary.scalar('a', f())", "tf.summary.scalar('loss 1', 2.0)"],
    "summary.histogram": ["tf.summary.histogram('a', f(2), family='g')", "tf.summary.histogram('b', f(2, 3))"],
    "summary.image": ["tf.summary.image('a', f(1, 4, 4, 3))", "tf.summary.image('b', f(1, 4, 4, 1), max_outputs=1, family='g')"],
    "summary.audio": ["tf.summary.audio('a', f(1, 10), 8000)", "tf.summary.audio('b', f(1, 10), 8000, max_outputs=1)"],
    "summary.tensor_summary": [
        "tf.summary.tensor_summary('a', f(2), 'what it is', family='g')",
        "tf.summary.tensor_summary('b', s(3), display_name='shown', collections=['c'])",
    ],
    "summary.text": ["tf.summary.text('a', s())", "tf.summary.text('b', tf.constant('x'))"],
    "summary.merge": ["tf.summary.merge([tf.summary.scalar('a', 1.0)])", "tf.summary.merge([tf.summary.scalar('a', 1.0)], name='n')"],
    "summary.merge_all": ["tf.summary.scalar('a', 1.0)\ntf.summary.merge_all()", "tf.summary.merge_all()"],
}  # fmt: skip
