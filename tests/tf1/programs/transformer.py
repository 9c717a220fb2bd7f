"""A small transformer encoder written out: heads by split and concat, layer norm, warm-up of the rate."""

import numpy as np
import tensorflow as tf

tf.set_random_seed(16)
rng = np.random.RandomState(16)
VOCAB, UNITS, HEADS, STEPS, BATCH = 16, 8, 2, 6, 8
tokens = rng.randint(1, VOCAB, [BATCH, STEPS])
tokens[:, -1] = 0
answers = (tokens.sum(axis=1) % 3).astype(np.int32)


def normalize(inputs, epsilon=1e-8, scope="ln", reuse=None):
    with tf.variable_scope(scope, reuse=reuse):
        params_shape = inputs.get_shape()[-1:]
        mean, variance = tf.nn.moments(inputs, [-1], keep_dims=True)
        beta = tf.Variable(tf.zeros(params_shape))
        gamma = tf.Variable(tf.ones(params_shape))
        normalized = (inputs - mean) / ((variance + epsilon) ** (0.5))
        return gamma * normalized + beta


def multihead_attention(queries, keys, num_units, num_heads, dropout_rate=0.0, is_training=True, scope="multihead"):
    with tf.variable_scope(scope):
        Q = tf.layers.dense(queries, num_units, activation=tf.nn.relu)
        K = tf.layers.dense(keys, num_units, activation=tf.nn.relu)
        V = tf.layers.dense(keys, num_units, activation=tf.nn.relu)
        Q_ = tf.concat(tf.split(Q, num_heads, axis=2), axis=0)
        K_ = tf.concat(tf.split(K, num_heads, axis=2), axis=0)
        V_ = tf.concat(tf.split(V, num_heads, axis=2), axis=0)
        outputs = tf.matmul(Q_, tf.transpose(K_, [0, 2, 1]))
        outputs = outputs / (K_.get_shape().as_list()[-1] ** 0.5)
        key_masks = tf.sign(tf.reduce_sum(tf.abs(keys), axis=-1))
        key_masks = tf.tile(key_masks, [num_heads, 1])
        key_masks = tf.tile(tf.expand_dims(key_masks, 1), [1, tf.shape(queries)[1], 1])
        paddings = tf.ones_like(outputs) * (-(2**32) + 1)
        outputs = tf.where(tf.equal(key_masks, 0), paddings, outputs)
        diag_vals = tf.ones_like(outputs[0, :, :])
        tril = tf.linalg.LinearOperatorLowerTriangular(diag_vals).to_dense()
        masks = tf.tile(tf.expand_dims(tril, 0), [tf.shape(outputs)[0], 1, 1])
        outputs = tf.where(tf.equal(masks, 0), tf.ones_like(masks) * (-(2**32) + 1), outputs)
        outputs = tf.nn.softmax(outputs)
        outputs = tf.layers.dropout(outputs, rate=dropout_rate, training=tf.convert_to_tensor(is_training))
        outputs = tf.matmul(outputs, V_)
        outputs = tf.concat(tf.split(outputs, num_heads, axis=0), axis=2)
        outputs += queries
        return normalize(outputs)


def feedforward(inputs, num_units, scope="feedforward"):
    with tf.variable_scope(scope):
        outputs = tf.layers.conv1d(inputs=inputs, filters=num_units[0], kernel_size=1, activation=tf.nn.relu)
        outputs = tf.layers.conv1d(inputs=outputs, filters=num_units[1], kernel_size=1, activation=None)
        return normalize(outputs + inputs)


x = tf.placeholder(tf.int32, [BATCH, STEPS])
y = tf.placeholder(tf.int32, [BATCH])
global_step = tf.Variable(0, name="global_step", trainable=False)
lookup = tf.get_variable("lookup_table", [VOCAB, UNITS], initializer=tf.contrib.layers.xavier_initializer())
lookup = tf.concat((tf.zeros(shape=[1, UNITS]), lookup[1:, :]), 0)
enc = tf.nn.embedding_lookup(lookup, x) * (UNITS**0.5)
position_ind = tf.tile(tf.expand_dims(tf.range(tf.shape(x)[1]), 0), [tf.shape(x)[0], 1])
position_enc = np.array(
    [[pos / np.power(10000, 2.0 * (i // 2) / UNITS) for i in range(UNITS)] for pos in range(STEPS)]
)
position_enc[:, 0::2] = np.sin(position_enc[:, 0::2])
position_enc[:, 1::2] = np.cos(position_enc[:, 1::2])
enc += tf.nn.embedding_lookup(tf.convert_to_tensor(position_enc, tf.float32), position_ind)
for i in range(2):
    with tf.variable_scope("num_blocks_{}".format(i)):
        enc = multihead_attention(enc, enc, UNITS, HEADS, dropout_rate=0.1)
        enc = feedforward(enc, num_units=[4 * UNITS, UNITS])
logits = tf.layers.dense(tf.reduce_mean(enc, axis=1), 3)
y_smoothed = ((1 - 0.1) * tf.one_hot(y, depth=3)) + (0.1 / 3)
loss = tf.reduce_mean(tf.nn.softmax_cross_entropy_with_logits_v2(logits=logits, labels=y_smoothed))
step = tf.cast(global_step + 1, dtype=tf.float32)
rate = UNITS**-0.5 * tf.minimum(step**-0.5, step * 10.0**-1.5)
train_op = tf.train.AdamOptimizer(rate, beta1=0.9, beta2=0.98, epsilon=1e-8).minimize(loss, global_step=global_step)
with tf.Session() as sess:
    sess.run(tf.global_variables_initializer())
    for _ in range(20):
        _, value = sess.run([train_op, loss], {x: tokens, y: answers})
        print("%.6f" % value)
