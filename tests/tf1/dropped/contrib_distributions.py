"""tf.contrib.distributions: what each computes, and draws from a seed."""

_MADE = """
r, tfd = np.random.RandomState(9), tf.contrib.distributions
a, b = tf.constant(r.rand(3, 2).astype('f') + 0.4), tf.constant(r.rand(2).astype('f') + 0.7)
x = tf.constant((r.rand(4, 3, 2) * 0.9 + 0.05).astype('f'))
logits = tf.constant(r.randn(4, 3).astype('f'))
counts = tf.constant(r.randint(0, 5, [4, 3, 2]).astype('f'))
m = r.randn(3, 3).astype('f')
tril, cov = tf.constant(np.tril(m) + 2 * np.eye(3, dtype='f')), tf.constant(m.dot(m.T) + np.eye(3, dtype='f'))
hot = tf.one_hot([0, 2, 1, 2], 3)
shares = tf.constant(r.dirichlet([2.0, 1.5, 3.0], 4).astype('f'))
"""


def _of(made: str, value: str, methods: str, other: str = "") -> str:
    """Values of methods: those that end in ":" are given a value."""
    parts = [f"d.{m[:-1]}({value})" if m.endswith(":") else f"d.{m}()" for m in methods.split()]
    parts += ["d.batch_shape_tensor()", "d.event_shape_tensor()", "d.sample(seed=3)", "d.sample([2, 3], seed=4)"]
    if other:
        parts += [f"d.kl_divergence(tfd.{other})"]
    return f"{_MADE}d = tfd.{made}\nresult = [{', '.join(parts)}]"


_LOCATED = "prob: log_prob: cdf: log_cdf: mean stddev mode entropy"
_VECTOR = "prob: log_prob: mean variance stddev covariance mode entropy"
_PLAIN = "prob: log_prob: mean variance"
VALUES: dict[str, list[str]] = {
    "contrib.distributions.Logistic": [
        _of("Logistic(a, b)", "x", _LOCATED + " survival_function: log_survival_function: variance"),
        _of("Logistic(0.5, a * 0.2, validate_args=True)", "x * 3 - 1", _LOCATED),
    ],
    "contrib.distributions.Cauchy": [
        _of("Cauchy(a, b)", "x", _LOCATED + " quantile:"), _of("Cauchy(0.5, a * 0.2, True)", "x * 3 - 1", _LOCATED),
    ],
    "contrib.distributions.HalfNormal": [
        _of("HalfNormal(a)", "x", "prob: log_prob: cdf: quantile: mean variance mode entropy"),
        _of("HalfNormal(b, True)", "x * 2 - 0.5", "prob: cdf: mean stddev"),
    ],
    "contrib.distributions.Poisson": [
        _of("Poisson(a * 3)", "counts", "prob: log_prob: mean variance stddev mode"),
        _of("Poisson(log_rate=b, validate_args=True)", "counts", "prob: log_prob: mean mode"),
        _of("Poisson(a * 3)", "counts[0]", "cdf: log_cdf:"),
    ],
    "contrib.distributions.Geometric": [
        _of("Geometric(a)", "counts", "prob: log_prob: cdf: mean variance mode entropy"),
        _of("Geometric(probs=b - 0.65, validate_args=True)", "counts", "prob: log_prob: cdf: mean stddev entropy"),
    ],
    "contrib.distributions.OneHotCategorical": [
        _of("OneHotCategorical(logits, dtype=tf.float32)", "hot", "prob: log_prob: mean variance covariance mode entropy"
            .replace("mean ", ""), "OneHotCategorical(-logits)"),
        _of("OneHotCategorical(probs=shares[:2], dtype=tf.float32)", "hot[:2]", "prob: log_prob: variance mode"),
    ],
    "contrib.distributions.ExpRelaxedOneHotCategorical": [
        _of("ExpRelaxedOneHotCategorical(0.5, logits)", "tf.log(shares)", "prob: log_prob:"),
        _of("ExpRelaxedOneHotCategorical(2.0, probs=shares)", "tf.log(shares)", "log_prob:"),
    ],
    "contrib.distributions.RelaxedOneHotCategorical": [
        _of("RelaxedOneHotCategorical(0.5, logits)", "shares", "prob: log_prob:"),
        _of("RelaxedOneHotCategorical(2.0, probs=shares)", "shares", "log_prob:"),
    ],
    "contrib.distributions.RelaxedBernoulli": [
        _of("RelaxedBernoulli(0.5, a)", "x", "prob: log_prob: cdf:"),
        _of("RelaxedBernoulli(2.0, probs=b * 0.5, validate_args=True)", "x", "log_prob:"),
    ],
    "contrib.distributions.MultivariateNormalDiag": [
        _of("MultivariateNormalDiag(a, b)", "x", _VECTOR, "MultivariateNormalDiag(b, a)"),
        _of("MultivariateNormalDiag(b)", "x", _VECTOR),
        _of("MultivariateNormalDiag(a, scale_identity_multiplier=0.5)", "x", _VECTOR),
        _of("MultivariateNormalDiag(scale_diag=b, scale_identity_multiplier=0.5)", "x", _VECTOR),
    ],
    "contrib.distributions.MultivariateNormalDiagWithSoftplusScale": [
        _of("MultivariateNormalDiagWithSoftplusScale(a, b)", "x", _VECTOR),
        _of("MultivariateNormalDiagWithSoftplusScale(b, -b)", "x", _VECTOR),
    ],
    "contrib.distributions.MultivariateNormalTriL": [
        _of("MultivariateNormalTriL(logits, tril)", "shares", _VECTOR, "MultivariateNormalTriL(-logits, tril * 2)"),
        _of("MultivariateNormalTriL(scale_tril=tril)", "shares", _VECTOR),
    ],
    "contrib.distributions.MultivariateNormalFullCovariance": [
        _of("MultivariateNormalFullCovariance(logits, cov)", "shares", _VECTOR),
        _of("MultivariateNormalFullCovariance(logits[0], cov, True)", "shares", _VECTOR),
    ],
    "contrib.distributions.NormalWithSoftplusScale": [
        _of("NormalWithSoftplusScale(a, b)", "x", _PLAIN), _of("NormalWithSoftplusScale(0.5, a, True)", "x", _PLAIN),
    ],
    "contrib.distributions.LaplaceWithSoftplusScale": [
        _of("LaplaceWithSoftplusScale(a, b)", "x", _PLAIN), _of("LaplaceWithSoftplusScale(0.5, a, True)", "x", _PLAIN),
    ],
    "contrib.distributions.StudentTWithAbsDfSoftplusScale": [
        _of("StudentTWithAbsDfSoftplusScale(-a * 5, b, a)", "x", _PLAIN),
        _of("StudentTWithAbsDfSoftplusScale(3.5, 0.5, b)", "x", _PLAIN),
    ],
    "contrib.distributions.GammaWithSoftplusConcentrationRate": [
        _of("GammaWithSoftplusConcentrationRate(a, b)", "x", _PLAIN),
        _of("GammaWithSoftplusConcentrationRate(-a, 0.5, True)", "x", _PLAIN),
    ],
    "contrib.distributions.ExponentialWithSoftplusRate": [
        _of("ExponentialWithSoftplusRate(a)", "x", _PLAIN), _of("ExponentialWithSoftplusRate(-1.0, True)", "x", _PLAIN),
    ],
    "contrib.distributions.BetaWithSoftplusConcentration": [
        _of("BetaWithSoftplusConcentration(a, b)", "x", _PLAIN),
        _of("BetaWithSoftplusConcentration(-a, a, True)", "x", _PLAIN),
    ],
    "contrib.distributions.Chi2": [_of("Chi2(a * 4)", "x", _PLAIN + " mode"), _of("Chi2(3.0, True)", "x", _PLAIN)],
    "contrib.distributions.Chi2WithAbsDf": [
        _of("Chi2WithAbsDf(-a * 4)", "x", _PLAIN), _of("Chi2WithAbsDf(3.5, True)", "x", _PLAIN),
    ],
    "contrib.distributions.InverseGamma": [
        _of("InverseGamma(a * 4, b)", "x", "prob: log_prob: cdf: mean variance stddev mode entropy"),
        _of("InverseGamma(3.0, a, True, False)", "x", "prob: cdf: mean variance mode"),
    ],
    "contrib.distributions.InverseGammaWithSoftplusConcentrationRate": [
        _of("InverseGammaWithSoftplusConcentrationRate(a * 4, -b)", "x", _PLAIN),
        _of("InverseGammaWithSoftplusConcentrationRate(3.0, a, True)", "x", _PLAIN),
    ],
    "contrib.distributions.Independent": [
        _of("Independent(tfd.Normal(a, b))", "x", "prob: log_prob: mean variance stddev mode entropy"),
        _of("Independent(tfd.Normal(a, b), 2, name='mine')", "x", "log_prob: mean entropy"),
        _of("Independent(tfd.Bernoulli(probs=b * 0.5), 0)", "tf.cast(x, tf.int32)", "log_prob: mean entropy"),
    ],
    "contrib.distributions.fill_triangular": [
        f"result = tf.contrib.distributions.fill_triangular(np.random.RandomState(1).rand({shape}).astype('f'){more})"
        for shape, more in (("6", ""), ("2, 3, 10", ", name='t'"), ("6", ", True"), ("2, 1", ", upper=True"))
    ],
    "contrib.distributions.softplus_inverse": [
        f"result = tf.contrib.distributions.softplus_inverse(np.array([1e-9, 0.1, 1.0, 5.0, 13.0, 30.0, 90.0], '{kind}'))"
        for kind in ("float32", "float64")
    ],
}  # fmt: skip
