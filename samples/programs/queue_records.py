"""Digits written to TFRecord files and read back by queues: threads of file names, readers and batches."""

import os
import shutil
import tempfile

import numpy as np
import tensorflow as tf

BATCH, FILES, EPOCHS = 64, 4, 12

tf.set_random_seed(3)
digits = np.load(os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "digits.npz"))
folder = tempfile.mkdtemp()


def write_records(path, images, labels):
    """An Example for each digit, its pixels as bytes."""
    with tf.python_io.TFRecordWriter(path) as writer:
        for image, label in zip(images, labels):
            pixels = (image * 255).astype(np.uint8).tobytes()
            feature = {
                "image": tf.train.Feature(bytes_list=tf.train.BytesList(value=[pixels])),
                "label": tf.train.Feature(int64_list=tf.train.Int64List(value=[label])),
            }
            writer.write(tf.train.Example(features=tf.train.Features(feature=feature)).SerializeToString())


for number in range(FILES):
    part = slice(number, None, FILES)
    path = os.path.join(folder, "digits-%d.tfrecord" % number)
    write_records(path, digits["x_train"][part], digits["y_train"][part])

names = tf.train.match_filenames_once(os.path.join(folder, "*.tfrecord"))
queue = tf.train.string_input_producer(names, num_epochs=EPOCHS, shuffle=True)
_, serialized = tf.TFRecordReader().read(queue)
features = tf.parse_single_example(
    serialized, {"image": tf.FixedLenFeature([], tf.string), "label": tf.FixedLenFeature([], tf.int64)}
)
image = tf.reshape(tf.cast(tf.decode_raw(features["image"], tf.uint8), tf.float32) / 255.0, [64])
images, labels = tf.train.shuffle_batch([image, features["label"]], BATCH, 1000, 200, num_threads=2)

hidden = tf.layers.dense(images, 64, tf.nn.relu)
logits = tf.layers.dense(hidden, 10)
loss = tf.reduce_mean(tf.nn.sparse_softmax_cross_entropy_with_logits(labels=labels, logits=logits))
accuracy = tf.reduce_mean(tf.to_float(tf.nn.in_top_k(logits, labels, 1)))
train = tf.train.AdamOptimizer(0.005).minimize(loss)

with tf.Session() as sess:
    sess.run([tf.global_variables_initializer(), tf.local_variables_initializer()])
    coord = tf.train.Coordinator()
    threads = tf.train.start_queue_runners(sess=sess, coord=coord)
    first, last, step = None, [], 0
    try:
        while not coord.should_stop():
            _, value, right = sess.run([train, loss, accuracy])
            first = value if first is None else first
            last = (last + [(value, right)])[-20:]
            step += 1
    except tf.errors.OutOfRangeError:
        print("%d steps in %d passes" % (step, EPOCHS))
    finally:
        coord.request_stop()
        coord.join(threads)
    losses, rights = zip(*last)
    print("accuracy %.4f" % np.mean(rights))
    print("loss %.4f -> %.4f" % (first, np.mean(losses)))

shutil.rmtree(folder)
