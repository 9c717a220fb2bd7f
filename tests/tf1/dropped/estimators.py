"""tf.estimator: from the same initial values the same losses, metrics, predictions, and the same names in checkpoints."""

_RUN = """
import os, tempfile, zlib
fc, te = tf.feature_column, tf.estimator

class Losses(tf.train.SessionRunHook):
    def begin(self):
        self.seen, self.loss = [], tf.get_collection(tf.GraphKeys.LOSSES)[-1]
    def before_run(self, context):
        return tf.train.SessionRunArgs(self.loss)
    def after_run(self, context, values):
        self.seen.append(values.results)

def start(shapes):
    with tf.Graph().as_default(), tf.Session() as session:
        for name in sorted(shapes):
            drawn = np.random.RandomState(zlib.crc32(name.encode()) % 2**31)
            tf.get_variable(name, initializer=drawn.uniform(-0.5, 0.5, shapes[name]).astype('f'))
        session.run(tf.global_variables_initializer())
        return tf.train.Saver().save(session, os.path.join(tempfile.mkdtemp(), 'start'))

def data(dtype=np.int64, classes=2):
    r = np.random.RandomState(7)
    x = {'a': r.randn(12, 2).astype('f'), 'b': r.rand(12).astype('f'), 'w': r.choice([b'u', b'v', b'z'], 12),
         'n': r.rand(12).astype('f')}
    return tf.data.Dataset.from_tensor_slices((x, r.randint(0, classes, 12).astype(dtype)))

def run(make, fn, steps=4):
    config = te.RunConfig(tf_random_seed=3)
    first = make(config, None)
    first.train(fn, steps=1)
    names = first.get_variable_names()
    shapes = {n: first.get_variable_value(n).shape for n in names if n != 'global_step'}
    model, hook = make(config, start(shapes)), Losses()
    model.train(lambda: fn(), steps=steps, hooks=[hook])
    metrics = model.evaluate(lambda: fn(), steps=2)
    predicted = next(model.predict(lambda: fn()))
    pairs = [[k, np.asarray(v, 'd')] for k, v in sorted(metrics.items())]
    pairs += [[k, v] for k, v in sorted(predicted.items())]
    return [model.get_variable_names(), hook.seen, pairs]

number, one = fc.numeric_column('a', 2), fc.numeric_column('b')
word = fc.categorical_column_with_vocabulary_list('w', ['u', 'v'], num_oov_buckets=1)
bucket = fc.bucketized_column(one, [0.3, 0.6])
cross = fc.crossed_column(['w', bucket], 7)
wide = [word, bucket, cross]
deep = [number, one, fc.embedding_column(word, 2), fc.indicator_column(word)]
"""


def _calls(*ends: str) -> list[str]:
    return [_RUN + end for end in ends]


def _canned(make: str, dtype: str = "np.int64", classes: int = 2) -> str:
    return f"result = run(lambda c, s: te.{make}, lambda: data({dtype}, {classes}).repeat().batch(6))"


_HEADS = """
ce, te = tf.contrib.estimator, tf.estimator
r = np.random.RandomState(8)
logits, features = tf.constant(r.randn(6, 3).astype('f')), {'w': tf.constant(r.rand(6, 1).astype('f'))}
tf.train.get_or_create_global_step()
v = tf.get_variable('v', [])
head, labels = %s
spec = lambda mode: head.create_estimator_spec(features, mode, logits[:, :head.logits_dimension] * v, labels, train_op_fn=lambda l: l)
trained, evaluated = spec('train'), spec('eval')
keys = sorted(evaluated.eval_metric_ops)
with tf.control_dependencies([evaluated.eval_metric_ops[key][1] for key in keys]):
    loss = tf.identity(evaluated.loss)
predicted = head.create_estimator_spec(features, 'infer', logits[:, :head.logits_dimension] * v)
p = predicted.predictions
result = [trained.loss, loss, keys, sorted(map(str, p)), [p[key] for key in sorted(p)], sorted(predicted.export_outputs)]
"""
_TWO = "ce.binary_classification_head(name='a'), ce.regression_head('w', name='b')"
_INTEGERS, _NUMBERS = "tf.constant(r.randint(0, 2, (6, 1)))", "tf.constant(r.rand(6, 1).astype('f'))"


def _heads(*made: str) -> list[str]:
    return [_HEADS % each for each in made]


_SPECS = """
fc, te = tf.feature_column, tf.estimator
columns = [fc.numeric_column('x', 2), fc.embedding_column(fc.categorical_column_with_hash_bucket('w', 5), 3)]
spec = te.%s
result = [[key, type(spec[key]).__name__, spec[key].dtype.name, str(spec[key][:1] + spec[key][2:])] for key in sorted(spec) if key != 'w']
"""

VALUES: dict[str, list[str]] = {
    "contrib.estimator.binary_classification_head": _heads(
        f"(ce.binary_classification_head(), {_INTEGERS})",
        f"(ce.binary_classification_head('w', [0.3], name='mine'), {_INTEGERS})",
    ),
    "contrib.estimator.multi_class_head": _heads(
        f"(ce.multi_class_head(3), {_INTEGERS})",
        f"(ce.multi_class_head(3, 'w', loss_reduction='weighted_sum', name='mine'), {_INTEGERS})",
    ),
    "contrib.estimator.multi_label_head": _heads(
        "(ce.multi_label_head(3), tf.constant(r.randint(0, 2, (6, 3))))",
        "(ce.multi_label_head(2, 'w', [0.5], name='mine'), tf.constant(r.randint(0, 2, (6, 2))))",
    ),
    "contrib.estimator.regression_head": _heads(
        f"(ce.regression_head(), {_NUMBERS})",
        "(ce.regression_head('w', 2, inverse_link_fn=tf.exp, name='mine'), tf.constant(r.rand(6, 2).astype('f')))",
    ),
    "contrib.estimator.poisson_regression_head": _heads(
        f"(ce.poisson_regression_head(), {_NUMBERS})",
        f"(ce.poisson_regression_head('w', compute_full_loss=False, name='mine'), {_NUMBERS})",
    ),
    "contrib.estimator.logistic_regression_head": _heads(
        f"(ce.logistic_regression_head(), {_NUMBERS})", f"(ce.logistic_regression_head('w', name='mine'), {_NUMBERS})"
    ),
    "contrib.estimator.multi_head": [
        _HEADS % f"(ce.multi_head([{_TWO}]{more}), {{'a': {_INTEGERS}, 'b': {_NUMBERS}}})"
        for more in ("", ", [0.25, 2.0]")
    ],
    "estimator.classifier_parse_example_spec": [
        _SPECS % f"classifier_parse_example_spec(columns, 'y'{more})" for more in ("", ", tf.string, 'a', 'weight'")
    ],
    "estimator.regressor_parse_example_spec": [
        _SPECS % f"regressor_parse_example_spec(columns, 'y'{more})"
        for more in ("", ", tf.int64, label_dimension=2, weight_column=fc.numeric_column('weight'))"[:-1])
    ],
    "estimator.LinearClassifier": _calls(
        _canned("LinearClassifier(wide + [number], n_classes=3, config=c, warm_start_from=s)", classes=3),
        _canned("LinearClassifier(wide, weight_column='n', config=c, warm_start_from=s, optimizer=lambda: tf.train.AdamOptimizer(0.01))"),
    ),
    "estimator.LinearRegressor": _calls(_canned("LinearRegressor([number, word], config=c, warm_start_from=s)", "'f'")),
    "estimator.DNNClassifier": _calls(
        _canned("DNNClassifier([4, 3], deep, config=c, warm_start_from=s)"),
        _canned("DNNClassifier([4], deep, n_classes=3, config=c, warm_start_from=s, batch_norm=True, optimizer=tf.train.GradientDescentOptimizer(0.1), loss_reduction=tf.losses.Reduction.MEAN)", classes=3),
    ),
    "estimator.DNNRegressor": _calls(
        _canned("DNNRegressor([4], deep, config=c, warm_start_from=s, weight_column='n', activation_fn=tf.nn.elu)", "'f'"),
    ),
    "estimator.DNNLinearCombinedClassifier": _calls(
        _canned("DNNLinearCombinedClassifier(linear_feature_columns=wide, dnn_feature_columns=deep, dnn_hidden_units=[4, 3], config=c, warm_start_from=s)"),
        _canned("DNNLinearCombinedClassifier(linear_feature_columns=wide, config=c, warm_start_from=s, linear_sparse_combiner='mean')"),
    ),
    "estimator.DNNLinearCombinedRegressor": _calls(
        _canned("DNNLinearCombinedRegressor(linear_feature_columns=[word], dnn_feature_columns=[number], dnn_hidden_units=[3], config=c, warm_start_from=s)", "'f'"),
    ),
    "estimator.BaselineClassifier": _calls(
        "result = run(lambda c, s: te.BaselineClassifier(config=c, n_classes=3), lambda: data(classes=3).repeat().batch(6))",
    ),
    "estimator.BaselineRegressor": _calls(
        "result = run(lambda c, s: te.BaselineRegressor(config=c), lambda: data('f').repeat().batch(6))",
    ),
    "estimator.train_and_evaluate": _calls(
        *(
            f"""
def serving():
    x = tf.placeholder(tf.float32, [None, 2], 'a')
    return te.export.ServingInputReceiver({{'a': x}}, {{'a': x}})
folder = tempfile.mkdtemp()
model = te.LinearRegressor([number], folder, config=te.RunConfig(save_checkpoints_steps=3))
spec = te.EvalSpec(lambda: data('f').batch(4), steps=2, throttle_secs=0, exporters=[te.{exporter}])
fed = lambda: data('f').repeat().batch(6)
metrics, paths = te.train_and_evaluate(model, te.TrainSpec(fed, max_steps=8), spec)
kept = sorted(os.listdir(os.path.join(folder, 'export', 'e'))) if os.path.isdir(os.path.join(folder, 'export', 'e')) else []
events = [[e.step, v.tag, v.simple_value] for f in sorted(tf.gfile.Glob(os.path.join(folder, 'eval', '*')))
          for e in tf.train.summary_iterator(f) for v in e.summary.value if v.tag != 'checkpoint_path']
result = [sorted(metrics.items()), len(kept), [p is None for p in paths], events,
          [os.path.basename(p) for p in tf.train.get_checkpoint_state(folder).all_model_checkpoint_paths]]
"""
            for exporter in (
                "FinalExporter('e', serving)", "LatestExporter('e', serving, exports_to_keep=2)",
                "BestExporter('e', serving)",
            )
        )
    ),
    "estimator.export.build_raw_serving_input_receiver_fn": _calls(
        *(
            f"""
model = te.LinearRegressor([number], config=te.RunConfig())
model.train(lambda: data('f').repeat().batch(6), steps=2)
path = model.{export}(tempfile.mkdtemp(), te.export.build_raw_serving_input_receiver_fn({{'a': tf.placeholder(tf.float32, [None, 2], 'a')}}))
with tf.Session(graph=tf.Graph()) as session:
    meta = tf.saved_model.loader.load(session, ['serve'], path)
    found = [[k, s.method_name, sorted(s.inputs), sorted(s.outputs)] for k, s in sorted(meta.signature_def.items())]
    predicted = session.run(meta.signature_def['predict'].outputs['predictions'].name, {{meta.signature_def['predict'].inputs['a'].name: [[1.0, 2.0]]}})
result = [found, predicted, sorted(os.listdir(path))]
"""
            for export in ("export_savedmodel", "export_saved_model")
        )
    ),
    "estimator.export.build_parsing_serving_input_receiver_fn": _calls(
        *(
            f"""
model = te.LinearClassifier([number, word], config=te.RunConfig())
model.train(lambda: data().repeat().batch(6), steps=2)
path = model.export_saved_model(tempfile.mkdtemp(), te.export.build_parsing_serving_input_receiver_fn(fc.make_parse_example_spec([number, word]), {size}))
feature = lambda **kind: tf.train.Feature(**kind)
example = tf.train.Example(features=tf.train.Features(feature={{
    'a': feature(float_list=tf.train.FloatList(value=[1.0, -2.0])), 'w': feature(bytes_list=tf.train.BytesList(value=[b'u']))}}))
with tf.Session(graph=tf.Graph()) as session:
    meta = tf.saved_model.loader.load(session, ['serve'], path)
    found = [[k, s.method_name, sorted(s.inputs), sorted(s.outputs)] for k, s in sorted(meta.signature_def.items())]
    s = meta.signature_def['serving_default']
    scores = session.run(s.outputs['scores'].name, {{s.inputs['inputs'].name: [example.SerializeToString()]}})
result = [found, scores]
"""
            for size in (None, 1)
        )
    ),
}  # fmt: skip

_ARRAYS = "x, y = {'b': np.zeros((5, 2), 'f'), 'a': np.arange(5)}, np.zeros(5, 'f')\n"
CALLS: dict[str, list[str]] = {
    "estimator.inputs.numpy_input_fn": [
        _ARRAYS + "tf.estimator.inputs.numpy_input_fn(x, y, 3, None, shuffle=False)()",
        _ARRAYS + "tf.estimator.inputs.numpy_input_fn(x['b'], {'t': y}, num_epochs=2, shuffle=True, num_threads=2)()",
        _ARRAYS + "tf.estimator.inputs.numpy_input_fn(x, shuffle=False)()",
    ],
}
