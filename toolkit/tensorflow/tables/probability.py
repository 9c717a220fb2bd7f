"""tf.distributions."""

HOMES: dict[str, str] = {
    "toolkit.client.distributions.base": """
        distributions.Distribution distributions.ReparameterizationType distributions.FULLY_REPARAMETERIZED
        distributions.NOT_REPARAMETERIZED
    """,
    "toolkit.client.distributions.divergence": "distributions.RegisterKL distributions.kl_divergence",
    "toolkit.client.distributions.location_scale": """
        distributions.Normal distributions.Laplace distributions.StudentT distributions.Uniform
    """,
    "toolkit.client.distributions.gamma": """
        distributions.Gamma distributions.Exponential distributions.Beta distributions.Dirichlet
    """,
    "toolkit.client.distributions.discrete": """
        distributions.Bernoulli distributions.Categorical distributions.Multinomial
        distributions.DirichletMultinomial
    """,
}
