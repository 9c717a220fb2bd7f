"""TFRecordDataset, parse_example, padded batches of words, an initializable iterator with a placeholder of names."""

import os
import tempfile

import numpy as np
import tensorflow as tf

rng = np.random.RandomState(27)
path = os.path.join(tempfile.mkdtemp(), "words.tfrecord")
with tf.python_io.TFRecordWriter(path, tf.python_io.TFRecordOptions(tf.python_io.TFRecordCompressionType.GZIP)) as out:
    for _ in range(30):
        words = rng.randint(1, 20, rng.randint(2, 7))
        example = tf.train.Example(features=tf.train.Features(feature={
            "words": tf.train.Feature(int64_list=tf.train.Int64List(value=words)),
            "label": tf.train.Feature(float_list=tf.train.FloatList(value=[float(words.mean() > 10)])),
        }))
        out.write(example.SerializeToString())


def parse(record):
    parsed = tf.parse_single_example(
        record, {"words": tf.VarLenFeature(tf.int64), "label": tf.FixedLenFeature([1], tf.float32)}
    )
    words = tf.sparse_tensor_to_dense(parsed["words"])
    return words, tf.shape(words)[0], parsed["label"]


tf.set_random_seed(27)
filenames = tf.placeholder(tf.string, shape=[None])
dataset = tf.data.TFRecordDataset(filenames, compression_type="GZIP")
dataset = dataset.map(parse).shuffle(1, seed=3).repeat().padded_batch(6, ([None], [], [1])).prefetch(2)
iterator = dataset.make_initializable_iterator()
words, lengths, labels = iterator.get_next()
embedding = tf.get_variable("embedding", [20, 5], initializer=tf.random_normal_initializer(stddev=0.5, seed=5))
embedded = tf.nn.embedding_lookup(embedding, words)
mask = tf.expand_dims(tf.sequence_mask(lengths, tf.shape(words)[1], dtype=tf.float32), -1)
pooled = tf.div(tf.reduce_sum(embedded * mask, 1), tf.cast(tf.expand_dims(lengths, 1), tf.float32))
logits = tf.layers.dense(pooled, 1, kernel_initializer=tf.glorot_uniform_initializer(seed=6))
loss = tf.losses.sigmoid_cross_entropy(labels, logits)
auc, update_auc = tf.metrics.auc(labels, tf.sigmoid(logits))
train = tf.train.FtrlOptimizer(0.5).minimize(loss, tf.train.get_or_create_global_step())
with tf.Session() as sess:
    sess.run([tf.global_variables_initializer(), tf.local_variables_initializer()])
    sess.run(iterator.initializer, feed_dict={filenames: [path]})
    for _ in range(20):
        _, value, _ = sess.run([train, loss, update_auc])
        print("%.6f" % value)
    print("%.4f" % sess.run(auc))
