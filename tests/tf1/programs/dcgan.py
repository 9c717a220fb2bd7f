"""Convolutions and transposed convolutions with batch normalization, whose moving averages are update ops."""

import numpy as np
import tensorflow as tf

tf.set_random_seed(2)
rng = np.random.RandomState(2)
images = rng.uniform(-1, 1, [16, 8, 8, 1]).astype(np.float32)
noise = rng.uniform(-1, 1, [16, 5]).astype(np.float32)

noise_input = tf.placeholder(tf.float32, shape=[None, 5])
real_image_input = tf.placeholder(tf.float32, shape=[None, 8, 8, 1])
is_training = tf.placeholder(tf.bool)


def leakyrelu(x, alpha=0.2):
    return 0.5 * (1 + alpha) * x + 0.5 * (1 - alpha) * abs(x)


def generator(x, reuse=False):
    with tf.variable_scope("Generator", reuse=reuse):
        x = tf.layers.dense(x, units=2 * 2 * 8)
        x = tf.layers.batch_normalization(x, training=is_training)
        x = tf.nn.relu(x)
        x = tf.reshape(x, shape=[-1, 2, 2, 8])
        x = tf.layers.conv2d_transpose(x, 4, 5, strides=2, padding="same")
        x = tf.layers.batch_normalization(x, training=is_training)
        x = tf.nn.relu(x)
        x = tf.layers.conv2d_transpose(x, 1, 5, strides=2, padding="same")
        return tf.nn.tanh(x)


def discriminator(x, reuse=False):
    with tf.variable_scope("Discriminator", reuse=reuse):
        x = tf.layers.conv2d(x, 4, 5, strides=2, padding="same")
        x = tf.layers.batch_normalization(x, training=is_training)
        x = leakyrelu(x)
        x = tf.layers.conv2d(x, 8, 5, strides=2, padding="same")
        x = tf.layers.batch_normalization(x, training=is_training)
        x = leakyrelu(x)
        x = tf.reshape(x, shape=[-1, 2 * 2 * 8])
        x = tf.layers.dense(x, 16)
        x = tf.layers.batch_normalization(x, training=is_training)
        x = leakyrelu(x)
        return tf.layers.dense(x, 2)


gen_sample = generator(noise_input)
disc_real = discriminator(real_image_input)
disc_fake = discriminator(gen_sample, reuse=True)
stacked_gan = discriminator(gen_sample, reuse=True)
disc_loss_real = tf.reduce_mean(
    tf.nn.sparse_softmax_cross_entropy_with_logits(logits=disc_real, labels=tf.ones([16], dtype=tf.int32))
)
disc_loss_fake = tf.reduce_mean(
    tf.nn.sparse_softmax_cross_entropy_with_logits(logits=disc_fake, labels=tf.zeros([16], dtype=tf.int32))
)
disc_loss = disc_loss_real + disc_loss_fake
gen_loss = tf.reduce_mean(
    tf.nn.sparse_softmax_cross_entropy_with_logits(logits=stacked_gan, labels=tf.ones([16], dtype=tf.int32))
)
optimizer_gen = tf.train.AdamOptimizer(learning_rate=0.001, beta1=0.5, beta2=0.999)
optimizer_disc = tf.train.AdamOptimizer(learning_rate=0.001, beta1=0.5, beta2=0.999)
gen_vars = tf.get_collection(tf.GraphKeys.TRAINABLE_VARIABLES, scope="Generator")
disc_vars = tf.get_collection(tf.GraphKeys.TRAINABLE_VARIABLES, scope="Discriminator")
gen_update_ops = tf.get_collection(tf.GraphKeys.UPDATE_OPS, scope="Generator")
with tf.control_dependencies(gen_update_ops):
    train_gen = optimizer_gen.minimize(gen_loss, var_list=gen_vars)
disc_update_ops = tf.get_collection(tf.GraphKeys.UPDATE_OPS, scope="Discriminator")
with tf.control_dependencies(disc_update_ops):
    train_disc = optimizer_disc.minimize(disc_loss, var_list=disc_vars)

with tf.Session() as sess:
    sess.run(tf.global_variables_initializer())
    for i in range(10):
        feed = {real_image_input: images, noise_input: noise, is_training: True}
        _, dl = sess.run([train_disc, disc_loss], feed_dict=feed)
        _, gl = sess.run([train_gen, gen_loss], feed_dict={noise_input: noise, is_training: True})
        print("%.6f" % dl)
        print("%.6f" % gl)
    print("%.6f" % np.abs(sess.run(gen_sample, feed_dict={noise_input: noise, is_training: False})).mean())
    print(len(gen_update_ops), len(disc_update_ops), sep="\n")
