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
    "toolkit.client.distributions.heavier_tails": """
        contrib.distributions.Logistic contrib.distributions.Cauchy contrib.distributions.HalfNormal
    """,
    "toolkit.client.distributions.counted": "contrib.distributions.Poisson contrib.distributions.Geometric",
    "toolkit.client.distributions.one_hot": """
        contrib.distributions.OneHotCategorical contrib.distributions.ExpRelaxedOneHotCategorical
        contrib.distributions.RelaxedOneHotCategorical contrib.distributions.RelaxedBernoulli
    """,
    "toolkit.client.distributions.inverse_gamma": """
        contrib.distributions.InverseGamma contrib.distributions.InverseGammaWithSoftplusConcentrationRate
    """,
    "toolkit.client.distributions.joined": "contrib.distributions.Independent contrib.distributions.fill_triangular",
    "toolkit.client.distributions.normal_vectors": """
        contrib.distributions.MultivariateNormalDiag contrib.distributions.MultivariateNormalDiagWithSoftplusScale
        contrib.distributions.MultivariateNormalTriL contrib.distributions.MultivariateNormalFullCovariance
    """,
    "toolkit.client.distributions.softplus_parameters": """
        contrib.distributions.NormalWithSoftplusScale contrib.distributions.LaplaceWithSoftplusScale
        contrib.distributions.StudentTWithAbsDfSoftplusScale contrib.distributions.GammaWithSoftplusConcentrationRate
        contrib.distributions.ExponentialWithSoftplusRate contrib.distributions.BetaWithSoftplusConcentration
        contrib.distributions.Chi2 contrib.distributions.Chi2WithAbsDf contrib.distributions.softplus_inverse
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
