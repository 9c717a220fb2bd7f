"""A picture is the variable: content, style by Gram matrices, total variation."""

import numpy as np
import tensorflow as tf

rng = np.random.RandomState(46)
content, style = rng.rand(1, 12, 12, 3).astype("f"), rng.rand(1, 12, 12, 3).astype("f")
kernels = [rng.randn(3, 3, 3, 4).astype("f") * 0.3, rng.randn(3, 3, 4, 6).astype("f") * 0.3]
depthwise = rng.randn(3, 3, 6, 1).astype("f")


def net(image):
    layers, current = {}, image
    for i, kernel in enumerate(kernels):
        current = tf.nn.conv2d(current, tf.constant(kernel), strides=(1, 1, 1, 1), padding="SAME")
        current = layers["relu%d" % i] = tf.nn.relu(current)
        current = tf.nn.avg_pool(current, ksize=(1, 2, 2, 1), strides=(1, 2, 2, 1), padding="SAME")
    layers["deep"] = tf.nn.depthwise_conv2d(current, depthwise, [1, 1, 1, 1], "SAME")
    return layers


g = tf.Graph()
with g.as_default(), g.device("/cpu:0"), tf.Session() as sess:
    image = tf.placeholder("float", shape=(1, 12, 12, 3))
    features = net(image)
    content_features = sess.run(features["relu1"], {image: content})
    flat = features["relu0"].eval({image: style}).reshape(-1, 4)
    style_gram = np.matmul(flat.T, flat) / flat.size

with tf.Graph().as_default():
    picture = tf.Variable(tf.random_normal((1, 12, 12, 3), seed=46) * 0.256)
    features = net(picture)
    content_loss = 5.0 * tf.nn.l2_loss(features["relu1"] - content_features) / content_features.size
    layer = features["relu0"]
    _, height, width, number = map(lambda i: i.value, layer.get_shape())
    feats = tf.reshape(layer, (-1, number))
    gram = tf.matmul(tf.transpose(feats), feats) / (height * width * number)
    style_loss = 100.0 * 2 * tf.nn.l2_loss(gram - style_gram) / style_gram.size
    tv_y_size = np.prod(picture[:, 1:, :, :].get_shape().as_list())
    tv_loss = 2 * tf.nn.l2_loss(picture[:, 1:, :, :] - picture[:, :11, :, :]) / tv_y_size
    tv_loss += 2 * tf.nn.l2_loss(picture[:, :, 1:, :] - picture[:, :, :11, :]) / tv_y_size
    deep = tf.reduce_mean(tf.abs(features["deep"]))
    loss = content_loss + style_loss + 0.1 * tv_loss + 0.01 * deep
    train_step = tf.train.AdamOptimizer(0.1).minimize(loss)
    with tf.Session() as sess:
        sess.run(tf.initialize_all_variables())
        for i in range(20):
            train_step.run()
            print("%.5f" % loss.eval())
