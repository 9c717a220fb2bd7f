"""Pictures are distorted with tf.image on their way into a small network."""

import os
import tempfile

import numpy as np
import tensorflow as tf

tf.set_random_seed(44)
rng = np.random.RandomState(44)
folder = tempfile.mkdtemp()
with tf.Session() as sess:
    picture = tf.placeholder(tf.uint8, [None, None, 3])
    encoded = tf.image.encode_png(picture)
    for i in range(4):
        data = sess.run(encoded, {picture: rng.randint(0, 256, [12, 14, 3])})
        with tf.gfile.GFile(os.path.join(folder, "%d.png" % i), "wb") as f:
            f.write(data)
tf.reset_default_graph()
tf.set_random_seed(44)

names = sorted(tf.gfile.Glob(os.path.join(folder, "*.png")))
queue = tf.train.slice_input_producer([names, [0, 1, 1, 0]], shuffle=False)
image = tf.image.decode_png(tf.read_file(queue[0]), channels=3)
image = tf.image.convert_image_dtype(image, tf.float32)
image.set_shape([12, 14, 3])
distorted = tf.image.resize_image_with_crop_or_pad(image, 16, 16)
distorted = tf.random_crop(distorted, [10, 10, 3], seed=1)
distorted = tf.image.random_flip_left_right(distorted, seed=2)
distorted = tf.image.random_brightness(distorted, max_delta=0.2, seed=3)
distorted = tf.image.random_contrast(distorted, lower=0.8, upper=1.2, seed=4)
distorted = tf.image.random_saturation(distorted, 0.8, 1.2, seed=5)
distorted = tf.image.random_hue(distorted, 0.05, seed=6)
distorted = tf.image.per_image_standardization(distorted)
gray = tf.image.rgb_to_grayscale(tf.image.central_crop(image, 0.5))
images, labels, grays = tf.train.batch([distorted, queue[1], gray], 4, num_threads=1)
net = tf.layers.flatten(tf.layers.average_pooling2d(images, 2, 2))
logits = tf.squeeze(tf.layers.dense(net, 1, kernel_initializer=tf.glorot_normal_initializer(seed=7)), 1)
loss = tf.reduce_mean(tf.nn.sigmoid_cross_entropy_with_logits(logits=logits, labels=tf.to_float(labels)))
train = tf.train.GradientDescentOptimizer(0.05).minimize(loss)
with tf.Session() as sess:
    sess.run(tf.global_variables_initializer())
    coord = tf.train.Coordinator()
    threads = tf.train.start_queue_runners(coord=coord)
    for _ in range(20):
        _, value, g = sess.run([train, loss, grays])
        print("%.5f" % value)
    print("%.5f" % g.mean())
    boxes = tf.image.non_max_suppression([[0, 0, 1, 1], [0, 0, 1, 0.9], [0.5, 0.5, 2, 2]], [0.9, 0.8, 0.7], 3, 0.5)
    print(sess.run(boxes)[-1])
    print("%.5f" % sess.run(tf.image.total_variation(tf.constant(rng.rand(5, 5, 3).astype("f")))))
    coord.request_stop()
    coord.join(threads)
