"""tf.contrib.layers: dense layers with normalization and regularizers, optimize_loss."""

import numpy as np
import tensorflow as tf
from tensorflow.contrib import layers
from tensorflow.contrib.framework import add_arg_scope, arg_scope

tf.set_random_seed(32)
rng = np.random.RandomState(32)
features, targets = rng.randn(30, 7).astype("f"), rng.randint(0, 3, 30)


@add_arg_scope
def block(x, units, rate=0.0, is_training=True, scope=None):
    with tf.variable_scope(scope, "block", [x]):
        net = layers.fully_connected(
            x, units, activation_fn=tf.nn.elu, weights_regularizer=layers.l2_regularizer(0.001),
            biases_initializer=tf.zeros_initializer(),
        )
        net = layers.layer_norm(net)
        return layers.dropout(net, keep_prob=1 - rate, is_training=is_training)


x, y = tf.placeholder(tf.float32, [None, 7]), tf.placeholder(tf.int64, [None])
with arg_scope([block], rate=0.1):
    net = block(x, 10)
    net = block(net, 6, scope="second")
net = layers.batch_norm(net, is_training=True, updates_collections=None, decay=0.8, fused=False)
logits = layers.linear(net, 3, weights_initializer=layers.variance_scaling_initializer())
loss = tf.losses.sparse_softmax_cross_entropy(y, logits)
loss += tf.add_n(tf.get_collection(tf.GraphKeys.REGULARIZATION_LOSSES))
global_step = tf.contrib.framework.get_or_create_global_step()
train_op = layers.optimize_loss(
    loss, global_step, learning_rate=0.05, optimizer="Adam", clip_gradients=1.0,
    learning_rate_decay_fn=lambda lr, step: tf.train.inverse_time_decay(lr, step, 10, 0.5),
)
with tf.Session() as sess:
    sess.run(tf.global_variables_initializer())
    for _ in range(20):
        print("%.6f" % sess.run(train_op, {x: features, y: targets}))
    print(sess.run(global_step))
    print(len(tf.get_collection(tf.GraphKeys.SUMMARIES)))
