"""Skip-grams with noise-contrastive estimation, and the nearest words by cosine."""

import collections
import random

import numpy as np
import tensorflow as tf

random.seed(0)
text = ("the quick brown fox jumps over the lazy dog and the dog sleeps while the fox runs over the hill to the river "
        "where the brown bear and the quick dog drink") .split()
count = collections.Counter(text).most_common()
dictionary = {word: index for index, (word, _) in enumerate(count)}
data = [dictionary[word] for word in text]
vocabulary_size, embedding_size, batch_size, num_sampled = len(dictionary), 8, 16, 4
pairs = [(data[i], data[j]) for i in range(len(data)) for j in (i - 1, i + 1) if 0 <= j < len(data)]

graph = tf.Graph()
with graph.as_default():
    tf.set_random_seed(42)
    train_inputs = tf.placeholder(tf.int32, shape=[batch_size])
    train_labels = tf.placeholder(tf.int32, shape=[batch_size, 1])
    valid_dataset = tf.constant([0, 1, 2], dtype=tf.int32)
    with tf.device("/cpu:0"):
        embeddings = tf.Variable(tf.random_uniform([vocabulary_size, embedding_size], -1.0, 1.0))
        embed = tf.nn.embedding_lookup(embeddings, train_inputs)
        nce_weights = tf.Variable(tf.truncated_normal([vocabulary_size, embedding_size], stddev=1.0 / np.sqrt(8)))
        nce_biases = tf.Variable(tf.zeros([vocabulary_size]))
    loss = tf.reduce_mean(
        tf.nn.nce_loss(
            weights=nce_weights, biases=nce_biases, labels=train_labels, inputs=embed, num_sampled=num_sampled,
            num_classes=vocabulary_size,
        )
    )
    optimizer = tf.train.GradientDescentOptimizer(1.0).minimize(loss)
    norm = tf.sqrt(tf.reduce_sum(tf.square(embeddings), 1, keep_dims=True))
    normalized_embeddings = embeddings / norm
    valid_embeddings = tf.nn.embedding_lookup(normalized_embeddings, valid_dataset)
    similarity = tf.matmul(valid_embeddings, normalized_embeddings, transpose_b=True)
    init = tf.global_variables_initializer()

with tf.Session(graph=graph) as session:
    init.run()
    for step in range(20):
        batch = [pairs[(step * batch_size + k) % len(pairs)] for k in range(batch_size)]
        feed_dict = {
            train_inputs: [center for center, _ in batch],
            train_labels: np.array([[context] for _, context in batch]),
        }
        _, loss_val = session.run([optimizer, loss], feed_dict=feed_dict)
        print("%.6f" % loss_val)
    sim = similarity.eval()
    for i in range(3):
        nearest = (-sim[i, :]).argsort()[1:4]
        print("%.6f" % sim[i, nearest[0]])
