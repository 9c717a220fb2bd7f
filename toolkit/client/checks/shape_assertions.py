"""assert_shapes: sizes that shapes have in common, by the names that are given them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NamedTuple, cast

from toolkit.client.arrays import array_ops
from toolkit.client.checks.assertions import assert_rank, assert_rank_at_least, assert_rank_in
from toolkit.client.construction.convert import constant, convert_to_tensor
from toolkit.client.construction.grouping import group
from toolkit.client.construction.operation import Operation
from toolkit.client.construction.scopes import control_dependencies, name_scope
from toolkit.client.construction.tensor import Tensor
from toolkit.client.flow.control_flow import Assert, cond
from toolkit.client.math import math_ops
from toolkit.errors import GraphError

_ANY = (None, ".")
_OUTER = (Ellipsis, "*")


class _Wanted(NamedTuple):
    tensor: Tensor
    inner: bool  # only the last axes are spoken of
    sizes: Any  # the tensor's: a sequence of numbers and tensors, or one tensor
    symbols: tuple[Any, ...]

    def axis(self, position: int) -> int:
        return position - len(self.symbols) if self.inner else position


class _Named(NamedTuple):
    """A size that a name was given where it was met first."""

    size: Any
    tensor: Tensor
    axis: int


def assert_shapes(
    shapes: Mapping[Any, Any] | Iterable[tuple[Any, Any]], data: Sequence[Any] | None = None,
    summarize: int | None = None, message: str | None = None, name: str | None = None,
) -> Operation:  # fmt: skip
    """Fails unless tensors have the shapes that are given them.

    Args:
        shapes: pairs of a tensor and a shape. An entry of a shape is a number, None or "." for any size, or a name:
            where it comes again, the size must be the same. "*" or `...` in front: only the last axes are meant.
            A scalar is taken for a vector of one element.

    Raises:
        GraphError: known shapes differ from what is wanted; something is no shape.
    """
    prefix = f"{message}.  " if message else ""
    with name_scope(name, "assert_shapes", [data]):
        pairs: Any = cast("Any", shapes).items() if isinstance(shapes, Mapping) else shapes
        tensors: list[tuple[Tensor, Any]] = [
            (convert_to_tensor(tensor), shape) for tensor, shape in pairs if shape is not None
        ]
        wanted = [_wanted(tensor, shape, prefix) for tensor, shape in tensors]
        ranks = [
            _assert_rank(each, data, summarize, message, name)
            for each in wanted
            if not (each.inner and len(each.symbols) < 2)
        ]
        checks = _Checks(prefix, data, summarize, ranks)
        for each in wanted:
            for position, symbol in enumerate(each.symbols):
                if symbol not in _ANY:
                    checks.add(each, each.axis(position), symbol)
    with control_dependencies(ranks):
        return group(checks.made)


def _wanted(tensor: Tensor, shape: Any, prefix: str) -> _Wanted:
    if not hasattr(shape, "__iter__") and not hasattr(shape, "__getitem__"):
        raise GraphError(f"{prefix}'{tensor.name}' is given {shape!r} as its shape; expected a sequence of sizes")
    symbols = tuple(getattr(size, "value", size) for size in shape)
    inner = bool(symbols) and symbols[0] in _OUTER
    for position, symbol in enumerate(symbols):
        if position and symbol in _OUTER:
            raise GraphError(f"{prefix}'{tensor.name}': {symbol!r} stands for outer axes, so it may only be in front")
    return _Wanted(tensor, inner, _sizes(tensor), (symbols[1:] if inner else symbols) or (1,))


def _sizes(tensor: Tensor) -> Any:
    """The size of each axis, a number where it is known; of a tensor of unknown rank, one tensor."""
    dynamic = array_ops.shape(tensor)
    shape = tensor.static_shape
    if shape.rank == 0:
        return (1,)
    if shape.dims is not None:
        return [dynamic[axis] if size is None else size for axis, size in enumerate(shape.dims)]
    return cond(math_ops.equal(array_ops.rank(tensor), 0), lambda: constant([1]), lambda: dynamic)


def _assert_rank(wanted: _Wanted, *arguments: Any) -> Operation:
    rank = len(wanted.symbols)
    if wanted.inner:
        return assert_rank_at_least(wanted.tensor, rank, *arguments)
    if rank < 2:
        return assert_rank_in(wanted.tensor, [0, 1], *arguments)
    return assert_rank(wanted.tensor, rank, *arguments)


class _Checks:
    """The sizes that were named so far, and the checks of those that come after."""

    def __init__(self, prefix: str, data: Sequence[Any] | None, summarize: int | None, ranks: list[Operation]):
        self._prefix, self._data, self._summarize, self._ranks = prefix, data, summarize, ranks
        self._named: dict[Any, _Named] = {}
        self.made: list[Operation] = []

    def add(self, wanted: _Wanted, axis: int, symbol: Any) -> None:
        number = _number(symbol)
        if number is None and symbol not in self._named:
            self._named[symbol] = _Named(self._size(wanted, axis), wanted.tensor, axis)
            return
        tensor = wanted.tensor
        size: Any = number
        why = "Specified explicitly"
        if number is None:
            size, first, at = self._named[symbol]
            why = f"Specified by tensor {first.name} dimension {at}"
        found = self._size(wanted, axis)
        if isinstance(found, int) and isinstance(size, int):
            if found != size:
                raise GraphError(
                    f"{self._prefix}{why}.  Tensor {tensor.name} dimension {axis} must have size {size}.  "
                    f"Received size {found}, shape {tensor.static_shape}"
                )
            return
        holds = math_ops.equal(convert_to_tensor(found), convert_to_tensor(size))
        data = self._data
        if data is None:
            data = [
                self._prefix, why, f"Tensor {tensor.name} dimension", axis, "must have size", size,
                "Received shape: ", array_ops.shape(tensor),
            ]  # fmt: skip
        self.made.append(Assert(holds, data, summarize=self._summarize))

    def _size(self, wanted: _Wanted, axis: int) -> Any:
        with control_dependencies(self._ranks):  # or an axis is asked for before it is known that there is one
            return wanted.sizes[axis]


def _number(symbol: Any) -> int | None:
    try:
        return int(symbol)
    except (TypeError, ValueError):
        return None
