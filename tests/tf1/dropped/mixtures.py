"""tf.contrib.distributions: mixtures, points, and counts until a number of failures."""

from tests.tf1.dropped.contrib_distributions import methods_of

_SHOWN = "prob: log_prob: mean variance stddev"


def _undrawn(made: str, value: str, methods: str) -> str:
    """Values without draws: components of 1.15's mixtures draw without the seed that they are given."""
    code = methods_of(made, value, methods)
    return code.replace("d.sample(seed=3)", "tf.shape(d.sample(seed=3))").replace(
        "d.sample([2, 3], seed=4)", "tf.shape(d.sample([2, 3], seed=4))"
    )


VALUES: dict[str, list[str]] = {
    "contrib.distributions.Deterministic": [
        methods_of("Deterministic(a)", "tf.concat([a[:1], x[0, 1:]], 0)", "prob: cdf: mean variance stddev mode entropy"),
        methods_of("Deterministic(b, 0.1, 0.2, validate_args=True)", "x", "prob: log_prob: cdf: mean"),
    ],
    "contrib.distributions.VectorDeterministic": [
        methods_of("VectorDeterministic(a)", "tf.concat([a[:1], x[0, 1:]], 0)", "prob: mean variance mode entropy")
        .replace("d.event_shape_tensor()", "tf.reshape(d.event_shape_tensor(), [1])"),
        methods_of("VectorDeterministic(b, 0.5, 0.2)", "x", "prob: log_prob: mean")
        .replace("d.event_shape_tensor()", "tf.reshape(d.event_shape_tensor(), [1])"),
    ],
    "contrib.distributions.NegativeBinomial": [
        methods_of("NegativeBinomial(a * 3, logits=b)", "counts", _SHOWN + " mode"),
        methods_of("NegativeBinomial(4.0, probs=b * 0.4, validate_args=True)", "counts", _SHOWN),
        methods_of("NegativeBinomial(a * 3, logits=a)", "counts[0]", "cdf: log_cdf:"),
    ],
    "contrib.distributions.MixtureSameFamily": [
        _undrawn(
            "MixtureSameFamily(tfd.Categorical(logits), tfd.Normal(logits * 2, 0.5 + tf.nn.softplus(logits)))", "x[0, :2, 0]",
            "mean variance stddev",
        ),
        _undrawn(
            "MixtureSameFamily(tfd.Categorical(probs=shares[0]), tfd.Normal([-1.0, 0.0, 2.0], [1.0, 0.5, 2.0]))", "x[0, :, 0]",
            _SHOWN + " cdf: log_cdf:",
        ),
        _undrawn(
            "MixtureSameFamily(tfd.Categorical(probs=shares[0]), tfd.MultivariateNormalDiag(a, a + 1))", "x", _SHOWN + " covariance",
        ),
    ],
}  # fmt: skip
