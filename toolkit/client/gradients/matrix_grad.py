"""Gradients of matrix products."""

from __future__ import annotations

from toolkit.client import array_ops, ops
from toolkit.client.gradients.common import conj, shape_of
from toolkit.client.gradients.registry import Gradient, gradient
from toolkit.client.operation import Operation
from toolkit.client.tensor import Tensor


@gradient("MatMul")
def mat_mul(op: Operation, grad: Tensor) -> list[Gradient]:
    """With C = op(A) op(B): dA and dB are products of dC and the other factor, transposed as the case needs."""
    a, b = (conj(x) for x in op.inputs)
    ta, tb = op.get_attr("transpose_a"), op.get_attr("transpose_b")

    def product(left: Tensor, right: Tensor, t_left: bool, t_right: bool) -> Tensor:
        return ops.mat_mul(left, right, transpose_a=t_left, transpose_b=t_right)

    if not ta and not tb:
        return [product(grad, b, False, True), product(a, grad, True, False)]
    if not ta and tb:
        return [product(grad, b, False, False), product(grad, a, True, False)]
    if ta and not tb:
        return [product(b, grad, False, True), product(a, grad, False, False)]
    return [product(b, grad, True, True), product(grad, a, True, True)]


@gradient("BatchMatMul", "BatchMatMulV2", "BatchMatMulV3")
def batch_mat_mul(op: Operation, grad: Tensor) -> list[Gradient]:
    """As MatMul for stacks of matrices; the stacks may have been broadcast."""
    x, y = op.inputs
    ax, ay = op.get_attr("adj_x"), op.get_attr("adj_y")

    def product(left: Tensor, right: Tensor, adj_left: bool, adj_right: bool) -> Tensor:
        return ops.batch_mat_mul_v2(left, right, adj_x=adj_left, adj_y=adj_right)

    if not ax and not ay:
        gx, gy = product(grad, y, False, True), product(x, grad, True, False)
    elif not ax:
        gx, gy = product(grad, y, False, False), product(grad, x, True, False)
    elif not ay:
        gx, gy = product(y, grad, False, True), product(x, grad, False, False)
    else:
        gx, gy = product(y, grad, True, True), product(grad, x, True, True)
    if op.type == "BatchMatMul":
        return [gx, gy]
    batch_x, batch_y = x.shape.slice(0, -2), y.shape.slice(0, -2)
    if batch_x.is_fully_defined and batch_x == batch_y:
        return [gx, gy]
    sx, sy = shape_of(x), shape_of(y)
    rx, ry = ops.broadcast_gradient_args(sx[:-2], sy[:-2])
    return [
        array_ops.reshape(ops.sum(gx, rx), sx),
        array_ops.reshape(ops.sum(gy, ry), sy),
    ]


@gradient("MatrixDiagPart")
def matrix_diag_part(op: Operation, grad: Tensor) -> Gradient:
    x = op.inputs[0]
    sizes = x.shape.slice(-2)
    if sizes.is_fully_defined and sizes[0] == sizes[1]:
        return ops.matrix_diag(grad)
    return ops.matrix_set_diag(array_ops.zeros_like(x), grad)


@gradient("MatrixDiag")
def matrix_diag(op: Operation, grad: Tensor) -> Gradient:
    return ops.matrix_diag_part(grad)


@gradient("MatrixBandPart")
def matrix_band_part(op: Operation, grad: Tensor) -> list[Gradient]:
    return [ops.matrix_band_part(grad, op.inputs[1], op.inputs[2]), None, None]


@gradient("MatrixInverse")
def matrix_inverse(op: Operation, grad: Tensor) -> Gradient:
    """-inv(A)^T dC inv(A)^T (Petersen and Pedersen, The Matrix Cookbook)."""
    inverse = op.outputs[0]
    adjoint = op.get_attr("adjoint")
    inner = ops.batch_mat_mul_v2(grad, inverse, adj_x=adjoint, adj_y=not adjoint)
    return -ops.batch_mat_mul_v2(inverse, inner, adj_x=not adjoint)


@gradient("Cross")
def cross(op: Operation, grad: Tensor) -> list[Gradient]:
    u, v = op.inputs
    return [ops.cross(v, grad), ops.cross(grad, u)]
