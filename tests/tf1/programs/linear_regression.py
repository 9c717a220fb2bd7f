import numpy as np
import tensorflow as tf

rng = np.random.RandomState(0)
train_x = rng.uniform(-1, 1, [40, 1]).astype(np.float32)
train_y = 3.0 * train_x - 2.0 + 0.1 * rng.randn(40, 1).astype(np.float32)

X = tf.placeholder("float", [None, 1])
Y = tf.placeholder("float", [None, 1])
W = tf.Variable(0.5, name="weight")
b = tf.Variable(0.0, name="bias")
pred = tf.add(tf.multiply(X, W), b)
cost = tf.reduce_sum(tf.pow(pred - Y, 2)) / (2 * 40)
optimizer = tf.train.GradientDescentOptimizer(0.1).minimize(cost)
init = tf.global_variables_initializer()

with tf.Session() as sess:
    sess.run(init)
    for epoch in range(20):
        _, c = sess.run([optimizer, cost], feed_dict={X: train_x, Y: train_y})
        print("%.8f" % c)
