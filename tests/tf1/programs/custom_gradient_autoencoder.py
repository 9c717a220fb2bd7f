"""A binary code with a straight-through gradient, by a registered gradient and a map of overrides."""

import numpy as np
import tensorflow as tf

tf.set_random_seed(3)
rng = np.random.RandomState(3)
data = (rng.rand(32, 12) > 0.5).astype(np.float32)


@tf.RegisterGradient("StraightThrough")
def _straight_through(op, grad):
    return [grad * tf.cast(tf.abs(op.inputs[0]) <= 2.0, tf.float32)]


@tf.custom_gradient
def clip_gradient(x):
    def grad(dy):
        return tf.clip_by_value(dy, -0.05, 0.05)

    return tf.identity(x), grad


def dense(x, size, scope, activation=None):
    with tf.variable_scope(scope):
        w = tf.get_variable("w", [x.get_shape()[1].value, size], initializer=tf.truncated_normal_initializer(stddev=0.3))
        b = tf.get_variable("b", [size], initializer=tf.constant_initializer(0.0))
        h = tf.nn.xw_plus_b(x, w, b)
        return h if activation is None else activation(h)


x = tf.placeholder(tf.float32, [None, 12], name="input")
h = dense(x, 8, "hidden", tf.tanh)
graph = tf.get_default_graph()
with graph.gradient_override_map({"Sign": "StraightThrough"}):
    code = tf.sign(h, name="code")
logits = dense(clip_gradient(code), 12, "output")
loss = tf.reduce_mean(tf.reduce_sum(tf.nn.sigmoid_cross_entropy_with_logits(labels=x, logits=logits), axis=1))
global_step = tf.Variable(0, trainable=False, name="global_step")
rate = tf.train.exponential_decay(0.5, global_step, 5, 0.8, staircase=True)
train = tf.train.MomentumOptimizer(rate, 0.9, use_nesterov=True).minimize(loss, global_step=global_step)

with tf.Session() as sess:
    sess.run(tf.global_variables_initializer())
    for _ in range(20):
        _, value, r = sess.run([train, loss, rate], {x: data})
        print("%.7f" % value)
    print("%.7f" % r)
    print("%.6f" % np.abs(sess.run(code, {x: data})).mean())
