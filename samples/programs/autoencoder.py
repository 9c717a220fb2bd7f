"""Digits through a code of 16 bits. Rounding has no slope, so the gradient goes past it (tf.custom_gradient)."""

import os

import numpy as np
import tensorflow as tf

BITS, BATCH, STEPS = 16, 64, 300

digits = np.load(os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "digits.npz"))
images = digits["x_train"].reshape([-1, 64])


@tf.custom_gradient
def to_bits(probabilities):
    """0 or 1, and on the way back as if nothing had been done."""
    return tf.round(probabilities), lambda grad: grad


tf.set_random_seed(5)
x = tf.placeholder(tf.float32, [None, 64], name="x")
hidden = tf.layers.dense(x, 48, tf.nn.relu, name="encoder")
code = to_bits(tf.layers.dense(hidden, BITS, tf.nn.sigmoid, name="code"))
hidden = tf.layers.dense(code, 48, tf.nn.relu, name="decoder")
shown = tf.layers.dense(hidden, 64, tf.nn.sigmoid, name="shown")
loss = tf.losses.mean_squared_error(x, shown)
train = tf.train.AdamOptimizer(0.003).minimize(loss)

with tf.Session() as sess:
    sess.run(tf.global_variables_initializer())
    first = sess.run(loss, {x: digits["x_test"].reshape([-1, 64])})
    random = np.random.RandomState(0)
    for _ in range(STEPS):
        sess.run(train, {x: images[random.randint(len(images), size=BATCH)]})
    last, codes = sess.run([loss, code], {x: digits["x_test"].reshape([-1, 64])})
    print("%d codes of %d images" % (len({tuple(each) for each in codes}), len(codes)))
    print("loss %.4f -> %.4f" % (first, last))
