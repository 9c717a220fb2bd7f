"""tf.contrib.slim: argument scopes, regularized losses, update ops in the train op."""

import numpy as np
import tensorflow as tf
import tensorflow.contrib.slim as slim

rng = np.random.RandomState(31)
images = rng.rand(12, 12, 12, 3).astype("f")
labels = np.eye(4, dtype="f")[rng.randint(0, 4, 12)]


def lenet_arg_scope(weight_decay=0.01):
    with slim.arg_scope(
        [slim.conv2d, slim.fully_connected],
        weights_regularizer=slim.l2_regularizer(weight_decay),
        weights_initializer=tf.truncated_normal_initializer(stddev=0.1),
        activation_fn=tf.nn.relu,
    ) as sc:
        return sc


def lenet(images, num_classes=4, is_training=False, dropout_keep_prob=0.5, scope="LeNet"):
    end_points = {}
    with tf.variable_scope(scope, "LeNet", [images]):
        with slim.arg_scope([slim.conv2d], normalizer_fn=slim.batch_norm,
                            normalizer_params={"is_training": is_training, "decay": 0.9, "scale": True}):
            net = end_points["conv1"] = slim.conv2d(images, 4, [3, 3], scope="conv1")
            net = end_points["pool1"] = slim.max_pool2d(net, [2, 2], 2, scope="pool1")
            net = slim.repeat(net, 2, slim.conv2d, 6, [3, 3], scope="conv2")
        net = slim.avg_pool2d(net, [2, 2], scope="pool2")
        net = slim.flatten(net)
        net = slim.stack(net, slim.fully_connected, [10, 8], scope="fc")
        net = slim.dropout(net, dropout_keep_prob, is_training=is_training, scope="dropout")
        logits = slim.fully_connected(net, num_classes, activation_fn=None, scope="logits")
    end_points["Predictions"] = slim.softmax(logits, scope="Predictions")
    return logits, end_points


with tf.Graph().as_default():
    tf.set_random_seed(31)
    x = tf.placeholder(tf.float32, [None, 12, 12, 3])
    y = tf.placeholder(tf.float32, [None, 4])
    with slim.arg_scope(lenet_arg_scope()):
        logits, end_points = lenet(x, is_training=True)
    tf.losses.softmax_cross_entropy(y, logits, label_smoothing=0.1)
    total_loss = tf.losses.get_total_loss()
    step = slim.get_or_create_global_step()
    optimizer = tf.train.RMSPropOptimizer(0.005, momentum=0.9)
    train_op = slim.learning.create_train_op(total_loss, optimizer, clip_gradient_norm=4.0)
    variables = slim.get_model_variables()
    restorable = slim.get_variables_to_restore(exclude=["LeNet/logits"])
    with tf.Session() as sess:
        sess.run(tf.global_variables_initializer())
        for _ in range(20):
            print("%.5f" % sess.run(train_op, {x: images, y: labels}))
        print(sess.run(step))
        print(len(variables))
        print(len(restorable))
        print(len(tf.losses.get_regularization_losses()))
