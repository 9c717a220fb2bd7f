"""tf.contrib.learn's canned estimators and heads: a model_dir of given values is gone on with; the same losses, metrics
and predictions, the same names in checkpoints, the same signatures of what is exported.

Steps of a model with a centred bias are not compared: two optimizers change it in one step while the loss reads it, and
1.15 itself gives other losses from run to run. Such models are evaluated as they are; one step of the bias alone is
among the heads.
"""

_RUN = """
import os, tempfile, zlib
learn, L, fc = tf.contrib.learn, tf.contrib.layers, tf.feature_column

class Losses(tf.train.SessionRunHook):
    seen = []
    def begin(self):
        self.seen, self.loss = [], tf.get_collection(tf.GraphKeys.LOSSES)[-1]
    def before_run(self, context):
        return tf.train.SessionRunArgs(self.loss)
    def after_run(self, context, values):
        self.seen.append(values.results)

r = np.random.RandomState(7)
A, B, N = r.randn(12, 2).astype('f'), r.rand(12, 1).astype('f'), r.rand(12).astype('f')
W, I = r.choice([b'u', b'v', b'z'], 24), r.randint(0, 5, 12)
CLASSES, TWO, NUMBERS = r.randint(0, 3, (12, 1)), r.randint(0, 2, (12, 2)), r.rand(12, 2).astype('f')
WHERE = [[i // 2, i % 2] for i in range(24)]

def data(labels, rank=2):
    def fn():
        x = {'a': tf.constant(A), 'b': tf.constant(B), 'n': tf.constant(N),
             'w': tf.SparseTensor(WHERE, tf.constant(W), [12, 2]),
             'i': tf.SparseTensor([[i, 0] for i in range(12)], tf.constant(I), [12, 1])}
        y = {k: tf.constant(v) for k, v in labels.items()} if isinstance(labels, dict) else tf.constant(labels)
        return x, y
    return fn

def start(folder, names, shapes):
    with tf.Graph().as_default(), tf.Session() as session:
        kept = {}
        for name in sorted(names):
            drawn = np.random.RandomState(zlib.crc32(name.encode()) % 2**31)
            value = drawn.uniform(-0.5, 0.5, shapes[name]).astype('f')
            if 'Ada' in name or 'Ftrl' in name or 'RMS' in name or 'beta' in name or 'rate' in name:
                value = np.abs(value) + np.float32(0.1)
            kept[name] = tf.Variable(np.int64(0) if name == 'global_step' else value)
        session.run(tf.global_variables_initializer())
        tf.train.Saver(kept).save(session, os.path.join(folder, 'model.ckpt'), global_step=0)

def signatures(model, columns, **more):
    spec = L.create_feature_spec_for_parsing(columns) if isinstance(columns, list) else columns
    path = model.export_savedmodel(tempfile.mkdtemp(), learn.build_parsing_serving_input_fn(spec), **more)
    with tf.Session(graph=tf.Graph()) as session:
        meta = tf.saved_model.loader.load(session, ['serve'], path)
    return [[k, s.method_name, [[n, i.dtype] for n, i in sorted(s.inputs.items())],
             [[n, o.dtype] for n, o in sorted(s.outputs.items())]] for k, s in sorted(meta.signature_def.items())]

def run(make, fn, columns=None, steps=10, **export):
    first = make(None)
    first.fit(input_fn=fn, steps=1)
    names = first.get_variable_names()
    folder, hook = tempfile.mkdtemp(), Losses()
    start(folder, names, {n: first.get_variable_value(n).shape for n in names})
    model = make(folder)
    model.fit(input_fn=fn, max_steps=steps, monitors=[hook])
    metrics = model.evaluate(input_fn=fn, steps=1)
    predicted = list(learn.Estimator.predict(model, input_fn=fn))
    pairs = [[k, np.asarray(v, 'd')] for k, v in sorted(metrics.items())]
    keys = sorted(predicted[0], key=str) if isinstance(predicted[0], dict) else []
    pairs += [[str(k), np.stack([p[k] for p in predicted])] for k in keys] or [np.stack(predicted)]
    return [names, hook.seen, pairs, signatures(model, columns, **export) if columns else []]

number, one = L.real_valued_column('a', 2), L.real_valued_column('b')
word, identity = L.sparse_column_with_keys('w', ['u', 'v', 'z']), L.sparse_column_with_integerized_feature('i', 5)
bucket, hashed = L.bucketized_column(one, [0.3, 0.6]), L.sparse_column_with_hash_bucket('w', 7)
wide = [word, bucket, identity, L.crossed_column([word, identity], 11)]
embedding = L.embedding_column(word, 3)
deep = [number, one, embedding, L.one_hot_column(identity)]
core_wide = [fc.categorical_column_with_vocabulary_list('w', ['u', 'v', 'z']), fc.numeric_column('a', 2)]
core_deep = [fc.numeric_column('a', 2), fc.embedding_column(core_wide[0], 2)]
core_spec = fc.make_parse_example_spec(core_wide)
two, three = data(TWO[:, :1]), data(CLASSES)
words = data(np.array([b'red', b'green', b'blue'])[CLASSES])
single, pair = data(NUMBERS[:, :1]), data(NUMBERS)
"""


def _runs(*calls: str) -> list[str]:
    return [f"{_RUN}result = run(lambda m: learn.{call})" for call in calls]


_HEADS = """
learn = tf.contrib.learn
r = np.random.RandomState(8)
logits = tf.constant(r.randn(6, 3).astype('f'))
features = {'w': tf.constant(r.rand(6).astype('f')), 'x': tf.constant(r.randn(6, 2).astype('f'))}
tf.train.get_or_create_global_step()
v, kernel = tf.get_variable('v', []), tf.get_variable('kernel', [2, 3])
head, labels = %s
given = logits[:, :head.logits_dimension] * v + tf.matmul(features['x'], kernel)[:, :head.logits_dimension]
make = lambda mode, y, train=None: head.create_model_fn_ops(features, mode, y, train, given)
trained = make('train', labels, learn.no_op_train_fn)
evaluated, predicted = make('eval', labels), make('infer', None)
keys = sorted(evaluated.eval_metric_ops)
with tf.control_dependencies([evaluated.eval_metric_ops[key][1] for key in keys]):
    loss = tf.identity(evaluated.loss)
values = [evaluated.eval_metric_ops[key][0] for key in keys]
with tf.control_dependencies([trained.train_op]):
    bias = [tf.identity(each.read_value()) for each in tf.global_variables() if each.op.name.endswith('head/centered_bias_weight')]
p = predicted.predictions
served = sorted((str(k), problem, sorted(map(str, out))) for k, (problem, out) in (predicted.output_alternatives or {}).items())
result = [trained.loss, tf.gradients(trained.loss, [v, kernel]), loss, keys, values, sorted(map(str, p)), [p[key] for key in sorted(p, key=str)], str(served), bias]
"""
_FLAGS, _NUMBERS = "tf.constant(r.randint(0, 2, (6, 1)))", "tf.constant(r.rand(6, 1).astype('f'))"
_SPARSE = "tf.SparseTensor([[0, 0], [2, 0], [2, 1], [5, 0]], tf.constant([1, 0, 2, 1], tf.int64), [6, 2])"
_TWO = "learn.multi_class_head(2, label_name='a', head_name='one'), learn.regression_head(label_name='b', head_name='other')"


def _heads(*made: str) -> list[str]:
    return [_HEADS % each for each in made]


#: without the last one each optimizer counts the step, while the hook that stops reads it: 5 or 6 steps, in 1.15 as here
_BOTH = (
    "linear_feature_columns=wide, dnn_feature_columns=deep, dnn_hidden_units=[4, 3], fix_global_step_increment_bug=True"
)

VALUES: dict[str, list[str]] = {
    "contrib.learn.DNNClassifier": _runs(
        "DNNClassifier([4, 3], deep, m), two, deep",
        "DNNClassifier([4], deep, m, n_classes=3, weight_column_name='n', activation_fn='tanh', enable_centered_bias=True, optimizer=tf.train.GradientDescentOptimizer(0.1), gradient_clip_norm=0.5), three, deep, steps=0",
        "DNNClassifier([4], [number, embedding], m, n_classes=3, label_keys=['red', 'green', 'blue'], embedding_lr_multipliers={embedding: 0.5}, optimizer='Adam'), words, [number, embedding]",
        "DNNClassifier([4, 3], core_deep, m, enable_centered_bias=True), two, core_spec, steps=0",
    ),
    "contrib.learn.DNNRegressor": _runs(
        "DNNRegressor([4, 3], deep, m), single, deep",
        "DNNRegressor([4], [number], m, weight_column_name='n', label_dimension=2, enable_centered_bias=True), pair, [number], steps=0",
    ),
    "contrib.learn.DNNEstimator": _runs(
        "DNNEstimator(learn.poisson_regression_head(weight_column_name='n', head_name='counts'), [4], deep, m), data(CLASSES.astype('f')), deep",
        "DNNEstimator(learn.multi_label_head(2, metric_class_ids=[0, 1], weight_column_name='n'), [4], deep, m), data(TWO), deep",
        "DNNEstimator(learn.multi_class_head(3, metric_class_ids=[0, 2], label_name='y', head_name='h', loss_fn=lambda labels, logits, weights=None: tf.losses.sparse_softmax_cross_entropy(labels, logits)), [4], deep, m), data({'y': CLASSES}), deep",
    ),
    "contrib.learn.LinearClassifier": _runs(
        "LinearClassifier(wide + [number], m), two, wide + [number]",
        "LinearClassifier(wide, m, n_classes=3, weight_column_name='n', optimizer=lambda: tf.train.AdamOptimizer(0.01), gradient_clip_norm=0.3, enable_centered_bias=True), three, wide, steps=0",
        "LinearClassifier([word, identity], m, _joint_weight=True, optimizer='SGD'), two, [word, identity]",
        "LinearClassifier(core_wide, m), two, core_spec",
    ),
    "contrib.learn.LinearRegressor": _runs(
        "LinearRegressor(wide + [number, hashed], m), single, wide + [number, hashed]",
        "LinearRegressor([number, bucket], m, label_dimension=2, weight_column_name='n', gradient_clip_norm=1.0), pair, [number, bucket]",
    ),
    "contrib.learn.LinearEstimator": _runs(
        "LinearEstimator(wide, learn.binary_svm_head(head_name='margin'), m), two, wide",
        "LinearEstimator(wide, learn.regression_head(link_fn=tf.exp, enable_centered_bias=True), m, optimizer='Adam'), single, wide, steps=0",
    ),
    "contrib.learn.DNNLinearCombinedClassifier": _runs(
        f"DNNLinearCombinedClassifier(m, {_BOTH}), two, wide + deep",
        f"DNNLinearCombinedClassifier(m, n_classes=3, {_BOTH}, gradient_clip_norm=0.5, weight_column_name='n', enable_centered_bias=True), three, wide + deep, steps=0",
        "DNNLinearCombinedClassifier(m, linear_feature_columns=wide), two, wide",
        "DNNLinearCombinedClassifier(m, dnn_feature_columns=core_deep, dnn_hidden_units=[3], linear_feature_columns=core_wide, fix_global_step_increment_bug=True), two, core_spec",
    ),
    "contrib.learn.DNNLinearCombinedRegressor": _runs(
        f"DNNLinearCombinedRegressor(m, {_BOTH}), single, wide + deep",
        f"DNNLinearCombinedRegressor(m, {_BOTH}, linear_optimizer=tf.train.GradientDescentOptimizer(0.1), dnn_optimizer=tf.train.RMSPropOptimizer(0.01), label_dimension=2), pair, wide + deep",
    ),
    "contrib.learn.DNNLinearCombinedEstimator": _runs(
        f"DNNLinearCombinedEstimator(learn.multi_head([learn.multi_class_head(3, label_name='c', head_name='first'), learn.regression_head(label_name='v', head_name='second')], [0.5, 2.0]), m, {_BOTH}), data({{'c': CLASSES, 'v': NUMBERS[:, :1]}}), wide + deep, default_output_alternative_key='first'",
        f"DNNLinearCombinedEstimator(learn.regression_head(), m, {_BOTH}, _joint_linear_weights=False), single, wide + deep",
    ),
    "contrib.learn.LogisticRegressor": [
        _RUN
        + f"""
def model(features, labels, mode):
    p = tf.sigmoid(tf.layers.dense(features['a'], 1))
    loss = tf.losses.log_loss(labels, p) if labels is not None else None
    return p, loss, loss is not None and tf.train.GradientDescentOptimizer(0.1).minimize(loss, tf.train.get_global_step()) or None
result = run(lambda m: learn.LogisticRegressor(model, {more}), two, [number])
"""
        for more in ("model_dir=m", "[0.3, 0.6], m")
    ],
    "contrib.learn.multi_class_head": _heads(
        f"(learn.multi_class_head(2, enable_centered_bias=True, thresholds=[0.2, 0.7]), {_FLAGS})",
        f"(learn.multi_class_head(2, weight_column_name='w', head_name='mine'), {_FLAGS})",
        "(learn.multi_class_head(3, enable_centered_bias=True, metric_class_ids=[1], weight_column_name='w'), tf.constant(r.randint(0, 3, (6, 1))))",
        "(learn.multi_class_head(3, label_keys=['p', 'q', 'r'], head_name='mine'), tf.constant([['q'], ['p'], ['r'], ['q'], ['q'], ['p']]))",
        "(learn.multi_class_head(3), tf.constant(r.randint(0, 3, 6)))",
    ),
    "contrib.learn.multi_label_head": _heads(
        "(learn.multi_label_head(3, enable_centered_bias=True, metric_class_ids=[0, 2]), tf.constant(r.randint(0, 2, (6, 3))))",
        f"(learn.multi_label_head(3, weight_column_name='w', head_name='mine'), {_SPARSE})",
    ),
    "contrib.learn.binary_svm_head": _heads(
        f"(learn.binary_svm_head(enable_centered_bias=True), {_FLAGS})",
        f"(learn.binary_svm_head(weight_column_name='w', head_name='mine'), {_FLAGS})",
    ),
    "contrib.learn.regression_head": _heads(
        f"(learn.regression_head(enable_centered_bias=True), {_NUMBERS})",
        "(learn.regression_head(weight_column_name='w', label_dimension=2, link_fn=tf.exp, head_name='mine'), tf.constant(r.rand(6, 2).astype('f')))",
    ),
    "contrib.learn.poisson_regression_head": _heads(
        "(learn.poisson_regression_head(enable_centered_bias=True), tf.constant(r.randint(0, 9, (6, 1)).astype('f')))",
        "(learn.poisson_regression_head(weight_column_name='w', head_name='mine'), tf.constant(r.randint(0, 9, 6).astype('f')))",
    ),
    "contrib.learn.multi_head": _heads(
        f"(learn.multi_head([{_TWO}]), {{'a': {_FLAGS}, 'b': {_NUMBERS}}})",
        f"(learn.multi_head([{_TWO}], [0.25, 2.0]), {{'a': {_FLAGS}, 'b': {_NUMBERS}}})",
    ),
}
