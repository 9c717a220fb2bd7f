"""A convolutional network for digits, fed by a Dataset: shifted at random, shuffled, batched; one iterator, two inputs."""

import os

import numpy as np
import tensorflow as tf

BATCH, STEPS = 64, 300

tf.set_random_seed(5)
digits = np.load(os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "digits.npz"))


def distorted(image, label):
    """The digit shifted by up to a pixel, a little brighter or darker."""
    image = tf.image.resize_image_with_crop_or_pad(image, 10, 10)
    image = tf.random_crop(image, [8, 8, 1])
    return tf.image.random_brightness(image, 0.1), label


training = tf.data.Dataset.from_tensor_slices((digits["x_train"], digits["y_train"]))
training = training.shuffle(1500).repeat().map(distorted, num_parallel_calls=2).batch(BATCH).prefetch(1)
testing = tf.data.Dataset.from_tensor_slices((digits["x_test"], digits["y_test"])).batch(360)

iterator = tf.data.Iterator.from_structure(training.output_types, training.output_shapes)
images, labels = iterator.get_next()
images = tf.reshape(images, [-1, 8, 8, 1])
hidden = tf.layers.conv2d(images, 16, 3, padding="same", activation=tf.nn.relu)
hidden = tf.layers.max_pooling2d(hidden, 2, 2)
hidden = tf.layers.conv2d(hidden, 32, 3, padding="same", activation=tf.nn.relu)
logits = tf.layers.dense(tf.layers.flatten(hidden), 10)
loss = tf.reduce_mean(tf.nn.sparse_softmax_cross_entropy_with_logits(labels=labels, logits=logits))
accuracy = tf.reduce_mean(tf.to_float(tf.equal(tf.argmax(logits, 1), labels)))
train = tf.train.AdamOptimizer(0.003).minimize(loss)

with tf.Session() as sess:
    sess.run(tf.global_variables_initializer())
    sess.run(iterator.make_initializer(training))
    first = sess.run(loss)
    for step in range(STEPS):
        _, last = sess.run([train, loss])
        if step % 100 == 0:
            print("step %d: loss %.4f" % (step, last))
    sess.run(iterator.make_initializer(testing))
    print("accuracy %.4f" % sess.run(accuracy))
    print("loss %.4f -> %.4f" % (first, last))
