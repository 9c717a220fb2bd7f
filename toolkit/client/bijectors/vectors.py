"""Bijectors of vectors: permutations, affine functions, probabilities."""

from __future__ import annotations

from typing import Any

from toolkit.client import ops
from toolkit.client.arrays import array_ops
from toolkit.client.bijectors.base import Bijector
from toolkit.client.checks.assertions import assert_equal, assert_none_equal
from toolkit.client.construction.convert import as_shape, constant, convert_to_tensor
from toolkit.client.construction.static_values import static_value
from toolkit.client.construction.tensor import Tensor
from toolkit.client.flow.control_flow import with_dependencies
from toolkit.client.linear_operators.base import LinearOperator
from toolkit.client.linear_operators.dense import LinearOperatorFullMatrix, LinearOperatorLowerTriangular
from toolkit.client.linear_operators.diagonal import LinearOperatorDiag
from toolkit.client.math import math_ops
from toolkit.client.nn import nn_ops
from toolkit.errors import ArgumentTypeError, ArgumentValueError
from toolkit.graph.shape import Shape


class Permute(Bijector):
    """The numbers of a vector in another order.

    Raises:
        TypeError: the permutation has no whole numbers.
        ValueError: it has not each of 0, 1, ... once.
    """

    def __init__(self, permutation: Any, validate_args: bool = False, name: str | None = None):
        super().__init__(None, True, validate_args, None, 1, name=name or "permute")
        with self._name_scope("init", [permutation]):
            given = convert_to_tensor(permutation, name="permutation")
            if not given.dtype.base.is_integer:
                raise ArgumentTypeError(f"permutation: expected whole numbers, got {given.dtype.base}")
            known = static_value(given)
            if known is not None:
                if sorted(known.reshape(-1).tolist()) != list(range(known.size)):
                    raise ArgumentValueError(f"permutation: expected each of 0 to {known.size - 1} once, got {known}")
            elif validate_args:
                count = array_ops.size(given)
                ordered = -ops.top_kv2(-given, count, sorted=True)[0]
                message = "a permutation has each of 0, 1, ... once"
                given = with_dependencies([assert_equal(ordered, math_ops.range(count), message=message)], given)
            self._permutation = given

    @property
    def permutation(self) -> Tensor:
        return self._permutation

    def _forward(self, x: Tensor) -> Any:
        return array_ops.gather(x, self._permutation, axis=-1)

    def _inverse(self, y: Tensor) -> Any:
        return array_ops.gather(y, ops.invert_permutation(self._permutation), axis=-1)

    def _forward_log_det_jacobian(self, x: Tensor) -> Any:
        return constant(0.0, x.dtype.base)

    def _inverse_log_det_jacobian(self, y: Tensor) -> Any:
        return constant(0.0, y.dtype.base)


class SoftmaxCentered(Bijector):
    """n numbers as n + 1 that add up to 1: the softmax of them and a zero."""

    def __init__(self, validate_args: bool = False, name: str = "softmax_centered"):
        super().__init__(None, False, validate_args, None, 1, name=name)

    def _forward(self, x: Tensor) -> Any:
        zeros = array_ops.zeros_like(x[..., :1])
        y = array_ops.concat([x, zeros], -1)
        if x.static_shape.rank is not None:
            y.set_shape(_longer(x.static_shape, 1))
        return nn_ops.softmax(y)

    def _inverse(self, y: Tensor) -> Any:
        logs = math_ops.log(y)
        x = logs[..., :-1] - logs[..., -1:]
        if y.static_shape.rank is not None:
            x.set_shape(_longer(y.static_shape, -1))
        return x

    def _inverse_log_det_jacobian(self, y: Tensor) -> Any:
        return -math_ops.reduce_sum(math_ops.log(y), -1)

    def _forward_log_det_jacobian(self, x: Tensor) -> Any:
        normalizer = nn_ops.softplus(math_ops.reduce_logsumexp(x, -1, keepdims=True))
        size = math_ops.cast(array_ops.shape(x)[-1] + 1, x.dtype.base)
        sums = -size * normalizer + math_ops.reduce_sum(x, -1, keepdims=True)
        return array_ops.squeeze(sums, [-1])

    def _forward_event_shape(self, input_shape: Any) -> Any:
        shape = as_shape(input_shape)
        return _longer(shape, 1) if shape.rank else shape

    def _inverse_event_shape(self, output_shape: Any) -> Any:
        shape = as_shape(output_shape)
        last = shape[-1] if shape.rank else None
        if last is not None and last <= 1:
            raise ArgumentValueError(f"{self._name}: expected two probabilities or more, got shape {shape}")
        return _longer(shape, -1) if shape.rank else shape

    def _forward_event_shape_tensor(self, input_shape: Tensor) -> Any:
        return array_ops.concat([input_shape[:-1], input_shape[-1:] + 1], 0)

    def _inverse_event_shape_tensor(self, output_shape: Tensor) -> Any:
        return array_ops.concat([output_shape[:-1], output_shape[-1:] - 1], 0)


def _longer(shape: Shape, by: int) -> Shape:
    *outer, last = shape
    return Shape([*outer, None if last is None else last + by])


class AffineLinearOperator(Bijector):
    """y = shift + scale x, with a linear operator.

    Raises:
        TypeError: the scale is none, or its type is not the shift's.
        ValueError: the operator is not known to be non-singular.
    """

    def __init__(
        self, shift: Any = None, scale: Any = None, validate_args: bool = False, name: str = "affine_linear_operator"
    ):
        kind = None
        given = None
        parents: list[Any] = []
        if shift is not None:
            given = convert_to_tensor(shift, name="shift")
            kind = given.dtype.base
            parents.append(given)
        if scale is not None:
            if not isinstance(scale, LinearOperator):
                raise ArgumentTypeError(f"scale: expected a LinearOperator, got {scale!r}")
            if kind is not None and kind is not scale.dtype:
                raise ArgumentTypeError(f"shift is {kind}, scale {scale.dtype}; give both one type")
            if not scale.is_non_singular:
                raise ArgumentValueError("scale: an operator that is said to be non-singular can be inverted; say so")
            kind = scale.dtype
            parents += scale.graph_parents
        self._shift, self._scale = given, scale
        super().__init__(parents, True, validate_args, kind, 1, name=name)

    @property
    def shift(self) -> Tensor | None:
        return self._shift

    @property
    def scale(self) -> Any:
        return self._scale

    def _forward(self, x: Tensor) -> Any:
        y: Any = x
        if self._scale is not None:
            y = array_ops.squeeze(self._scale.matmul(array_ops.expand_dims(x, -1)), [-1])
        return y if self._shift is None else y + self._shift

    def _inverse(self, y: Tensor) -> Any:
        x: Any = y if self._shift is None else y - self._shift
        if self._scale is None:
            return x
        return array_ops.squeeze(self._scale.solve(array_ops.expand_dims(x, -1)), [-1])

    def _forward_log_det_jacobian(self, x: Tensor) -> Any:
        return constant(0.0, x.dtype.base) if self._scale is None else self._scale.log_abs_determinant()


class Affine(Bijector):
    """y = shift + scale x, the scale a sum of what is given of a multiple of the identity, a diagonal and a triangle.

    Args:
        scale_perturb_factor, scale_perturb_diag: V [n, r] and D [r] of an update V D V' of low rank.

    Raises:
        ValueError: D is given without V.
        TypeError: the type of the shift is not the scale's.
    """

    def __init__(
        self, shift: Any = None, scale_identity_multiplier: Any = None, scale_diag: Any = None, scale_tril: Any = None,
        scale_perturb_factor: Any = None, scale_perturb_diag: Any = None, validate_args: bool = False,
        name: str = "affine",
    ):  # fmt: skip
        if scale_perturb_diag is not None and scale_perturb_factor is None:
            raise ArgumentValueError("scale_perturb_diag needs scale_perturb_factor")
        given = None if shift is None else convert_to_tensor(shift, name="shift")
        multiple = _tensor(scale_identity_multiplier, "identity_multiplier")
        parts = [_tensor(scale_diag, "diag"), _tensor(scale_tril, "tril"), _tensor(scale_perturb_factor, "factor")]
        self._shift = given
        self._scale: Any
        if all(part is None for part in parts):
            kind = given.dtype.base if given is not None else None
            multiple = convert_to_tensor(1.0, kind) if multiple is None else multiple
            if validate_args:
                zero = array_ops.zeros([], multiple.dtype.base)
                message = "scale_identity_multiplier must not be zero"
                multiple = with_dependencies([assert_none_equal(multiple, zero, message=message)], multiple)
            self._scale, scale_type, parents = multiple, multiple.dtype.base, [multiple]
        else:
            self._scale = _sum_of(multiple, parts, _tensor(scale_perturb_diag, "perturb_diag"))
            scale_type, parents = self._scale.dtype, self._scale.graph_parents
        if given is not None and given.dtype.base is not scale_type:
            raise ArgumentTypeError(f"shift is {given.dtype.base}, the scale {scale_type}; give both one type")
        parents = [*parents, *([] if given is None else [given])]
        super().__init__(parents, True, validate_args, scale_type, 1, name=name)

    @property
    def shift(self) -> Tensor | None:
        return self._shift

    @property
    def scale(self) -> Any:
        """The operator, or the number that is the multiple of the identity."""
        return self._scale

    def _forward(self, x: Tensor) -> Any:
        if isinstance(self._scale, Tensor):
            y: Any = x * self._scale
        else:
            y = array_ops.squeeze(self._scale.matmul(array_ops.expand_dims(x, -1)), [-1])
        return y if self._shift is None else y + self._shift

    def _inverse(self, y: Tensor) -> Any:
        x: Any = y if self._shift is None else y - self._shift
        if isinstance(self._scale, Tensor):
            return x / self._scale
        columns = array_ops.expand_dims(x, -1)
        if isinstance(self._scale, LinearOperatorFullMatrix):  # MatrixSolve does not spread a matrix over a batch
            found = math_ops.matmul(ops.matrix_inverse(self._scale.to_dense()), columns)
        else:
            found = self._scale.solve(columns)
        return array_ops.squeeze(found, [-1])

    def _forward_log_det_jacobian(self, x: Tensor) -> Any:
        if not isinstance(self._scale, Tensor):
            return self._scale.log_abs_determinant()
        size = math_ops.cast(array_ops.shape(x)[-1], self._scale.dtype.base)
        return math_ops.log(math_ops.abs(self._scale)) * size


def _tensor(given: Any, name: str) -> Tensor | None:
    return None if given is None else convert_to_tensor(given, name=name)


def _sum_of(multiple: Tensor | None, parts: list[Tensor | None], update: Tensor | None) -> LinearOperator:
    """The operator that adds up a multiple of the identity, a diagonal, a triangle, and an update of low rank."""
    diagonal, triangle, factor = parts
    if factor is not None:
        scaled: Any = factor if update is None else factor * array_ops.expand_dims(update, -2)
        dense: Any = math_ops.matmul(scaled, factor, transpose_b=True)
        if triangle is not None:
            dense = dense + ops.matrix_band_part(triangle, -1, 0)
        if diagonal is not None:
            dense = dense + ops.matrix_diag(diagonal)
        if multiple is not None or (diagonal is None and triangle is None):
            size = array_ops.ones_like(dense[..., 0])
            dense = dense + ops.matrix_diag(size if multiple is None else size * multiple[..., None])
        return LinearOperatorFullMatrix(dense, is_non_singular=True)
    if triangle is not None:
        lower = ops.matrix_band_part(triangle, -1, 0)
        for each in (diagonal, None if multiple is None else multiple[..., None]):
            if each is not None:
                lower = ops.matrix_set_diag(lower, ops.matrix_diag_part(lower) + each)
        return LinearOperatorLowerTriangular(lower, is_non_singular=True)
    assert diagonal is not None
    both: Any = diagonal if multiple is None else diagonal + multiple[..., None]
    return LinearOperatorDiag(both, is_non_singular=True)


class Ordered(Bijector):
    """Rising numbers as free ones: the first, and the logarithms of the steps."""

    def __init__(self, validate_args: bool = False, name: str = "ordered"):
        super().__init__(None, False, validate_args, None, 1, name=name)

    def _forward(self, x: Tensor) -> Any:
        return array_ops.concat([x[..., :1], math_ops.log(x[..., 1:] - x[..., :-1])], -1)

    def _inverse(self, y: Tensor) -> Any:
        steps = array_ops.concat([y[..., :1], math_ops.exp(y[..., 1:])], -1)
        return math_ops.cumsum(steps, -1)

    def _inverse_log_det_jacobian(self, y: Tensor) -> Any:
        return math_ops.reduce_sum(y[..., 1:], -1)
