"""Which sonnet is a line from? An LSTM reads it word by word, in a loop that ends with the line."""

import os
import re

import numpy as np
import tensorflow as tf

UNITS, SIZE, STEPS = 24, 16, 120

with open(os.path.join(os.path.dirname(os.path.abspath(__file__)), "sonnets.txt")) as file:
    sonnets = file.read().lower().strip().split("\n\n")
lines = [(re.findall(r"[a-z']+", line), label) for label, sonnet in enumerate(sonnets) for line in sonnet.split("\n")]
vocabulary = {word: i + 1 for i, word in enumerate(sorted({word for line, _ in lines for word in line}))}
longest = max(len(line) for line, _ in lines)
texts = np.array([[vocabulary[word] for word in line] + [0] * (longest - len(line)) for line, _ in lines])
lengths = np.array([len(line) for line, _ in lines])
labels = np.array([label for _, label in lines])

tf.set_random_seed(3)
text = tf.placeholder(tf.int32, [None, None], name="text")
length = tf.placeholder(tf.int32, [None], name="length")
label = tf.placeholder(tf.int64, [None], name="label")
embedding = tf.get_variable("embedding", [len(vocabulary) + 1, SIZE])
cell = tf.nn.rnn_cell.LSTMCell(UNITS)
_, state = tf.nn.dynamic_rnn(cell, tf.nn.embedding_lookup(embedding, text), length, dtype=tf.float32)
logits = tf.layers.dense(state.h, len(sonnets), name="logits")
loss = tf.losses.sparse_softmax_cross_entropy(label, logits)
accuracy = tf.reduce_mean(tf.cast(tf.equal(tf.argmax(logits, 1), label), tf.float32))
train = tf.train.AdamOptimizer(0.02).minimize(loss)

with tf.Session() as sess:
    sess.run(tf.global_variables_initializer())
    feed = {text: texts, length: lengths, label: labels}
    first = sess.run(loss, feed)
    for _ in range(STEPS):
        sess.run(train, feed)
    last, right = sess.run([loss, accuracy], feed)
    print("accuracy %.2f" % right)
    print("loss %.4f -> %.4f" % (first, last))
