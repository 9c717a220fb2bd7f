"""A language model with truncated backpropagation: training, validation and test graphs share their variables."""

import numpy as np
import tensorflow as tf

rng = np.random.RandomState(13)
VOCAB = 15
raw = [int(v) for v in np.cumsum(rng.randint(1, 3, 400)) % VOCAB]


class Config(object):
    init_scale, learning_rate, max_grad_norm, num_layers, num_steps = 0.1, 1.0, 5, 2, 5
    hidden_size, max_epoch, keep_prob, lr_decay, batch_size = 12, 1, 1.0, 0.5, 4


class Input(object):
    def __init__(self, config, data, name=None):
        self.batch_size, self.num_steps = config.batch_size, config.num_steps
        self.epoch_size = ((len(data) // config.batch_size) - 1) // config.num_steps
        with tf.name_scope(name, "Producer", [data]):
            data = tf.convert_to_tensor(data, name="raw_data", dtype=tf.int32)
            batch_len = tf.size(data) // self.batch_size
            data = tf.reshape(data[0 : self.batch_size * batch_len], [self.batch_size, batch_len])
            epoch_size = (batch_len - 1) // self.num_steps
            assertion = tf.assert_positive(epoch_size, message="epoch_size == 0, decrease batch_size or num_steps")
            with tf.control_dependencies([assertion]):
                epoch_size = tf.identity(epoch_size, name="epoch_size")
            i = tf.train.range_input_producer(epoch_size, shuffle=False).dequeue()
            x = tf.strided_slice(data, [0, i * self.num_steps], [self.batch_size, (i + 1) * self.num_steps])
            x.set_shape([self.batch_size, self.num_steps])
            y = tf.strided_slice(data, [0, i * self.num_steps + 1], [self.batch_size, (i + 1) * self.num_steps + 1])
            y.set_shape([self.batch_size, self.num_steps])
            self.input_data, self.targets = x, y


class Model(object):
    def __init__(self, is_training, config, input_):
        self.input = input_
        size = config.hidden_size
        with tf.device("/cpu:0"):
            embedding = tf.get_variable("embedding", [VOCAB, size], dtype=tf.float32)
            inputs = tf.nn.embedding_lookup(embedding, input_.input_data)
        cell = tf.contrib.rnn.MultiRNNCell(
            [
                tf.contrib.rnn.BasicLSTMCell(size, forget_bias=0.0, state_is_tuple=True, reuse=not is_training)
                for _ in range(config.num_layers)
            ],
            state_is_tuple=True,
        )
        self.initial_state = cell.zero_state(config.batch_size, tf.float32)
        state = self.initial_state
        outputs = []
        with tf.variable_scope("RNN"):
            for time_step in range(config.num_steps):
                if time_step > 0:
                    tf.get_variable_scope().reuse_variables()
                (cell_output, state) = cell(inputs[:, time_step, :], state)
                outputs.append(cell_output)
        output = tf.reshape(tf.concat(outputs, 1), [-1, size])
        softmax_w = tf.get_variable("softmax_w", [size, VOCAB], dtype=tf.float32)
        softmax_b = tf.get_variable("softmax_b", [VOCAB], dtype=tf.float32)
        logits = tf.nn.xw_plus_b(output, softmax_w, softmax_b)
        logits = tf.reshape(logits, [config.batch_size, config.num_steps, VOCAB])
        loss = tf.contrib.seq2seq.sequence_loss(
            logits, input_.targets, tf.ones([config.batch_size, config.num_steps], dtype=tf.float32),
            average_across_timesteps=False, average_across_batch=True,
        )
        self.cost = tf.reduce_sum(loss)
        self.final_state = state
        if not is_training:
            return
        self.lr = tf.Variable(0.0, trainable=False)
        tvars = tf.trainable_variables()
        grads, _ = tf.clip_by_global_norm(tf.gradients(self.cost, tvars), config.max_grad_norm)
        optimizer = tf.train.GradientDescentOptimizer(self.lr)
        self.train_op = optimizer.apply_gradients(
            zip(grads, tvars), global_step=tf.train.get_or_create_global_step()
        )
        self._new_lr = tf.placeholder(tf.float32, shape=[], name="new_learning_rate")
        self._lr_update = tf.assign(self.lr, self._new_lr)

    def assign_lr(self, session, lr_value):
        session.run(self._lr_update, feed_dict={self._new_lr: lr_value})


def run_epoch(session, model, eval_op=None):
    costs, iters = 0.0, 0
    state = session.run(model.initial_state)
    fetches = {"cost": model.cost, "final_state": model.final_state}
    if eval_op is not None:
        fetches["eval_op"] = eval_op
    for _ in range(model.input.epoch_size):
        feed_dict = {}
        for i, (c, h) in enumerate(model.initial_state):
            feed_dict[c] = state[i].c
            feed_dict[h] = state[i].h
        vals = session.run(fetches, feed_dict)
        state = vals["final_state"]
        costs += vals["cost"]
        iters += model.input.num_steps
        if eval_op is not None:
            print("%.5f" % vals["cost"])
    return np.exp(costs / iters)


config = Config()
with tf.Graph().as_default():
    tf.set_random_seed(14)
    initializer = tf.random_uniform_initializer(-config.init_scale, config.init_scale)
    with tf.name_scope("Train"):
        train_input = Input(config, raw[:300], name="TrainInput")
        with tf.variable_scope("Model", reuse=None, initializer=initializer):
            m = Model(True, config, train_input)
        tf.summary.scalar("Training Loss", m.cost)
    with tf.name_scope("Valid"):
        valid_input = Input(config, raw[300:], name="ValidInput")
        with tf.variable_scope("Model", reuse=True, initializer=initializer):
            mvalid = Model(False, config, valid_input)
    sv = tf.train.Supervisor()
    with sv.managed_session() as session:
        for i in range(2):
            m.assign_lr(session, config.learning_rate * config.lr_decay ** max(i + 1 - config.max_epoch, 0.0))
            print("%.4f" % run_epoch(session, m, eval_op=m.train_op))
            print("%.4f" % run_epoch(session, mvalid))
