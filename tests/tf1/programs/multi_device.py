"""Towers on several devices that share variables; their gradients are averaged."""

import numpy as np
import tensorflow as tf

rng = np.random.RandomState(30)
data, labels = rng.rand(24, 8).astype("f"), rng.randint(0, 3, 24)
NUM_TOWERS = 2


def _variable_on_cpu(name, shape, initializer):
    with tf.device("/cpu:0"):
        return tf.get_variable(name, shape, initializer=initializer, dtype=tf.float32)


def inference(images):
    with tf.variable_scope("local1") as scope:
        weights = _variable_on_cpu("weights", [8, 6], tf.truncated_normal_initializer(stddev=0.3, seed=1))
        tf.add_to_collection("losses", tf.multiply(tf.nn.l2_loss(weights), 0.004, name="weight_loss"))
        biases = _variable_on_cpu("biases", [6], tf.constant_initializer(0.1))
        local1 = tf.nn.relu(tf.matmul(images, weights) + biases, name=scope.name)
    with tf.variable_scope("softmax_linear") as scope:
        weights = _variable_on_cpu("weights", [6, 3], tf.truncated_normal_initializer(stddev=0.3, seed=2))
        biases = _variable_on_cpu("biases", [3], tf.constant_initializer(0.0))
        return tf.add(tf.matmul(local1, weights), biases, name=scope.name)


def tower_loss(scope, images, labels):
    logits = inference(images)
    cross_entropy = tf.nn.sparse_softmax_cross_entropy_with_logits(labels=labels, logits=logits)
    tf.add_to_collection("losses", tf.reduce_mean(cross_entropy, name="cross_entropy"))
    return tf.add_n(tf.get_collection("losses", scope), name="total_loss")


def average_gradients(tower_grads):
    average_grads = []
    for grad_and_vars in zip(*tower_grads):
        grads = [tf.expand_dims(g, 0) for g, _ in grad_and_vars]
        grad = tf.reduce_mean(tf.concat(axis=0, values=grads), 0)
        average_grads.append((grad, grad_and_vars[0][1]))
    return average_grads


with tf.Graph().as_default(), tf.device("/cpu:0"):
    global_step = tf.get_variable("global_step", [], initializer=tf.constant_initializer(0), trainable=False)
    lr = tf.train.exponential_decay(0.5, global_step, 5, 0.9, staircase=True)
    opt = tf.train.GradientDescentOptimizer(lr)
    x, y = tf.placeholder(tf.float32, [24, 8]), tf.placeholder(tf.int32, [24])
    xs, ys = tf.split(x, NUM_TOWERS), tf.split(y, NUM_TOWERS)
    tower_grads = []
    with tf.variable_scope(tf.get_variable_scope()):
        for i in range(NUM_TOWERS):
            with tf.device("/cpu:%d" % i):
                with tf.name_scope("%s_%d" % ("tower", i)) as scope:
                    loss = tower_loss(scope, xs[i], ys[i])
                    tf.get_variable_scope().reuse_variables()
                    tower_grads.append(opt.compute_gradients(loss))
    grads = average_gradients(tower_grads)
    apply_gradient_op = opt.apply_gradients(grads, global_step=global_step)
    variable_averages = tf.train.ExponentialMovingAverage(0.99, global_step)
    variables_averages_op = variable_averages.apply(tf.trainable_variables())
    train_op = tf.group(apply_gradient_op, variables_averages_op)
    saver = tf.train.Saver(tf.global_variables())
    config = tf.ConfigProto(device_count={"CPU": 2}, allow_soft_placement=True, log_device_placement=False)
    with tf.Session(config=config) as sess:
        sess.run(tf.global_variables_initializer())
        print(len(sess.list_devices()) >= 2 and 1)
        for _ in range(20):
            _, value = sess.run([train_op, loss], {x: data, y: labels})
            print("%.6f" % value)
