"""tf.distributions."""

CALLS: dict[str, list[str]] = {
    "distributions.kl_divergence": [
        "tf.distributions.kl_divergence(tf.distributions.Normal(f(3), 1.0), tf.distributions.Normal(0.0, f(3)))",
        "tf.distributions.kl_divergence(tf.distributions.Bernoulli(f(3)), tf.distributions.Bernoulli(f(3)), name='k')",
        "tf.distributions.kl_divergence(tf.distributions.Categorical(f(2, 3)), tf.distributions.Categorical(f(2, 3)))",
    ],
}
