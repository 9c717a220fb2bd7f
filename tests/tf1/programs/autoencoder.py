"""An encoder and a decoder of dense layers, trained with RMSProp."""

import numpy as np
import tensorflow as tf

tf.set_random_seed(7)
data = np.random.RandomState(7).rand(40, 16).astype(np.float32)

num_hidden_1, num_hidden_2, num_input = 10, 4, 16
X = tf.placeholder("float", [None, num_input])
weights = {
    "encoder_h1": tf.Variable(tf.random_normal([num_input, num_hidden_1])),
    "encoder_h2": tf.Variable(tf.random_normal([num_hidden_1, num_hidden_2])),
    "decoder_h1": tf.Variable(tf.random_normal([num_hidden_2, num_hidden_1])),
    "decoder_h2": tf.Variable(tf.random_normal([num_hidden_1, num_input])),
}
biases = {
    "encoder_b1": tf.Variable(tf.zeros([num_hidden_1])),
    "encoder_b2": tf.Variable(tf.zeros([num_hidden_2])),
    "decoder_b1": tf.Variable(tf.zeros([num_hidden_1])),
    "decoder_b2": tf.Variable(tf.zeros([num_input])),
}


def encoder(x):
    layer_1 = tf.nn.sigmoid(tf.add(tf.matmul(x, weights["encoder_h1"]), biases["encoder_b1"]))
    return tf.nn.sigmoid(tf.add(tf.matmul(layer_1, weights["encoder_h2"]), biases["encoder_b2"]))


def decoder(x):
    layer_1 = tf.nn.sigmoid(tf.add(tf.matmul(x, weights["decoder_h1"]), biases["decoder_b1"]))
    return tf.nn.sigmoid(tf.add(tf.matmul(layer_1, weights["decoder_h2"]), biases["decoder_b2"]))


y_pred = decoder(encoder(X))
y_true = X
loss = tf.reduce_mean(tf.pow(y_true - y_pred, 2))
optimizer = tf.train.RMSPropOptimizer(0.01).minimize(loss)

with tf.Session() as sess:
    sess.run(tf.global_variables_initializer())
    for i in range(20):
        _, l = sess.run([optimizer, loss], feed_dict={X: data})
        print("%.7f" % l)
    print("%.6f" % sess.run(y_pred, {X: data[:2]}).mean())
