"""Loops, branches, TensorArrays, scans and a Python function in the graph; gradients go through all but the last."""

import numpy as np
import tensorflow as tf

tf.set_random_seed(40)
rng = np.random.RandomState(40)
sequence = rng.randn(9, 4).astype("f")

w = tf.get_variable("w", [4, 4], initializer=tf.orthogonal_initializer(seed=1))
x = tf.placeholder(tf.float32, [None, 4])
use_tanh = tf.placeholder_with_default(True, [])


def body(i, state, array):
    state = tf.matmul(tf.expand_dims(x[i] + state, 0), w)[0]
    state = tf.cond(use_tanh, lambda: tf.tanh(state), lambda: tf.nn.softsign(state))
    state = tf.case([(tf.reduce_sum(state) > 1.0, lambda: state * 0.5)], default=lambda: state)
    return i + 1, state, array.write(i, state)


n = tf.shape(x)[0]
array = tf.TensorArray(tf.float32, size=0, dynamic_size=True, clear_after_read=False)
_, last, array = tf.while_loop(lambda i, *_: i < n, body, (0, tf.zeros([4]), array), parallel_iterations=4)
states = array.stack()
states.set_shape([None, 4])
running = tf.scan(lambda a, b: 0.5 * a + b, states)
norms = tf.map_fn(lambda row: tf.norm(row), running)
folded = tf.foldl(lambda a, b: a + b * b, norms, initializer=0.0)
loss = folded + tf.reduce_sum(tf.square(last - 0.1))
total = tf.py_func(lambda v: np.float32(v.sum()), [states], tf.float32, stateful=False)
optimizer = tf.train.GradientDescentOptimizer(0.01)
grads = optimizer.compute_gradients(loss)
train = optimizer.apply_gradients([(tf.clip_by_norm(g, 2.0), v) for g, v in grads])
hessian = tf.hessians(tf.reduce_sum(tf.tanh(w) ** 2), w)[0]
checked = tf.Print(loss, [loss], message="loss", first_n=0)
with tf.Session() as sess:
    sess.run(tf.global_variables_initializer())
    for step in range(12):
        _, value, count = sess.run([train, checked, total], {x: sequence[: 4 + step % 5], use_tanh: step % 3 > 0})
        print("%.6f" % value)
        print("%.6f" % count)
    print("%.6f" % np.trace(sess.run(hessian).reshape(16, 16)))
    root = tf.while_loop(lambda v: tf.abs(v * v - 2.0) > 1e-4, lambda v: v - (v * v - 2.0) / (2.0 * v), [tf.constant(3.0)])
    print("%.4f" % sess.run(root))
