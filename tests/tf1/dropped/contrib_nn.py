"""tf.contrib.nn."""

_FLIPPED = "tf.contrib.nn.deprecated_flipped_%s_cross_entropy_with_logits(%s)"
CALLS: dict[str, list[str]] = {
    "contrib.nn.deprecated_flipped_softmax_cross_entropy_with_logits": [
        _FLIPPED % ("softmax", given) for given in ("f(2, 3), f(2, 3)", "f(2, 3), tf.constant([[0.5], [1.0]]), 0, name='a'")
    ],
    "contrib.nn.deprecated_flipped_sparse_softmax_cross_entropy_with_logits": [
        _FLIPPED % ("sparse_softmax", given) for given in ("f(2, 3), i(2)", "f(2, 3), l(2), name='a'")
    ],
    "contrib.nn.deprecated_flipped_sigmoid_cross_entropy_with_logits": [
        _FLIPPED % ("sigmoid", given) for given in ("f(2, 3), f(2, 3)", "f(2, 3), f(2, 3), name='a'")
    ],
    "contrib.nn.nth_element": [
        "tf.contrib.nn.nth_element(f(2, 3), 1)", "tf.contrib.nn.nth_element(f(2, 3), i(), True, name='a')",
    ],
    "contrib.nn.alpha_dropout": [
        "tf.contrib.nn.alpha_dropout(f(2, 3), 0.7)", "tf.contrib.nn.alpha_dropout(f(2, 3), f(), [2, 1], 3, 'a')",
        "tf.contrib.nn.alpha_dropout(f(2, 3), 1.0)",
    ],
}  # fmt: skip
DIFFERING: dict[str, str] = {
    CALLS["contrib.nn.deprecated_flipped_softmax_cross_entropy_with_logits"][1]: "1.15 moves an axis to the end by "
    "ranges of ranks, later releases, and this library, by constants"
} | dict.fromkeys(
    CALLS["contrib.nn.alpha_dropout"][:2], "1.15 moves draws into [0, 1), where they are; later releases leave them"
)
_WIDE = """
r = np.random.RandomState(6)
x = tf.constant(r.randn(5, 4).astype('f') * 3)
a = tf.constant(r.rand(4).astype('f') + 0.2)
y = tf.contrib.nn.scaled_softplus(%s)
result = [y] + tf.gradients(y * y, [x, a])
"""
_SAMPLED = """
r = np.random.RandomState(7)
weights, biases = tf.constant(r.randn(9, 4).astype('f')), tf.constant(r.randn(9).astype('f'))
labels, inputs = tf.constant(r.randint(0, 9, (5, 1))), tf.constant(r.randn(5, 4).astype('f'))
drawn = (tf.constant([3, 8, 0, 5], tf.int64), tf.constant(r.rand(5, 1).astype('f')), tf.constant(r.rand(4).astype('f')))
"""
VALUES: dict[str, list[str]] = {
    "contrib.nn.alpha_dropout": [
        "tf.set_random_seed(3)\nresult = tf.contrib.nn.alpha_dropout(np.linspace(-2, 2, 40).astype('f'), 0.7, seed=5)",
        "result = tf.contrib.nn.alpha_dropout(np.ones([4, 5]), tf.constant(0.4, tf.float64), [4, 1], 2)",
    ],
    "contrib.nn.scaled_softplus": [_WIDE % "x, a", _WIDE % "x, a, 1.5, name='b'"],
    "contrib.nn.sampled_sparse_softmax_loss": [
        _SAMPLED
        + f"result = tf.contrib.nn.sampled_sparse_softmax_loss(weights, biases, labels, inputs, 4, 9, drawn{more})"
        for more in ("", ", False, 'div', 'a'")
    ],
    "contrib.nn.rank_sampled_softmax_loss": [
        _SAMPLED + "result = tf.contrib.nn.rank_sampled_softmax_loss("
        f"weights, biases, labels, inputs, 4, {count}, 9, 1, drawn, {temperature}, {hits}, '{strategy}')"
        for count, temperature, hits, strategy in ((2, 1.0, False, "mod"), (3, 0.5, True, "div"))
    ],
}
