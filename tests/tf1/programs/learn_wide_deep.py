"""The wide and deep tutorial of 2016: incomes of a census, with invented rows."""

from __future__ import absolute_import, division, print_function

import argparse
import tempfile

import numpy as np
import tensorflow as tf

tf.logging.set_verbosity(tf.logging.ERROR)
LABEL_COLUMN = "label"
CATEGORICAL_COLUMNS = ["workclass", "education", "gender", "native_country"]
CONTINUOUS_COLUMNS = ["age", "education_num", "hours_per_week"]


def rows(count, seed):
    rng = np.random.RandomState(seed)
    found = {
        "workclass": rng.choice(["Private", "State-gov", "Self-emp"], count),
        "education": rng.choice(["Bachelors", "HS-grad", "Masters"], count),
        "gender": rng.choice(["Female", "Male"], count),
        "native_country": rng.choice(["United-States", "Mexico", "India"], count),
        "age": rng.randint(17, 70, count), "education_num": rng.randint(5, 16, count),
        "hours_per_week": rng.randint(10, 60, count),
    }
    score = found["age"] / 20.0 + found["education_num"] / 4.0 + (found["education"] == "Masters")
    found[LABEL_COLUMN] = (score > 5.0).astype(int)
    return found


def build_estimator(model_dir, model_type):
    layers = tf.contrib.layers
    gender = layers.sparse_column_with_keys(column_name="gender", keys=["Female", "Male"])
    education = layers.sparse_column_with_hash_bucket("education", hash_bucket_size=100)
    workclass = layers.sparse_column_with_hash_bucket("workclass", hash_bucket_size=50)
    native_country = layers.sparse_column_with_hash_bucket("native_country", hash_bucket_size=100)
    age = layers.real_valued_column("age")
    education_num = layers.real_valued_column("education_num")
    hours_per_week = layers.real_valued_column("hours_per_week")
    age_buckets = layers.bucketized_column(age, boundaries=[18, 25, 30, 35, 40, 45, 50, 55, 60, 65])
    wide_columns = [
        gender, native_country, education, workclass, age_buckets,
        layers.crossed_column([education, workclass], hash_bucket_size=int(1e3)),
        layers.crossed_column([age_buckets, education], hash_bucket_size=int(1e3)),
    ]
    deep_columns = [
        layers.embedding_column(workclass, dimension=8), layers.embedding_column(education, dimension=8),
        layers.embedding_column(gender, dimension=8), layers.embedding_column(native_country, dimension=8),
        age, education_num, hours_per_week,
    ]
    config = tf.contrib.learn.RunConfig(tf_random_seed=8)
    if model_type == "wide":
        return tf.contrib.learn.LinearClassifier(model_dir=model_dir, feature_columns=wide_columns, config=config)
    if model_type == "deep":
        return tf.contrib.learn.DNNClassifier(
            model_dir=model_dir, feature_columns=deep_columns, hidden_units=[20, 10], config=config
        )
    return tf.contrib.learn.DNNLinearCombinedClassifier(
        model_dir=model_dir, linear_feature_columns=wide_columns, dnn_feature_columns=deep_columns,
        dnn_hidden_units=[20, 10], config=config, fix_global_step_increment_bug=True,
    )


def input_fn(table):
    """Input builder function."""
    continuous_cols = {k: tf.constant(table[k]) for k in CONTINUOUS_COLUMNS}
    categorical_cols = {
        k: tf.SparseTensor(
            indices=[[i, 0] for i in range(len(table[k]))], values=table[k], dense_shape=[len(table[k]), 1]
        )
        for k in CATEGORICAL_COLUMNS
    }
    feature_cols = dict(continuous_cols)
    feature_cols.update(categorical_cols)
    label = tf.constant(table[LABEL_COLUMN])
    return feature_cols, label


def train_and_eval(model_type, train_steps):
    train, test = rows(60, 1), rows(20, 2)
    m = build_estimator(tempfile.mkdtemp(), model_type)
    m.fit(input_fn=lambda: input_fn(train), steps=train_steps)
    results = m.evaluate(input_fn=lambda: input_fn(test), steps=1)
    for key in sorted(results):
        print("%.4f" % results[key])
    for row in list(m.predict_proba(input_fn=lambda: input_fn(test)))[:3]:
        print("%.4f" % row[1])


def main(_):
    parser = argparse.ArgumentParser()
    parser.add_argument("--train_steps", type=int, default=15)
    flags, _ = parser.parse_known_args()
    for model_type in ("wide", "deep", "wide_n_deep"):
        train_and_eval(model_type, flags.train_steps)


if __name__ == "__main__":
    tf.app.run(main=main)
