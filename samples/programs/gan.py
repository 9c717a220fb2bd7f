"""Two networks against each other: one draws digits, one tells drawn from real. Each has its optimizer and variables."""

import os

import numpy as np
import tensorflow as tf

NOISE, BATCH, STEPS = 16, 64, 400

digits = np.load(os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "digits.npz"))
images = digits["x_train"].reshape([-1, 64]) * 2 - 1


def generator(noise):
    with tf.variable_scope("generator"):
        hidden = tf.layers.dense(noise, 64, tf.nn.relu)
        return tf.layers.dense(hidden, 64, tf.nn.tanh)


def discriminator(pictures, reuse):
    with tf.variable_scope("discriminator", reuse=reuse):
        hidden = tf.nn.leaky_relu(tf.layers.dense(pictures, 64))
        return tf.layers.dense(hidden, 1)


def cross_entropy(logits, is_real):
    labels = tf.ones_like(logits) if is_real else tf.zeros_like(logits)
    return tf.reduce_mean(tf.nn.sigmoid_cross_entropy_with_logits(labels=labels, logits=logits))


tf.set_random_seed(7)
real = tf.placeholder(tf.float32, [None, 64], name="real")
noise = tf.placeholder(tf.float32, [None, NOISE], name="noise")
drawn = generator(noise)
for_real, for_drawn = discriminator(real, False), discriminator(drawn, True)
tells = cross_entropy(for_real, True) + cross_entropy(for_drawn, False)
fools = cross_entropy(for_drawn, True)


def variables(scope):
    return tf.get_collection(tf.GraphKeys.TRAINABLE_VARIABLES, scope)


train_tells = tf.train.AdamOptimizer(2e-3, 0.5).minimize(tells, var_list=variables("discriminator"))
train_fools = tf.train.AdamOptimizer(2e-3, 0.5).minimize(fools, var_list=variables("generator"))
#: how far the mean drawn picture is from the mean digit
apart = tf.reduce_mean(tf.abs(tf.reduce_mean(drawn, 0) - tf.reduce_mean(real, 0)))

with tf.Session() as sess:
    sess.run(tf.global_variables_initializer())
    random = np.random.RandomState(0)
    check = {real: images, noise: random.normal(size=[500, NOISE])}
    first = sess.run(apart, check)
    for _ in range(STEPS):
        batch = images[random.randint(len(images), size=BATCH)]
        sess.run(train_tells, {real: batch, noise: random.normal(size=[BATCH, NOISE])})
        sess.run(train_fools, {noise: random.normal(size=[BATCH, NOISE])})
    picture = sess.run(drawn, {noise: random.normal(size=[1, NOISE])})[0].reshape([8, 8])
    print("\n".join("".join(" .:-=+*#"[int((value + 1) * 3.99)] for value in row) for row in picture))
    print("loss %.4f -> %.4f" % (first, sess.run(apart, check)))
