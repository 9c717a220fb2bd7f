"""tf.contrib.solvers and tf.contrib.integrate."""

_MATRIX = """
r = np.random.RandomState(%d)
a = r.randn(7, 4)
b = tf.constant(r.randn(%d))
s = tf.contrib.solvers
%s
"""
_SQUARE = "op = s.util.create_operator(tf.constant(a.T.dot(a)))\n"
_TALL = "op = s.util.create_operator(tf.constant(a))\n"
_ODE = """
y0 = tf.constant(%s)
i = tf.contrib.integrate
y = %s
result = [y] + tf.gradients(y, y0)
"""
_TURN = "lambda y, t: tf.stack([y[1], -y[0] * (1 + 0.1 * tf.cast(t, y.dtype))])"
_DECAY = "lambda y, t: -y + tf.cast(tf.sin(t), y.dtype)"
VALUES: dict[str, list[str]] = {
    "contrib.solvers.linear_equations.conjugate_gradient": [
        _MATRIX % (1, 4, _SQUARE + "result = list(s.linear_equations.conjugate_gradient(op, b))[:2]"),
        _MATRIX % (2, 4, _SQUARE + "x = tf.ones([4], tf.float64)\n"
                   "result = list(s.linear_equations.conjugate_gradient(op, b, x=x, max_iter=2))"),
        _MATRIX % (3, 4, _SQUARE + "p = s.util.create_operator(tf.matrix_inverse(tf.constant(a.T.dot(a) + np.eye(4))))\n"
                   "result = list(s.linear_equations.conjugate_gradient(op, b, p, tol=1e-6))[:2]"),
    ],
    "contrib.solvers.least_squares.cgls": [
        _MATRIX % (1, 7, _TALL + "result = list(s.least_squares.cgls(op, b, max_iter=3))"),
        _MATRIX % (2, 7, _TALL + "result = list(s.least_squares.cgls(op, b, tol=1e-3))[:2]"),
    ],
    "contrib.solvers.lanczos.lanczos_bidiag": [
        _MATRIX % (1, 7, _TALL + f"d = s.lanczos.lanczos_bidiag(op, 3, {more}starting_vector=b[:, None])\nresult = list(d)")
        for more in ("", "orthogonalize=False, ")
    ],
    "contrib.solvers.lanczos.bidiag_matmul": [
        _MATRIX % (1, 3, "m = tf.constant(a)\nresult = s.lanczos.bidiag_matmul(m, b, b * 2)"),
        _MATRIX % (2, 4, "m = tf.constant(a)\nresult = s.lanczos.bidiag_matmul(m, b, b * 2, adjoint_b=True)"),
    ],
    "contrib.solvers.util.create_operator": [
        _MATRIX % (1, 7, _TALL + "result = [op.apply_adjoint(b[:, None]), tf.convert_to_tensor(op.shape)]"),
        _MATRIX % (2, 4, _TALL + "result = op.apply(b[:, None])"),
    ],
    "contrib.solvers.util.identity_operator": [
        _MATRIX % (1, 4, f"result = s.util.identity_operator(tf.constant(a)).{what}(b)") for what in ("apply", "apply_adjoint")
    ],
    "contrib.solvers.util.dot": [
        _MATRIX % (1, 4, "result = s.util.dot(b, b * b)"),
        _MATRIX % (1, 4, "c = tf.complex(b, b * b)\nresult = tf.abs(s.util.dot(c, c * c))"),
    ],
    "contrib.solvers.util.l2norm": [_MATRIX % (seed, 4, "result = s.util.l2norm(b)") for seed in (1, 2)],
    "contrib.solvers.util.l2norm_squared": [_MATRIX % (seed, 4, "result = s.util.l2norm_squared(b)") for seed in (1, 2)],
    "contrib.solvers.util.l2normalize": [_MATRIX % (seed, 4, "result = list(s.util.l2normalize(b))") for seed in (1, 2)],
    "contrib.integrate.odeint": [
        _ODE % ("[1.0, 0.5]", f"i.odeint({_TURN}, y0, [0.0, 0.3, 1.0, 4.0], rtol=1e-3)"),
        _ODE % ("[1.0, 0.5, -1.0], tf.float64", f"i.odeint({_DECAY}, y0, np.linspace(0, 3, 5))"),
        (
            "i = tf.contrib.integrate\ny0 = tf.constant(1 + 0j, tf.complex128)\n"
            "y, info = i.odeint(lambda y, t: 1j * y, y0, [0.0, 1.0, 2.0], full_output=True)\n"
            "result = [tf.real(y), tf.imag(y), info['num_func_evals'], info['integrate_points'], info['error_ratio']]"
        ),
        _ODE % ("[1.0, 0.5]", f"i.odeint({_TURN}, y0, [0.0, 0.3, 5.0], 1e-4, method='dopri5', options={{'first_step': 0.2, 'dfactor': 0.5}})"),
    ],
    "contrib.integrate.odeint_fixed": [
        _ODE % ("[1.0, 0.5]", f"i.odeint_fixed({_TURN}, y0, [0.0, 0.3, 1.0, 4.0])"),
        _ODE % ("[1.0, 0.5], tf.float64", f"i.odeint_fixed({_DECAY}, y0, np.linspace(0, 3, 5), 0.25 * np.ones(4), 'midpoint')"),
        _ODE % ("[1.0, 0.5]", f"i.odeint_fixed({_TURN}, y0, [0.0, 1.0, 1.5], [0.3, 0.2], method='rk4')"),
    ],
}  # fmt: skip
