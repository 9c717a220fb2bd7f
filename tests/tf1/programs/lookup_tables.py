"""Words to numbers by tables, strings split and hashed, bags of words through sparse lookups."""

import os
import tempfile

import numpy as np
import tensorflow as tf

tf.set_random_seed(47)
sentences = ["the cat sat", "a dog ran far away", "the dog sat on the cat", "birds sing", "a cat ran", "the end"]
targets = np.array([0, 1, 0, 1, 1, 0], np.int32)
vocab = os.path.join(tempfile.mkdtemp(), "vocab.txt")
with open(vocab, "w") as f:
    f.write("\n".join(sorted({w for s in sentences for w in s.split()} - {"birds", "sing"})))

text = tf.placeholder(tf.string, [None])
labels = tf.placeholder(tf.int32, [None])
table = tf.contrib.lookup.index_table_from_file(vocab, num_oov_buckets=2)
back = tf.contrib.lookup.index_to_string_table_from_file(vocab, default_value="<unk>")
words = tf.string_split(text, " ")
ids = table.lookup(words)
dense = tf.sparse_tensor_to_dense(ids, default_value=-1)
size = tf.cast(table.size(), tf.int32)
params = tf.get_variable("params", [12, 4], initializer=tf.random_uniform_initializer(-0.5, 0.5))
bag = tf.nn.embedding_lookup_sparse(params, ids, None, combiner="sqrtn")
hashed = tf.string_to_hash_bucket_fast(words.values, 5)
extra = tf.segment_mean(tf.one_hot(hashed, 5), words.indices[:, 0])
logits = tf.layers.dense(tf.concat([bag, extra], 1), 2)
loss = tf.losses.sparse_softmax_cross_entropy(labels, logits)
train = tf.train.ProximalGradientDescentOptimizer(0.5, l2_regularization_strength=0.01).minimize(loss)
mutable = tf.contrib.lookup.MutableHashTable(tf.string, tf.int64, -1)
insert = mutable.insert(tf.constant(["x", "y"]), tf.constant([7, 8], tf.int64))
with tf.Session() as sess:
    sess.run([tf.global_variables_initializer(), tf.tables_initializer()])
    for _ in range(20):
        _, value = sess.run([train, loss], {text: sentences, labels: targets})
        print("%.6f" % value)
    print(sess.run(size))
    for value in sess.run(dense, {text: sentences})[2]:
        print(value)
    assert list(sess.run(back.lookup(tf.constant([1, 99], tf.int64)))) == [b"away", b"<unk>"]
    sess.run(insert)
    print(sess.run(mutable.lookup(tf.constant(["y", "z"]))).sum())
