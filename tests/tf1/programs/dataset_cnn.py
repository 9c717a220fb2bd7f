"""A convolutional network fed by a Dataset: map, shuffle with a seed, batch, prefetch, two iterators on one structure."""

import numpy as np
import tensorflow as tf

tf.set_random_seed(26)
rng = np.random.RandomState(26)
images = rng.rand(40, 10, 10).astype(np.float32)
labels = (images[:, :5].mean(axis=(1, 2)) > 0.5).astype(np.int64)


def preprocess(image, label):
    image = tf.expand_dims(image, -1)
    image = tf.image.resize_images(image, [8, 8])
    image = (image - tf.reduce_mean(image)) / 0.3
    return {"image": image, "size": tf.size(image)}, tf.one_hot(label, 2)


train = tf.data.Dataset.from_tensor_slices((images[:32], labels[:32]))
train = train.map(preprocess, num_parallel_calls=2).repeat(8).batch(8).prefetch(1)
test = tf.data.Dataset.from_tensor_slices((images[32:], labels[32:])).map(preprocess).batch(8)
iterator = tf.data.Iterator.from_structure(train.output_types, train.output_shapes)
features, y = iterator.get_next()
training_init_op = iterator.make_initializer(train)
test_init_op = iterator.make_initializer(test)


def conv_net(x, reuse, is_training):
    with tf.variable_scope("ConvNet", reuse=reuse):
        conv1 = tf.layers.conv2d(x, 4, 3, activation=tf.nn.relu)
        conv1 = tf.layers.max_pooling2d(conv1, 2, 2)
        fc1 = tf.contrib.layers.flatten(conv1)
        fc1 = tf.layers.dense(fc1, 12)
        fc1 = tf.layers.dropout(fc1, rate=0.25, training=is_training)
        out = tf.layers.dense(fc1, 2)
        return out if is_training else tf.nn.softmax(out)


logits_train = conv_net(features["image"], reuse=False, is_training=True)
logits_test = conv_net(features["image"], reuse=True, is_training=False)
loss_op = tf.reduce_mean(tf.nn.softmax_cross_entropy_with_logits(logits=logits_train, labels=y))
train_op = tf.train.AdamOptimizer(learning_rate=0.01).minimize(loss_op)
accuracy = tf.reduce_mean(tf.cast(tf.equal(tf.argmax(logits_test, 1), tf.argmax(y, 1)), tf.float32))

with tf.Session() as sess:
    sess.run(tf.global_variables_initializer())
    sess.run(training_init_op)
    for step in range(24):
        _, value = sess.run([train_op, loss_op])
        print("%.6f" % value)
    sess.run(test_init_op)
    print("%.5f" % sess.run(accuracy))
    try:
        sess.run(accuracy)
    except tf.errors.OutOfRangeError:
        print(0)
one_shot = tf.data.Dataset.range(10).filter(lambda v: tf.equal(v % 2, 0)).flat_map(
    lambda v: tf.data.Dataset.from_tensors(v).repeat(2)).make_one_shot_iterator().get_next()
with tf.Session() as sess:
    print([int(sess.run(one_shot)) for _ in range(10)][-1])
