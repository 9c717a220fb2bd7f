"""A network whose outputs are the parameters of a mixture of normal distributions."""

import math

import numpy as np
import tensorflow as tf

tf.set_random_seed(48)
rng = np.random.RandomState(48)
y_data = rng.uniform(-1, 1, (40, 1)).astype("f")
x_data = (np.sin(3 * y_data) + 0.3 * y_data + 0.05 * rng.randn(40, 1)).astype("f")
HIDDEN, MIX = 8, 3

x = tf.placeholder(dtype=tf.float32, shape=[None, 1], name="x")
y = tf.placeholder(dtype=tf.float32, shape=[None, 1], name="y")
Wh = tf.Variable(tf.random_normal([1, HIDDEN], stddev=0.5, dtype=tf.float32))
bh = tf.Variable(tf.random_normal([1, HIDDEN], stddev=0.5, dtype=tf.float32))
Wo = tf.Variable(tf.random_normal([HIDDEN, MIX * 3], stddev=0.5, dtype=tf.float32))
bo = tf.Variable(tf.random_normal([1, MIX * 3], stddev=0.5, dtype=tf.float32))
output = tf.matmul(tf.nn.tanh(tf.matmul(x, Wh) + bh), Wo) + bo
out_pi, out_sigma, out_mu = tf.split(output, 3, axis=1)
max_pi = tf.reduce_max(out_pi, 1, keepdims=True)
out_pi = tf.exp(tf.subtract(out_pi, max_pi))
out_pi = tf.multiply(tf.reciprocal(tf.reduce_sum(out_pi, 1, keepdims=True)), out_pi)
out_sigma = tf.exp(out_sigma)
result = tf.multiply(tf.subtract(y, out_mu), tf.reciprocal(out_sigma))
kernel = tf.multiply(tf.exp(-tf.square(result) / 2), tf.reciprocal(out_sigma)) * (1 / math.sqrt(2 * math.pi))
lossfunc = tf.reduce_mean(-tf.log(tf.reduce_sum(tf.multiply(kernel, out_pi), 1, keepdims=True)))
train_op = tf.train.RMSPropOptimizer(0.01, centered=True).minimize(lossfunc)
drawn = tf.multinomial(tf.log(out_pi), 1, seed=9)
sess = tf.InteractiveSession()
sess.run(tf.global_variables_initializer())
for i in range(20):
    _, value = sess.run([train_op, lossfunc], feed_dict={x: x_data, y: y_data})
    print("%.6f" % value)
print(sess.run(drawn, {x: x_data}).sum())
