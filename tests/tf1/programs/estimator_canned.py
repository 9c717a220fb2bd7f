"""Canned estimators over feature columns, fed by tf.data."""

import tempfile

import numpy as np
import tensorflow as tf

tf.logging.set_verbosity(tf.logging.ERROR)
rng = np.random.RandomState(24)
length, width = rng.rand(30), rng.rand(30)
colour = rng.choice(["red", "green", "blue"], 30)
species = ((length + (colour == "red") + width) > 1.2).astype(int)


def input_fn(repeat):
    data = ({"length": length.astype("f"), "width": width.astype("f"), "colour": colour.astype(bytes)}, species)
    dataset = tf.data.Dataset.from_tensor_slices(data)
    if repeat:
        dataset = dataset.repeat()
    return dataset.batch(10)


class Losses(tf.train.SessionRunHook):
    def __init__(self):
        self.seen = []

    def begin(self):
        self.loss = tf.get_collection(tf.GraphKeys.LOSSES)[0]

    def before_run(self, context):
        return tf.train.SessionRunArgs({"loss": self.loss})

    def after_run(self, context, values):
        self.seen.append(values.results["loss"])


numeric = [tf.feature_column.numeric_column(key=key) for key in ("length", "width")]
words = tf.feature_column.categorical_column_with_vocabulary_list("colour", ["red", "green", "blue"])
bucketized = tf.feature_column.bucketized_column(numeric[0], [0.25, 0.5, 0.75])
run_config = tf.estimator.RunConfig(tf_random_seed=24)

deep = tf.estimator.DNNClassifier(
    feature_columns=numeric + [tf.feature_column.indicator_column(words)], hidden_units=[8, 4], n_classes=2,
    optimizer=tf.train.ProximalAdagradOptimizer(learning_rate=0.1, l1_regularization_strength=0.001),
    model_dir=tempfile.mkdtemp(), config=run_config,
)
for _ in range(4):
    deep.train(lambda: input_fn(True), steps=3)
    found = deep.evaluate(lambda: input_fn(False))
    print("%.5f" % found["loss"])
    print("%.5f" % found["auc"])
    print("%.5f" % found["average_loss"])
linear = tf.estimator.LinearClassifier(
    feature_columns=[words, bucketized], model_dir=tempfile.mkdtemp(), config=run_config
)
linear.train(lambda: input_fn(True), steps=12)
found = linear.evaluate(lambda: input_fn(False))
for key in ("loss", "accuracy", "accuracy_baseline", "precision", "recall", "prediction/mean", "label/mean"):
    print("%.5f" % found[key])
regressor = tf.estimator.LinearRegressor(numeric, tempfile.mkdtemp(), config=run_config)
regressor.train(lambda: input_fn(True).map(lambda x, y: (x, tf.cast(y, tf.float32))), steps=12)
predictions = [p["predictions"][0] for p in regressor.predict(lambda: input_fn(False))]
for value in predictions[:3]:
    print("%.5f" % value)
