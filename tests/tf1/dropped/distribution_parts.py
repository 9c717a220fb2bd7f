"""tf.contrib.distributions: mixtures of different kinds, scales of low rank, and what samples tell."""

from tests.tf1.dropped.contrib_distributions import methods_of

_D = "tf.contrib.distributions."
_SHOWN = "prob: log_prob: mean variance stddev"


def _undrawn(made: str, value: str, methods: str) -> str:
    """Values without draws: components draw from seeds of their own."""
    code = methods_of(made, value, methods)
    return code.replace("d.sample(seed=3)", "tf.shape(d.sample(seed=3))").replace(
        "d.sample([2, 3], seed=4)", "tf.shape(d.sample([2, 3], seed=4))"
    )


_MOVING = """
m, v = tf.Variable([1.0, 2.0], name='m'), tf.Variable([0.5, 3.0], name='v')
value = tf.constant([2.0, -1.0])
"""
_LOG = "r = np.random.RandomState(3)\nx, w = tf.constant(r.randn(3, 4)), tf.constant(r.randn(3, 4))\n"
_PRIOR = f"prior = {_D}Normal([1.0, 2.0], 3.0)\n"
VALUES: dict[str, list[str]] = {
    "contrib.distributions.Mixture": [
        _undrawn("Mixture(tfd.Categorical(probs=[0.3, 0.7]), [tfd.Normal(0.5, 1.0), tfd.Laplace(1.0, 2.0)])", "x", _SHOWN + " cdf: log_cdf: entropy_lower_bound"),
        _undrawn("Mixture(tfd.Categorical(logits), [tfd.Normal(logits[:, 0], 1.0), tfd.Logistic(logits[:, 1], 2.0), tfd.Normal(logits[:, 2], 0.5)], use_static_graph=True)", "x[:, 0, 0]", _SHOWN),
        _undrawn("Mixture(tfd.Categorical(probs=shares[0, :2] / tf.reduce_sum(shares[0, :2])), [tfd.MultivariateNormalDiag(b, b + 1), tfd.MultivariateNormalTriL(b)])", "x", _SHOWN),
    ],
    "contrib.distributions.MultivariateNormalDiagPlusLowRank": [
        methods_of("MultivariateNormalDiagPlusLowRank(b, b, scale_perturb_factor=a[:2] * 0.3)", "x", "prob: log_prob: mean variance stddev covariance mode entropy"),
        methods_of("MultivariateNormalDiagPlusLowRank(a[:, :2], scale_identity_multiplier=2.0, scale_perturb_factor=a[:2, :1], scale_perturb_diag=[0.4])", "x", "prob: log_prob: mean covariance"),
    ],
    "contrib.distributions.assign_moving_mean_variance": [
        _MOVING + f"result = list({_D}assign_moving_mean_variance(m, v, value, {decay}))" for decay in (0.9, 0.5)
    ],
    "contrib.distributions.assign_log_moving_mean_exp": [
        _MOVING + f"result = {_D}assign_log_moving_mean_exp(m, value, {decay})" for decay in (0.9, 0.5)
    ],
    "contrib.distributions.moving_mean_variance": [
        _MOVING + f"with tf.variable_scope('s'):\n    result = list({_D}moving_mean_variance(value, {decay}))" for decay in ("0.9", "0.5, name='n'")
    ],
    "contrib.distributions.percentile": [
        _LOG + f"result = {_D}percentile(x, {more})"
        for more in ("30.0", "55, 0, 'lower'", "55, [1], 'higher', keep_dims=True", "90.0, [-1, 0], keep_dims=True, validate_args=True", "20, axis=[0, 1]")
    ],
    "contrib.distributions.normal_conjugates_known_scale_posterior": [
        _PRIOR + f"d = {_D}normal_conjugates_known_scale_posterior(prior, {scale}, tf.constant([3.0, 1.0]), 4)\nresult = [d.mean(), d.stddev()]" for scale in ("2.0", "tf.constant([1.0, 3.0])")
    ],
    "contrib.distributions.normal_conjugates_known_scale_predictive": [
        _PRIOR + f"d = {_D}normal_conjugates_known_scale_predictive(prior, {scale}, tf.constant([3.0, 1.0]), 4)\nresult = [d.mean(), d.stddev()]" for scale in ("2.0", "tf.constant([1.0, 3.0])")
    ],
    "contrib.distributions.reduce_weighted_logsumexp": [
        _LOG + f"result = {_D}reduce_weighted_logsumexp({more})"
        for more in ("x", "x, w, 1, return_sign=True", "x, w, [0], True", "x, axis=0, return_sign=True", "x + 1000., w, None, False, True")
    ],
    "contrib.distributions.matrix_diag_transform": [
        _LOG + f"result = {_D}matrix_diag_transform(x[:, :3], {function})" for function in ("tf.exp", "None")
    ],
    "contrib.distributions.tridiag": [
        _LOG + f"result = {_D}tridiag({more})" for more in ("x[0, :3], x[1], x[2, :3]", "below=x[:, :3]", "diag=x, above=w[:, 1:]")
    ],
}  # fmt: skip
