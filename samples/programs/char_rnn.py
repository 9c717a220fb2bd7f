"""Letters one after the other: two layers of GRU cells learn three sonnets, then go on by themselves."""

import os

import numpy as np
import tensorflow as tf

UNITS, LAYERS, BATCH, LENGTH, STEPS, SAMPLED = 48, 2, 8, 25, 150, 120

with open(os.path.join(os.path.dirname(os.path.abspath(__file__)), "sonnets.txt")) as file:
    text = file.read()
letters = sorted(set(text))
encoded = np.array([letters.index(letter) for letter in text])


class CharRNN(object):
    """One step or many: the state goes in and comes out, so that text may be of any length."""

    def __init__(self):
        self.x = tf.placeholder(tf.int32, [None, None], name="x")
        self.y = tf.placeholder(tf.int32, [None, None], name="y")
        cell = tf.nn.rnn_cell.MultiRNNCell([tf.nn.rnn_cell.GRUCell(UNITS) for _ in range(LAYERS)])
        self.start = cell.zero_state(tf.shape(self.x)[0], tf.float32)
        outputs, self.end = tf.nn.dynamic_rnn(cell, tf.one_hot(self.x, len(letters)), initial_state=self.start)
        logits = tf.layers.dense(outputs, len(letters))
        self.next = tf.nn.softmax(logits[0, -1])
        self.loss = tf.reduce_mean(tf.nn.sparse_softmax_cross_entropy_with_logits(labels=self.y, logits=logits))
        optimizer = tf.train.AdamOptimizer(0.01)
        gradients, variables = zip(*optimizer.compute_gradients(self.loss))
        clipped, _ = tf.clip_by_global_norm(gradients, 5.0)
        self.train = optimizer.apply_gradients(zip(clipped, variables))


def sample(sess, model, random, seed="Shall "):
    written, state = seed, None
    for _ in range(SAMPLED):
        given = seed if state is None else written[-1]
        feed = {model.x: [[letters.index(letter) for letter in given]]}
        if state is not None:
            feed[model.start] = state
        probabilities, state = sess.run([model.next, model.end], feed)
        likely = probabilities.astype(float)
        written += letters[random.choice(len(letters), p=likely / likely.sum())]
    return written


tf.set_random_seed(9)
model = CharRNN()
with tf.Session() as sess:
    sess.run(tf.global_variables_initializer())
    random = np.random.RandomState(0)
    losses = []
    for _ in range(STEPS):
        starts = random.randint(len(encoded) - LENGTH, size=BATCH)
        rows = np.array([encoded[start : start + LENGTH + 1] for start in starts])
        losses.append(sess.run([model.loss, model.train], {model.x: rows[:, :-1], model.y: rows[:, 1:]})[0])
    print(sample(sess, model, random))
    print("loss %.4f -> %.4f" % (losses[0], np.mean(losses[-10:])))
