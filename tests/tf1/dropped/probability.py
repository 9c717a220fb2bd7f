"""tf.distributions: what each computes, by TensorFlow 1.15, which later releases have not changed."""

_MADE = """
r, tfd = np.random.RandomState(9), tf.distributions
a, b = tf.constant(r.rand(3, 2).astype('f') + 0.4), tf.constant(r.rand(2).astype('f') + 0.7)
x = tf.constant((r.rand(4, 3, 2) * 0.9 + 0.05).astype('f'))
shares = tf.constant(r.dirichlet([2.0, 1.5, 3.0], 4).astype('f'))
logits = tf.constant(r.randn(4, 3).astype('f'))
k, counts = tf.constant([0, 2, 1, 2]), tf.constant([[2.0, 0.0, 3.0], [1.0, 1.0, 3.0], [0.0, 5.0, 0.0], [5.0, 0.0, 0.0]])
"""
_STATISTICS = ("mean", "variance", "stddev", "entropy", "mode", "covariance")
_OF_VALUES = ("prob", "log_prob", "cdf", "log_cdf", "survival_function", "log_survival_function", "quantile")


def _all(made: str, value: str, lacking: str = "", other: str = "", draws: bool = True) -> str:
    """All that a distribution computes, but for names in `lacking`."""
    parts = [f"d.{name}()" for name in _STATISTICS if name not in lacking.split()]
    parts += [f"d.{name}({value})" for name in _OF_VALUES if name not in lacking.split()]
    parts += [
        f"d.{name}"
        for name in ("batch_shape_tensor()", "event_shape_tensor()", "is_scalar_event()", "is_scalar_batch()")
    ]
    parts += ["d.batch_shape.as_list()"]
    if draws:
        parts += ["d.sample(seed=3)", "d.sample(5, seed=3)", "d.sample([2, 3], seed=4)"]
    if other:
        parts += [f"d.kl_divergence({other})", f"d.cross_entropy({other})"]
    return f"{_MADE}d = tfd.{made}\nresult = [{', '.join(parts)}]"


_PLAIN = "quantile covariance"
_TAILS = " cdf log_cdf survival_function log_survival_function"
_UNDRAWN = "entropy mode covariance " + " ".join(_OF_VALUES[2:])
VALUES: dict[str, list[str]] = {
    "distributions.Normal": [
        _all("Normal(a, b)", "x", "covariance", "tfd.Normal(b, a)"),
        _all("Normal(0.5, a * 0.05, validate_args=True)", "x * 3 - 1", "covariance quantile"),
    ],
    "distributions.Laplace": [_all("Laplace(a, b)", "x", _PLAIN), _all("Laplace(0.0, b, True)", "x * 3 - 2", _PLAIN)],
    "distributions.StudentT": [
        _all("StudentT(a * 3, b, a)", "x", _PLAIN + _TAILS), _all("StudentT(b + 3, b, 2.0, True)", "x * 4 - 2", _PLAIN + _TAILS),
        _all("StudentT(3.0, 0.5, 2.0)", "0.7", _PLAIN),
        _MADE + "d = tfd.StudentT(b + 1, a, 1.0, allow_nan_stats=False)\nresult = [d.mean(), d.variance()]",
    ],
    "distributions.Uniform": [
        _all("Uniform()", "x", _PLAIN + " mode"), _all("Uniform(a - 0.4, b + 0.6, True)", "x * 2 - 0.5", _PLAIN + " mode"),
        _MADE + "d = tfd.Uniform(a, a + b)\nresult = [d.range(), d.low, d.high, d.copy(high=7.0).prob(x)]",
    ],
    "distributions.Gamma": [
        _all("Gamma(a * 2, b)", "x", _PLAIN, "tfd.Gamma(b, a)"), _all("Gamma(2.0, a, True)", "x", _PLAIN),
        _MADE + "result = tfd.Gamma(a + 1, b, allow_nan_stats=False).mode()",
    ],
    "distributions.Exponential": [
        _all("Exponential(a)", "x", _PLAIN + " mode", "tfd.Exponential(b)"), _all("Exponential(2.0, True)", "x", _PLAIN + " mode"),
    ],
    "distributions.Beta": [
        _all("Beta(a * 2, b)", "x", _PLAIN + _TAILS, "tfd.Beta(b, a)"),
        _all("Beta(a * 2, a + 1, True)", "x[0]", _PLAIN),
        _MADE + "result = tfd.Beta(a + 1, b + 1, allow_nan_stats=False).mode()",
    ],
    "distributions.Dirichlet": [
        _all("Dirichlet([2.0, 3.0, 1.5])", "shares", " ".join(_OF_VALUES[2:]), "tfd.Dirichlet([1.0, 1.0, 2.0])"),
        _all("Dirichlet(shares * 5 + 1, True)", "shares", "mode " + " ".join(_OF_VALUES[2:])),
    ],
    "distributions.Bernoulli": [
        _all("Bernoulli(logits)", "[1, 0, 1]", " ".join(_OF_VALUES[2:]) + " covariance", "tfd.Bernoulli(probs=shares)"),
        _all("Bernoulli(probs=shares, dtype=tf.float32, validate_args=True)", "[[1.0], [0.0], [1.0], [1.0]]",
             " ".join(_OF_VALUES[2:]) + " covariance"),
    ],
    "distributions.Categorical": [
        _all("Categorical(logits)", "k", "mean variance stddev covariance quantile", "tfd.Categorical(probs=shares)"),
        _all("Categorical(probs=shares[0], dtype=tf.int64, validate_args=True)", "k", "mean variance stddev covariance quantile"),
        _all("Categorical(tf.reshape(logits, [2, 2, 3]))", "1", "mean variance stddev covariance quantile"),
    ],
    "distributions.Multinomial": [
        # rows are drawn side by side, so nobody knows which draws first
        _all("Multinomial(5.0, logits)", "counts", _UNDRAWN, draws=False),
        _all("Multinomial([5.0] * 4, probs=shares, validate_args=True)", "counts", _UNDRAWN, draws=False),
        _all("Multinomial(5.0, logits[0])", "counts", _UNDRAWN),
        _MADE + "result = tfd.Multinomial(1.0, logits).covariance()",
    ],
    "distributions.DirichletMultinomial": [
        _all("DirichletMultinomial(5.0, shares * 4)", "counts", "entropy mode " + " ".join(_OF_VALUES[2:])),
        _all("DirichletMultinomial(5.0, [1.0, 2.0, 0.5], True)", "counts", "entropy mode " + " ".join(_OF_VALUES[2:])),
    ],
    "distributions.kl_divergence": [
        _MADE + "result = tfd.kl_divergence(tfd.Normal(a, b), tfd.Normal(b, a), allow_nan_stats=False, name='k')",
        _MADE + "result = tfd.kl_divergence(tfd.Exponential(a), tfd.Gamma(b, a))",
    ],
}  # fmt: skip
