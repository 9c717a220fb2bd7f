"""Characters one after the other: a stack of LSTM cells with dropout, and text that is sampled from it."""

import numpy as np
import tensorflow as tf
from tensorflow.contrib import legacy_seq2seq, rnn

text = "hello world, hello moon, hello stars, hello all of you out there. " * 2
chars = sorted(set(text))
vocab = {c: i for i, c in enumerate(chars)}
tensor = np.array([vocab[c] for c in text])


class Args(object):
    batch_size, seq_length, rnn_size, num_layers = 4, 8, 10, 2
    vocab_size, grad_clip, input_keep_prob, output_keep_prob = len(chars), 5.0, 0.9, 0.9


class Model(object):
    def __init__(self, args, training=True):
        if not training:
            args.batch_size, args.seq_length = 1, 1
        cells = []
        for _ in range(args.num_layers):
            cell = rnn.BasicLSTMCell(args.rnn_size, state_is_tuple=True)
            if training:
                cell = rnn.DropoutWrapper(
                    cell, input_keep_prob=args.input_keep_prob, output_keep_prob=args.output_keep_prob
                )
            cells.append(cell)
        self.cell = cell = rnn.MultiRNNCell(cells, state_is_tuple=True)
        self.input_data = tf.placeholder(tf.int32, [args.batch_size, args.seq_length])
        self.targets = tf.placeholder(tf.int32, [args.batch_size, args.seq_length])
        self.initial_state = cell.zero_state(args.batch_size, tf.float32)
        with tf.variable_scope("rnnlm"):
            softmax_w = tf.get_variable("softmax_w", [args.rnn_size, args.vocab_size])
            softmax_b = tf.get_variable("softmax_b", [args.vocab_size])
        embedding = tf.get_variable("embedding", [args.vocab_size, args.rnn_size])
        inputs = tf.nn.embedding_lookup(embedding, self.input_data)
        if training and args.output_keep_prob:
            inputs = tf.nn.dropout(inputs, args.output_keep_prob)
        inputs = tf.split(inputs, args.seq_length, 1)
        inputs = [tf.squeeze(input_, [1]) for input_ in inputs]

        def loop(prev, _):
            prev = tf.matmul(prev, softmax_w) + softmax_b
            prev_symbol = tf.stop_gradient(tf.argmax(prev, 1))
            return tf.nn.embedding_lookup(embedding, prev_symbol)

        outputs, last_state = legacy_seq2seq.rnn_decoder(
            inputs, self.initial_state, cell, loop_function=loop if not training else None, scope="rnnlm"
        )
        output = tf.reshape(tf.concat(outputs, 1), [-1, args.rnn_size])
        self.logits = tf.matmul(output, softmax_w) + softmax_b
        self.probs = tf.nn.softmax(self.logits)
        loss = legacy_seq2seq.sequence_loss_by_example(
            [self.logits], [tf.reshape(self.targets, [-1])], [tf.ones([args.batch_size * args.seq_length])]
        )
        with tf.name_scope("cost"):
            self.cost = tf.reduce_sum(loss) / args.batch_size / args.seq_length
        self.final_state = last_state
        self.lr = tf.Variable(0.0, trainable=False)
        tvars = tf.trainable_variables()
        grads, _ = tf.clip_by_global_norm(tf.gradients(self.cost, tvars), args.grad_clip)
        with tf.name_scope("optimizer"):
            optimizer = tf.train.AdamOptimizer(self.lr)
        self.train_op = optimizer.apply_gradients(zip(grads, tvars))


tf.set_random_seed(12)
args = Args()
model = Model(args)
saver = tf.train.Saver(tf.global_variables())
with tf.Session() as sess:
    sess.run(tf.global_variables_initializer())
    sess.run(tf.assign(model.lr, 0.01))
    state = sess.run(model.initial_state)
    num_batches = len(tensor) // (args.batch_size * args.seq_length)
    xdata = tensor[: num_batches * args.batch_size * args.seq_length]
    ydata = np.roll(xdata, -1)
    x_batches = np.split(xdata.reshape(args.batch_size, -1), num_batches, 1)
    y_batches = np.split(ydata.reshape(args.batch_size, -1), num_batches, 1)
    for step in range(20):
        feed = {model.input_data: x_batches[step % num_batches], model.targets: y_batches[step % num_batches]}
        for i, (c, h) in enumerate(model.initial_state):
            feed[c] = state[i].c
            feed[h] = state[i].h
        train_loss, state, _ = sess.run([model.cost, model.final_state, model.train_op], feed)
        print("{:.6f}".format(train_loss))
    trained = {v.name: sess.run(v) for v in tf.trainable_variables()}

tf.reset_default_graph()
sampler = Model(Args(), training=False)
with tf.Session() as sess:
    sess.run(tf.global_variables_initializer())
    for v in tf.trainable_variables():
        v.load(trained[v.name], sess)
    state = sess.run(sampler.cell.zero_state(1, tf.float32))
    char = "h"
    for _ in range(10):
        x = np.array([[vocab[char]]])
        probs, state = sess.run([sampler.probs, sampler.final_state], {sampler.input_data: x, sampler.initial_state: state})
        char = chars[int(np.argmax(probs[0]))]
        print("%.5f" % probs[0].max())
