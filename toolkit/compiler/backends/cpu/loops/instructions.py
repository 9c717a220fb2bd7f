"""What a compiled loop does in an iteration, one after the other: noted by `iteration`, compiled by `native_loop`."""

from __future__ import annotations

from dataclasses import dataclass

from toolkit.compiler.ir.operations.accumulation import Accumulation
from toolkit.compiler.ir.operations.sequences import TensorSequence
from toolkit.compiler.ir.value import Value
from toolkit.kernels.cpu.native.compiler import Function
from toolkit.kernels.cpu.onednn.primitive import Primitive


@dataclass(frozen=True, eq=False, slots=True)
class CallFunction:
    """Call a compiled function with the operands that have this name."""

    operands: str
    function: Function


@dataclass(frozen=True, eq=False, slots=True)
class ExecutePrimitive:
    """Execute the prepared primitive of this name."""

    name: str


@dataclass(frozen=True, eq=False, slots=True)
class CopyTensor:
    """Copy a tensor to where another is."""

    target: Value
    source: Value


@dataclass(frozen=True, eq=False, slots=True)
class PushElement:
    """Append a copy of a tensor to a sequence; without one only its length grows."""

    sequence: TensorSequence
    element: Value | None


@dataclass(frozen=True, eq=False, slots=True)
class PopElement:
    """Take the last element of a sequence away, and copy it where somebody wants it."""

    sequence: TensorSequence
    target: Value | None


@dataclass(frozen=True, eq=False, slots=True)
class GetElement:
    """Read the element at an index."""

    sequence: TensorSequence
    index: Value
    target: Value


@dataclass(frozen=True, eq=False, slots=True)
class SetElement:
    """Write the element at an index."""

    sequence: TensorSequence
    index: Value
    element: Value


@dataclass(frozen=True, eq=False, slots=True)
class AccumulateProduct:
    """Put two factors aside, and multiply where that makes enough of them.

    Attributes:
        primitives: by number of iterations: as many as there is room for, and the smaller powers of two for the rest.
    """

    accumulation: Accumulation
    factors: tuple[Value, Value]
    primitives: dict[int, Primitive]


@dataclass(frozen=True, eq=False, slots=True)
class LeaveUnless:
    """Leave the loop, with its state as it is, unless a bool is true."""

    condition: Value


Instruction = (
    CallFunction | ExecutePrimitive | CopyTensor | PushElement | PopElement | GetElement | SetElement
    | AccumulateProduct | LeaveUnless
)  # fmt: skip
