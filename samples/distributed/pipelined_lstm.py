"""An LSTM whose layers are on different workers, with several steps under way at the same time (a pipeline).

    graphmill python pipelined_lstm.py --master=grpc://localhost:2232

While the second worker computes its layer for one batch, the first computes its own for the next. The letters of three
sonnets are predicted one by one.
"""

import os
import threading

import numpy as np
import tensorflow as tf

flags = tf.app.flags
flags.DEFINE_string("master", "", "Any server of the cluster: grpc://host:port.")
flags.DEFINE_integer("workers", 2, "How many workers there are; each has a layer.")
flags.DEFINE_integer("steps", 60, "How many steps to train.")
flags.DEFINE_integer("pipelined", 2, "How many steps are under way at the same time.")
FLAGS = flags.FLAGS

UNITS, BATCH, LENGTH = 32, 16, 20
with open(os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "programs", "sonnets.txt")) as file:
    text = file.read()
letters = sorted(set(text))
encoded = np.array([letters.index(letter) for letter in text])


def main(_):
    tf.set_random_seed(4)
    x = tf.placeholder(tf.int32, [BATCH, LENGTH], name="x")
    y = tf.placeholder(tf.int32, [BATCH, LENGTH], name="y")
    with tf.device("/job:worker/task:0"):
        outputs = tf.one_hot(x, len(letters))
    for layer in range(FLAGS.workers):
        with tf.device("/job:worker/task:%d" % layer), tf.variable_scope("layer%d" % layer):
            cell = tf.nn.rnn_cell.LSTMCell(UNITS)
            outputs, _ = tf.nn.dynamic_rnn(cell, outputs, dtype=tf.float32)
    with tf.device("/job:worker/task:%d" % (FLAGS.workers - 1)):
        logits = tf.layers.dense(outputs, len(letters))
        loss = tf.reduce_mean(tf.nn.sparse_softmax_cross_entropy_with_logits(labels=y, logits=logits))
        # Gradients are computed where the layers are.
        optimizer = tf.train.AdamOptimizer(0.02)
        train = optimizer.minimize(loss, colocate_gradients_with_ops=True)

    losses, lock = [], threading.Lock()
    random = np.random.RandomState(0)

    def batch():
        with lock:
            starts = random.randint(len(encoded) - LENGTH - 1, size=[BATCH, 1])
        rows = encoded[starts + np.arange(LENGTH + 1)]
        return {x: rows[:, :-1], y: rows[:, 1:]}

    with tf.Session(FLAGS.master) as session:
        session.run(tf.global_variables_initializer())
        coordinator = tf.train.Coordinator()

        def work():
            with coordinator.stop_on_exception():
                while not coordinator.should_stop():
                    found, _ = session.run([loss, train], batch())
                    with lock:
                        losses.append(found)
                        if len(losses) >= FLAGS.steps:
                            coordinator.request_stop()

        threads = [threading.Thread(target=work) for _ in range(FLAGS.pipelined)]
        for thread in threads:
            thread.start()
        coordinator.join(threads)
    print("loss %.4f -> %.4f" % (losses[0], losses[-1]))


if __name__ == "__main__":
    tf.app.run()
