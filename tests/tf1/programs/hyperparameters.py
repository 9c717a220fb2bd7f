"""Flags, hyperparameters, logging, a template and early stopping: the frame of a published trainer."""

import json
import os
import tempfile

import numpy as np
import tensorflow as tf

flags = tf.flags
flags.DEFINE_string("model", "small", "Which model.")
flags.DEFINE_string("hparams", "layers=[6,4],learning_rate=0.2", "Comma separated list of name=value.")
flags.DEFINE_bool("use_decay", True, "Whether the rate decays.")
flags.DEFINE_integer("steps", 20, "Steps.")
FLAGS = flags.FLAGS


def default_hparams():
    return tf.contrib.training.HParams(layers=[4], learning_rate=0.1, activation="relu", dropout=0.0, name="mlp")


def build(hparams):
    activation = {"relu": tf.nn.relu, "tanh": tf.nn.tanh}[hparams.activation]

    def network(x):
        for i, units in enumerate(hparams.layers):
            w = tf.get_variable("w%d" % i, [x.shape[-1].value, units])
            x = activation(tf.matmul(x, w) + tf.get_variable("b%d" % i, units, initializer=tf.zeros_initializer))
        return tf.reduce_sum(x, 1)

    return tf.make_template("network", network, create_scope_now_=True)


def main(unused_argv):
    tf.logging.set_verbosity(tf.logging.WARN)
    hparams = default_hparams()
    hparams.parse(FLAGS.hparams)
    hparams.set_hparam("activation", "tanh")
    tf.logging.info("hparams: %s", hparams.to_json())
    tf.set_random_seed(45)
    rng = np.random.RandomState(45)
    xs, ys = rng.randn(20, 5).astype("f"), rng.randn(20).astype("f")
    network = build(hparams)
    x, y = tf.placeholder(tf.float32, [None, 5]), tf.placeholder(tf.float32, [None])
    train_loss = tf.losses.huber_loss(y, network(x))
    valid_loss = tf.losses.absolute_difference(y, network(x * 0.9))
    step = tf.train.get_or_create_global_step()
    rate = hparams.learning_rate
    if FLAGS.use_decay:
        rate = tf.train.polynomial_decay(rate, step, FLAGS.steps, 0.01, power=2.0)
    optimizer = tf.train.AdagradOptimizer(rate)
    train = tf.contrib.slim.learning.create_train_op(train_loss, optimizer, global_step=step)
    saver, best = tf.train.Saver(max_to_keep=1), np.inf
    path = os.path.join(tempfile.mkdtemp(), "best")
    with tf.Session() as sess:
        sess.run(tf.global_variables_initializer())
        for _ in range(FLAGS.steps):
            value, valid = sess.run([train, valid_loss], {x: xs, y: ys})
            if valid < best:
                best = valid
                saver.save(sess, path)
            print("%.6f" % value)
        saver.restore(sess, path)
        print("%.6f" % best)
    print(len(tf.trainable_variables()))
    print(json.loads(hparams.to_json())["layers"][0])


if __name__ == "__main__":
    tf.app.run()
