"""A line through noisy points, by gradient descent."""

import numpy as np
import tensorflow as tf

flags = tf.app.flags
flags.DEFINE_float("learning_rate", 0.1, "step of gradient descent")
flags.DEFINE_integer("steps", 200, "how many steps")
FLAGS = flags.FLAGS


def main(_):
    random = np.random.RandomState(0)
    points = random.uniform(-1, 1, [100, 1]).astype(np.float32)
    values = 3 * points + 2 + random.normal(0, 0.1, points.shape).astype(np.float32)

    x = tf.placeholder(tf.float32, [None, 1], name="x")
    y = tf.placeholder(tf.float32, [None, 1], name="y")
    slope = tf.Variable(tf.zeros([1, 1]), name="slope")
    offset = tf.Variable(0.0, name="offset")
    loss = tf.reduce_mean(tf.square(tf.matmul(x, slope) + offset - y), name="loss")
    train = tf.train.GradientDescentOptimizer(FLAGS.learning_rate).minimize(loss)

    with tf.Session() as sess:
        sess.run(tf.global_variables_initializer())
        feed = {x: points, y: values}
        first = sess.run(loss, feed)
        for _ in range(FLAGS.steps):
            sess.run(train, feed)
        print("slope %.2f, offset %.2f" % (sess.run(slope)[0, 0], sess.run(offset)))
        print("loss %.4f -> %.4f" % (first, sess.run(loss, feed)))


if __name__ == "__main__":
    tf.app.run()
