"""Linear systems solved by multiplying alone, with matrices as operators (tf.contrib.solvers).

An operator has `shape`, `dtype`, `apply` and `apply_adjoint`; both take and give columns [n, 1].
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

from toolkit.client import ops
from toolkit.client.arrays import array_ops
from toolkit.client.construction.convert import constant, convert_to_tensor
from toolkit.client.construction.scopes import name_scope
from toolkit.client.construction.tensor import Tensor
from toolkit.client.flow.control_flow import cond, while_loop
from toolkit.client.flow.tensor_array import TensorArray
from toolkit.client.linalg import linalg_ops
from toolkit.client.math import math_ops
from toolkit.client.nn import nn_ops
from toolkit.client.random import random_ops
from toolkit.graph import dtypes


class Operator(NamedTuple):
    """A matrix by what it does to columns."""

    shape: Any
    dtype: Any
    apply: Callable[[Tensor], Tensor]
    apply_adjoint: Callable[[Tensor], Tensor]


class Solution(NamedTuple):
    """What iterations have come to: their number, the solution, the residual, the direction, and a norm squared."""

    i: Any
    x: Any
    r: Any
    p: Any
    gamma: Any


class Bidiagonalization(NamedTuple):
    """U [m, k + 1] and V [n, k], and the lower bidiagonal matrix between: its diagonal [k], and what is below [k]."""

    u: Any
    v: Any
    alpha: Any
    beta: Any


def create_operator(matrix: Any) -> Operator:
    """A matrix [m, n] as an operator."""
    return Operator(
        _shape(matrix), matrix.dtype, lambda v: math_ops.matmul(matrix, v),
        lambda v: math_ops.matmul(matrix, v, adjoint_a=True),
    )  # fmt: skip


def identity_operator(matrix: Any) -> Operator:
    """The unit matrix of a matrix's size."""
    return Operator(_shape(matrix), matrix.dtype, lambda v: v, lambda v: v)


def _shape(matrix: Any) -> Any:
    static = matrix.static_shape
    return static.as_list() if static.is_fully_defined else array_ops.shape(matrix)


def dot(x: Any, y: Any) -> Tensor:
    """The product of two vectors, the first conjugate."""
    return math_ops.reduce_sum(ops.conj(x) * y if convert_to_tensor(x).dtype.is_complex else x * y)


def l2norm_squared(v: Any) -> Tensor:
    return constant(2, v.dtype.base_dtype) * nn_ops.l2_loss(v)


def l2norm(v: Any) -> Tensor:
    return math_ops.sqrt(l2norm_squared(v))


def l2normalize(v: Any) -> tuple[Tensor, Tensor]:
    """A vector of length 1 of that direction, and the length."""
    norm = l2norm(v)
    return v / norm, norm


def _iterate(more: Callable[[Solution], Tensor], step: Callable[[Solution], Solution], start: Solution) -> Solution:
    def wanted(*now: Any) -> Tensor:
        return more(Solution._make(now))

    def following(*now: Any) -> Solution:
        return step(Solution._make(now))

    final = Solution._make(while_loop(wanted, following, list(start)))
    flat = [array_ops.squeeze(value) for value in (final.x, final.r, final.p)]
    return Solution(final.i, flat[0], flat[1], flat[2], final.gamma)


def conjugate_gradient(
    operator: Any, rhs: Any, preconditioner: Any = None, x: Any = None, tol: float = 1e-4, max_iter: int = 20,
    name: str = "conjugate_gradient",
) -> Solution:  # fmt: skip
    """Solve A x = rhs for a positive definite A.

    Args:
        operator: A, [n, n].
        rhs: [n].
        preconditioner: an operator that is nearly A's inverse.
        x: where to begin, [n]; None: 0.
        tol: ends where the residual is so much smaller than at first.
    """
    with name_scope(name):
        column = array_ops.expand_dims(rhs, -1)
        guess = array_ops.zeros_like(column) if x is None else array_ops.expand_dims(x, -1)
        residual = column if x is None else column - operator.apply(guess)
        conditioned: Callable[[Any], Any] = (lambda r: r) if preconditioner is None else preconditioner.apply
        direction = conditioned(residual)
        enough = tol * linalg_ops.norm(residual)

        def more(now: Solution) -> Tensor:
            return ops.logical_and(ops.less(now.i, max_iter), ops.greater(linalg_ops.norm(now.r), enough))

        def step(now: Solution) -> Solution:
            product = operator.apply(now.p)
            alpha = now.gamma / dot(now.p, product)
            r = now.r - alpha * product
            q = conditioned(r)
            gamma = dot(r, q)
            return Solution(now.i + 1, now.x + alpha * now.p, r, q + gamma / now.gamma * now.p, gamma)

        return _iterate(
            more, step, Solution(constant(0, dtypes.int32), guess, residual, direction, dot(residual, direction))
        )


def cgls(operator: Any, rhs: Any, tol: float = 1e-6, max_iter: int = 20, name: str = "cgls") -> Solution:
    """The x whose A x is nearest to rhs, by conjugate gradients of the normal equations.

    Args:
        operator: A, [m, n].
        rhs: [m].
        tol: ends where the residual of the normal equations is so much smaller than at first.
    """
    with name_scope(name):
        column = array_ops.expand_dims(rhs, -1)
        direction = operator.apply_adjoint(column)
        gamma = l2norm_squared(direction)
        enough = tol * tol * gamma

        def more(now: Solution) -> Tensor:
            return ops.logical_and(ops.less(now.i, max_iter), ops.greater(now.gamma, enough))

        def step(now: Solution) -> Solution:
            product = operator.apply(now.p)
            alpha = now.gamma / l2norm_squared(product)
            r = now.r - alpha * product
            s = operator.apply_adjoint(r)
            gamma = l2norm_squared(s)
            return Solution(now.i + 1, now.x + alpha * now.p, r, s + gamma / now.gamma * now.p, gamma)

        start = array_ops.zeros_like(direction)
        return _iterate(more, step, Solution(constant(0, dtypes.int32), start, column, direction, gamma))


#: below this share of its length, what is left of a vector is made orthogonal once more (Parlett, "The Symmetric
#: Eigenvalue Problem", 6-9: "twice is enough")
_TWICE = 0.7071


def lanczos_bidiag(
    operator: Any, k: int, orthogonalize: bool = True, starting_vector: Any = None, name: str = "lanczos_bidiag"
) -> Bidiagonalization:
    """k steps of Golub and Kahan's bidiagonalization: A V = U B, from which the largest singular values follow.

    Args:
        operator: A, [m, n].
        orthogonalize: make each vector orthogonal to all before it, which rounding undoes otherwise.
        starting_vector: [m, 1]; None: drawn.
    """
    with name_scope(name):
        dtype = operator.dtype
        if starting_vector is None:
            starting_vector = random_ops.random_uniform(array_ops.stack([operator.shape[0], 1]), -1, 1, dtype=dtype)
        first, _ = l2normalize(convert_to_tensor(starting_vector, dtype))
        first = array_ops.reshape(first, [-1, 1])
        us = _array(dtype, k + 1, "u").write(0, array_ops.squeeze(first, [1]))
        vs, alphas, betas = (_array(dtype, k, what) for what in ("v", "alpha", "beta"))

        def step(i: Any, u: Any, v_before: Any, beta_before: Any, us: Any, vs: Any, alphas: Any, betas: Any) -> Any:
            r = operator.apply_adjoint(u) - beta_before * v_before
            v, alpha = _orthogonal(r, vs, i, orthogonalize)
            p = operator.apply(v) - alpha * u
            following, beta = _orthogonal(p, us, i + 1, orthogonalize)
            following.set_shape(u.static_shape)
            us = us.write(i + 1, array_ops.squeeze(following, [1]))
            vs = vs.write(i, array_ops.squeeze(v, [1]))
            return i + 1, following, v, beta, us, vs, alphas.write(i, alpha), betas.write(i, beta)

        nothing = array_ops.zeros_like(operator.apply_adjoint(first))
        start = [constant(0, dtypes.int32), first, nothing, constant(0, dtype), us, vs, alphas, betas]
        *_, us, vs, alphas, betas = while_loop(lambda i, *_: ops.less(i, k), step, start)
        return Bidiagonalization(
            linalg_ops.matrix_transpose(us.stack()), linalg_ops.matrix_transpose(vs.stack()), alphas.stack(),
            betas.stack(),
        )  # fmt: skip


def _array(dtype: Any, size: int, name: str) -> TensorArray:
    return TensorArray(dtype, size=size, tensor_array_name=name, clear_after_read=False)


def _orthogonal(v: Tensor, basis: TensorArray, count: Any, wanted: bool) -> tuple[Tensor, Tensor]:
    """A vector made orthogonal to the first vectors of a basis, of length 1, and its length before."""
    if not wanted:
        return l2normalize(v)

    def without(j: Any, left: Any) -> Any:
        other = array_ops.expand_dims(basis.read(j), -1)
        found = left - math_ops.matmul(other, left, adjoint_a=True) * other
        found.set_shape(v.static_shape)
        return j + 1, found

    def once() -> tuple[Tensor, Tensor]:
        _, left = while_loop(lambda j, _: ops.less(j, count), without, [constant(0, dtypes.int32), v])
        return l2normalize(left)

    unit, length = once()

    def again() -> tuple[Tensor, Tensor]:
        _, left = while_loop(lambda j, _: ops.less(j, count), without, [constant(0, dtypes.int32), unit * length])
        return l2normalize(left)

    return tuple(cond(ops.less(length, _TWICE * l2norm(v)), again, lambda: (unit, length)))


def bidiag_matmul(matrix: Any, alpha: Any, beta: Any, adjoint_b: bool = False, name: str = "bidiag_matmul") -> Tensor:
    """A matrix times the bidiagonal matrix [k + 1, k] of a diagonal and what is below it, or times its adjoint."""
    with name_scope(name):
        matrix = convert_to_tensor(matrix)
        if not adjoint_b:
            return matrix[:, :-1] * array_ops.expand_dims(alpha, 0) + matrix[:, 1:] * array_ops.expand_dims(beta, 0)
        shifted = matrix[:, :-1] * array_ops.expand_dims(beta[:-1], 0)
        column = array_ops.zeros_like(matrix[:, :1])
        return matrix * array_ops.expand_dims(alpha, 0) + array_ops.concat([column, shifted], 1)
