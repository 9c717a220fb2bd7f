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
    "toolkit.client.distributions.counted": """
        contrib.distributions.Binomial contrib.distributions.Geometric contrib.distributions.NegativeBinomial
        contrib.distributions.Poisson
    """,
    "toolkit.client.distributions.points": """
        contrib.distributions.Deterministic contrib.distributions.VectorDeterministic
    """,
    "toolkit.client.distributions.mixtures": "contrib.distributions.MixtureSameFamily",
    "toolkit.client.distributions.components": """
        contrib.distributions.Mixture contrib.distributions.MultivariateNormalDiagPlusLowRank
    """,
    "toolkit.client.distributions.estimates": """
        contrib.distributions.assign_moving_mean_variance contrib.distributions.assign_log_moving_mean_exp
        contrib.distributions.moving_mean_variance contrib.distributions.percentile
        contrib.distributions.normal_conjugates_known_scale_posterior
        contrib.distributions.normal_conjugates_known_scale_predictive contrib.distributions.reduce_weighted_logsumexp
        contrib.distributions.matrix_diag_transform contrib.distributions.tridiag
    """,
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
    "toolkit.client.distributions.transformed": """
        contrib.distributions.TransformedDistribution contrib.distributions.ConditionalTransformedDistribution
    """,
    "toolkit.client.bijectors.base": """
        contrib.distributions.bijectors.Bijector contrib.distributions.bijectors.ConditionalBijector
    """,
    "toolkit.client.bijectors.elementwise": """
        contrib.distributions.bijectors.Identity contrib.distributions.bijectors.PowerTransform
        contrib.distributions.bijectors.Exp contrib.distributions.bijectors.Sigmoid
        contrib.distributions.bijectors.Softplus contrib.distributions.bijectors.Softsign
        contrib.distributions.bijectors.Square contrib.distributions.bijectors.AbsoluteValue
        contrib.distributions.bijectors.AffineScalar contrib.distributions.bijectors.SinhArcsinh
        contrib.distributions.bijectors.Gumbel contrib.distributions.bijectors.Kumaraswamy
    """,
    "toolkit.client.bijectors.composed": """
        contrib.distributions.bijectors.Chain contrib.distributions.bijectors.Invert
        contrib.distributions.bijectors.Inline contrib.distributions.bijectors.Reshape
    """,
    "toolkit.client.bijectors.vectors": """
        contrib.distributions.bijectors.Permute contrib.distributions.bijectors.SoftmaxCentered
        contrib.distributions.bijectors.AffineLinearOperator contrib.distributions.bijectors.Affine
        contrib.distributions.bijectors.Ordered
    """,
    "toolkit.client.bijectors.flows": """
        contrib.distributions.bijectors.RealNVP contrib.distributions.bijectors.real_nvp_default_template
        contrib.distributions.bijectors.MaskedAutoregressiveFlow contrib.distributions.bijectors.masked_dense
        contrib.distributions.bijectors.masked_autoregressive_default_template
        contrib.distributions.bijectors.BatchNormalization=BatchNormalizationBijector
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
