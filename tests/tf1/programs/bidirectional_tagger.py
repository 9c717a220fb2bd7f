"""A bidirectional GRU that tags words, with a linear-chain conditional random field on top."""

import numpy as np
import tensorflow as tf

tf.set_random_seed(9)
rng = np.random.RandomState(9)
num_words, num_tags, batch, steps = 20, 4, 6, 7
words = rng.randint(0, num_words, [batch, steps])
tags = words % num_tags
lengths = np.array([7, 5, 6, 3, 7, 4])

word_ids = tf.placeholder(tf.int32, [None, None], name="word_ids")
labels = tf.placeholder(tf.int32, [None, None], name="labels")
sequence_lengths = tf.placeholder(tf.int32, [None], name="sequence_lengths")

with tf.variable_scope("words"):
    embeddings = tf.get_variable("embeddings", [num_words, 6], initializer=tf.random_uniform_initializer(-0.5, 0.5))
    embedded = tf.nn.embedding_lookup(embeddings, word_ids)
with tf.variable_scope("bi-lstm"):
    cell_fw = tf.contrib.rnn.GRUCell(5)
    cell_bw = tf.contrib.rnn.GRUCell(5)
    (output_fw, output_bw), _ = tf.nn.bidirectional_dynamic_rnn(
        cell_fw, cell_bw, embedded, sequence_length=sequence_lengths, dtype=tf.float32
    )
    output = tf.concat([output_fw, output_bw], axis=-1)
with tf.variable_scope("proj"):
    W = tf.get_variable("W", dtype=tf.float32, shape=[10, num_tags])
    b = tf.get_variable("b", shape=[num_tags], dtype=tf.float32, initializer=tf.zeros_initializer())
    nsteps = tf.shape(output)[1]
    scores = tf.reshape(tf.matmul(tf.reshape(output, [-1, 10]), W) + b, [-1, nsteps, num_tags])

log_likelihood, transition_params = tf.contrib.crf.crf_log_likelihood(scores, labels, sequence_lengths)
loss = tf.reduce_mean(-log_likelihood)
viterbi_sequence, viterbi_score = tf.contrib.crf.crf_decode(scores, transition_params, sequence_lengths)
optimizer = tf.train.AdamOptimizer(0.05)
grads, variables = zip(*optimizer.compute_gradients(loss))
grads, gnorm = tf.clip_by_global_norm(grads, 5.0)
train = optimizer.apply_gradients(zip(grads, variables))

feed = {word_ids: words, labels: tags, sequence_lengths: lengths}
with tf.Session() as sess:
    sess.run(tf.global_variables_initializer())
    for _ in range(20):
        _, value, norm = sess.run([train, loss, gnorm], feed)
        print("%.6f" % value)
    decoded, score, trans = sess.run([viterbi_sequence, viterbi_score, transition_params], feed)
    print("%.5f" % score.sum())
    correct = sum((decoded[i, :n] == tags[i, :n]).sum() for i, n in enumerate(lengths))
    print(correct)
    path, best = tf.contrib.crf.viterbi_decode(sess.run(scores, feed)[0], trans)
    print("%.5f" % best)
