"""What is computed element by element, or summed: as compiled loops, by NumPy's functions, and of single numbers."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from toolkit.compiler.ir import relations
from toolkit.compiler.ir.fields import operand, operands, parts
from toolkit.compiler.ir.operation import Operation
from toolkit.compiler.ir.traits import Trait
from toolkit.compiler.ir.value import Value

_BY_NUMPY = Trait.IN_ARENA | Trait.READS_ANYWHERE
_INTO_OUTPUT = Trait.WRITES_ANYWHERE | Trait.REUSES_INPUT


# -- fused loop nests --------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Window:
    """What a nest reads or writes: a tensor, or a part of one.

    Attributes:
        offset: elements before its first.
        strides: elements, of every dimension; None: it is dense.
    """

    value: Value
    offset: int = 0
    strides: tuple[int, ...] | None = None


@dataclass(frozen=True, slots=True)
class Read:
    """The element at hand of a window that the nest reads, by its index there."""

    index: int


@dataclass(frozen=True, slots=True)
class Made:
    """What a member has computed, by its index."""

    index: int


#: a constant is an array, broadcast to the nest's shape
Source = Read | Made | Any


@dataclass(frozen=True, slots=True, eq=False)
class Member:
    """One elementwise operation of a nest.

    Attributes:
        op: which, by the graph's name of it.
        sources: what it takes.
        dtype: numpy's type of what it makes.
        attributes: what its code depends on besides: a slope, a type, a range's start and step.
    """

    op: str
    sources: tuple[Source, ...]
    dtype: Any
    attributes: Mapping[str, Any] = field(default_factory=dict[str, Any])


@dataclass(frozen=True, slots=True)
class Store:
    """What a nest writes, and where.

    Attributes:
        place: a part of a tensor; None: the nest's output with the index of this store, all of it.
    """

    source: Read | Made
    place: Window | None = None


def _value_in(window: Window) -> Value:
    return window.value


def _with_value(window: Window, value: Value) -> Window:
    return replace(window, value=value)


class FusedLoopNest(
    Operation, mnemonic="nest", traits=Trait.IN_ARENA | _INTO_OUTPUT | Trait.ADDRESSABLE | Trait.MACHINE_CODE
):
    """Elementwise operations of one shape in one compiled loop nest: what is between them never leaves the registers.

    Attributes:
        shape: of the nest.
        reads: what is read in each iteration; it is broadcast to the shape.
        members: what is computed, in an order in which it can be.
        stores: what is written in each iteration.
        weight: roughly how many instructions an element takes.
    """

    shape: tuple[int, ...]
    reads: tuple[Window, ...] = parts(value_in=_value_in, with_value=_with_value)
    members: tuple[Member, ...]
    stores: tuple[Store, ...]
    weight: int

    def written(self) -> list[Window]:
        """Where each store goes."""
        return [store.place or Window(self.outputs[index]) for index, store in enumerate(self.stores)]

    def verify(self) -> Iterator[str]:
        """Windows say themselves how far they reach; what is dense is broadcast to the nest's shape."""
        shape = self.shape
        if min(shape, default=1) < 1:
            yield f"a nest over {list(shape)}"
        for window in self.reads:
            if window.strides is None and not relations.broadcasts(relations.shape(window.value), shape):
                yield f"{relations.text(window.value)} in a nest over {list(shape)}"
        for window in self.written():
            if window.strides is None and window.value.shape != shape:
                yield f"{relations.text(window.value)} of a nest over {list(shape)}"
        for index, member in enumerate(self.members):
            yield from self._reached(member.sources, index)
        yield from self._reached([store.source for store in self.stores], len(self.members))

    def _reached(self, sources: Any, made: int) -> Iterator[str]:
        """What is referred to is there, and computed before."""
        for source in sources:
            limit = len(self.reads) if isinstance(source, Read) else made
            if isinstance(source, Read | Made) and not 0 <= source.index < limit:
                yield f"{source} where there are {limit}"


# -- sums --------------------------------------------------------------------------------------------------------------


class CompiledSum(Operation, mnemonic="sum", traits=Trait.IN_ARENA | Trait.ADDRESSABLE | Trait.MACHINE_CODE):
    """A sum, or mean, over neighbouring axes by a compiled loop.

    Attributes:
        sizes: how many elements lie before, along and behind the axes.
        factor: of the sum: what makes a mean of it.
    """

    input: Value = operand()
    sizes: tuple[int, int, int]
    factor: float = 1.0

    def verify(self) -> Iterator[str]:
        x, y = self.input, self.output
        outer, reduced, inner = self.sizes
        if x.size != outer * reduced * inner or y.size != outer * inner or x.dtype != y.dtype:
            yield f"{relations.text(x)} summed is {relations.text(y)}"


class CompiledLogSoftmax(
    Operation, mnemonic="log_softmax", traits=Trait.IN_ARENA | Trait.ADDRESSABLE | Trait.MACHINE_CODE
):
    """The logarithm of softmax along the last axis by a compiled loop.

    Attributes:
        threads: that it runs on.
    """

    input: Value = operand()
    threads: int = 1

    def verify(self) -> Iterator[str]:
        yield from relations.same("the logarithm of a softmax and its input", self.output, self.input)


class NumpySum(Operation, mnemonic="total", traits=_BY_NUMPY):
    """A sum, or mean, by NumPy.

    Attributes:
        axes: what it goes over.
        keeps_axes: they stay, with one element each.
        count: what the sum is divided by.
    """

    input: Value = operand()
    axes: tuple[int, ...]
    keeps_axes: bool = False
    count: int = 1

    def computed_by(self) -> str | None:
        return ""

    def verify(self) -> Iterator[str]:
        x, y = relations.shapes(self.input, self.output)
        keeps, axes = self.keeps_axes, self.axes
        left = tuple(1 if axis in axes else size for axis, size in enumerate(x) if keeps or axis not in axes)
        if y != left:
            yield f"{list(x)} summed over {list(axes)} is {list(y)}"


# -- NumPy's functions -------------------------------------------------------------------------------------------------


class Ufunc(Operation, mnemonic="ufunc", traits=_BY_NUMPY | _INTO_OUTPUT):
    """One of NumPy's universal functions over whole tensors.

    Attributes:
        function: its name in NumPy.
        arguments: tensors that are broadcast to the output.
        constants: numbers that the function takes behind them.
    """

    function: str
    arguments: tuple[Value, ...] = operands()
    constants: tuple[Any, ...] = ()

    def computed_by(self) -> str | None:
        return f"NumPy {self.function}, into the arena"

    def verify(self) -> Iterator[str]:
        target = relations.shape(self.output)
        for value in self.arguments:
            if not relations.broadcasts(relations.shape(value), target):
                yield f"{relations.text(value)} is not broadcast to {list(target)}"


class NumpySigmoid(Operation, mnemonic="sigmoid", traits=_BY_NUMPY | _INTO_OUTPUT):
    """1 / (1 + e^-x) by four of NumPy's functions in the output's place."""

    input: Value = operand()

    def computed_by(self) -> str | None:
        return ""

    def verify(self) -> Iterator[str]:
        yield from relations.same("operands of one shape and type", self.output, self.input)


class ScalarExpression(Operation, mnemonic="scalar"):
    """An operator of Python on single numbers, which takes a tenth of the time of a function of arrays.

    Attributes:
        expression: the operator, with a pair of braces for each argument.
        arguments: the numbers.
    """

    expression: str
    arguments: tuple[Value, ...] = operands()

    def computed_by(self) -> str | None:
        return ""

    def verify(self) -> Iterator[str]:
        for value in (*self.arguments, self.output):
            if value.shape != ():
                yield f"{relations.text(value)} is not a number"
