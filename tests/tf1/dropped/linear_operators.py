"""tf.linalg.LinearOperator and its kinds: what each computes, by TensorFlow 1.15, which later releases have not changed."""

_MADE = """
r, op = np.random.RandomState(10), tf.linalg
m = r.randn(2, 3, 3).astype('f')
spd = tf.constant((m @ m.transpose(0, 2, 1) + np.eye(3)).astype('f'))
m, v, x = tf.constant(m), tf.constant(r.rand(2, 3).astype('f') + 0.5), tf.constant(r.randn(2, 3, 4).astype('f'))
"""
_SHAPES = (
    "[a.shape_tensor(), a.batch_shape_tensor(), a.tensor_rank_tensor(), a.domain_dimension_tensor(), "
    "a.range_dimension_tensor(), a.tensor_rank, a.shape.as_list(), str(a.is_square), str(a.is_non_singular)]"
)
_APPLIED = "[a.to_dense(), a.matmul(x), a.matmul(x, adjoint=True), a.matmul(tf.transpose(x, [0, 2, 1]), adjoint_arg=True), a.matvec(v)]"
_SOLVED = (
    "[a.solve(x), a.solve(x, adjoint=True), a.solvevec(v), a.determinant(), a.log_abs_determinant(), a.inverse().matmul(x), "
    "a.inverse().determinant()]"
)
_REST = "[a.diag_part(), a.trace(), a.add_to_tensor(m), a.H.to_dense(), a.adjoint().matvec(v), a.matmul(a).to_dense()]"


def _all(made: str, solved: bool = True, more: str = "[]") -> str:
    parts = [_SHAPES, _APPLIED, _REST, more, *([_SOLVED] if solved else [])]
    return f"{_MADE}a = op.{made}\nresult = [{', '.join(parts)}]"


VALUES: dict[str, list[str]] = {
    "linalg.LinearOperatorFullMatrix": [
        _all("LinearOperatorFullMatrix(m)"),
        _all("LinearOperatorFullMatrix(spd, True, True, True)", more="[a.cholesky().to_dense()]"),
    ],
    "linalg.LinearOperatorLowerTriangular": [
        _all("LinearOperatorLowerTriangular(spd)"), _all("LinearOperatorLowerTriangular(spd, is_non_singular=True, name='mine')"),
    ],
    "linalg.LinearOperatorDiag": [_all("LinearOperatorDiag(v)"), _all("LinearOperatorDiag(v, is_positive_definite=True)")],
    "linalg.LinearOperatorIdentity": [
        _all("LinearOperatorIdentity(3, [2])", more="[a.cholesky().to_dense()]"), _all("LinearOperatorIdentity(tf.constant(3))"),
    ],
    "linalg.LinearOperatorScaledIdentity": [
        _all("LinearOperatorScaledIdentity(3, v[:, 0])"), _all("LinearOperatorScaledIdentity(3, 2.5, is_positive_definite=True)"),
    ],
    "linalg.LinearOperatorZeros": [_all("LinearOperatorZeros(3, 3, [2])", False), _all("LinearOperatorZeros(3, batch_shape=[2])", False)],
    "linalg.LinearOperatorAdjoint": [
        _all("LinearOperatorAdjoint(op.LinearOperatorLowerTriangular(spd))"), _all("LinearOperatorAdjoint(op.LinearOperatorFullMatrix(m))"),
    ],
    "linalg.LinearOperatorInversion": [
        _all("LinearOperatorInversion(op.LinearOperatorLowerTriangular(spd))"), _all("LinearOperatorInversion(op.LinearOperatorDiag(v))"),
    ],
    "linalg.LinearOperatorComposition": [
        _all("LinearOperatorComposition([op.LinearOperatorDiag(v), op.LinearOperatorLowerTriangular(spd)])"),
        _all("LinearOperatorComposition([op.LinearOperatorFullMatrix(m), op.LinearOperatorDiag(v), op.LinearOperatorFullMatrix(spd)])"),
    ],
}  # fmt: skip
