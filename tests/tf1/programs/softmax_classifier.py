import numpy as np
import tensorflow as tf

flags = tf.app.flags
FLAGS = flags.FLAGS
flags.DEFINE_float("learning_rate", 0.05, "Initial learning rate.")
flags.DEFINE_integer("max_steps", 20, "Number of steps to run.")


def inference(images, hidden):
    rng = np.random.RandomState(1)
    with tf.name_scope("hidden1"):
        weights = tf.Variable(rng.randn(16, hidden).astype(np.float32) / 4.0, name="weights")
        biases = tf.Variable(tf.zeros([hidden]), name="biases")
        hidden1 = tf.nn.relu(tf.matmul(images, weights) + biases)
    with tf.variable_scope("softmax_linear"):
        weights = tf.get_variable("weights", initializer=rng.randn(hidden, 4).astype(np.float32) / 4.0)
        biases = tf.get_variable("biases", [4], initializer=tf.constant_initializer(0.0))
        return tf.matmul(hidden1, weights) + biases


def main(_):
    rng = np.random.RandomState(0)
    images = rng.rand(64, 16).astype(np.float32)
    labels = rng.randint(0, 4, 64)
    with tf.Graph().as_default():
        x = tf.placeholder(tf.float32, shape=(64, 16))
        y = tf.placeholder(tf.int32, shape=(64,))
        logits = inference(x, 32)
        loss = tf.reduce_mean(tf.nn.sparse_softmax_cross_entropy_with_logits(labels=y, logits=logits), name="xentropy")
        tf.summary.scalar("loss", loss)
        global_step = tf.Variable(0, name="global_step", trainable=False)
        rate = tf.train.exponential_decay(FLAGS.learning_rate, global_step, 5, 0.9, staircase=True)
        train_op = tf.train.MomentumOptimizer(rate, 0.9).minimize(loss, global_step=global_step)
        correct = tf.reduce_sum(tf.cast(tf.nn.in_top_k(logits, y, 1), tf.int32))
        sess = tf.Session()
        sess.run(tf.global_variables_initializer())
        for step in range(FLAGS.max_steps):
            _, value = sess.run([train_op, loss], feed_dict={x: images, y: labels})
            print("%.8f" % value)
        print("%d" % sess.run(correct, feed_dict={x: images, y: labels}))


if __name__ == "__main__":
    tf.app.run()
