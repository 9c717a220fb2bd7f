"""An actor and a critic with shared inputs; actions are drawn from a normal distribution."""

import numpy as np
import tensorflow as tf

tf.set_random_seed(22)
rng = np.random.RandomState(22)


class Actor(object):
    def __init__(self, sess, n_features, bound, lr=0.001):
        self.sess = sess
        self.s = tf.placeholder(tf.float32, [1, n_features], "state")
        self.a = tf.placeholder(tf.float32, None, name="act")
        self.td_error = tf.placeholder(tf.float32, None, name="td_error")
        l1 = tf.layers.dense(
            inputs=self.s, units=10, activation=tf.nn.relu, kernel_initializer=tf.random_normal_initializer(0.0, 0.1),
            bias_initializer=tf.constant_initializer(0.1), name="l1",
        )
        mu = tf.layers.dense(l1, 1, tf.nn.tanh, kernel_initializer=tf.random_normal_initializer(0.0, 0.1), name="mu")
        sigma = tf.layers.dense(
            l1, 1, tf.nn.softplus, kernel_initializer=tf.random_normal_initializer(0.0, 0.1),
            bias_initializer=tf.constant_initializer(1.0), name="sigma",
        )
        self.mu, self.sigma = tf.squeeze(mu * 2), tf.squeeze(sigma + 0.1)
        self.normal_dist = tf.distributions.Normal(self.mu, self.sigma)
        self.action = tf.clip_by_value(self.normal_dist.sample(1, seed=5), bound[0], bound[1])
        with tf.name_scope("exp_v"):
            log_prob = self.normal_dist.log_prob(self.a)
            self.exp_v = log_prob * self.td_error
            self.exp_v += 0.01 * self.normal_dist.entropy()
        with tf.name_scope("train"):
            self.train_op = tf.train.AdamOptimizer(lr).minimize(-self.exp_v)

    def learn(self, s, a, td):
        _, exp_v = self.sess.run([self.train_op, self.exp_v], {self.s: s[np.newaxis, :], self.a: a, self.td_error: td})
        return exp_v


class Critic(object):
    def __init__(self, sess, n_features, lr=0.01):
        self.sess = sess
        with tf.name_scope("inputs"):
            self.s = tf.placeholder(tf.float32, [1, n_features], "state")
            self.v_ = tf.placeholder(tf.float32, [1, 1], name="v_next")
            self.r = tf.placeholder(tf.float32, name="r")
        with tf.variable_scope("Critic"):
            l1 = tf.layers.dense(self.s, 10, tf.nn.relu, kernel_initializer=tf.random_normal_initializer(0.0, 0.1),
                                 name="l1")
            self.v = tf.layers.dense(l1, 1, kernel_initializer=tf.random_normal_initializer(0.0, 0.1), name="V")
        with tf.variable_scope("squared_TD_error"):
            self.td_error = tf.reduce_mean(self.r + 0.9 * self.v_ - self.v)
            self.loss = tf.square(self.td_error)
        with tf.variable_scope("train"):
            self.train_op = tf.train.AdamOptimizer(lr).minimize(self.loss)

    def learn(self, s, r, s_):
        v_ = self.sess.run(self.v, {self.s: s_[np.newaxis, :]})
        td_error, _ = self.sess.run(
            [self.td_error, self.train_op], {self.s: s[np.newaxis, :], self.v_: v_, self.r: r}
        )
        return td_error


sess = tf.Session()
actor = Actor(sess, 3, [-2.0, 2.0])
critic = Critic(sess, 3)
sess.run(tf.global_variables_initializer())
s = rng.randn(3)
for _ in range(12):
    a = sess.run(actor.action, {actor.s: s[np.newaxis, :]})[0]
    s_ = 0.5 * s + 0.1 * a
    r = -float((s_**2).sum())
    td_error = critic.learn(s, r, s_)
    print("%.6f" % a)
    print("%.6f" % td_error)
    print("%.6f" % actor.learn(s, a, td_error))
    s = s_
