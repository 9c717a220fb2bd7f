"""A generator and a discriminator: two losses, two optimizers, two sets of variables."""

import numpy as np
import tensorflow as tf

tf.set_random_seed(5)
rng = np.random.RandomState(5)
real = rng.randn(32, 6).astype(np.float32) * 0.5 + 2.0


def generator(z, reuse=None):
    with tf.variable_scope("gen", reuse=reuse):
        hidden1 = tf.layers.dense(inputs=z, units=12, activation=tf.nn.leaky_relu)
        hidden2 = tf.layers.dense(inputs=hidden1, units=12, activation=tf.nn.leaky_relu)
        return tf.layers.dense(hidden2, units=6)


def discriminator(X, reuse=None):
    with tf.variable_scope("dis", reuse=reuse):
        hidden1 = tf.layers.dense(inputs=X, units=12, activation=tf.nn.leaky_relu)
        logits = tf.layers.dense(hidden1, units=1)
        return tf.sigmoid(logits), logits


real_images = tf.placeholder(tf.float32, shape=[None, 6])
z = tf.placeholder(tf.float32, shape=[None, 4])
G = generator(z)
D_output_real, D_logits_real = discriminator(real_images)
D_output_fake, D_logits_fake = discriminator(G, reuse=True)


def loss_func(logits_in, labels_in):
    return tf.reduce_mean(tf.nn.sigmoid_cross_entropy_with_logits(logits=logits_in, labels=labels_in))


D_loss = loss_func(D_logits_real, tf.ones_like(D_logits_real) * 0.9) + loss_func(
    D_logits_fake, tf.zeros_like(D_logits_real)
)
G_loss = loss_func(D_logits_fake, tf.ones_like(D_logits_fake))
tvars = tf.trainable_variables()
d_vars = [var for var in tvars if "dis" in var.name]
g_vars = [var for var in tvars if "gen" in var.name]
D_trainer = tf.train.AdamOptimizer(0.01).minimize(D_loss, var_list=d_vars)
G_trainer = tf.train.AdamOptimizer(0.01).minimize(G_loss, var_list=g_vars)
saver = tf.train.Saver(var_list=g_vars)

with tf.Session() as sess:
    sess.run(tf.global_variables_initializer())
    for _ in range(12):
        batch_z = rng.uniform(-1, 1, size=(32, 4))
        _, d = sess.run([D_trainer, D_loss], feed_dict={real_images: real, z: batch_z})
        _, g = sess.run([G_trainer, G_loss], feed_dict={z: batch_z})
        print("%.7f\n%.7f" % (d, g))
    sample = sess.run(generator(z, reuse=True), feed_dict={z: np.ones([1, 4])})
    for value in sample[0]:
        print("%.6f" % value)
