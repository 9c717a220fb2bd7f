"""Bijectors made of others, or of functions."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Sequence
from typing import Any

from toolkit.client.arrays import array_ops
from toolkit.client.bijectors.base import Bijector
from toolkit.client.construction.convert import as_shape, constant, convert_to_tensor
from toolkit.client.construction.static_values import static_value
from toolkit.client.construction.tensor import Tensor
from toolkit.errors import ArgumentValueError
from toolkit.graph.shape import Shape


class Chain(Bijector):
    """Several, the last one first: y = b[0](b[1](... b[n](x))).

    Raises:
        ValueError: the types of two differ.
    """

    def __init__(self, bijectors: Sequence[Any] | None = None, validate_args: bool = False, name: str | None = None):
        given: tuple[Any, ...] = tuple(bijectors or ())
        types = {each.dtype for each in given} - {None}
        if len(types) > 1:
            raise ArgumentValueError(f"bijectors of one chain have one type, not {sorted(map(str, types))}")
        self._bijectors = given
        super().__init__(
            [parent for each in given for parent in each.graph_parents],
            all(each.is_constant_jacobian for each in given), validate_args, next(iter(types), None),
            _least(given, forward=True), _least(given, forward=False),
            name=name or ("identity" if not given else "_of_".join(["chain", *(each.name for each in given)])),
        )  # fmt: skip

    @property
    def bijectors(self) -> tuple[Any, ...]:
        return self._bijectors

    def _forward(self, x: Tensor, **kwargs: Any) -> Any:
        for each in reversed(self._bijectors):
            x = each.forward(x, **kwargs.get(each.name, {}))
        return x

    def _inverse(self, y: Tensor, **kwargs: Any) -> Any:
        for each in self._bijectors:
            y = each.inverse(y, **kwargs.get(each.name, {}))
        return y

    def _inverse_log_det_jacobian(self, y: Tensor, **kwargs: Any) -> Any:
        found: Any = constant(0.0, y.dtype.base, name="inverse_log_det_jacobian")
        count = self._last
        for each in self._bijectors:
            found = found + each.inverse_log_det_jacobian(y, count, **kwargs.get(each.name, {}))
            count = _count_behind(y, count, each.inverse_event_shape)
            y = each.inverse(y, **kwargs.get(each.name, {}))
        return found

    def _forward_log_det_jacobian(self, x: Tensor, **kwargs: Any) -> Any:
        found: Any = constant(0.0, x.dtype.base, name="forward_log_det_jacobian")
        count = self._first
        for each in reversed(self._bijectors):
            found = found + each.forward_log_det_jacobian(x, count, **kwargs.get(each.name, {}))
            count = _count_behind(x, count, each.forward_event_shape)
            x = each.forward(x, **kwargs.get(each.name, {}))
        return found

    def _forward_event_shape(self, input_shape: Any) -> Any:
        for each in reversed(self._bijectors):
            input_shape = each.forward_event_shape(input_shape)
        return input_shape

    def _inverse_event_shape(self, output_shape: Any) -> Any:
        for each in self._bijectors:
            output_shape = each.inverse_event_shape(output_shape)
        return output_shape

    def _forward_event_shape_tensor(self, input_shape: Tensor) -> Any:
        for each in reversed(self._bijectors):
            input_shape = each.forward_event_shape_tensor(input_shape)
        return input_shape

    def _inverse_event_shape_tensor(self, output_shape: Tensor) -> Any:
        for each in self._bijectors:
            output_shape = each.inverse_event_shape_tensor(output_shape)
        return output_shape


def _count_behind(value: Tensor, count: int, event_shape: Callable[[Any], Any]) -> int:
    """How many dimensions the event of a value has behind a bijector."""
    rank = value.static_shape.rank
    event = Shape([None] * count) if rank is None else value.static_shape.slice(rank - count)
    changed = as_shape(event_shape(event)).rank
    return count if changed is None else changed


def _least(bijectors: Sequence[Any], forward: bool) -> int:
    """How many dimensions the chain takes as one: enough that each gets its own, whatever those before change."""
    order = list(reversed(bijectors)) if forward else list(bijectors)
    least = changed = 0
    for each in order:
        takes, makes = each.forward_min_event_ndims, each.inverse_min_event_ndims
        if not forward:
            takes, makes = makes, takes
        least = max(least, takes - changed)
        changed += makes - takes
    return least


class Invert(Bijector):
    """Another one, the other way round."""

    def __init__(self, bijector: Any, validate_args: bool = False, name: str | None = None):
        if not bijector._is_injective:
            raise NotImplementedError(f"{bijector.name} has several preimages, so it has no inverse")
        self._bijector = bijector
        super().__init__(
            bijector.graph_parents, bijector.is_constant_jacobian, validate_args, bijector.dtype,
            bijector.inverse_min_event_ndims, bijector.forward_min_event_ndims, name or f"invert_{bijector.name}",
        )  # fmt: skip

    @property
    def bijector(self) -> Any:
        return self._bijector

    def _forward(self, x: Tensor, **kwargs: Any) -> Any:
        return self._bijector.inverse(x, **kwargs)

    def _inverse(self, y: Tensor, **kwargs: Any) -> Any:
        return self._bijector.forward(y, **kwargs)

    def _forward_log_det_jacobian(self, x: Tensor, **kwargs: Any) -> Any:
        return self._bijector.inverse_log_det_jacobian(x, self._first, **kwargs)

    def _inverse_log_det_jacobian(self, y: Tensor, **kwargs: Any) -> Any:
        return self._bijector.forward_log_det_jacobian(y, self._last, **kwargs)

    def _forward_event_shape(self, input_shape: Any) -> Any:
        return self._bijector.inverse_event_shape(input_shape)

    def _inverse_event_shape(self, output_shape: Any) -> Any:
        return self._bijector.forward_event_shape(output_shape)

    def _forward_event_shape_tensor(self, input_shape: Tensor) -> Any:
        return self._bijector.inverse_event_shape_tensor(input_shape)

    def _inverse_event_shape_tensor(self, output_shape: Tensor) -> Any:
        return self._bijector.forward_event_shape_tensor(output_shape)


class Inline(Bijector):
    """One made of functions, each in the place of the method that a subclass would override."""

    def __init__(
        self, forward_fn: Any = None, inverse_fn: Any = None, inverse_log_det_jacobian_fn: Any = None,
        forward_log_det_jacobian_fn: Any = None, forward_event_shape_fn: Any = None,
        forward_event_shape_tensor_fn: Any = None, inverse_event_shape_fn: Any = None,
        inverse_event_shape_tensor_fn: Any = None, is_constant_jacobian: bool = False, validate_args: bool = False,
        forward_min_event_ndims: int | None = None, inverse_min_event_ndims: int | None = None, name: str = "inline",
    ):  # fmt: skip
        super().__init__(
            None, is_constant_jacobian, validate_args, None, forward_min_event_ndims, inverse_min_event_ndims, name
        )
        self._functions: dict[str, Callable[..., Any] | None] = {
            "forward": forward_fn, "inverse": inverse_fn, "forward_log_det_jacobian": forward_log_det_jacobian_fn,
            "inverse_log_det_jacobian": inverse_log_det_jacobian_fn,
        }  # fmt: skip
        same = self._same
        self._shapes = (forward_event_shape_fn or same, inverse_event_shape_fn or same)
        self._shape_tensors = (forward_event_shape_tensor_fn or same, inverse_event_shape_tensor_fn or same)

    @staticmethod
    def _same(shape: Any) -> Any:
        return shape

    def _called(self, what: str, value: Tensor, kwargs: dict[str, Any]) -> Any:
        function = self._functions[what]
        if not callable(function):
            raise NotImplementedError(f"{what}_fn is not given, so there is no {what}")
        return function(value, **kwargs)

    def _forward(self, x: Tensor, **kwargs: Any) -> Any:
        return self._called("forward", x, kwargs)

    def _inverse(self, y: Tensor, **kwargs: Any) -> Any:
        return self._called("inverse", y, kwargs)

    def _forward_log_det_jacobian(self, x: Tensor, **kwargs: Any) -> Any:
        return self._called("forward_log_det_jacobian", x, kwargs)

    def _inverse_log_det_jacobian(self, y: Tensor, **kwargs: Any) -> Any:
        return self._called("inverse_log_det_jacobian", y, kwargs)

    def _forward_event_shape(self, input_shape: Any) -> Any:
        return self._shapes[0](input_shape)

    def _inverse_event_shape(self, output_shape: Any) -> Any:
        return self._shapes[1](output_shape)

    def _forward_event_shape_tensor(self, input_shape: Tensor) -> Any:
        return self._shape_tensors[0](input_shape)

    def _inverse_event_shape_tensor(self, output_shape: Tensor) -> Any:
        return self._shape_tensors[1](output_shape)


class Reshape(Bijector):
    """Events of one shape in another.

    Args:
        event_shape_out, event_shape_in: one size of each may be -1, for what is left.

    Raises:
        ValueError: a shape is none, or not known now.
    """

    def __init__(
        self, event_shape_out: Any, event_shape_in: Any = (-1,), validate_args: bool = False, name: str | None = None
    ):
        super().__init__(None, True, validate_args, None, 0, name=name or "reshape")
        self._shapes = [_sizes(given, what) for given, what in ((event_shape_in, "in"), (event_shape_out, "out"))]

    def _turned(self, value: Tensor, inner: list[int], outer: list[int]) -> Tensor:
        shape, rank = value.static_shape, value.static_shape.rank
        if rank is not None and rank < len(inner):
            raise ArgumentValueError(f"{self._name}: expected an event of shape {inner}, got {shape}")
        if rank is not None:
            for found, wanted in zip(list(shape)[rank - len(inner) :], inner, strict=True):
                if wanted >= 0 and found is not None and found != wanted:
                    raise ArgumentValueError(f"{self._name}: expected an event of shape {inner}, got {shape}")
            if rank == len(inner):
                return array_ops.reshape(value, outer)
        before = (array_ops.rank(value) if rank is None else rank) - len(inner)
        sizes: Any = array_ops.concat([array_ops.shape(value)[:before], outer], 0)
        return array_ops.reshape(value, sizes)

    def _forward(self, x: Tensor) -> Any:
        return self._turned(x, self._shapes[0], self._shapes[1])

    def _inverse(self, y: Tensor) -> Any:
        return self._turned(y, self._shapes[1], self._shapes[0])

    def _forward_log_det_jacobian(self, x: Tensor) -> Any:
        return constant(0.0, x.dtype.base)

    def _inverse_log_det_jacobian(self, y: Tensor) -> Any:
        return constant(0.0, y.dtype.base)

    def _forward_event_shape(self, input_shape: Any) -> Any:
        return _filled_in(list(as_shape(input_shape)), self._shapes[1])

    def _inverse_event_shape(self, output_shape: Any) -> Any:
        return _filled_in(list(as_shape(output_shape)), self._shapes[0])

    def _forward_event_shape_tensor(self, input_shape: Tensor) -> Any:
        return array_ops.shape(self._turned(array_ops.zeros(input_shape), self._shapes[0], self._shapes[1]))

    def _inverse_event_shape_tensor(self, output_shape: Tensor) -> Any:
        return array_ops.shape(self._turned(array_ops.zeros(output_shape), self._shapes[1], self._shapes[0]))


def _sizes(given: Any, what: str) -> list[int]:
    known = static_value(convert_to_tensor(given, preferred_dtype="int32"))
    sizes = None if known is None or known.ndim > 1 else [int(size) for size in known.reshape(-1)]
    if sizes is None or sizes.count(-1) > 1 or any(size < -1 for size in sizes):
        raise ArgumentValueError(f"event_shape_{what}: expected sizes, one of them perhaps -1, got {given}")
    return sizes


def _filled_in(have: list[int | None], wanted: list[int]) -> list[int | None]:
    """The sizes of a new shape, -1 worked out where the old ones are known."""
    known = [size for size in have if size is not None]
    rest = list(itertools.accumulate([size for size in wanted if size >= 0], lambda a, b: a * b, initial=1))[-1]
    total = list(itertools.accumulate(known, lambda a, b: a * b, initial=1))[-1]
    left = total // rest if len(known) == len(have) and rest else None
    return [left if size == -1 else size for size in wanted]
