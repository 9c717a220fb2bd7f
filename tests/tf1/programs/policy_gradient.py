"""REINFORCE in a corridor: the agent is rewarded at its right end."""

import numpy as np
import tensorflow as tf

tf.set_random_seed(20)
rng = np.random.RandomState(20)


class Corridor(object):
    def __init__(self, length=6):
        self.length = length

    def reset(self):
        self.place = 1
        return self._state()

    def _state(self):
        state = np.zeros(self.length)
        state[self.place] = 1.0
        return state

    def step(self, action):
        self.place += 1 if action == 1 else -1
        done = self.place in (0, self.length - 1)
        return self._state(), 1.0 if self.place == self.length - 1 else -0.1, done, {}


def discount_rewards(r, gamma=0.95):
    discounted = np.zeros_like(r)
    running = 0
    for t in reversed(range(len(r))):
        running = running * gamma + r[t]
        discounted[t] = running
    return discounted


class Agent(object):
    def __init__(self, lr, s_size, a_size, h_size):
        self.state_in = tf.placeholder(shape=[None, s_size], dtype=tf.float32)
        hidden = tf.contrib.slim.fully_connected(
            self.state_in, h_size, biases_initializer=None, activation_fn=tf.nn.relu
        )
        self.output = tf.contrib.slim.fully_connected(
            hidden, a_size, activation_fn=tf.nn.softmax, biases_initializer=None
        )
        self.chosen_action = tf.argmax(self.output, 1)
        self.reward_holder = tf.placeholder(shape=[None], dtype=tf.float32)
        self.action_holder = tf.placeholder(shape=[None], dtype=tf.int32)
        self.indexes = tf.range(0, tf.shape(self.output)[0]) * tf.shape(self.output)[1] + self.action_holder
        self.responsible_outputs = tf.gather(tf.reshape(self.output, [-1]), self.indexes)
        self.loss = -tf.reduce_mean(tf.log(self.responsible_outputs) * self.reward_holder)
        tvars = tf.trainable_variables()
        self.gradient_holders = []
        for idx, var in enumerate(tvars):
            self.gradient_holders.append(tf.placeholder(tf.float32, name=str(idx) + "_holder"))
        self.gradients = tf.gradients(self.loss, tvars)
        optimizer = tf.train.AdamOptimizer(learning_rate=lr)
        self.update_batch = optimizer.apply_gradients(zip(self.gradient_holders, tvars))


env = Corridor()
agent = Agent(lr=1e-2, s_size=6, a_size=2, h_size=8)
with tf.Session() as sess:
    sess.run(tf.global_variables_initializer())
    buffer = sess.run(tf.trainable_variables())
    for ix, grad in enumerate(buffer):
        buffer[ix] = grad * 0
    for episode in range(24):
        s, history, done = env.reset(), [], False
        while not done and len(history) < 50:
            dist = sess.run(agent.output, feed_dict={agent.state_in: [s]})
            a = int(rng.rand() < dist[0, 1])
            s1, r, done, _ = env.step(a)
            history.append((s, a, r))
            s = s1
        rewards = discount_rewards(np.array([r for _, _, r in history]))
        feed_dict = {
            agent.reward_holder: rewards,
            agent.action_holder: [a for _, a, _ in history],
            agent.state_in: np.vstack([state for state, _, _ in history]),
        }
        grads, loss = sess.run([agent.gradients, agent.loss], feed_dict=feed_dict)
        for idx, grad in enumerate(grads):
            buffer[idx] += grad
        if episode % 2 == 1:
            sess.run(agent.update_batch, feed_dict=dict(zip(agent.gradient_holders, buffer)))
            for ix, grad in enumerate(buffer):
                buffer[ix] = grad * 0
        print("%.6f" % loss)
