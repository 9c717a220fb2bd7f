"""A variational autoencoder with the reparametrization trick, on tf.layers."""

import numpy as np
import tensorflow as tf

tf.reset_default_graph()
tf.set_random_seed(11)
data = (np.random.RandomState(11).rand(24, 8, 8, 1) > 0.6).astype(np.float32)
n_latent = 3


def lrelu(x, alpha=0.3):
    return tf.maximum(x, tf.multiply(x, alpha))


X_in = tf.placeholder(dtype=tf.float32, shape=[None, 8, 8, 1], name="X")
keep_prob = tf.placeholder(dtype=tf.float32, shape=(), name="keep_prob")


def encoder(images, keep_prob):
    with tf.variable_scope("encoder", reuse=None):
        x = tf.layers.conv2d(images, filters=4, kernel_size=3, strides=2, padding="same", activation=lrelu)
        x = tf.nn.dropout(x, keep_prob)
        x = tf.contrib.layers.flatten(x)
        mn = tf.layers.dense(x, units=n_latent)
        sd = 0.5 * tf.layers.dense(x, units=n_latent)
        epsilon = tf.random_normal(tf.stack([tf.shape(x)[0], n_latent]))
        z = mn + tf.multiply(epsilon, tf.exp(sd))
        return z, mn, sd


def decoder(sampled_z, keep_prob):
    with tf.variable_scope("decoder", reuse=None):
        x = tf.layers.dense(sampled_z, units=16, activation=lrelu)
        x = tf.reshape(x, [-1, 4, 4, 1])
        x = tf.layers.conv2d_transpose(x, filters=4, kernel_size=3, strides=2, padding="same", activation=tf.nn.relu)
        x = tf.nn.dropout(x, keep_prob)
        x = tf.contrib.layers.flatten(x)
        x = tf.layers.dense(x, units=8 * 8, activation=tf.nn.sigmoid)
        return tf.reshape(x, shape=[-1, 8, 8])


sampled, mn, sd = encoder(X_in, keep_prob)
dec = decoder(sampled, keep_prob)
unreshaped = tf.reshape(dec, [-1, 8 * 8])
img_loss = tf.reduce_sum(tf.squared_difference(unreshaped, tf.reshape(X_in, [-1, 8 * 8])), 1)
latent_loss = -0.5 * tf.reduce_sum(1.0 + 2.0 * sd - tf.square(mn) - tf.exp(2.0 * sd), 1)
loss = tf.reduce_mean(img_loss + latent_loss)
optimizer = tf.train.AdamOptimizer(0.005).minimize(loss)
sess = tf.Session()
sess.run(tf.global_variables_initializer())
for i in range(20):
    _, ls, i_ls = sess.run([optimizer, loss, tf.reduce_mean(img_loss)], feed_dict={X_in: data, keep_prob: 0.8})
    print("%.6f" % ls)
print("%.6f" % i_ls)
print([v.name for v in tf.trainable_variables()] == [
    "encoder/conv2d/kernel:0", "encoder/conv2d/bias:0", "encoder/dense/kernel:0", "encoder/dense/bias:0",
    "encoder/dense_1/kernel:0", "encoder/dense_1/bias:0", "decoder/dense/kernel:0", "decoder/dense/bias:0",
    "decoder/conv2d_transpose/kernel:0", "decoder/conv2d_transpose/bias:0", "decoder/dense_1/kernel:0",
    "decoder/dense_1/bias:0"] and 1.0)
