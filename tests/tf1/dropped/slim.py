"""tf.contrib.slim and tf.contrib.training: steps, summaries, data."""

_SLIM = "slim = tf.contrib.slim\n"
_S = "tf.contrib.slim.summaries"
_X = "x = tf.constant(np.arange(-6., 6.).reshape(4, 3).astype('f'))\n"
_LOSS = f"{_SLIM}{_X}loss = tf.reduce_mean(tf.square(slim.fully_connected(x, 2, None)))\nopt = tf.train.GradientDescentOptimizer(0.1)\n"
_PAIRS = f"{_LOSS}pairs = opt.compute_gradients(loss)\n"
_FILES = "import os, tempfile\nfolder = tempfile.mkdtemp()\nfor n in ('b', 'a'):\n  with tf.python_io.TFRecordWriter(os.path.join(folder, n)) as w:\n    w.write(n.encode())\n"


def _stepped(module: str, *arguments: str) -> list[str]:
    return [
        f"{_LOSS}op = tf.contrib.{module}.create_train_op(loss, opt{each})\nwith tf.control_dependencies([op]):\n  step = tf.train.get_or_create_global_step() + 0\n"
        "result = [op, step, len(tf.get_collection('train_op')), len(tf.get_collection('summaries'))]"
        for each in arguments
    ]


def _gradients(name: str, *arguments: str) -> list[str]:
    return [f"{_PAIRS}result = [g for g, v in {name}({each})]" for each in arguments]


CALLS: dict[str, list[str]] = {
    f"contrib.slim.summaries.add_{what}": [f"{_S}.add_{what}({one})", f"{_S}.add_{what}({other})"]
    for what, one, other in (
        ("histogram_summary", "f(3)", "f(3), 'n', 'p'"), ("image_summary", "f(2, 4, 4, 3)", "f(2, 4, 4, 1), prefix='p'"),
        ("scalar_summary", "f()", "f(), 'n', 'p', print_summary=True"), ("zero_fraction_summary", "f(3)", "f(3), 'n', 'p'"),
        ("histogram_summaries", "[f(3), f(2)]", "[f(3)], 'p'"), ("image_summaries", "[f(2, 4, 4, 3)]", "[f(2, 4, 4, 3)], 'p'"),
        ("scalar_summaries", "[f(), f()]", "[f()], 'p'"), ("zero_fraction_summaries", "[f(3), f(2)]", "[f(3)], 'p'"),
    )
} | {
    f"contrib.{module}.add_gradients_summaries": [f"tf.contrib.{module}.add_gradients_summaries([(f(2), tf.get_variable('v', [2]))])", f"tf.contrib.{module}.add_gradients_summaries([(None, tf.get_variable('v', [2]))])"]
    for module in ("training", "slim.learning")
} | {
    "contrib.slim.prefetch_queue.prefetch_queue": ["tf.contrib.slim.prefetch_queue.prefetch_queue([f(2), i()])", "tf.contrib.slim.prefetch_queue.prefetch_queue({'b': f(2), 'a': i()}, 4, 2, name='n').dequeue()"],
    "contrib.slim.parallel_reader.parallel_read": ["tf.contrib.slim.parallel_reader.parallel_read(['a', 'b'], tf.TFRecordReader, num_readers=2, shuffle=False)", "tf.contrib.slim.parallel_reader.parallel_read('a', tf.TFRecordReader, 1, 1, seed=3, scope='s')"],
    "contrib.slim.parallel_reader.single_pass_read": ["tf.contrib.slim.parallel_reader.single_pass_read(['a', 'b'], tf.TFRecordReader)", "tf.contrib.slim.parallel_reader.single_pass_read('a', tf.WholeFileReader, scope='s')"],
}  # fmt: skip

VALUES: dict[str, list[str]] = {
    "contrib.training.create_train_op": _stepped("training", "", ", None, transform_grads_fn=tf.contrib.training.clip_gradient_norms_fn(0.1)", ", summarize_gradients=True, check_numerics=False", ", variables_to_train=tf.trainable_variables()[:1], update_ops=[]"),
    "contrib.slim.learning.create_train_op": _stepped("slim.learning", "", ", clip_gradient_norm=0.1", ", gradient_multipliers={'fully_connected/weights': 2.}, summarize_gradients=True", ", global_step=None"),
    **{f"contrib.{module}.clip_gradient_norms": _gradients(f"tf.contrib.{module}.clip_gradient_norms", "pairs, 0.5", "pairs, 100.") for module in ("training", "slim.learning")},
    "contrib.training.clip_gradient_norms_fn": [f"{_PAIRS}result = [g for g, v in tf.contrib.training.clip_gradient_norms_fn({each})(pairs)]" for each in ("0.5", "2.")],
    **{f"contrib.{module}.multiply_gradients": _gradients(f"tf.contrib.{module}.multiply_gradients", "pairs, {'fully_connected/weights': 2.}", "pairs, {pairs[1][1]: 3., pairs[0][1]: 0.5}") for module in ("training", "slim.learning")},
    "contrib.slim.learning.train_step": [
        f"{_LOSS}op = slim.learning.create_train_op(loss, opt)\nstep = tf.train.get_global_step()\nwith tf.Session() as sess:\n  sess.run(tf.global_variables_initializer())\n  for v in tf.trainable_variables():\n    v.load(np.ones(v.get_shape().as_list(), 'f'), sess)\n  result = slim.learning.train_step(sess, op, step, {each})"
        for each in ("{}", "{'should_stop': tf.constant(True), 'should_log': tf.constant(False)}")
    ],
    "contrib.slim.learning.train": [
        f"import tempfile\n{_SLIM}with tf.Graph().as_default():\n  {_X}  loss = tf.reduce_mean(tf.square(slim.fully_connected(x, 2, None, weights_initializer=tf.ones_initializer())))\n"
        f"  op = slim.learning.create_train_op(loss, tf.train.GradientDescentOptimizer(0.01))\n  folder = tempfile.mkdtemp()\n  last = slim.learning.train(op, {where}, number_of_steps=3{more})\n"
        "result = [last, str(tf.train.latest_checkpoint(folder))[len(folder):]]"
        for where, more in (("folder", ", log_every_n_steps=2, save_summaries_secs=None"), ("None", ", summary_op=0"))
    ],
    "contrib.slim.model_analyzer.analyze_vars": [f"{_SLIM}slim.fully_connected(f(4, 3), 2)\nresult = slim.model_analyzer.analyze_vars({each})" for each in ("slim.get_model_variables()", "tf.trainable_variables()[:1]")],
    "contrib.slim.model_analyzer.analyze_ops": ["x = f(4, 3) + 1.0\nresult = tf.contrib.slim.model_analyzer.analyze_ops(tf.get_default_graph())", "result = tf.contrib.slim.model_analyzer.analyze_ops(tf.Graph())"],
    "contrib.slim.model_analyzer.tensor_description": [f"result = tf.contrib.slim.model_analyzer.tensor_description(f({each}))" for each in ("4, 3", "None, 2")],
    "contrib.slim.parallel_reader.get_data_files": [
        f"{_FILES}result = [os.path.basename(p) for p in sorted(tf.contrib.slim.parallel_reader.get_data_files({each}))]" for each in ("folder + '/*'", "[folder + '/a', [folder + '/[b]']]")
    ],
    "contrib.slim.queues.QueueRunners": [
        f"{_FILES}key, value = tf.contrib.slim.parallel_reader.single_pass_read([folder + '/a', folder + '/b'], tf.TFRecordReader)\nwith tf.Session() as sess:\n  sess.run(tf.local_variables_initializer())\n  with tf.contrib.slim.queues.QueueRunners(sess):\n    result = {each}"
        for each in ("[sess.run(value), sess.run(value)]", "sess.run(value)")
    ],
}  # fmt: skip

_EXAMPLE = """slim = tf.contrib.slim
def feature(v):
  kind = {{str: 'bytes_list', int: 'int64_list', float: 'float_list', bytes: 'bytes_list'}}[type(v[0])]
  lists = {{'bytes_list': tf.train.BytesList, 'int64_list': tf.train.Int64List, 'float_list': tf.train.FloatList}}
  return tf.train.Feature(**{{kind: lists[kind](value=v)}})
given = {{'label': [3], 'sizes': [2, 3], 'values': [1., 2., 3., 4., 5., 6.], 'at': [0, 4], 'image': [bytes(range(12))], 'format': [b'raw'],
  'ymin': [0.1, 0.2], 'xmin': [0.3, 0.4], 'ymax': [0.5, 0.6], 'xmax': [0.7, 0.8]}}
serialized = tf.train.Example(features=tf.train.Features(feature={{k: feature(v) for k, v in given.items()}})).SerializeToString()
d = slim.tfexample_decoder
features = {{'label': tf.FixedLenFeature([], tf.int64), 'sizes': tf.VarLenFeature(tf.int64), 'values': tf.VarLenFeature(tf.float32), 'at': tf.VarLenFeature(tf.int64),
  'image': tf.FixedLenFeature([], tf.string), 'format': tf.FixedLenFeature([], tf.string), **{{k: tf.VarLenFeature(tf.float32) for k in ('ymin', 'xmin', 'ymax', 'xmax')}}}}
decoder = d.TFExampleDecoder(features, {{'it': {handler}}})
result = decoder.decode(tf.constant(serialized){items})
"""
VALUES |= {
    f"contrib.slim.tfexample_decoder.{name}": [_EXAMPLE.format(handler=one, items=""), _EXAMPLE.format(handler=other, items=", ['it']")]
    for name, one, other in (
        ("Tensor", "d.Tensor('label')", "d.Tensor('values', shape_keys=['sizes'])"),
        ("BoundingBox", "d.BoundingBox()", "d.BoundingBox(['xmin', 'xmax', 'ymin', 'ymax'])"),
        ("Image", "d.Image('image', 'format', shape=[2, 2, 3])", "d.Image('image', 'format', channels=3, shape=[4, 1, 3])"),
        ("ItemHandlerCallback", "d.ItemHandlerCallback(['label'], lambda t: t['label'] + 1)", "d.ItemHandlerCallback('label', lambda t: -t['label'])"),
        ("SparseTensor", "d.SparseTensor('at', 'ymin', shape=[5], densify=True)", "d.SparseTensor('at', 'xmin', shape=[6], densify=True, default_value=-1.)"),
        ("BackupHandler", "d.BackupHandler(d.Tensor('values'), d.Tensor('ymin'))", "d.BackupHandler(d.Tensor('ymax'), d.Tensor('values'))"),
        ("TFExampleDecoder", "d.Tensor('values')", "d.Tensor('label')"),
    )
}  # fmt: skip

DIFFERING: dict[str, str] = {
    **dict.fromkeys(
        (
            code
            for what in ("summary", "summaries")
            for code in CALLS[f"contrib.slim.summaries.add_zero_fraction_{what}"]
        ),
        "zeros are counted as for tf.nn.zero_fraction (tests/tf1/differing)",
    ),
    **dict.fromkeys(
        (
            code
            for name in (
                "prefetch_queue.prefetch_queue",
                "parallel_reader.parallel_read",
                "parallel_reader.single_pass_read",
            )
            for code in CALLS[f"contrib.slim.{name}"]
        ),
        "later releases put queues on the CPU",
    ),
}
