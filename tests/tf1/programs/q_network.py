"""Deep Q-learning with a replay memory and a target network that is assigned from the other."""

import collections
import random

import numpy as np
import tensorflow as tf

random.seed(21)
np.random.seed(21)
tf.set_random_seed(21)


class DeepQNetwork:
    def __init__(self, n_actions, n_features, learning_rate=0.05, gamma=0.9, batch_size=8):
        self.n_actions, self.n_features, self.gamma, self.batch_size = n_actions, n_features, gamma, batch_size
        self.lr = learning_rate
        self.memory = collections.deque(maxlen=60)
        self._build_net()
        t_params = tf.get_collection(tf.GraphKeys.GLOBAL_VARIABLES, scope="target_net")
        e_params = tf.get_collection(tf.GraphKeys.GLOBAL_VARIABLES, scope="eval_net")
        with tf.variable_scope("soft_replacement"):
            self.target_replace_op = [tf.assign(t, e) for t, e in zip(t_params, e_params)]
        self.sess = tf.Session()
        self.sess.run(tf.global_variables_initializer())

    def _build_net(self):
        self.s = tf.placeholder(tf.float32, [None, self.n_features], name="s")
        self.s_ = tf.placeholder(tf.float32, [None, self.n_features], name="s_")
        self.r = tf.placeholder(tf.float32, [None], name="r")
        self.a = tf.placeholder(tf.int32, [None], name="a")
        w_initializer, b_initializer = tf.random_normal_initializer(0.0, 0.3), tf.constant_initializer(0.1)
        with tf.variable_scope("eval_net"):
            e1 = tf.layers.dense(self.s, 10, tf.nn.relu, kernel_initializer=w_initializer,
                                 bias_initializer=b_initializer, name="e1")
            self.q_eval = tf.layers.dense(e1, self.n_actions, kernel_initializer=w_initializer,
                                          bias_initializer=b_initializer, name="q")
        with tf.variable_scope("target_net"):
            t1 = tf.layers.dense(self.s_, 10, tf.nn.relu, kernel_initializer=w_initializer,
                                 bias_initializer=b_initializer, name="t1")
            self.q_next = tf.layers.dense(t1, self.n_actions, kernel_initializer=w_initializer,
                                          bias_initializer=b_initializer, name="t2")
        with tf.variable_scope("q_target"):
            q_target = self.r + self.gamma * tf.reduce_max(self.q_next, axis=1, name="Qmax_s_")
            self.q_target = tf.stop_gradient(q_target)
        with tf.variable_scope("q_eval"):
            a_indices = tf.stack([tf.range(tf.shape(self.a)[0], dtype=tf.int32), self.a], axis=1)
            self.q_eval_wrt_a = tf.gather_nd(params=self.q_eval, indices=a_indices)
        with tf.variable_scope("loss"):
            self.loss = tf.reduce_mean(tf.squared_difference(self.q_target, self.q_eval_wrt_a, name="TD_error"))
        with tf.variable_scope("train"):
            self._train_op = tf.train.RMSPropOptimizer(self.lr).minimize(self.loss)

    def choose_action(self, observation, epsilon):
        if np.random.uniform() < epsilon:
            return int(np.argmax(self.sess.run(self.q_eval, feed_dict={self.s: observation[np.newaxis, :]})))
        return np.random.randint(0, self.n_actions)

    def learn(self, step):
        if step % 5 == 0:
            self.sess.run(self.target_replace_op)
        batch = random.sample(list(self.memory), self.batch_size)
        s, a, r, s_ = [np.array(part) for part in zip(*batch)]
        _, cost = self.sess.run([self._train_op, self.loss], {self.s: s, self.a: a, self.r: r, self.s_: s_})
        return cost


RL = DeepQNetwork(n_actions=2, n_features=3)
state = np.zeros(3)
for step in range(40):
    action = RL.choose_action(state, 0.5)
    following = np.clip(state + (0.2 if action else -0.2) * np.array([1, -1, 0.5]), -1, 1)
    RL.memory.append((state, action, float(following[0]), following))
    state = following if step % 10 else np.zeros(3)
    if step >= 18:
        print("%.6f" % RL.learn(step))
