"""Summaries for TensorBoard, written and read again."""

import glob
import os
import tempfile

import numpy as np
import tensorflow as tf

logdir = tempfile.mkdtemp()
rng = np.random.RandomState(28)
data_x, data_y = rng.rand(20, 6).astype("f"), rng.rand(20, 1).astype("f")


def variable_summaries(var):
    with tf.name_scope("summaries"):
        mean = tf.reduce_mean(var)
        tf.summary.scalar("mean", mean)
        with tf.name_scope("stddev"):
            stddev = tf.sqrt(tf.reduce_mean(tf.square(var - mean)))
        tf.summary.scalar("stddev", stddev)
        tf.summary.scalar("max", tf.reduce_max(var))
        tf.summary.histogram("histogram", var)


def nn_layer(input_tensor, input_dim, output_dim, layer_name, act=tf.nn.relu):
    with tf.name_scope(layer_name):
        with tf.name_scope("weights"):
            weights = tf.Variable(tf.truncated_normal([input_dim, output_dim], stddev=0.1))
            variable_summaries(weights)
        with tf.name_scope("biases"):
            biases = tf.Variable(tf.constant(0.1, shape=[output_dim]))
            variable_summaries(biases)
        with tf.name_scope("Wx_plus_b"):
            preactivate = tf.matmul(input_tensor, weights) + biases
            tf.summary.histogram("pre_activations", preactivate)
        activations = act(preactivate, name="activation")
        tf.summary.histogram("activations", activations)
        return activations


tf.set_random_seed(28)
with tf.name_scope("input"):
    x = tf.placeholder(tf.float32, [None, 6], name="x-input")
    y_ = tf.placeholder(tf.float32, [None, 1], name="y-input")
with tf.name_scope("input_reshape"):
    tf.summary.image("input", tf.reshape(x, [-1, 2, 3, 1]), 2)
hidden = nn_layer(x, 6, 5, "layer1")
y = nn_layer(hidden, 5, 1, "layer2", act=tf.identity)
with tf.name_scope("total"):
    loss = tf.losses.mean_squared_error(y_, y)
tf.summary.scalar("loss", loss)
with tf.name_scope("train"):
    train_step = tf.train.AdadeltaOptimizer(1.0).minimize(loss)
merged = tf.summary.merge_all()
with tf.Session() as sess:
    train_writer = tf.summary.FileWriter(os.path.join(logdir, "train"), sess.graph)
    tf.global_variables_initializer().run()
    for i in range(20):
        if i == 10:
            run_options = tf.RunOptions(trace_level=tf.RunOptions.FULL_TRACE)
            run_metadata = tf.RunMetadata()
            summary, _ = sess.run([merged, train_step], {x: data_x, y_: data_y}, run_options, run_metadata)
            train_writer.add_run_metadata(run_metadata, "step%03d" % i)
        else:
            summary, _ = sess.run([merged, train_step], feed_dict={x: data_x, y_: data_y})
        train_writer.add_summary(summary, i)
    train_writer.close()

(path,) = glob.glob(os.path.join(logdir, "train", "events.out.tfevents.*"))
tags = set()
for event in tf.train.summary_iterator(path):
    for value in event.summary.value:
        tags.add(value.tag)
        if value.tag == "loss":
            print("%.6f" % value.simple_value)
print(len(tags))
print(sum(1 for e in tf.train.summary_iterator(path) if e.WhichOneof("what") == "tagged_run_metadata"))
