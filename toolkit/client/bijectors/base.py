"""What all bijectors share: both directions, and the determinant of either from the other."""

from __future__ import annotations

from collections.abc import Callable, Generator, Sequence
from contextlib import contextmanager
from typing import Any

from toolkit.client.arrays import array_ops
from toolkit.client.construction.context import get_default_graph
from toolkit.client.construction.convert import DTypeLike, as_dtype, as_shape, convert_to_tensor
from toolkit.client.construction.operation import Operation
from toolkit.client.construction.scopes import name_scope
from toolkit.client.construction.static_values import static_value
from toolkit.client.construction.tensor import Tensor, TensorLike
from toolkit.client.math import math_ops
from toolkit.errors import ArgumentTypeError, ArgumentValueError
from toolkit.graph import dtypes
from toolkit.graph.shape import Shape


class Bijector:
    """An invertible function of numbers, vectors or larger events.

    A subclass overrides `_forward`, `_inverse`, one of `_forward_log_det_jacobian(x)` and
    `_inverse_log_det_jacobian(y)`, and where it changes shapes `_forward_event_shape` and its kin. What went through
    `forward` is remembered, so that its inverse costs nothing.

    Args:
        graph_parents: tensors that it depends on.
        is_constant_jacobian: the determinant does not depend on the input.
        forward_min_event_ndims: how many last dimensions it takes as one; of the result `inverse_min_event_ndims`.
            One of both is enough.

    Raises:
        ValueError: neither number is given, or one is negative.
        TypeError: a graph parent is no tensor.
    """

    #: whether a result has one preimage only; else `inverse` and its determinants are tuples
    _is_injective = True

    def __init__(
        self, graph_parents: Sequence[Any] | None = None, is_constant_jacobian: bool = False,
        validate_args: bool = False, dtype: DTypeLike = None, forward_min_event_ndims: int | None = None,
        inverse_min_event_ndims: int | None = None, name: str | None = None,
    ):  # fmt: skip
        if forward_min_event_ndims is None and inverse_min_event_ndims is None:
            raise ArgumentValueError("a bijector needs forward_min_event_ndims or inverse_min_event_ndims")
        for number, each in enumerate(graph_parents or ()):
            if not isinstance(each, Tensor | Operation):
                raise ArgumentTypeError(f"graph_parents are tensors; number {number} is {each!r}")
        first = inverse_min_event_ndims if forward_min_event_ndims is None else forward_min_event_ndims
        last = forward_min_event_ndims if inverse_min_event_ndims is None else inverse_min_event_ndims
        assert first is not None and last is not None
        if min(first, last) < 0:
            raise ArgumentValueError(f"min_event_ndims: expected 0 or more, got {min(first, last)}")
        self._graph_parents = list(graph_parents or ())
        self._is_constant_jacobian = is_constant_jacobian
        self._validate_args = validate_args
        self._dtype = None if dtype is None else as_dtype(dtype).base
        self._first, self._last = first, last
        self._name = name or _snake(type(self).__name__.lstrip("_"))
        self._results: dict[Tensor, Any] = {}
        self._origins: dict[Tensor, Any] = {}

    @property
    def graph_parents(self) -> list[Any]:
        return self._graph_parents

    @property
    def forward_min_event_ndims(self) -> int:
        return self._first

    @property
    def inverse_min_event_ndims(self) -> int:
        return self._last

    @property
    def is_constant_jacobian(self) -> bool:
        return self._is_constant_jacobian

    @property
    def validate_args(self) -> bool:
        return self._validate_args

    @property
    def dtype(self) -> Any:
        """The type of what it takes; None: any."""
        return self._dtype

    @property
    def name(self) -> str:
        return self._name

    @contextmanager
    def _name_scope(self, name: str | None = None, values: Sequence[Any] | None = None) -> Generator[str]:
        with name_scope(self._name), name_scope(name, None, [*(values or []), *self._graph_parents]) as scope:
            yield scope

    # -- what subclasses override ----------------------------------------------------------------------------------

    def _forward(self, x: Tensor) -> Any:
        raise NotImplementedError(f"{self._name} has no forward direction")

    def _inverse(self, y: Tensor) -> Any:
        raise NotImplementedError(f"{self._name} has no inverse")

    def _forward_log_det_jacobian(self, x: Tensor) -> Any:
        raise NotImplementedError(f"{self._name} has no forward_log_det_jacobian")

    def _inverse_log_det_jacobian(self, y: Tensor) -> Any:
        raise NotImplementedError(f"{self._name} has no inverse_log_det_jacobian")

    def _forward_event_shape(self, input_shape: Any) -> Any:
        return input_shape

    def _inverse_event_shape(self, output_shape: Any) -> Any:
        return output_shape

    def _forward_event_shape_tensor(self, input_shape: Tensor) -> Any:
        return input_shape

    def _inverse_event_shape_tensor(self, output_shape: Tensor) -> Any:
        return output_shape

    # -- both directions -------------------------------------------------------------------------------------------

    def forward(self, x: TensorLike, name: str = "forward", **kwargs: Any) -> Any:
        """y of x.

        Raises:
            TypeError: x has another type than the bijector.
        """
        with self._name_scope(name, [x]):
            given = self._argument(x, "x")
            if not self._is_injective or kwargs:
                return self._forward(given, **kwargs)
            if given not in self._results:
                found = self._results[given] = self._forward(given)
                self._origins[found] = given
            return self._results[given]

    def inverse(self, y: TensorLike, name: str = "inverse", **kwargs: Any) -> Any:
        """x of y; a tuple of all where there are several.

        Raises:
            TypeError: y has another type than the bijector.
        """
        with self._name_scope(name, [y]):
            given = self._argument(y, "y")
            if not self._is_injective or kwargs:
                return self._inverse(given, **kwargs)
            if given not in self._origins:
                found = self._origins[given] = self._inverse(given)
                self._results[found] = given
            return self._origins[given]

    def _argument(self, value: TensorLike, name: str) -> Tensor:
        given = convert_to_tensor(value, preferred_dtype=self._dtype, name=name)
        if self._dtype is not None and given.dtype.base is not self._dtype:
            raise ArgumentTypeError(f"{self._name} is of {self._dtype}; '{given.name}' is {given.dtype.base}")
        return given

    # -- determinants ----------------------------------------------------------------------------------------------

    def forward_log_det_jacobian(
        self, x: TensorLike, event_ndims: Any, name: str = "forward_log_det_jacobian", **kwargs: Any
    ) -> Any:
        """The logarithm of |det dy/dx|, summed over the last `event_ndims` dimensions of x.

        Raises:
            ValueError: these are fewer than the bijector takes as one.
            NotImplementedError: it is not injective.
        """
        if not self._is_injective:
            raise NotImplementedError(f"{self._name} has several preimages, so forward_log_det_jacobian is not defined")
        with self._name_scope(name, [x]):
            given = self._argument(x, "x")
            count = _checked_count(event_ndims, self._first)
            try:
                found = self._forward_log_det_jacobian(given, **kwargs)
            except NotImplementedError as error:
                found = _negative(error, lambda: self._inverse_log_det_jacobian(self._y_of(given, kwargs), **kwargs))
            return _summed(found, given, self._first, count)

    def inverse_log_det_jacobian(
        self, y: TensorLike, event_ndims: Any, name: str = "inverse_log_det_jacobian", **kwargs: Any
    ) -> Any:
        """The logarithm of |det dx/dy|, summed over the last `event_ndims` dimensions of y; a tuple for several x.

        Raises:
            ValueError: these are fewer than the bijector makes as one.
        """
        with self._name_scope(name, [y]):
            given = self._argument(y, "y")
            count = _checked_count(event_ndims, self._last)
            if not self._is_injective:
                parts = self._inverse_log_det_jacobian(given, **kwargs)
                return tuple(_summed(part, given, self._last, count) for part in parts)
            try:
                found = self._inverse_log_det_jacobian(given, **kwargs)
            except NotImplementedError as error:
                found = _negative(error, lambda: self._forward_log_det_jacobian(self._x_of(given, kwargs), **kwargs))
            return _summed(found, given, self._last, count)

    def _y_of(self, x: Tensor, kwargs: Any) -> Tensor:
        return self._results[x] if x in self._results and not kwargs else self._forward(x, **kwargs)

    def _x_of(self, y: Tensor, kwargs: Any) -> Tensor:
        return self._origins[y] if y in self._origins and not kwargs else self._inverse(y, **kwargs)

    # -- shapes ----------------------------------------------------------------------------------------------------

    def forward_event_shape(self, input_shape: Any) -> Any:
        """The shape of an event that one of this shape becomes, as far as it is known."""
        present = get_default_graph().present_shape
        return present(as_shape(self._forward_event_shape(present(as_shape(input_shape)))))

    def inverse_event_shape(self, output_shape: Any) -> Any:
        present = get_default_graph().present_shape
        return present(as_shape(self._inverse_event_shape(present(as_shape(output_shape)))))

    def forward_event_shape_tensor(self, input_shape: Any, name: str = "forward_event_shape_tensor") -> Tensor:
        with self._name_scope(name, [input_shape]):
            return _shape_tensor(self._forward_event_shape_tensor(_shape_tensor(input_shape, "input_shape")))

    def inverse_event_shape_tensor(self, output_shape: Any, name: str = "inverse_event_shape_tensor") -> Tensor:
        with self._name_scope(name, [output_shape]):
            return _shape_tensor(self._inverse_event_shape_tensor(_shape_tensor(output_shape, "output_shape")))


class ConditionalBijector(Bijector):
    """A bijector whose methods take further arguments, by keyword."""


def _snake(name: str) -> str:
    return "".join(f"_{c.lower()}" if c.isupper() and i else c.lower() for i, c in enumerate(name))


def _shape_tensor(shape: Any, name: str | None = None) -> Tensor:
    given: Any = shape.as_list() if isinstance(shape, Shape) else shape
    return convert_to_tensor(given, dtypes.int32, name=name)


def _negative(error: NotImplementedError, other: Callable[[], Any]) -> Any:
    """The other direction's determinant, the other way round; the first error where there is none either."""
    try:
        return -other()
    except NotImplementedError:
        raise error from None


def _checked_count(event_ndims: Any, least: int) -> Any:
    """How many dimensions, as a number where it is known.

    Raises:
        ValueError: there are too few, or it is no number.
    """
    known = static_value(convert_to_tensor(event_ndims, dtypes.int32))
    if known is None:
        return event_ndims
    if known.ndim or known < least:
        raise ArgumentValueError(f"event_ndims: expected a number of at least {least}, got {known}")
    return int(known)


def _summed(found: Any, value: Tensor, least: int, count: Any) -> Any:
    """Determinants summed over the dimensions of an event beyond those that the bijector takes as one."""
    found = convert_to_tensor(found)
    rank = array_ops.rank(value) if value.static_shape.rank is None else value.static_shape.rank
    if isinstance(count, int):
        if count == least:
            axes: Any = []
        else:
            axes = list(range(least - count, 0))
    else:
        axes = math_ops.range(least - count, 0)
    if value.static_shape.is_fully_defined and isinstance(count, int) and isinstance(rank, int):
        sizes: Any = value.static_shape.as_list()[rank - count : rank - least]
    else:
        sizes = array_ops.shape(value)[rank - count : rank - least]
    return math_ops.reduce_sum(array_ops.ones(sizes, found.dtype.base) * found, axes)
