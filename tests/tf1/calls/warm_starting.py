"""Variables that start from a checkpoint."""

_SAVED = (
    "import os, tempfile\nprefix = os.path.join(tempfile.gettempdir(), 'graphmill_start', 'model')\n"
    "os.makedirs(os.path.dirname(prefix), exist_ok=True)\n"
    "with tf.Graph().as_default(), tf.Session() as session:\n"
    "  tf.get_variable('a/w', [3]), tf.get_variable('b', [2, 2])\n"
    "  session.run(tf.global_variables_initializer())\n  tf.train.Saver().save(session, prefix)\n"
)

CALLS: dict[str, list[str]] = {
    "train.init_from_checkpoint": [
        _SAVED + "v = tf.get_variable('v', [3])\ntf.train.init_from_checkpoint(prefix, {'a/w': v})\ntf.global_variables_initializer()",
        _SAVED + "with tf.variable_scope('mine'):\n  tf.get_variable('w', [3])\n"
        "tf.train.init_from_checkpoint(prefix, {'a/': 'mine/'})\ntf.global_variables_initializer()",
        _SAVED + "v = tf.get_variable('v', [2, 2], partitioner=tf.fixed_size_partitioner(2))\n"
        "tf.train.init_from_checkpoint(prefix, {'b': 'v'})\ntf.global_variables_initializer()",
    ],
    "train.warm_start": [
        _SAVED + "tf.get_variable('b', [2, 2])\ntf.train.warm_start(prefix)\ntf.global_variables_initializer()",
        _SAVED + "tf.get_variable('c', [2, 2])\ntf.get_variable('n', [])\n"
        "tf.train.warm_start(prefix, 'c', var_name_to_prev_var_name={'c': 'b'})\ntf.global_variables_initializer()",
    ],
}  # fmt: skip
