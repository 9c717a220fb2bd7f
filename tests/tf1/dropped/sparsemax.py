"""tf.contrib.sparsemax and tf.contrib.resampler."""

_LOGITS = "r = np.random.RandomState(%d)\nz = tf.constant((r.randn(5, 6) * %s).astype('%s'))\n"
_INFINITE = "inf = np.inf\nz = tf.constant([[0, inf, 0], [-inf, 0, 1], [-inf, -inf, -inf], [np.nan, 1, 2], [0, 1, -inf]], tf.float32)\n"
_PICTURE = (
    "r = np.random.RandomState(%d)\ndata = tf.constant(r.randn(2, 5, 4, 3).astype('%s'))\n"
    "warp = tf.constant((r.rand(2, %s, 2) * 8 - 2).astype('%s'))\n"
    "y = tf.contrib.resampler.resampler(data, warp)\nresult = [y] + tf.gradients(y * y, [data, warp])"
)
VALUES: dict[str, list[str]] = {
    "contrib.sparsemax.sparsemax": [
        _LOGITS % (1, 2, "float32") + "y = tf.contrib.sparsemax.sparsemax(z)\nresult = [y] + tf.gradients(y * y, z)",
        _LOGITS % (2, 0.2, "float64") + "y = tf.contrib.sparsemax.sparsemax(z)\nresult = [y] + tf.gradients(y * y, z)",
        _INFINITE + "result = tf.contrib.sparsemax.sparsemax(z)",
    ],
    "contrib.sparsemax.sparsemax_loss": [
        _LOGITS % (3, 2, "float32") + "labels = tf.nn.softmax(z * 0.5)\np = tf.contrib.sparsemax.sparsemax(z)\n"
        "y = tf.contrib.sparsemax.sparsemax_loss(z, p, labels)\nresult = [y] + tf.gradients(y, [z, p])",
        _INFINITE + "p = tf.contrib.sparsemax.sparsemax(z)\n"
        "result = tf.contrib.sparsemax.sparsemax_loss(z, p, tf.one_hot([1, 2, 0, 1, 1], 3))",
    ],
    "contrib.resampler.resampler": [
        _PICTURE % (1, "float32", "7", "float32"), _PICTURE % (2, "float64", "3, 2", "float64"),
    ],
}  # fmt: skip
