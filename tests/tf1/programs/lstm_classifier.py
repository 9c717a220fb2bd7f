"""Rows of an image as steps in time: a static LSTM unrolled from contrib.rnn."""

from __future__ import print_function

import numpy as np
import tensorflow as tf
from tensorflow.contrib import rnn

tf.set_random_seed(4)
rng = np.random.RandomState(4)
num_input, timesteps, num_hidden, num_classes = 5, 6, 8, 3
images = rng.rand(30, timesteps, num_input).astype(np.float32)
labels = np.eye(3)[(images[:, 0].sum(axis=1) * 1.2).astype(int) % 3]

X = tf.placeholder("float", [None, timesteps, num_input])
Y = tf.placeholder("float", [None, num_classes])
weights = {"out": tf.Variable(tf.random_normal([num_hidden, num_classes]))}
biases = {"out": tf.Variable(tf.random_normal([num_classes]))}


def RNN(x, weights, biases):
    x = tf.unstack(x, timesteps, 1)
    lstm_cell = rnn.BasicLSTMCell(num_hidden, forget_bias=1.0)
    outputs, states = rnn.static_rnn(lstm_cell, x, dtype=tf.float32)
    return tf.matmul(outputs[-1], weights["out"]) + biases["out"]


logits = RNN(X, weights, biases)
prediction = tf.nn.softmax(logits)
loss_op = tf.reduce_mean(tf.nn.softmax_cross_entropy_with_logits_v2(logits=logits, labels=Y))
optimizer = tf.train.GradientDescentOptimizer(learning_rate=0.1)
train_op = optimizer.minimize(loss_op)
accuracy = tf.reduce_mean(tf.cast(tf.equal(tf.argmax(prediction, 1), tf.argmax(Y, 1)), tf.float32))

with tf.Session() as sess:
    sess.run(tf.global_variables_initializer())
    for step in range(20):
        sess.run(train_op, feed_dict={X: images, Y: labels})
        loss, acc = sess.run([loss_op, accuracy], feed_dict={X: images, Y: labels})
        print("{:.6f}".format(loss))
