"""K-means by assignments in the graph, and nearest neighbours, without an optimizer."""

import numpy as np
import tensorflow as tf

rng = np.random.RandomState(50)
points = np.concatenate([rng.randn(15, 2) + centre for centre in ([0, 0], [4, 4], [-4, 3])]).astype("f")
K = 3
vectors = tf.constant(points)
centroids = tf.Variable(tf.slice(tf.random_shuffle(vectors, seed=6), [0, 0], [K, -1]))
expanded_vectors = tf.expand_dims(vectors, 0)
expanded_centroids = tf.expand_dims(centroids, 1)
distances = tf.reduce_sum(tf.square(tf.subtract(expanded_vectors, expanded_centroids)), 2)
assignments = tf.argmin(distances, 0)
means = tf.concat(
    [
        tf.reduce_mean(
            tf.gather(vectors, tf.reshape(tf.where(tf.equal(assignments, c)), [1, -1])), reduction_indices=[1]
        )
        for c in range(K)
    ],
    0,
)
update_centroids = tf.assign(centroids, means)
cost = tf.reduce_sum(tf.reduce_min(distances, 0))
query = tf.placeholder("float", [2])
l1 = tf.reduce_sum(tf.abs(tf.add(vectors, tf.negative(query))), reduction_indices=1)
nearest, where = tf.nn.top_k(-l1, k=3)
counts = tf.unsorted_segment_sum(tf.ones_like(assignments), assignments, K)
with tf.Session() as sess:
    sess.run(tf.global_variables_initializer())
    for _ in range(6):
        centres, value = sess.run([update_centroids, cost])
        print("%.5f" % value)
        print("%.5f" % centres.sum())
    for value in sess.run(counts):
        print(value)
    for value in sess.run(nearest, {query: [1.0, 1.0]}):
        print("%.5f" % value)
    print(sess.run(where, {query: [1.0, 1.0]}).sum())
    print("%.4f" % sess.run(tf.reduce_max(tf.self_adjoint_eig(tf.matmul(vectors, vectors, transpose_a=True))[0])))
