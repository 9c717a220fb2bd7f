"""Sequences backwards: an encoder, a decoder that looks back at it (attention), and the best of several guesses."""

import numpy as np
import tensorflow as tf
from tensorflow.contrib import seq2seq

WORDS, START, END = 8, 8, 9
UNITS, SIZE, BATCH, LONGEST, STEPS, BEAM = 48, 16, 32, 5, 250, 3


def batch(random, count):
    """Sequences, padded with END, their lengths, and what comes of them with END behind."""
    lengths = random.randint(2, LONGEST + 1, size=count)
    given = np.full([count, LONGEST], END)
    wanted = np.full([count, LONGEST + 1], END)
    for i, length in enumerate(lengths):
        given[i, :length] = random.randint(WORDS, size=length)
        wanted[i, :length] = given[i, :length][::-1]
    return given, lengths, wanted


tf.set_random_seed(11)
given = tf.placeholder(tf.int32, [None, LONGEST], name="given")
lengths = tf.placeholder(tf.int32, [None], name="lengths")
wanted = tf.placeholder(tf.int32, [None, LONGEST + 1], name="wanted")
count = tf.shape(given)[0]

embedding = tf.get_variable("embedding", [WORDS + 2, SIZE])
with tf.variable_scope("encoder"):
    memory, state = tf.nn.dynamic_rnn(
        tf.nn.rnn_cell.GRUCell(UNITS), tf.nn.embedding_lookup(embedding, given), lengths, dtype=tf.float32
    )
to_words = tf.layers.Dense(WORDS + 2, name="words")


def decoder_cell(memory, lengths):
    attention = seq2seq.BahdanauAttention(UNITS, memory, lengths)
    return seq2seq.AttentionWrapper(tf.nn.rnn_cell.GRUCell(UNITS), attention, attention_layer_size=UNITS)


with tf.variable_scope("decoder"):
    cell = decoder_cell(memory, lengths)
    shown = tf.concat([tf.fill([count, 1], START), wanted[:, :-1]], 1)
    helper = seq2seq.TrainingHelper(tf.nn.embedding_lookup(embedding, shown), lengths + 1)
    first = cell.zero_state(count, tf.float32).clone(cell_state=state)
    outputs, _, _ = seq2seq.dynamic_decode(
        seq2seq.BasicDecoder(cell, helper, first, to_words), maximum_iterations=LONGEST + 1
    )
logits = outputs.rnn_output
steps = tf.shape(logits)[1]
weights = tf.sequence_mask(lengths + 1, steps, tf.float32)
loss = seq2seq.sequence_loss(logits, wanted[:, :steps], weights)
train = tf.train.AdamOptimizer(0.01).minimize(loss)

with tf.variable_scope("decoder", reuse=True):
    tiled = [seq2seq.tile_batch(each, BEAM) for each in (memory, lengths, state)]
    cell = decoder_cell(tiled[0], tiled[1])
    first = cell.zero_state(count * BEAM, tf.float32).clone(cell_state=tiled[2])
    search = seq2seq.BeamSearchDecoder(cell, embedding, tf.fill([count], START), END, first, BEAM, to_words)
    found, _, _ = seq2seq.dynamic_decode(search, maximum_iterations=LONGEST + 1)
best = found.predicted_ids[:, :, 0]

with tf.Session() as sess:
    sess.run(tf.global_variables_initializer())
    random = np.random.RandomState(0)
    losses = []
    for _ in range(STEPS):
        losses.append(sess.run([loss, train], dict(zip([given, lengths, wanted], batch(random, BATCH))))[0])
    check = batch(random, 100)
    answers = sess.run(best, {given: check[0], lengths: check[1]})
    right = [
        list(answer[:length]) == list(expected[:length]) for answer, length, expected in zip(answers, *check[1:])
    ]
    print("%s backwards: %s" % (check[0][0], answers[0]))
    print("accuracy %.2f" % np.mean(right))
    print("loss %.4f -> %.4f" % (losses[0], np.mean(losses[-10:])))
