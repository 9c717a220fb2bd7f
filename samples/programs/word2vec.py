"""Vectors of words that predict their neighbours: skip-grams with noise-contrastive estimation."""

import collections
import os
import re

import numpy as np
import tensorflow as tf

WINDOW, SIZE, NEGATIVE, BATCH, STEPS = 2, 16, 8, 64, 400

with open(os.path.join(os.path.dirname(os.path.abspath(__file__)), "sonnets.txt")) as file:
    words = re.findall(r"[a-z']+", file.read().lower())
counts = collections.Counter(words).most_common()
ids = {word: i for i, (word, _) in enumerate(counts)}
corpus = [ids[word] for word in words]
pairs = np.array([
    (corpus[i], corpus[j])
    for i in range(len(corpus))
    for j in range(max(0, i - WINDOW), min(len(corpus), i + WINDOW + 1))
    if i != j
])

tf.set_random_seed(1)
centers = tf.placeholder(tf.int32, [None])
neighbours = tf.placeholder(tf.int32, [None, 1])
table = tf.get_variable("vectors", [len(ids), SIZE], initializer=tf.random_uniform_initializer(-1, 1))
weights = tf.get_variable("nce/weights", [len(ids), SIZE], initializer=tf.truncated_normal_initializer(stddev=0.25))
biases = tf.get_variable("nce/biases", [len(ids)], initializer=tf.zeros_initializer())
loss = tf.reduce_mean(
    tf.nn.nce_loss(weights, biases, neighbours, tf.nn.embedding_lookup(table, centers), NEGATIVE, len(ids))
)
train = tf.train.GradientDescentOptimizer(1.0).minimize(loss)
unit = tf.nn.l2_normalize(table, 1)
nearest = tf.nn.top_k(tf.matmul(tf.nn.embedding_lookup(unit, centers), unit, transpose_b=True), 4)

with tf.Session() as sess:
    sess.run(tf.global_variables_initializer())
    random = np.random.RandomState(0)
    losses = []
    for _ in range(STEPS):
        batch = pairs[random.randint(len(pairs), size=BATCH)]
        losses.append(sess.run([loss, train], {centers: batch[:, 0], neighbours: batch[:, 1:]})[0])
    by_id = {i: word for word, i in ids.items()}
    for word in ("love", "summer's", "eyes"):
        _, found = sess.run(nearest, {centers: [ids[word]]})
        print("%s: %s" % (word, " ".join(by_id[i] for i in found[0][1:])))
    print("loss %.4f -> %.4f" % (np.mean(losses[:20]), np.mean(losses[-20:])))
