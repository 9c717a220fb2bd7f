"""tf.contrib.training's resampling, from the same seeds."""

_MADE = """
r = np.random.RandomState(5)
rows, more = tf.constant(r.rand(8, 2).astype('f')), tf.constant(np.arange(8))
weights = tf.constant(r.rand(8).astype('f') + 0.2)
t = tf.contrib.training
"""
VALUES: dict[str, list[str]] = {
    "contrib.training.resample_at_rate": [
        _MADE + "result = t.resample_at_rate([rows, more], weights * 2, seed=3)",
        _MADE + "result = t.resample_at_rate([more], weights * 0.01, 'mine', seed=4)",
    ],
    "contrib.training.weighted_resample": [
        _MADE + "found, rates = t.weighted_resample([rows, more], weights, 1.5, seed=3)\nresult = [found, rates]",
        _MADE + "found, rates = t.weighted_resample([more], weights, 0.5, 'mine', 0.9, 7)\nresult = [found, rates]",
    ],
}
