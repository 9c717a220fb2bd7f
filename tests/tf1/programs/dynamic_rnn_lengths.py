"""Sequences of different lengths through dynamic_rnn; the last output of each is gathered."""

import numpy as np
import tensorflow as tf

tf.set_random_seed(6)
rng = np.random.RandomState(6)
max_len, n_hidden = 10, 8
lengths = rng.randint(3, max_len + 1, 24)
data = np.zeros([24, max_len, 1], np.float32)
targets = np.zeros([24, 2], np.float32)
for row, length in enumerate(lengths):
    start = rng.rand()
    linear = rng.rand() < 0.5
    data[row, :length, 0] = start + 0.05 * np.arange(length) if linear else rng.rand(length)
    targets[row, 0 if linear else 1] = 1.0

x = tf.placeholder("float", [None, max_len, 1])
y = tf.placeholder("float", [None, 2])
seqlen = tf.placeholder(tf.int32, [None])
weights = {"out": tf.Variable(tf.random_normal([n_hidden, 2]))}
biases = {"out": tf.Variable(tf.random_normal([2]))}


def dynamicRNN(x, seqlen, weights, biases):
    cell = tf.nn.rnn_cell.DropoutWrapper(tf.contrib.rnn.LSTMCell(n_hidden, use_peepholes=True), output_keep_prob=1.0)
    outputs, states = tf.nn.dynamic_rnn(cell, x, dtype=tf.float32, sequence_length=seqlen)
    batch_size = tf.shape(outputs)[0]
    index = tf.range(0, batch_size) * max_len + (seqlen - 1)
    outputs = tf.gather(tf.reshape(outputs, [-1, n_hidden]), index)
    return tf.matmul(outputs, weights["out"]) + biases["out"]


pred = dynamicRNN(x, seqlen, weights, biases)
cost = tf.reduce_mean(tf.nn.softmax_cross_entropy_with_logits(logits=pred, labels=y))
optimizer = tf.train.AdagradOptimizer(learning_rate=0.1).minimize(cost)

with tf.Session() as sess:
    sess.run(tf.global_variables_initializer())
    for step in range(20):
        _, c = sess.run([optimizer, cost], feed_dict={x: data, y: targets, seqlen: lengths})
        print("%.7f" % c)
