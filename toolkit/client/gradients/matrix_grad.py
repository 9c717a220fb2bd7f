"""Gradients of matrix products."""

from __future__ import annotations

from typing import Any

import numpy as np

from toolkit.client import ops
from toolkit.client.arrays import array_ops
from toolkit.client.construction.convert import constant
from toolkit.client.construction.operation import Operation
from toolkit.client.construction.tensor import Tensor
from toolkit.client.gradients.common import conj, shape_of
from toolkit.client.gradients.registry import Gradient, gradient
from toolkit.client.math import math_ops


@gradient("MatMul")
def mat_mul(op: Operation, grad: Tensor) -> list[Gradient]:
    """With C = op(A) op(B): dA and dB are products of dC and the other factor, transposed as the case needs."""
    a, b = (conj(x) for x in op.inputs)
    ta, tb = op.get_attr("transpose_a"), op.get_attr("transpose_b")

    def for_a(left: Tensor, right: Tensor, t_left: bool, t_right: bool) -> Tensor:
        return ops.mat_mul(left, right, transpose_a=t_left, transpose_b=t_right, grad_a=True)

    def for_b(left: Tensor, right: Tensor, t_left: bool, t_right: bool) -> Tensor:
        return ops.mat_mul(left, right, transpose_a=t_left, transpose_b=t_right, grad_b=True)

    if not ta and not tb:
        return [for_a(grad, b, False, True), for_b(a, grad, True, False)]
    if not ta and tb:
        return [for_a(grad, b, False, False), for_b(grad, a, True, False)]
    if ta and not tb:
        return [for_a(b, grad, False, True), for_b(a, grad, False, False)]
    return [for_a(b, grad, True, True), for_b(grad, a, True, True)]


@gradient("BatchMatMul", "BatchMatMulV2", "BatchMatMulV3")
def batch_mat_mul(op: Operation, grad: Tensor) -> list[Gradient]:
    """As MatMul for stacks of matrices; the stacks may have been broadcast."""
    x, y = op.inputs
    ax, ay = op.get_attr("adj_x"), op.get_attr("adj_y")

    marks = op.type != "BatchMatMul"  # later versions say which gradient a product is

    def for_x(left: Tensor, right: Tensor, adj_left: bool, adj_right: bool) -> Tensor:
        return ops.batch_mat_mul_v2(left, right, adj_x=adj_left, adj_y=adj_right, grad_x=marks, name="MatMul")

    def for_y(left: Tensor, right: Tensor, adj_left: bool, adj_right: bool) -> Tensor:
        return ops.batch_mat_mul_v2(left, right, adj_x=adj_left, adj_y=adj_right, grad_y=marks, name="MatMul")

    if not ax and not ay:
        gx, gy = for_x(grad, y, False, True), for_y(x, grad, True, False)
    elif not ax:
        gx, gy = for_x(grad, y, False, False), for_y(grad, x, True, False)
    elif not ay:
        gx, gy = for_x(y, grad, False, True), for_y(x, grad, False, False)
    else:
        gx, gy = for_x(y, grad, True, True), for_y(grad, x, True, True)
    if op.type == "BatchMatMul":
        return [gx, gy]
    return unbatched(x, y, gx, gy)


def unbatched(x: Tensor, y: Tensor, gx: Tensor, gy: Tensor) -> list[Gradient]:
    """Gradients of matrices whose batches were broadcast: sums over what was repeated."""
    batch_x, batch_y = x.static_shape.slice(0, -2), y.static_shape.slice(0, -2)
    if x.static_shape.rank == y.static_shape.rank == 2:
        return [gx, gy]
    if batch_x.is_fully_defined and batch_x == batch_y:
        return [gx, gy]
    sx, sy = shape_of(x), shape_of(y)
    rx, ry = ops.broadcast_gradient_args(sx[:-2], sy[:-2])
    gx = array_ops.reshape(ops.sum(gx, rx), sx)
    return [gx, array_ops.reshape(ops.sum(gy, ry), sy)]


@gradient("MatrixDiagPart")
def matrix_diag_part(op: Operation, grad: Tensor) -> Gradient:
    x = op.inputs[0]
    sizes = x.static_shape.slice(-2)
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
    if adjoint:
        return -math_ops.matmul(inverse, math_ops.matmul(grad, inverse, adjoint_a=True))
    return -math_ops.matmul(inverse, math_ops.matmul(grad, inverse, adjoint_b=True), adjoint_a=True)


@gradient("Cross")
def cross(op: Operation, grad: Tensor) -> list[Gradient]:
    u, v = op.inputs
    return [ops.cross(v, grad), ops.cross(grad, u)]


@gradient("SparseMatMul")
def sparse_mat_mul(op: Operation, grad: Tensor) -> list[Gradient]:
    """As MatMul; which factor has many zeros is told again, and the types are those of the inputs."""
    a, b = op.inputs
    ta, tb = op.get_attr("transpose_a"), op.get_attr("transpose_b")
    sparse = {
        id(a): op.get_attr("a_is_sparse"),
        id(b): op.get_attr("b_is_sparse"),
        id(grad): grad.op.type == "ReluGrad",
    }

    def product(left: Tensor, right: Tensor, like: Tensor, t_left: bool, t_right: bool) -> Tensor:
        is_sparse = sparse[id(left)], sparse[id(right)]
        if t_right:
            right = array_ops.transpose(right)
        made = ops.sparse_mat_mul(left, right, transpose_a=t_left, a_is_sparse=is_sparse[0], b_is_sparse=is_sparse[1])
        return math_ops.cast(made, like.dtype.base)

    if not ta and not tb:
        return [product(grad, b, a, False, True), product(a, grad, b, True, False)]
    if not ta and tb:
        return [product(grad, b, a, False, False), product(grad, a, b, True, False)]
    if ta and not tb:
        return [product(b, grad, a, False, True), product(a, grad, b, False, False)]
    return [product(b, grad, a, True, True), product(grad, a, b, True, True)]


# -- diagonals --------------------------------------------------------------------------------------------


@gradient("Diag")
def diag(op: Operation, grad: Tensor) -> Gradient:
    return ops.diag_part(grad)


@gradient("DiagPart")
def diag_part(op: Operation, grad: Tensor) -> Gradient:
    return ops.diag(grad)


def _alignment(op: Operation) -> dict[str, Any]:
    """V3 has an attribute where V2 always aligned to the left."""
    return {"align": op.get_attr("align") if op.type.endswith("V3") else "LEFT_LEFT"}


@gradient("MatrixDiagV2", "MatrixDiagV3")
def matrix_diag_v2(op: Operation, grad: Tensor) -> list[Gradient]:
    k = op.inputs[1]
    zero = constant(np.array(0, grad.dtype.base.numpy))
    return [ops.matrix_diag_part_v3(grad, k, zero, **_alignment(op)), None, None, None, None]


@gradient("MatrixDiagPartV2", "MatrixDiagPartV3")
def matrix_diag_part_v2(op: Operation, grad: Tensor) -> list[Gradient]:
    """Zeros with the gradient on the diagonals."""
    x, k, _ = op.inputs
    return [ops.matrix_set_diag_v3(array_ops.zeros_like(x), grad, k, **_alignment(op)), None, None]


@gradient("MatrixSetDiag")
def matrix_set_diag(op: Operation, grad: Tensor) -> list[Gradient]:
    diagonal = op.inputs[1]
    return [ops.matrix_set_diag(grad, array_ops.zeros_like(diagonal)), ops.matrix_diag_part(grad)]


@gradient("MatrixSetDiagV2", "MatrixSetDiagV3")
def matrix_set_diag_v2(op: Operation, grad: Tensor) -> list[Gradient]:
    _, diagonal, k = op.inputs
    zero = constant(np.array(0, grad.dtype.base.numpy))
    rest = ops.matrix_set_diag_v3(grad, array_ops.zeros_like(diagonal), k, **_alignment(op))
    return [rest, ops.matrix_diag_part_v3(grad, k, zero, **_alignment(op)), None]
