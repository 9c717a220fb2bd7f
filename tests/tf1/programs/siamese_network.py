"""Two branches that share their variables, with a contrastive loss."""

import numpy as np
import tensorflow as tf

rng = np.random.RandomState(43)
left, right = rng.rand(16, 10).astype("f"), rng.rand(16, 10).astype("f")
same = (np.abs(left - right).sum(1) < 3.3).astype("f")


def network(x):
    with tf.variable_scope("fc1", initializer=tf.truncated_normal_initializer(stddev=0.2, seed=3)):
        w = tf.get_variable("weights", [10, 8])
        b = tf.get_variable("biases", [8], initializer=tf.constant_initializer(0.01))
        x = tf.nn.relu(tf.nn.xw_plus_b(x, w, b))
    with tf.variable_scope("fc2"):
        w = tf.get_variable("weights", [8, 2], initializer=tf.uniform_unit_scaling_initializer(seed=4))
        return tf.matmul(x, w)


class Siamese(object):
    def __init__(self):
        self.x1 = tf.placeholder(tf.float32, [None, 10])
        self.x2 = tf.placeholder(tf.float32, [None, 10])
        self.y_ = tf.placeholder(tf.float32, [None])
        with tf.variable_scope("siamese") as scope:
            self.o1 = network(self.x1)
            scope.reuse_variables()
            self.o2 = network(self.x2)
        margin = 1.0
        eucd2 = tf.reduce_sum(tf.pow(tf.subtract(self.o1, self.o2), 2), 1)
        eucd = tf.sqrt(eucd2 + 1e-6, name="eucd")
        pos = tf.multiply(self.y_, eucd2, name="yi_x_eucd2")
        neg = tf.multiply(tf.subtract(1.0, self.y_), tf.pow(tf.maximum(tf.subtract(tf.constant(margin), eucd), 0), 2))
        self.loss = tf.reduce_mean(tf.add(pos, neg), name="loss")


siamese = Siamese()
train_step = tf.train.GradientDescentOptimizer(0.1).minimize(siamese.loss)
sess = tf.InteractiveSession()
tf.global_variables_initializer().run()
for step in range(20):
    _, loss_v = sess.run([train_step, siamese.loss], {siamese.x1: left, siamese.x2: right, siamese.y_: same})
    print("%.6f" % loss_v)
print(len(tf.trainable_variables()))
sess.close()
