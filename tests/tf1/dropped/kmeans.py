"""tf.contrib.factorization.KMeans: the centers after each step.

Where TensorFlow 1.15 does not order its updates, it gives other numbers in another run: test_kmeans counts with NumPy.
"""

_MADE = """
r = np.random.RandomState(4)
x = np.concatenate([r.randn(12, 3) + 4, r.randn(9, 3) - 4, r.randn(10, 3)]).astype('f')
f = internal('contrib.factorization')
with tf.Graph().as_default():  # a variable without a shape cannot be loaded
    start, x = x[[0, 13, 25]], tf.constant(x)
    k = f.KMeans(%s)
    everything, nearest, least, there, begin, step = k.training_graph()
    with tf.Session() as s:
        s.run(tf.global_variables_initializer())
        s.run(begin)
        assert s.run(there)
        centers = tf.global_variables()[0]
        result = []
        for _ in range(5):
            result += s.run([everything, nearest, least])
            s.run(step)
            result.append(s.run(centers))
        result += [v.name for v in tf.global_variables()]
"""
VALUES: dict[str, list[str]] = {
    "contrib.factorization.KMeans": [
        _MADE % arguments
        for arguments in (
            "x, 3, start",
            "x, 3, start, f.COSINE_DISTANCE",
            "[x[:15], x[15:]], 3, start",
            "x, 3, lambda inputs, count: inputs[0][:count]",
        )
    ],
}
