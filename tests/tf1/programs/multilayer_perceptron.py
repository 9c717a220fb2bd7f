"""Two hidden layers, weights in dictionaries, as introductory courses had it."""

from __future__ import print_function

import numpy as np
import tensorflow as tf

tf.set_random_seed(1)
rng = np.random.RandomState(1)
images = rng.rand(64, 20).astype("float32")
classes = (images.sum(axis=1) * 2).astype(int) % 4
labels = np.eye(4, dtype="float32")[classes]

learning_rate = 0.01
batch_size = 32
n_hidden_1, n_hidden_2, n_input, n_classes = 16, 8, 20, 4

X = tf.placeholder("float", [None, n_input])
Y = tf.placeholder("float", [None, n_classes])
weights = {
    "h1": tf.Variable(tf.random_normal([n_input, n_hidden_1])),
    "h2": tf.Variable(tf.random_normal([n_hidden_1, n_hidden_2])),
    "out": tf.Variable(tf.random_normal([n_hidden_2, n_classes])),
}
biases = {
    "b1": tf.Variable(tf.random_normal([n_hidden_1])),
    "b2": tf.Variable(tf.random_normal([n_hidden_2])),
    "out": tf.Variable(tf.random_normal([n_classes])),
}


def multilayer_perceptron(x):
    layer_1 = tf.add(tf.matmul(x, weights["h1"]), biases["b1"])
    layer_1 = tf.nn.relu(layer_1)
    layer_2 = tf.add(tf.matmul(layer_1, weights["h2"]), biases["b2"])
    layer_2 = tf.nn.relu(layer_2)
    return tf.matmul(layer_2, weights["out"]) + biases["out"]


logits = multilayer_perceptron(X)
loss_op = tf.reduce_mean(tf.nn.softmax_cross_entropy_with_logits(logits=logits, labels=Y))
optimizer = tf.train.AdamOptimizer(learning_rate=learning_rate)
train_op = optimizer.minimize(loss_op)
init = tf.global_variables_initializer()

with tf.Session() as sess:
    sess.run(init)
    for epoch in range(12):
        for start in range(0, 64, batch_size):
            batch = slice(start, start + batch_size)
            _, c = sess.run([train_op, loss_op], feed_dict={X: images[batch], Y: labels[batch]})
            print("{:.7f}".format(c))
    correct_prediction = tf.equal(tf.argmax(tf.nn.softmax(logits), 1), tf.argmax(Y, 1))
    accuracy = tf.reduce_mean(tf.cast(correct_prediction, "float"))
    print(accuracy.eval({X: images, Y: labels}))
