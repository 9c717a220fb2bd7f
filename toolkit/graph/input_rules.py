"""What TensorFlow asks of the shapes of an op's inputs, whatever its attributes are.

The table `schemas/op_input_rules.txt.xz` (made by `schemas/export_input_rules.py`, which asks TensorFlow) holds for
each op the ranks and sizes of its inputs, and which shapes and sizes must be equal. Rules of values and those that
depend on attributes are in `toolkit.graph.shapes`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any, cast

from schemas import unpacked
from toolkit.errors import GraphmillError
from toolkit.graph.dtypes import DType
from toolkit.graph.node import Node
from toolkit.graph.opdefs import OpDef
from toolkit.graph.shape import Dim, Shape

#: what the handle at an input holds: (shape, type) of each tensor behind it; None where that is not known
Handles = Callable[[int], Sequence[tuple[Shape, DType]] | None]


@dataclass(frozen=True, slots=True)
class _Argument:
    """An argument of an op.

    Attributes:
        is_handle: what a variable holds is meant, not the handle.
    """

    name: str
    is_handle: bool = False


@dataclass(frozen=True, slots=True)
class _Pattern:
    """What one input must look like.

    Attributes:
        ranks: those that may be; the last stands for all that are larger where `open` is set.
        sizes: along each axis, None where any will do; only for a single rank.
        told: the pattern in words.
    """

    argument: _Argument
    ranks: frozenset[int]
    open: bool
    sizes: tuple[Dim, ...]
    told: str

    def problem(self, shape: Shape) -> str | None:
        dims = shape.dims
        if dims is None:
            return None
        fits = len(dims) in self.ranks or (self.open and len(dims) > max(self.ranks))
        if fits and (not self.sizes or all(a is None or b is None or a == b for a, b in zip(self.sizes, dims))):  # noqa: B905  # same rank
            return None
        return f"must have {self.told}; it has shape {shape}"


@dataclass(frozen=True, slots=True)
class _Rules:
    """What one op asks.

    Attributes:
        same: groups of arguments that have one shape.
        dims: groups of sizes, (argument, axis), that are equal.
        typed: handles of variables whose type an attribute says.
        scalars: integers that must be scalars where their value is known.
        least: how small the elements of an integer input may be, where they are known.
        int32: attributes whose numbers are read as int32.
    """

    patterns: tuple[_Pattern, ...]
    same: tuple[tuple[_Argument, ...], ...]
    dims: tuple[tuple[tuple[_Argument, int], ...], ...]
    typed: tuple[tuple[_Argument, str], ...]
    scalars: tuple[str, ...]
    least: tuple[tuple[str, int], ...]
    int32: tuple[str, ...]


#: one more than the largest rank that was tried
_RANKS = 8


@cache
def _table() -> dict[str, str]:
    """Op to its line; lines are read when their op is met."""
    text = unpacked("op_input_rules.txt.xz").decode()
    return {op: rest for op, _, rest in (line.partition(" ") for line in text.splitlines())}


def ops() -> list[str]:
    """The ops that have rules here, sorted."""
    return sorted(_table())


def fields(op: str) -> list[str]:
    """The rules of an op as they are written in the table."""
    return _table().get(op, "").split()


@cache
def _rules(op: str) -> _Rules | None:
    line = _table().get(op)
    if line is None:
        return None
    patterns: list[_Pattern] = []
    same: list[tuple[_Argument, ...]] = []
    dims: list[tuple[tuple[_Argument, int], ...]] = []
    typed: list[tuple[_Argument, str]] = []
    scalars: list[str] = []
    least: list[tuple[str, int]] = []
    int32: list[str] = []
    for field in line.split():
        kind, _, text = field.partition(":")
        if kind == "@same":
            same.append(tuple(map(_argument, text.split(","))))
        elif kind == "@dims":
            places = (place.rpartition(".") for place in text.split("="))
            dims.append(tuple((_argument(name), int(axis)) for name, _, axis in places))
        elif kind == "@typed":
            name, _, attr = text.partition("=")
            typed.append((_argument(name), attr))
        elif kind == "@scalar":
            scalars.append(text)
        elif kind == "@least":
            name, _, number = text.partition("=")
            least.append((name, int(number)))
        elif kind == "@int32":
            int32.append(text)
        else:
            patterns.append(_pattern(_argument(kind), text))
    return _Rules(tuple(patterns), tuple(same), tuple(dims), tuple(typed), tuple(scalars), tuple(least), tuple(int32))


def _argument(text: str) -> _Argument:
    return _Argument(text.removeprefix("*"), text.startswith("*"))


def _pattern(argument: _Argument, text: str) -> _Pattern:
    if text.startswith("["):
        sizes = tuple(None if n == "?" else int(n) for n in text.strip("[]").split(",") if n)
        told = f"rank {len(sizes)}" if not any(sizes) else f"shape {text}"
        return _Pattern(argument, frozenset((len(sizes),)), False, sizes, told)
    if text.startswith("<="):
        return _Pattern(argument, frozenset(range(int(text[2:]) + 1)), False, (), f"at most rank {text[2:]}")
    if text.startswith(">="):
        return _Pattern(argument, frozenset((int(text[2:]),)), True, (), f"at least rank {text[2:]}")
    ranks = frozenset(map(int, text.split("|")))
    return _Pattern(argument, ranks, max(ranks) == _RANKS - 1, (), f"rank {' or '.join(text.split('|'))}")


def require(node: Node, shapes: Sequence[Shape], constants: Callable[[int], Any], handles: Handles) -> None:
    """Raise unless the inputs of a node are what its op takes.

    Args:
        constants: the values of inputs that are known: a number or (nested) lists, None where one is not.

    Raises:
        GraphmillError: a rule is broken.
    """
    rules = _rules(node.op)
    if rules is None or node.op in node.graph.library:
        return
    positions = _positions(node)

    def all_of(argument: _Argument) -> list[Shape]:
        if not argument.is_handle:
            return [shapes[index] for index in positions[argument.name]]
        held = handles(positions[argument.name][0])
        return [held[0][0]] if held is not None and len(held) == 1 else []

    for pattern in rules.patterns:
        for index in positions[pattern.argument.name]:
            problem = pattern.problem(shapes[index])
            if problem is not None:
                raise GraphmillError(f"input {index}, '{pattern.argument.name}', {problem}")
    for group in rules.same:
        _require_same(group, all_of)
    for places in rules.dims:
        _require_equal(places, all_of)
    for argument, attr in rules.typed:
        held = handles(positions[argument.name][0])
        dtype: DType = node.attr(attr)
        if held is not None and len(held) == 1 and held[0][1].base is not dtype.base:
            raise GraphmillError(f"the variable is of type {held[0][1]}; attribute '{attr}' says {dtype}")
    for name in rules.scalars:
        for index in positions[name]:
            if isinstance(constants(index), list):
                raise GraphmillError(f"input {index}, '{name}', must be a scalar; it has shape {shapes[index]}")
    for name, least in rules.least:
        for index in positions[name]:
            smallest = min(_numbers(constants(index)), default=least)
            if smallest < least:
                raise GraphmillError(f"input {index}, '{name}', must not be less than {least}; it is {smallest}")
    for name in rules.int32:
        for number in _numbers(node.attr(name)):
            if not -(1 << 31) <= number < 1 << 31:
                raise GraphmillError(f"attribute '{name}' is {number}, out of range for an int32")


def _numbers(value: Any) -> Iterator[int]:
    """The integers in nested lists."""
    if isinstance(value, list):
        for one in cast("list[Any]", value):
            if type(one) is int:  # as nearly always
                yield one
            else:
                yield from _numbers(one)
    elif isinstance(value, int) and not isinstance(value, bool):
        yield value


def _require_same(group: tuple[_Argument, ...], all_of: Callable[[_Argument], list[Shape]]) -> None:
    found: Shape | None = None
    for argument in group:
        for shape in all_of(argument):
            if found is not None and not found.is_compatible_with(shape):
                names = ", ".join(f"'{one.name}'" for one in group)
                raise GraphmillError(f"{names} must have the same shape; they have {found} and {shape}")
            found = shape if found is None else found.merge(shape)


def _require_equal(places: tuple[tuple[_Argument, int], ...], all_of: Callable[[_Argument], list[Shape]]) -> None:
    found: Dim = None
    for argument, axis in places:
        for shape in all_of(argument):
            size = shape[axis]
            if found is not None and size is not None and size != found:
                names = ", ".join(f"{axis} of '{one.name}'" for one, axis in places)
                raise GraphmillError(f"sizes along axes {names} must be equal; they are {found} and {size}")
            found = size if found is None else found


@cache
def _fixed(op_def: OpDef) -> dict[str, range] | None:
    """Which inputs each argument is, where that is the same for all nodes of an op."""
    if op_def.fixed_count("inputs") is None:
        return None
    return {argument.name: range(index, index + 1) for index, argument in enumerate(op_def.inputs)}


def _positions(node: Node) -> dict[str, range]:
    """Which inputs each argument is."""
    op_def = node.op_def
    return _fixed(op_def) or op_def.arg_ranges(op_def.inputs, node.attrs)


__all__ = ["fields", "ops", "require"]
