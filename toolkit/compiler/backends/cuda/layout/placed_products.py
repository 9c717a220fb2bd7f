"""Products and how their operands lie, while transpositions around them are taken into them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from toolkit.compiler.backends.cuda.layout.contractions import Contraction, batch_axes
from toolkit.compiler.backends.cuda.layout.moved_axes import backward
from toolkit.compiler.backends.cuda.layout.stored_axes import Axes, packed
from toolkit.compiler.backends.cuda.operations import LibraryProduct
from toolkit.compiler.ir.operation import Operation
from toolkit.compiler.ir.operations.calls import Call
from toolkit.compiler.ir.value import Value

_TYPES = ("float16", "bfloat16", "float32", "float64")
_BATCHED = ("BatchMatMul", "BatchMatMulV2")


@dataclass(frozen=True)
class PlacedProduct:
    """A product, as an operation has it and as its operands lie.

    Attributes:
        a, b: the values that hold the factors.
        bias: a vector, or None.
        activation: behind the bias.
        turn_a, turn_b: as the operation has its factors.
        is_joined: the leading axes of a and of the result are those of one matrix.
        lead: the leading axes of the result, along which factors are broadcast.
        of: how the factors and the result lie.
        behind: operations that the result has gone through, in order.
    """

    a: Value
    b: Value
    bias: Value | None
    activation: str
    turn_a: bool
    turn_b: bool
    is_joined: bool
    lead: tuple[int, ...]
    of: Contraction
    behind: tuple[Operation, ...] = ()

    def with_a(self, value: Value, axes: Axes) -> PlacedProduct:
        """With the first factor in another value.

        Args:
            axes: of the factor in the shape that the operation takes.
        """
        return replace(self, a=value, of=replace(self.of, a=self._first(axes)))

    def with_b(self, value: Value, axes: Axes) -> PlacedProduct:
        """With the second factor in another value."""
        return replace(self, b=value, of=replace(self.of, b=self._second(axes)))

    def with_result(self, behind: Sequence[Operation]) -> PlacedProduct | None:
        """With the result as operations behind it have it; None where no strides say so."""
        every = (*self.behind, *behind)
        axes: Axes | None = packed(every[-1].output.shape or ())
        for operation in reversed(every):
            axes = None if axes is None else backward(operation, axes)
        return None if axes is None else replace(self, of=replace(self.of, out=self.result(axes)), behind=every)

    def _first(self, axes: Axes) -> Axes:
        if self.is_joined:
            axes = _joined(axes, self.turn_a)
        return batch_axes(_turned(axes, self.turn_a), self.lead)

    def _second(self, axes: Axes) -> Axes:
        if self.is_joined:
            axes = axes[-2:]
        return batch_axes(_turned(axes, self.turn_b), self.lead)

    def result(self, axes: Axes) -> Axes:
        """How the result lies as matrices, if it does so in the shape that the operation gives it."""
        return _joined(axes, False) if self.is_joined else axes


def placed(operation: Operation) -> PlacedProduct | None:
    """An operation that is a product of known shapes whose operands lie by themselves; None where it is none."""
    if isinstance(operation, LibraryProduct):
        bias, activation, turns = operation.bias, operation.activation, (operation.turn_a, operation.turn_b)
        a, b = operation.a, operation.b
    elif isinstance(operation, Call) and operation.op in ("MatMul", *_BATCHED) and not operation.step.deref:
        bias, activation, node = None, "Identity", operation.step.node
        names = ("transpose_a", "transpose_b") if operation.op == "MatMul" else ("adj_x", "adj_y")
        turns = (bool(node.attr(names[0])), bool(node.attr(names[1])))
        a, b = operation.inputs
    else:
        return None
    out = operation.output
    if any(value.shape is None or value.dtype is None or 0 in value.shape for value in (a, b, out)):
        return None
    if out.dtype.name not in _TYPES or a.dtype != out.dtype or b.dtype != out.dtype:
        return None
    is_joined = isinstance(operation, LibraryProduct)
    shape = out.shape or ()
    lead = () if is_joined else shape[:-2]
    empty = Contraction((), (), (), bias is not None)
    found = PlacedProduct(a, b, bias, activation, *turns, is_joined, lead, empty)
    found = found.with_a(a, packed(a.shape or ())).with_b(b, packed(b.shape or ()))
    return replace(found, of=replace(found.of, out=found.result(packed(shape))))


def _joined(axes: Axes, turn: bool) -> Axes:
    """The rows of all axes as those of one matrix."""
    if turn:
        return axes[-2:]
    return tuple(factor for axis in axes[:-1] for factor in axis), axes[-1]


def _turned(axes: Axes, turn: bool) -> Axes:
    return (*axes[:-2], axes[-1], axes[-2]) if turn else axes
