"""Mathematics of tf.contrib: solvers, differential equations, expectations, sparsemax, losses of embeddings."""

HOMES: dict[str, str] = {
    "toolkit.client.losses.metric_learning": """
        contrib.losses.metric_learning.contrastive_loss contrib.losses.metric_learning.lifted_struct_loss
        contrib.losses.metric_learning.npairs_loss contrib.losses.metric_learning.npairs_loss_multilabel
        contrib.losses.metric_learning.triplet_semihard_loss
    """,
    "toolkit.client.nn.sparsemax": "contrib.sparsemax.sparsemax contrib.sparsemax.sparsemax_loss",
    "toolkit.client.images.resampler": "contrib.resampler.resampler",
    "toolkit.client.math.differential_equations": "contrib.integrate.odeint contrib.integrate.odeint_fixed",
    "toolkit.client.linalg.iterative_solvers": """
        contrib.solvers.lanczos.bidiag_matmul contrib.solvers.lanczos.lanczos_bidiag
        contrib.solvers.least_squares.cgls contrib.solvers.linear_equations.conjugate_gradient
        contrib.solvers.util.create_operator contrib.solvers.util.dot contrib.solvers.util.identity_operator
        contrib.solvers.util.l2norm contrib.solvers.util.l2norm_squared contrib.solvers.util.l2normalize
    """,
    "toolkit.client.math.monte_carlo": """
        contrib.bayesflow.monte_carlo.expectation contrib.bayesflow.monte_carlo.expectation_importance_sampler
        contrib.bayesflow.monte_carlo.expectation_importance_sampler_logspace
    """,
}
