"""A Wasserstein critic whose loss has the norm of its own gradient in it."""

import numpy as np
import tensorflow as tf

tf.set_random_seed(8)
rng = np.random.RandomState(8)
LAMBDA, BATCH = 10.0, 16
real_data = rng.randn(BATCH, 2).astype("float32") + [1.0, -1.0]


def linear(name, inputs, size):
    with tf.variable_scope(name):
        w = tf.get_variable("W", [inputs.shape[1], size], tf.float32, tf.random_uniform_initializer(-0.5, 0.5))
        b = tf.get_variable("b", [size], tf.float32, tf.zeros_initializer())
    return tf.matmul(inputs, w) + b


def critic(inputs):
    with tf.variable_scope("critic", reuse=tf.AUTO_REUSE):
        out = tf.nn.softplus(linear("1", inputs, 8))
        out = tf.tanh(linear("2", out, 8))
        return tf.reshape(linear("3", out, 1), [-1])


def generate(n):
    with tf.variable_scope("generator", reuse=tf.AUTO_REUSE):
        z = tf.random_normal([n, 2], seed=17)
        return linear("2", tf.nn.elu(linear("1", z, 8)), 2)


x = tf.placeholder(tf.float32, [BATCH, 2])
fake = generate(BATCH)
disc_cost = tf.reduce_mean(critic(fake)) - tf.reduce_mean(critic(x))
gen_cost = -tf.reduce_mean(critic(fake))
alpha = tf.random_uniform(shape=[BATCH, 1], minval=0.0, maxval=1.0)
interpolates = x + alpha * (fake - x)
gradients = tf.gradients(critic(interpolates), [interpolates])[0]
slopes = tf.sqrt(tf.reduce_sum(tf.square(gradients), reduction_indices=[1]))
disc_cost += LAMBDA * tf.reduce_mean((slopes - 1.0) ** 2)
disc_params = [v for v in tf.trainable_variables() if v.op.name.startswith("critic")]
gen_params = [v for v in tf.trainable_variables() if v.op.name.startswith("generator")]
disc_train = tf.train.AdamOptimizer(1e-2, beta1=0.5, beta2=0.9).minimize(disc_cost, var_list=disc_params)
gen_train = tf.train.RMSPropOptimizer(1e-2).minimize(gen_cost, var_list=gen_params)

session = tf.Session(config=tf.ConfigProto(allow_soft_placement=True))
session.run(tf.global_variables_initializer())
for iteration in range(10):
    for _ in range(2):
        d, _ = session.run([disc_cost, disc_train], feed_dict={x: real_data})
    g, _ = session.run([gen_cost, gen_train])
    print("%.6f" % d)
    print("%.6f" % g)
session.close()
