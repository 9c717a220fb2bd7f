"""tf.distributions; tf.linalg.LinearOperator and its kinds."""

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
    "toolkit.client.linear_operators.base": "linalg.LinearOperator",
    "toolkit.client.linear_operators.dense": "linalg.LinearOperatorFullMatrix linalg.LinearOperatorLowerTriangular",
    "toolkit.client.linear_operators.diagonal": """
        linalg.LinearOperatorDiag linalg.LinearOperatorIdentity linalg.LinearOperatorScaledIdentity
        linalg.LinearOperatorZeros
    """,
    "toolkit.client.linear_operators.composed": """
        linalg.LinearOperatorAdjoint linalg.LinearOperatorInversion linalg.LinearOperatorComposition
    """,
}
