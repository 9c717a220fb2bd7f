"""tf.contrib.bayesflow.monte_carlo."""

_MADE = """
r = np.random.RandomState(3)
z = tf.constant(r.randn(50, 3).astype('f'))
p, q = tf.distributions.Normal(0.5, 1.0), tf.distributions.Normal([0.0, 0.2, 1.0], 1.5)
m = tf.contrib.bayesflow.monte_carlo
"""
VALUES: dict[str, list[str]] = {
    "contrib.bayesflow.monte_carlo.expectation_importance_sampler": [
        _MADE + "result = m.expectation_importance_sampler(lambda x: x * x - x, p.log_prob, q, z=z)",
        _MADE + "result = m.expectation_importance_sampler(tf.sin, p.log_prob, q, z=z[:1], name='other')",
    ],
    "contrib.bayesflow.monte_carlo.expectation_importance_sampler_logspace": [
        _MADE + "result = m.expectation_importance_sampler_logspace(lambda x: x, p.log_prob, q, z=z)",
        _MADE + "result = m.expectation_importance_sampler_logspace(lambda x: 2 * x, p.log_prob, q, z=z[:1])",
    ],
    "contrib.bayesflow.monte_carlo.expectation": [
        _MADE + "mu = tf.constant(1.0)\ny = m.expectation(tf.square, z + mu)\nresult = [y] + tf.gradients(y, mu)",
        _MADE + "mu = tf.constant(1.0)\nd = tf.distributions.Normal(mu, 2.0)\n"
        "y = m.expectation(tf.square, z, d.log_prob, use_reparametrization=False, axis=1, keep_dims=True)\n"
        "result = [y] + tf.gradients(y, mu)",
    ],
}
