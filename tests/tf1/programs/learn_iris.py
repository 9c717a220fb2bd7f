"""tf.contrib.learn's first tutorial: a deep classifier of irises, out of CSV files and out of arrays."""

import os
import tempfile

import numpy as np
import tensorflow as tf

tf.logging.set_verbosity(tf.logging.ERROR)
learn = tf.contrib.learn
iris = learn.datasets.load_iris()
order = np.random.RandomState(3).permutation(150)
folder = tempfile.mkdtemp()


def write(name, rows):
    path = os.path.join(folder, name)
    with open(path, "w") as file:
        file.write("%d,4,setosa,versicolor,virginica\n" % len(rows))
        for row in rows:
            file.write(",".join("%.1f" % value for value in iris.data[row]) + ",%d\n" % iris.target[row])
    return path


training_set = learn.datasets.base.load_csv_with_header(
    filename=write("iris_training.csv", order[:120]), target_dtype=np.int64, features_dtype=np.float32
)
test_set = learn.datasets.base.load_csv_with_header(
    filename=write("iris_test.csv", order[120:]), target_dtype=np.int64, features_dtype=np.float32
)
config = learn.RunConfig(tf_random_seed=5)
feature_columns = [tf.contrib.layers.real_valued_column("", dimension=4)]
classifier = learn.DNNClassifier(
    feature_columns=feature_columns, hidden_units=[10, 20, 10], n_classes=3, model_dir=os.path.join(folder, "model"),
    config=config,
)


def get_train_inputs():
    return tf.constant(training_set.data), tf.constant(training_set.target)


for _ in range(4):
    classifier.fit(input_fn=get_train_inputs, steps=10)
    found = classifier.evaluate(
        input_fn=lambda: (tf.constant(test_set.data), tf.constant(test_set.target)), steps=1
    )
    print("%.5f" % found["accuracy"])
    print("%.5f" % found["loss"])
    print("%d" % found["global_step"])
samples = np.array([[6.4, 3.2, 4.5, 1.5], [5.8, 3.1, 5.0, 1.7]], dtype=np.float32)
for kind in classifier.predict(input_fn=lambda: tf.constant(samples)):
    print("%d" % kind)
for row in classifier.predict_proba(input_fn=lambda: tf.constant(samples)):
    for value in row:
        print("%.5f" % value)

# the calls of the first releases: arrays, and batches of them
columns = learn.infer_real_valued_columns_from_input(training_set.data)
again = learn.DNNClassifier(hidden_units=[8], n_classes=3, feature_columns=columns, config=learn.RunConfig(tf_random_seed=6))
again.fit(x=training_set.data, y=training_set.target, steps=20, batch_size=32)
found = again.evaluate(x=test_set.data, y=test_set.target)
print("%.5f" % found["loss"])
print("%.5f" % found["accuracy"])
for kind in again.predict(test_set.data[:3], as_iterable=True):
    print("%d" % kind)
for kind in again.predict(x=test_set.data[3:6], as_iterable=False):
    print("%d" % kind)
