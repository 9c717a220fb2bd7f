"""Functions of whole matrices: exponential, rank, pseudo-inverse, least squares, solutions from LU decompositions."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from toolkit.client import ops
from toolkit.client.arrays import array_ops
from toolkit.client.checks.assertions import assert_equal, assert_rank, assert_rank_at_least
from toolkit.client.construction.convert import constant, convert_to_tensor
from toolkit.client.construction.scopes import control_dependencies, name_scope
from toolkit.client.construction.tensor import Tensor, TensorLike
from toolkit.client.flow.control_flow import cond, while_loop
from toolkit.client.flow.functional_ops import map_fn
from toolkit.client.linalg import linalg_ops
from toolkit.client.math import math_ops
from toolkit.errors import ArgumentTypeError, ArgumentValueError
from toolkit.graph import dtypes
from toolkit.graph.dtypes import DType
from toolkit.graph.shape import Shape

# -- exponential ---------------------------------------------------------------------------------------------------

#: coefficients of the numerators of Pade approximants by degree, constant term first (Higham, "The scaling and squaring
#: method for the matrix exponential revisited", 2005); of 13 without the leading one
_PADE = {
    3: (120.0, 60.0, 12.0),
    5: (30240.0, 15120.0, 3360.0, 420.0, 30.0),
    7: (17297280.0, 8648640.0, 1995840.0, 277200.0, 25200.0, 1512.0, 56.0),
    9: (17643225600.0, 8821612800.0, 2075673600.0, 302702400.0, 30270240.0, 2162160.0, 110880.0, 3960.0, 90.0),
    13: (
        64764752532480000.0, 32382376266240000.0, 7771770303897600.0, 1187353796428800.0, 129060195264000.0,
        10559470521600.0, 670442572800.0, 33522128640.0, 1323241920.0, 40840800.0, 960960.0, 16380.0, 182.0,
    ),
}  # fmt: skip
#: up to which norm each degree but the last is exact, and the norm that is halved until it holds for the last
_SINGLE = ((3, 5, 7), (4.258730016922831e-001, 1.880152677804762e000), 3.925724783138660)
_DOUBLE = (
    (3, 5, 7, 9, 13),
    (1.495585217958292e-002, 2.539398330063230e-001, 9.504178996162932e-001, 2.097847961257068e000),
    5.371920351148152,
)


def expm(input: TensorLike, name: str | None = None) -> Tensor:
    """The exponential of matrices [..., n, n], by Pade approximants of which the norm chooses one, and squaring.

    Raises:
        ValueError: the type is no floating-point or complex one.
    """
    with name_scope(name, "matrix_exponential", [input]):
        given = convert_to_tensor(input, name="input")
        shape = given.static_shape
        if shape.rank is not None and tuple(shape.slice(-2)) == (0, 0):
            return given
        kind = given.dtype.base
        if kind.kind not in "fc" or kind is dtypes.bfloat16:
            raise ArgumentValueError(f"the exponential is of matrices of floating-point or complex numbers, not {kind}")
        batch = shape.slice(0, -2) if shape.rank is not None else shape
        outer: Any = batch if batch.is_fully_defined else array_ops.shape(given)[:-2]
        matrix = array_ops.reshape(given, array_ops.concat(([-1], array_ops.shape(given)[-2:]), 0))
        norm = _largest_column(matrix)
        degrees, limits, most = _SINGLE if kind in (dtypes.float16, dtypes.float32, dtypes.complex64) else _DOUBLE
        real = norm.dtype.base
        bound = constant(most, real)
        halvings = ops.maximum(ops.floor(ops.log(norm / bound) / ops.log(constant(2.0, real))), 0.0)
        pairs = [_pade(matrix, degree) for degree in degrees[:-1]]
        scaled = matrix / math_ops.cast(math_ops.pow(constant(2.0, real), halvings), kind)
        pairs.append(_pade(scaled, degrees[-1]))
        odd, even = (_by_norm(norm, limits, [pair[part] for pair in pairs]) for part in (0, 1))
        is_finite = ops.is_finite(math_ops.reduce_max(norm))
        nothing = constant(np.nan, kind)
        result = cond(
            is_finite,
            lambda: ops.matrix_solve(-odd + even, odd + even),
            lambda: ops.fill(array_ops.shape(matrix), nothing),
        )
        squared = _squared(result, halvings, is_finite)
        if not matrix.static_shape.is_fully_defined:
            whole: Any = array_ops.concat((outer, array_ops.shape(squared)[-2:]), 0)
            return array_ops.reshape(squared, whole)
        return array_ops.reshape(squared, [*batch, *squared.static_shape.slice(-2)])


def _largest_column(matrix: Tensor) -> Tensor:
    """The 1-norm of each matrix, as [batch, 1, 1]."""
    sizes = math_ops.abs(matrix)
    rows = array_ops.size(array_ops.shape(matrix)) - 2
    return math_ops.reduce_max(math_ops.reduce_sum(sizes, rows), -1)[..., None, None]


def _pade(matrix: Tensor, degree: int) -> tuple[Tensor, Tensor]:
    """Odd and even part of the approximant's numerator."""
    factors = [constant(factor, matrix.dtype.base) for factor in _PADE[degree]]
    sizes = array_ops.shape(matrix)
    identity = linalg_ops.eye(sizes[-2], batch_shape=array_ops.shape(matrix)[:-2], dtype=matrix.dtype.base)
    powers = [identity, math_ops.matmul(matrix, matrix)]
    for _ in range(2 if degree == 13 else (degree - 3) // 2):
        powers.append(math_ops.matmul(powers[-1], powers[1]))
    if degree == 13:
        return _pade_of_thirteen(matrix, factors, powers)
    odd: Any = powers[-1]
    for power in range(len(powers) - 2, -1, -1):
        odd = odd + factors[2 * power + 1] * powers[power]
    odd = math_ops.matmul(matrix, odd)
    even: Any = factors[2 * len(powers) - 2] * powers[-1]
    for power in range(len(powers) - 2, -1, -1):
        even = even + factors[2 * power] * powers[power]
    return odd, even


def _pade_of_thirteen(matrix: Tensor, factors: Sequence[Tensor], powers: Sequence[Tensor]) -> tuple[Tensor, Tensor]:
    """With six products: the higher half of the powers has the sixth in common."""
    one, second, fourth, sixth = powers
    high: Any = sixth + factors[11] * fourth + factors[9] * second
    odd: Any = math_ops.matmul(sixth, high)
    odd = odd + factors[7] * sixth + factors[5] * fourth + factors[3] * second + factors[1] * one
    odd = math_ops.matmul(matrix, odd)
    high = factors[12] * sixth + factors[10] * fourth + factors[8] * second
    even: Any = math_ops.matmul(sixth, high)
    even = even + factors[6] * sixth + factors[4] * fourth + factors[2] * second + factors[0] * one
    return odd, even


def _by_norm(norm: Tensor, limits: Sequence[float], cases: Sequence[Tensor]) -> Tensor:
    is_below = ops.less(norm, constant(limits[0], norm.dtype.base))
    other = cases[1] if len(limits) == 1 else _by_norm(norm, limits[1:], cases[1:])
    return array_ops.where_v2(is_below, cases[0], other)


def _squared(result: Tensor, times: Tensor, is_finite: Tensor) -> Tensor:
    """Each matrix squared as often as it was halved."""
    most = math_ops.reduce_max(times)
    first = constant(0.0, times.dtype.base)

    def goes_on(i: Tensor, _: Tensor) -> Tensor:
        return cond(is_finite, lambda: ops.less(i, most), lambda: constant(False))

    def step(i: Tensor, matrix: Tensor) -> tuple[Any, Tensor]:
        return i + 1, array_ops.where_v2(ops.less(i, times), math_ops.matmul(matrix, matrix), matrix)

    return while_loop(goes_on, step, [first, result])[1]


# -- rank and inverses of any matrix ---------------------------------------------------------------------------------


def _checked(a: Tensor, validate_args: bool) -> Tensor:
    """A matrix of floats, as far as that is known.

    Raises:
        TypeError: other numbers.
        ValueError: no matrix.
    """
    if not a.dtype.base.is_floating:
        raise ArgumentTypeError(f"a: expected a matrix of floating-point numbers, got {a.dtype.base}")
    rank = a.static_shape.rank
    if rank is not None and rank < 2:
        raise ArgumentValueError(f"a: expected a matrix, got a tensor of shape {a.static_shape}")
    if rank is None and validate_args:
        with control_dependencies([assert_rank_at_least(a, 2, message="a has to be a matrix")]):
            return array_ops.identity(a)
    return a


def matrix_rank(a: TensorLike, tol: Any = None, validate_args: bool = False, name: str | None = None) -> Tensor:
    """int32 [...]: how many singular values are above `tol` (default: what rounding leaves of zero).

    Raises:
        TypeError, ValueError: `a` is no matrix of floating-point numbers.
    """
    with name_scope(name or "matrix_rank"):
        a = _checked(convert_to_tensor(a, name="a"), validate_args)
        values = linalg_ops.svd(a, compute_uv=False)
        if tol is None:
            sizes = a.static_shape.slice(-2) if a.static_shape.rank is not None else Shape(None)
            known = sizes.is_fully_defined
            most: Any = np.max(sizes.as_list()) if known else math_ops.reduce_max(array_ops.shape(a)[-2:])
            tol = np.finfo(a.dtype.base.numpy).eps * math_ops.cast(most, a.dtype.base)
            tol = tol * math_ops.reduce_max(values, -1, keepdims=True)
        return math_ops.reduce_sum(math_ops.cast(values > tol, dtypes.int32), -1)


def pinv(a: TensorLike, rcond: Any = None, validate_args: bool = False, name: str | None = None) -> Tensor:
    """The Moore-Penrose inverse [..., n, m] of matrices [..., m, n].

    Args:
        rcond: singular values below this part of the largest count as zero.

    Raises:
        TypeError, ValueError: `a` is no matrix of floating-point numbers.
    """
    with name_scope(name or "pinv"):
        a = _checked(convert_to_tensor(a, name="a"), validate_args)
        kind = a.dtype.base
        if rcond is None:
            rows, columns = _size(a, -2), _size(a, -1)
            both = isinstance(rows, int) and isinstance(columns, int)
            most = float(max(rows, columns)) if both else math_ops.cast(ops.maximum(rows, columns), kind)
            rcond = 10.0 * most * np.finfo(kind.numpy).eps
        part = convert_to_tensor(rcond, kind, name="rcond")
        values, left, right = linalg_ops.svd(a, full_matrices=False, compute_uv=True)
        limit: Any = part * math_ops.reduce_max(values, -1)
        infinite = np.array(np.inf, kind.numpy)
        values = array_ops.where_v2(values > array_ops.expand_dims(limit, -1), values, infinite)
        inverse = math_ops.matmul(right / array_ops.expand_dims(values, -2), left, adjoint_b=True)
        if a.static_shape.rank is not None:
            *batch, rows, columns = a.static_shape
            inverse.set_shape([*batch, columns, rows])
        return inverse


def _size(x: Tensor, axis: int) -> Any:
    """A size, as a number where it is known."""
    known = x.static_shape[axis] if x.static_shape.rank is not None else None
    return array_ops.shape(x)[axis] if known is None else known


# -- least squares ---------------------------------------------------------------------------------------------------

#: matrices of more bytes than this, in batches larger than their smaller size, are solved one by one by one operation
_CACHED_BYTES = 256000


def least_squares(
    matrix: TensorLike, rhs: TensorLike, l2_regularizer: Any = 0.0, fast: bool = True, name: str | None = None
) -> Tensor:
    """X [..., n, k] that makes |matrix X - rhs|^2 + l2_regularizer |X|^2 least; of least norm where several do.

    Args:
        fast: by the Cholesky factor of the smaller of the two products of the matrix with its adjoint; else by a
            complete orthogonal decomposition, which holds for singular matrices, too.

    Raises:
        NotImplementedError: complex128 with a regularizer.
    """
    matrix = convert_to_tensor(matrix, name="matrix")
    is_plain = not isinstance(l2_regularizer, Tensor) and l2_regularizer == 0
    if matrix.dtype.base is dtypes.complex128 and not is_plain:
        raise NotImplementedError("least squares of complex128 take no l2_regularizer; leave it 0")
    shape = matrix.static_shape
    if not fast or (shape.is_fully_defined and _is_large(shape, matrix.dtype.base)):
        return ops.matrix_solve_ls(matrix, rhs, l2_regularizer, fast=fast, name=name)
    with name_scope(name, "matrix_solve_ls", [matrix, rhs, l2_regularizer]):

        def tall() -> Tensor:
            factor = _gram_factor(matrix, l2_regularizer, True)
            return linalg_ops.cholesky_solve(factor, math_ops.matmul(matrix, rhs, adjoint_a=True))

        def wide() -> Tensor:
            factor = _gram_factor(matrix, l2_regularizer, False)
            return math_ops.matmul(matrix, linalg_ops.cholesky_solve(factor, rhs), adjoint_a=True)

        sizes = shape.slice(-2) if shape.rank is not None else shape
        if sizes.is_fully_defined:
            rows, columns = sizes.as_list()
            return tall() if rows >= columns else wide()
        found = array_ops.shape(matrix)[-2:]
        return cond(found[-2] >= found[-1], tall, wide)


def _is_large(shape: Shape, kind: DType) -> bool:
    *batch, rows, columns = shape.as_list()
    count = int(np.prod(batch, dtype=np.int64))
    return count * rows * columns * np.dtype(kind.numpy).itemsize > _CACHED_BYTES and count > min(rows, columns)


def _gram_factor(matrix: Tensor, regularizer: Any, is_tall: bool) -> Tensor:
    gram: Any = math_ops.matmul(matrix, matrix, adjoint_a=is_tall, adjoint_b=not is_tall)
    if isinstance(regularizer, Tensor) or regularizer != 0:
        sizes = array_ops.shape(matrix)
        batch = sizes[:-2]
        axis = -1 if is_tall else -2
        identity = linalg_ops.eye(sizes[axis], batch_shape=batch, dtype=matrix.dtype.base)
        shape = matrix.static_shape
        if shape.rank is not None:
            identity.set_shape([*shape.slice(0, -2), shape[axis], shape[axis]])
        gram += regularizer * identity
    return ops.cholesky(gram)


# -- from LU decompositions ------------------------------------------------------------------------------------------


def _decomposition(lower_upper: TensorLike, perm: TensorLike) -> tuple[Tensor, Tensor]:
    return convert_to_tensor(lower_upper, name="lower_upper"), convert_to_tensor(perm, name="perm")


def _asserted(checks: list[Any], tensors: list[Tensor]) -> list[Tensor]:
    if not checks:
        return tensors
    with control_dependencies(checks):
        return [array_ops.identity(tensor) for tensor in tensors]


def _check_decomposition(lower_upper: Tensor, perm: Tensor, validate_args: bool) -> list[Any]:
    """Operations that check what is not known yet.

    Raises:
        ValueError: the two are no decomposition of square matrices.
    """
    checks: list[Any] = []
    shape, rows = lower_upper.static_shape, perm.static_shape.rank
    if shape.rank is not None and shape.rank < 2:
        raise ArgumentValueError(f"lower_upper: expected matrices, got shape {shape}")
    if validate_args:
        checks.append(assert_rank_at_least(lower_upper, 2, message="lower_upper has to be a matrix"))
    if shape.rank is not None and rows is not None and shape.rank != rows + 1:
        raise ArgumentValueError(f"perm: expected rank {shape.rank - 1}, one below lower_upper's, got {rows}")
    if (shape.rank is None or rows is None) and validate_args:
        message = "perm has to have one rank less than lower_upper"
        checks.append(assert_rank(lower_upper, array_ops.rank(perm) + 1, message=message))
    if shape.rank is not None and shape.slice(0, -2).is_fully_defined:
        if shape[-2] != shape[-1]:
            raise ArgumentValueError(f"lower_upper: expected square matrices, got shape {shape}")
    elif validate_args:
        m, n = array_ops.split(array_ops.shape(lower_upper)[-2:], 2)
        checks.append(assert_equal(m, n, message="lower_upper has to be square"))
    return checks


def _unit_lower(lower_upper: Tensor, sizes: Callable[[], Tensor]) -> Tensor:
    """The lower factor, whose diagonal of ones is not stored."""
    below = ops.matrix_band_part(lower_upper, -1, 0)
    ones = array_ops.ones(sizes()[:-1], lower_upper.dtype.base)
    return ops.matrix_set_diag_v3(below, ones, 0, align="RIGHT_LEFT", name="set_diag")


def lu_solve(
    lower_upper: TensorLike, perm: TensorLike, rhs: TensorLike, validate_args: bool = False, name: str | None = None
) -> Tensor:
    """X [..., n, k] with A X = rhs, from the decomposition (`tf.linalg.lu`) of A [..., n, n].

    Raises:
        ValueError: sizes do not fit.
    """
    with name_scope(name or "lu_solve"):
        lower_upper, perm = _decomposition(lower_upper, perm)
        rhs = convert_to_tensor(rhs, name="rhs")
        checks = _check_decomposition(lower_upper, perm, validate_args)
        if rhs.static_shape.rank is not None and rhs.static_shape.rank < 2:
            raise ArgumentValueError(f"rhs: expected matrices, got shape {rhs.static_shape}")
        if rhs.static_shape.rank is None and validate_args:
            checks.append(assert_rank_at_least(rhs, 2, message="rhs has to be a matrix"))
        known = [x.static_shape[axis] if x.static_shape.rank else None for x, axis in ((lower_upper, -1), (rhs, -2))]
        if None not in known and known[0] != known[1]:
            raise ArgumentValueError(f"rhs: expected {known[0]} rows, as many as lower_upper has, got {known[1]}")
        if None in known and validate_args:
            message = "rhs has to have as many rows as lower_upper"
            sizes = array_ops.shape(lower_upper)[-1], array_ops.shape(rhs)[-2]
            checks.append(assert_equal(*sizes, message=message))
        lower_upper, perm, rhs = _asserted(checks, [lower_upper, perm, rhs])
        if rhs.static_shape.rank == 2 and perm.static_shape.rank == 1:
            permuted = array_ops.gather(rhs, perm, axis=-2)
        else:
            permuted = _permuted_batch(rhs, perm)
        lower = _unit_lower(lower_upper, lambda: array_ops.shape(lower_upper))
        return linalg_ops.triangular_solve(lower_upper, linalg_ops.triangular_solve(lower, permuted), lower=False)


def _permuted_batch(rhs: Tensor, perm: Tensor) -> Tensor:
    """Rows of each matrix in the order of its permutation, both spread over the batches of both."""
    sizes = array_ops.shape(rhs)
    batch = ops.broadcast_args(sizes[:-2], array_ops.shape(perm)[:-1])
    n, k = sizes[-2], sizes[-1]
    whole = array_ops.concat([batch, [n, k]], 0)
    rows = array_ops.reshape(array_ops.broadcast_to(rhs, whole), [-1, n, k])
    order = array_ops.reshape(array_ops.broadcast_to(perm, whole[:-1]), [-1, n])
    count = math_ops.reduce_prod(batch)
    matrices = array_ops.broadcast_to(math_ops.range(count)[:, None], [count, n])
    found = array_ops.gather_nd(rows, array_ops.stack([matrices, order], -1))
    return array_ops.reshape(found, whole)


def lu_matrix_inverse(
    lower_upper: TensorLike, perm: TensorLike, validate_args: bool = False, name: str | None = None
) -> Tensor:
    """The inverse of what was decomposed.

    Raises:
        ValueError: sizes do not fit.
    """
    with name_scope(name or "lu_matrix_inverse"):
        lower_upper, perm = _decomposition(lower_upper, perm)
        checks = _check_decomposition(lower_upper, perm, validate_args)
        lower_upper, perm = _asserted(checks, [lower_upper, perm])
        sizes = array_ops.shape(lower_upper)
        identity = linalg_ops.eye(sizes[-1], batch_shape=sizes[:-2], dtype=lower_upper.dtype.base)
        return lu_solve(lower_upper, perm, identity, validate_args=False)


def lu_reconstruct(
    lower_upper: TensorLike, perm: TensorLike, validate_args: bool = False, name: str | None = None
) -> Tensor:
    """What was decomposed.

    Raises:
        ValueError: sizes do not fit.
    """
    with name_scope(name or "lu_reconstruct"):
        lower_upper, perm = _decomposition(lower_upper, perm)
        checks = _check_decomposition(lower_upper, perm, validate_args)
        lower_upper, perm = _asserted(checks, [lower_upper, perm])
        sizes = array_ops.shape(lower_upper)
        lower = _unit_lower(lower_upper, lambda: sizes)
        product = math_ops.matmul(lower, ops.matrix_band_part(lower_upper, 0, -1))
        if lower_upper.static_shape.rank == 2:
            product = array_ops.gather(product, ops.invert_permutation(perm))
        else:
            count, n = math_ops.reduce_prod(sizes[:-2]), sizes[-1]
            flat = array_ops.reshape(product, [count, n, n])
            order = map_fn(ops.invert_permutation, array_ops.reshape(perm, [count, n]))
            matrices = array_ops.broadcast_to(math_ops.range(count)[:, None], [count, n])
            flat = array_ops.gather_nd(flat, array_ops.stack([matrices, order], -1))
            product = array_ops.reshape(flat, sizes)
        product.set_shape(lower_upper.static_shape)
        return product
