"""Matrix factorization: embeddings of users and items, sparse updates, regularization, partitioned variables."""

import numpy as np
import tensorflow as tf

tf.set_random_seed(42)
rng = np.random.RandomState(42)
users, items = rng.randint(0, 12, 60), rng.randint(0, 9, 60)
ratings = (rng.rand(12)[users] * 2 + rng.rand(9)[items] * 3).astype("f")

user_batch = tf.placeholder(tf.int32, [None], "id_user")
item_batch = tf.placeholder(tf.int32, [None], "id_item")
rate_batch = tf.placeholder(tf.float32, [None])
with tf.device("/cpu:0"):
    bias_global = tf.get_variable("bias_global", shape=[])
    w_bias_user = tf.get_variable("embd_bias_user", shape=[12])
    w_bias_item = tf.get_variable("embd_bias_item", shape=[9])
    w_user = tf.get_variable(
        "embd_user", shape=[12, 4], initializer=tf.truncated_normal_initializer(stddev=0.02),
        partitioner=tf.fixed_size_partitioner(3),
    )
    w_item = tf.get_variable("embd_item", shape=[9, 4], initializer=tf.truncated_normal_initializer(stddev=0.02))
    embd_user = tf.nn.embedding_lookup(w_user, user_batch, partition_strategy="div", name="embedding_user")
    embd_item = tf.nn.embedding_lookup(w_item, item_batch, name="embedding_item")
    bias_user = tf.nn.embedding_lookup(w_bias_user, user_batch, name="bias_user")
    bias_item = tf.nn.embedding_lookup(w_bias_item, item_batch, name="bias_item")
infer = tf.reduce_sum(tf.multiply(embd_user, embd_item), 1)
infer = tf.add(infer, bias_global)
infer = tf.add(infer, bias_user)
infer = tf.add(infer, bias_item, name="svd_inference")
regularizer = tf.add(tf.nn.l2_loss(embd_user), tf.nn.l2_loss(embd_item), name="svd_regularizer")
cost_l2 = tf.nn.l2_loss(tf.subtract(infer, rate_batch))
cost = tf.add(cost_l2, tf.multiply(regularizer, tf.constant(0.05, dtype=tf.float32, shape=[], name="l2")))
global_step = tf.train.create_global_step()
train_op = tf.train.AdamOptimizer(0.05).minimize(cost, global_step=global_step)
rmse, update = tf.metrics.root_mean_squared_error(rate_batch, infer)
with tf.Session() as sess:
    sess.run(tf.group(tf.global_variables_initializer(), tf.local_variables_initializer()))
    for step in range(21):
        rows = slice(step % 3 * 20, step % 3 * 20 + 20)
        feed = {user_batch: users[rows], item_batch: items[rows], rate_batch: ratings[rows]}
        _, value, _ = sess.run([train_op, cost, update], feed_dict=feed)
        print("%.5f" % value)
    print("%.5f" % sess.run(rmse))
