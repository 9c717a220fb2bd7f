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


def methods_of(made: str, value: str, methods: str, other: str = "") -> str:
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
        methods_of("Logistic(a, b)", "x", _LOCATED + " survival_function: log_survival_function: variance"),
        methods_of("Logistic(0.5, a * 0.2, validate_args=True)", "x * 3 - 1", _LOCATED),
    ],
    "contrib.distributions.Cauchy": [
        methods_of("Cauchy(a, b)", "x", _LOCATED + " quantile:"), methods_of("Cauchy(0.5, a * 0.2, True)", "x * 3 - 1", _LOCATED),
    ],
    "contrib.distributions.HalfNormal": [
        methods_of("HalfNormal(a)", "x", "prob: log_prob: cdf: quantile: mean variance mode entropy"),
        methods_of("HalfNormal(b, True)", "x * 2 - 0.5", "prob: cdf: mean stddev"),
    ],
    "contrib.distributions.Binomial": [
        f"{_MADE}d = tfd.Binomial({made})\nresult = [d.prob(counts), d.log_prob(counts), d.cdf(counts), d.mean(), "
        "d.variance(), d.stddev(), d.mode(), d.batch_shape_tensor(), d.event_shape_tensor(), d.logits, d.probs]"
        for made in ("[4.0, 7.0], a", "tf.constant(5.0), probs=b - 0.65, validate_args=True", "6.0, probs=0.25")
    ],
    "contrib.distributions.Poisson": [
        methods_of("Poisson(a * 3)", "counts", "prob: log_prob: mean variance stddev mode"),
        methods_of("Poisson(log_rate=b, validate_args=True)", "counts", "prob: log_prob: mean mode"),
        methods_of("Poisson(a * 3)", "counts[0]", "cdf: log_cdf:"),
    ],
    "contrib.distributions.Geometric": [
        methods_of("Geometric(a)", "counts", "prob: log_prob: cdf: mean variance mode entropy"),
        methods_of("Geometric(probs=b - 0.65, validate_args=True)", "counts", "prob: log_prob: cdf: mean stddev entropy"),
    ],
    "contrib.distributions.OneHotCategorical": [
        methods_of("OneHotCategorical(logits, dtype=tf.float32)", "hot", "prob: log_prob: mean variance covariance mode entropy"
            .replace("mean ", ""), "OneHotCategorical(-logits)"),
        methods_of("OneHotCategorical(probs=shares[:2], dtype=tf.float32)", "hot[:2]", "prob: log_prob: variance mode"),
    ],
    "contrib.distributions.ExpRelaxedOneHotCategorical": [
        methods_of("ExpRelaxedOneHotCategorical(0.5, logits)", "tf.log(shares)", "prob: log_prob:"),
        methods_of("ExpRelaxedOneHotCategorical(2.0, probs=shares)", "tf.log(shares)", "log_prob:"),
    ],
    "contrib.distributions.RelaxedOneHotCategorical": [
        methods_of("RelaxedOneHotCategorical(0.5, logits)", "shares", "prob: log_prob:"),
        methods_of("RelaxedOneHotCategorical(2.0, probs=shares)", "shares", "log_prob:"),
    ],
    "contrib.distributions.RelaxedBernoulli": [
        methods_of("RelaxedBernoulli(0.5, a)", "x", "prob: log_prob: cdf:"),
        methods_of("RelaxedBernoulli(2.0, probs=b * 0.5, validate_args=True)", "x", "log_prob:"),
    ],
    "contrib.distributions.MultivariateNormalDiag": [
        methods_of("MultivariateNormalDiag(a, b)", "x", _VECTOR, "MultivariateNormalDiag(b, a)"),
        methods_of("MultivariateNormalDiag(b)", "x", _VECTOR),
        methods_of("MultivariateNormalDiag(a, scale_identity_multiplier=0.5)", "x", _VECTOR),
        methods_of("MultivariateNormalDiag(scale_diag=b, scale_identity_multiplier=0.5)", "x", _VECTOR),
    ],
    "contrib.distributions.MultivariateNormalDiagWithSoftplusScale": [
        methods_of("MultivariateNormalDiagWithSoftplusScale(a, b)", "x", _VECTOR),
        methods_of("MultivariateNormalDiagWithSoftplusScale(b, -b)", "x", _VECTOR),
    ],
    "contrib.distributions.MultivariateNormalTriL": [
        methods_of("MultivariateNormalTriL(logits, tril)", "shares", _VECTOR, "MultivariateNormalTriL(-logits, tril * 2)"),
        methods_of("MultivariateNormalTriL(scale_tril=tril)", "shares", _VECTOR),
    ],
    "contrib.distributions.MultivariateNormalFullCovariance": [
        methods_of("MultivariateNormalFullCovariance(logits, cov)", "shares", _VECTOR),
        methods_of("MultivariateNormalFullCovariance(logits[0], cov, True)", "shares", _VECTOR),
    ],
    "contrib.distributions.NormalWithSoftplusScale": [
        methods_of("NormalWithSoftplusScale(a, b)", "x", _PLAIN), methods_of("NormalWithSoftplusScale(0.5, a, True)", "x", _PLAIN),
    ],
    "contrib.distributions.LaplaceWithSoftplusScale": [
        methods_of("LaplaceWithSoftplusScale(a, b)", "x", _PLAIN), methods_of("LaplaceWithSoftplusScale(0.5, a, True)", "x", _PLAIN),
    ],
    "contrib.distributions.StudentTWithAbsDfSoftplusScale": [
        methods_of("StudentTWithAbsDfSoftplusScale(-a * 5, b, a)", "x", _PLAIN),
        methods_of("StudentTWithAbsDfSoftplusScale(3.5, 0.5, b)", "x", _PLAIN),
    ],
    "contrib.distributions.GammaWithSoftplusConcentrationRate": [
        methods_of("GammaWithSoftplusConcentrationRate(a, b)", "x", _PLAIN),
        methods_of("GammaWithSoftplusConcentrationRate(-a, 0.5, True)", "x", _PLAIN),
    ],
    "contrib.distributions.ExponentialWithSoftplusRate": [
        methods_of("ExponentialWithSoftplusRate(a)", "x", _PLAIN), methods_of("ExponentialWithSoftplusRate(-1.0, True)", "x", _PLAIN),
    ],
    "contrib.distributions.BetaWithSoftplusConcentration": [
        methods_of("BetaWithSoftplusConcentration(a, b)", "x", _PLAIN),
        methods_of("BetaWithSoftplusConcentration(-a, a, True)", "x", _PLAIN),
    ],
    "contrib.distributions.Chi2": [methods_of("Chi2(a * 4)", "x", _PLAIN + " mode"), methods_of("Chi2(3.0, True)", "x", _PLAIN)],
    "contrib.distributions.Chi2WithAbsDf": [
        methods_of("Chi2WithAbsDf(-a * 4)", "x", _PLAIN), methods_of("Chi2WithAbsDf(3.5, True)", "x", _PLAIN),
    ],
    "contrib.distributions.InverseGamma": [
        methods_of("InverseGamma(a * 4, b)", "x", "prob: log_prob: cdf: mean variance stddev mode entropy"),
        methods_of("InverseGamma(3.0, a, True, False)", "x", "prob: cdf: mean variance mode"),
    ],
    "contrib.distributions.InverseGammaWithSoftplusConcentrationRate": [
        methods_of("InverseGammaWithSoftplusConcentrationRate(a * 4, -b)", "x", _PLAIN),
        methods_of("InverseGammaWithSoftplusConcentrationRate(3.0, a, True)", "x", _PLAIN),
    ],
    "contrib.distributions.Independent": [
        methods_of("Independent(tfd.Normal(a, b))", "x", "prob: log_prob: mean variance stddev mode entropy"),
        methods_of("Independent(tfd.Normal(a, b), 2, name='mine')", "x", "log_prob: mean entropy"),
        methods_of("Independent(tfd.Bernoulli(probs=b * 0.5), 0)", "tf.cast(x, tf.int32)", "log_prob: mean entropy"),
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
