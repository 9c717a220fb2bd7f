"""tf.contrib.distributions.bijectors: both directions, determinants, shapes; distributions made by them; flows."""

_MADE = """
r, tfd = np.random.RandomState(5), tf.contrib.distributions
tfb = tfd.bijectors
x = tf.constant((r.rand(4, 3) * 0.8 + 0.1).astype('f'))
free = tf.constant(r.randn(4, 3).astype('f'))
tril = tf.constant(np.tril(r.randn(3, 3)).astype('f') + 2 * np.eye(3, dtype='f'))
rising = tf.cumsum(x, -1)
shares = tf.constant(r.dirichlet([2.0, 1.5, 3.0], 4).astype('f'))
"""


def _both(made: str, x: str = "x", y: str = "x", events: int = 1, more: str = "") -> str:
    """Both directions and determinants, of arguments that are not results, and of those that are.

    Half a determinant: 1.15's optimizer gives some of those that are fetched themselves the wrong sign.
    """
    return f"""{_MADE}b = tfb.{made}
y = b.forward({x})
result = [
    y, b.inverse({y}), b.forward_log_det_jacobian({x}, {events}) * 0.5, b.inverse_log_det_jacobian({y}, {events}),
    b.inverse(y), b.inverse_log_det_jacobian(y, {events}), b.forward_event_shape_tensor([3]),
    b.inverse_event_shape_tensor([3]), str(b.forward_event_shape([3])), b.name, b.is_constant_jacobian,
    b.forward_min_event_ndims, b.inverse_min_event_ndims{more}
]"""


def _distribution(made: str, value: str, methods: str) -> str:
    parts = [f"d.{m[:-1]}({value})" if m.endswith(":") else f"d.{m}()" for m in methods.split()]
    parts += ["d.batch_shape_tensor()", "d.event_shape_tensor()", "d.sample(seed=3)", "d.sample([2, 3], seed=4)"]
    return f"{_MADE}d = tfd.{made}\nresult = [{', '.join(parts)}]"


_ROTATED = "tf.constant((np.random.RandomState(6).rand(2, 4, 3) + 0.1).astype('f'))"
_STARTED = "kernel_initializer=tf.constant_initializer(0.1)"
VALUES: dict[str, list[str]] = {
    "contrib.distributions.bijectors.Identity": [_both("Identity()"), _both("Identity(True, 'same')", events=0)],
    "contrib.distributions.bijectors.PowerTransform": [
        _both("PowerTransform(0.5)"), _both("PowerTransform(2.0, True)", events=0), _both("PowerTransform()"),
    ],
    "contrib.distributions.bijectors.Exp": [_both("Exp()", "free"), _both("Exp(validate_args=True)", events=0)],
    "contrib.distributions.bijectors.Sigmoid": [_both("Sigmoid()", "free"), _both("Sigmoid(True)", "free", events=0)],
    "contrib.distributions.bijectors.Softplus": [
        _both("Softplus()", "free"), _both("Softplus(0.5, True)", "free", events=0),
    ],
    "contrib.distributions.bijectors.Softsign": [_both("Softsign()", "free"), _both("Softsign(True)", "free", events=0)],
    "contrib.distributions.bijectors.Square": [_both("Square()"), _both("Square(True)", events=0)],
    "contrib.distributions.bijectors.AbsoluteValue": [
        f"{_MADE}b = tfb.AbsoluteValue({more})\nresult = [b.forward(free), b.inverse(x), b.inverse_log_det_jacobian(x, 0)]"
        for more in ("", "True")
    ],
    "contrib.distributions.bijectors.AffineScalar": [
        _both("AffineScalar(0.5, 2.0)"), _both("AffineScalar(scale=-0.5, validate_args=True)", events=0),
        _both("AffineScalar()"),
    ],
    "contrib.distributions.bijectors.SinhArcsinh": [
        _both("SinhArcsinh(0.5, 1.5)", "free", "free"), _both("SinhArcsinh(tailweight=0.5, validate_args=True)", events=0),
        _both("SinhArcsinh(0.1)", "free * 9", "free * 9"),
    ],
    "contrib.distributions.bijectors.Gumbel": [
        _both("Gumbel(0.5, 2.0)", "free"), _both("Gumbel(validate_args=True)", "free", events=0),
    ],
    "contrib.distributions.bijectors.Kumaraswamy": [
        _both("Kumaraswamy(2.0, 0.5)"), _both("Kumaraswamy(0.5, 3.0, True)", events=0),
    ],
    "contrib.distributions.bijectors.Chain": [
        _both("Chain([tfb.Exp(), tfb.AffineScalar(0.5, 2.0)])", "free"),
        _both("Chain([tfb.AffineScalar(1.0), tfb.Affine(scale_tril=tril), tfb.Permute([1, 2, 0])])", "free", "free"),
        _both("Chain()"),
    ],
    "contrib.distributions.bijectors.Invert": [
        _both("Invert(tfb.Exp())", "x", "free"), _both("Invert(tfb.SoftmaxCentered(), name='back')", "shares", "free"),
    ],
    "contrib.distributions.bijectors.Inline": [
        _both("Inline(tf.exp, tf.log, lambda y: -tf.log(y), forward_min_event_ndims=0)", "free"),
        _both("Inline(tf.exp, tf.log, forward_log_det_jacobian_fn=lambda x: x, inverse_min_event_ndims=0, name='e')", "free"),
    ],
    "contrib.distributions.bijectors.Reshape": [
        f"{_MADE}b = tfb.Reshape({shapes})\ny = b.forward(tf.reshape(tf.concat([free, x], 0), [4, 6]))\n"
        "result = [y, b.inverse(y), b.forward_log_det_jacobian(tf.ones([4, 6]), 1), b.forward_event_shape_tensor([6]),\n"
        " b.inverse_event_shape_tensor([2, 3]), str(b.forward_event_shape([6]))]"
        for shapes in ("[2, 3]", "[2, -1], [6], name='n'")
    ],
    "contrib.distributions.bijectors.Permute": [
        _both("Permute([2, 0, 1])", "free", "free"), _both("Permute(tf.constant([1, 0, 2]), True)", "free", "free", 2),
    ],
    "contrib.distributions.bijectors.SoftmaxCentered": [
        _both("SoftmaxCentered()", "free", "shares"), _both("SoftmaxCentered(True)", "free", "shares", 2),
    ],
    "contrib.distributions.bijectors.AffineLinearOperator": [
        _both("AffineLinearOperator(shift=[1.0, 2.0, 3.0])", "free", "free"),
        _both(
            "AffineLinearOperator([1.0, 2.0, 3.0], tf.linalg.LinearOperatorLowerTriangular(tril, is_non_singular=True))",
            "free", "free",
        ),
    ],
    "contrib.distributions.bijectors.Affine": [
        _both("Affine([1.0, 2.0, 3.0], scale_diag=[0.5, 1.0, -2.0])", "free", "free"),
        _both("Affine(scale_identity_multiplier=0.5)", "free", "free"), _both("Affine(scale_tril=tril)", "free", "free", 2),
        _both("Affine(scale_identity_multiplier=0.5, scale_tril=tril, scale_diag=[1.0, 2.0, 0.5])", "free", "free"),
        _both("Affine(scale_diag=[1.0, 2.0, 0.5], scale_perturb_factor=[[1.0], [0.5], [0.2]])", "free", "free"),
    ],
    "contrib.distributions.bijectors.Ordered": [_both("Ordered()", "rising", "free"), _both("Ordered(True)", "rising", "free", 2)],
    "contrib.distributions.bijectors.RealNVP": [
        _both(f"RealNVP(1, tfb.real_nvp_default_template([4], {_STARTED}))", "free", "free"),
        _both(f"RealNVP(2, tfb.real_nvp_default_template([4, 4], True, {_STARTED}))", "free", "free"),
    ],
    "contrib.distributions.bijectors.real_nvp_default_template": [
        f"{_MADE}f = tfb.real_nvp_default_template([5], activation=tf.tanh, {_STARTED})\nresult = [f(x, 2), f(free, 2)]",
        f"{_MADE}f = tfb.real_nvp_default_template([5, 4], shift_only=True, name='n')\nresult = [f(x, 2)[0]]",
    ],
    "contrib.distributions.bijectors.MaskedAutoregressiveFlow": [
        _both("MaskedAutoregressiveFlow(tfb.masked_autoregressive_default_template([6, 6]))", "free", "free"),
        _both(
            "MaskedAutoregressiveFlow(tfb.masked_autoregressive_default_template([6], True), unroll_loop=True, name='m')",
            "free", "free",
        ),
    ],
    "contrib.distributions.bijectors.masked_dense": [
        f"{_MADE}result = [tfb.masked_dense(x, 6, 3), tfb.masked_dense(x, 6, 3, True, activation=tf.tanh, name='n')]",
        f"{_MADE}result = [tfb.masked_dense(free, 3, 3, kernel_initializer=tf.ones_initializer(), use_bias=False)]",
    ],
    "contrib.distributions.bijectors.masked_autoregressive_default_template": [
        f"{_MADE}f = tfb.masked_autoregressive_default_template([6])\nresult = [f(x * 9), f(free * 9)]",
        f"{_MADE}f = tfb.masked_autoregressive_default_template([6, 3], shift_only=True, name='n')\nresult = [f(x)[0]]",
    ],
    "contrib.distributions.bijectors.BatchNormalization": [
        _both("BatchNormalization()", "free", "free"), _both("BatchNormalization(training=False)", "free", "free", 2),
    ],
    "contrib.distributions.TransformedDistribution": [
        _distribution(
            "TransformedDistribution(tfd.Normal(free, 0.5), tfb.Exp())", "x",
            "prob: log_prob: cdf: log_cdf: survival_function: log_survival_function: quantile:",
        ),
        _distribution(
            "TransformedDistribution(tfd.Normal(0.0, 1.0), tfb.Affine([1.0, 2.0, 3.0], scale_tril=tril), [2], [3])", "free[:2]",
            "prob: log_prob: entropy",
        ),
        _distribution(
            "TransformedDistribution(tfd.Normal([0.0, 1.0, 0.0, 2.0], 1.0), tfb.Exp(), event_shape=[3])", _ROTATED,
            "prob: log_prob:",
        ),
        _distribution("TransformedDistribution(tfd.Normal(0.0, 2.0), tfb.AbsoluteValue())", "x", "prob: log_prob:"),
        _distribution("TransformedDistribution(tfd.Uniform(-1.0, x), name='n')", "x * 0.5", "prob: cdf: entropy"),
    ],
}  # fmt: skip
