"""Residual blocks with batch normalization by hand: moments, moving averages, a switch for training."""

import numpy as np
import tensorflow as tf

tf.set_random_seed(41)
rng = np.random.RandomState(41)
images, labels = rng.rand(10, 8, 8, 3).astype("f"), rng.randint(0, 3, 10)
is_train = tf.placeholder(tf.bool, name="is_train")


def batch_norm(x, n_out, phase_train, scope="bn"):
    with tf.variable_scope(scope):
        beta = tf.Variable(tf.constant(0.0, shape=[n_out]), name="beta", trainable=True)
        gamma = tf.Variable(tf.constant(1.0, shape=[n_out]), name="gamma", trainable=True)
        batch_mean, batch_var = tf.nn.moments(x, [0, 1, 2], name="moments")
        ema = tf.train.ExponentialMovingAverage(decay=0.5)

        def mean_var_with_update():
            ema_apply_op = ema.apply([batch_mean, batch_var])
            with tf.control_dependencies([ema_apply_op]):
                return tf.identity(batch_mean), tf.identity(batch_var)

        mean, var = tf.cond(
            phase_train, mean_var_with_update, lambda: (ema.average(batch_mean), ema.average(batch_var))
        )
        return tf.nn.batch_normalization(x, mean, var, beta, gamma, 1e-3)


def conv(name, x, filter_size, in_filters, out_filters, strides):
    with tf.variable_scope(name):
        n = filter_size * filter_size * out_filters
        kernel = tf.get_variable(
            "DW", [filter_size, filter_size, in_filters, out_filters], tf.float32,
            initializer=tf.random_normal_initializer(stddev=np.sqrt(2.0 / n)),
        )
        return tf.nn.conv2d(x, kernel, strides, padding="SAME")


def residual(name, x, in_filter, out_filter, stride):
    with tf.variable_scope(name):
        orig_x = x
        x = tf.nn.relu(batch_norm(x, in_filter, is_train, "bn1"))
        x = conv("conv1", x, 3, in_filter, out_filter, [1, stride, stride, 1])
        x = tf.nn.relu(batch_norm(x, out_filter, is_train, "bn2"))
        x = conv("conv2", x, 3, out_filter, out_filter, [1, 1, 1, 1])
        if in_filter != out_filter:
            orig_x = tf.nn.avg_pool(orig_x, [1, stride, stride, 1], [1, stride, stride, 1], "VALID")
            pad = (out_filter - in_filter) // 2
            orig_x = tf.pad(orig_x, [[0, 0], [0, 0], [0, 0], [pad, pad]])
        return x + orig_x


x = tf.placeholder(tf.float32, [None, 8, 8, 3])
y = tf.placeholder(tf.int32, [None])
net = conv("init_conv", x, 3, 3, 4, [1, 1, 1, 1])
net = residual("unit_1", net, 4, 8, 2)
net = residual("unit_2", net, 8, 8, 1)
net = tf.reduce_mean(net, [1, 2])
logits = tf.contrib.layers.fully_connected(net, 3, activation_fn=None)
cross_entropy = tf.reduce_mean(tf.nn.sparse_softmax_cross_entropy_with_logits(logits=logits, labels=y))
decay = tf.add_n([tf.nn.l2_loss(v) for v in tf.trainable_variables() if "DW" in v.op.name])
cost = cross_entropy + tf.multiply(0.002, decay)
in_top = tf.reduce_sum(tf.cast(tf.nn.in_top_k(logits, y, 1), tf.int32))
train = tf.train.MomentumOptimizer(0.05, 0.9).minimize(cost)
with tf.Session() as sess:
    sess.run(tf.initialize_all_variables())
    for _ in range(20):
        _, value = sess.run([train, cost], {x: images, y: labels, is_train: True})
        print("%.5f" % value)
    print("%.4f" % sess.run(cross_entropy, {x: images, y: labels, is_train: False}))
    print(sess.run(in_top, {x: images, y: labels, is_train: True}))
