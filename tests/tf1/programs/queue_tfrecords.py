"""Records are written, then read by queues and threads into batches."""

import os
import tempfile

import numpy as np
import tensorflow as tf

folder = tempfile.mkdtemp()
rng = np.random.RandomState(25)
filenames = [os.path.join(folder, "part-%d.tfrecords" % i) for i in range(2)]


def _int64_feature(value):
    return tf.train.Feature(int64_list=tf.train.Int64List(value=[value]))


def _bytes_feature(value):
    return tf.train.Feature(bytes_list=tf.train.BytesList(value=[value]))


for name in filenames:
    writer = tf.python_io.TFRecordWriter(name)
    for _ in range(12):
        image = rng.randint(0, 256, 16).astype(np.uint8)
        features = tf.train.Features(
            feature={
                "image_raw": _bytes_feature(image.tobytes()),
                "label": _int64_feature(int(image.sum() > 2040)),
                "weights": tf.train.Feature(float_list=tf.train.FloatList(value=[0.5, 1.5])),
            }
        )
        writer.write(tf.train.Example(features=features).SerializeToString())
    writer.close()

filename_queue = tf.train.string_input_producer(filenames, num_epochs=6, shuffle=False)
reader = tf.TFRecordReader()
_, serialized = reader.read(filename_queue)
features = tf.parse_single_example(
    serialized,
    features={
        "image_raw": tf.FixedLenFeature([], tf.string),
        "label": tf.FixedLenFeature([], tf.int64),
        "weights": tf.VarLenFeature(tf.float32),
    },
)
image = tf.decode_raw(features["image_raw"], tf.uint8)
image.set_shape([16])
image = tf.cast(image, tf.float32) * (1.0 / 255) - 0.5
weight = tf.reduce_sum(tf.sparse_tensor_to_dense(features["weights"]))
images, labels, weights = tf.train.batch(
    [image, tf.cast(features["label"], tf.int32), weight], batch_size=6, num_threads=1, capacity=20
)
tf.set_random_seed(25)
with tf.name_scope("model"):
    W = tf.Variable(tf.truncated_normal([16, 2], stddev=0.1), name="weights")
    b = tf.Variable(tf.zeros([2]), name="biases")
    logits = tf.matmul(images, W) + b
loss = tf.losses.sparse_softmax_cross_entropy(labels, logits, weights=weights)
train_op = tf.train.GradientDescentOptimizer(0.5).minimize(loss)
init_op = tf.group(tf.global_variables_initializer(), tf.local_variables_initializer())

sess = tf.Session()
sess.run(init_op)
coord = tf.train.Coordinator()
threads = tf.train.start_queue_runners(sess=sess, coord=coord)
steps = 0
try:
    while not coord.should_stop():
        _, value = sess.run([train_op, loss])
        print("%.6f" % value)
        steps += 1
except tf.errors.OutOfRangeError:
    print(steps)
finally:
    coord.request_stop()
coord.join(threads)
sess.close()
for number, record in enumerate(tf.python_io.tf_record_iterator(filenames[0])):
    example = tf.train.Example()
    example.ParseFromString(record)
print(number + 1)
print(example.features.feature["label"].int64_list.value[0])
