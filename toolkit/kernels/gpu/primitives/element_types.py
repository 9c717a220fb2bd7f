"""What elements of tensors are in a kernel: in memory, in registers, and on the way between.

| tensor | memory | registers |
|---|---|---|
| half, bfloat16 | half, bfloat | float: what is computed is rounded where an op ends |
| float, double, integers | the same | the same; whether an integer is signed is the op's business |
| bool | i8 | i1 |
| complex64, complex128 | two floats, two doubles | `ComplexNumber` |
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple, TypeAlias

from toolkit.errors import InternalError
from toolkit.kernels.cuda.simt.builder import KernelBuilder
from toolkit.kernels.cuda.simt.ir import SIZES, KernelBuffer, Value


class ComplexNumber(NamedTuple):
    """A complex number in two registers."""

    real: Value
    imag: Value


Number: TypeAlias = Value | ComplexNumber


@dataclass(frozen=True, slots=True)
class NumberType:
    """Attributes:
    name: NumPy's.
    kind: "f" a floating type, "i" signed integers, "u" unsigned ones, "b" bool, "c" complex.
    memory: the kernel IR's type of a part in memory.
    register: of a part in a register.
    parts: numbers that an element consists of: 2 of a complex one, else 1.
    """

    name: str
    kind: str
    memory: str
    register: str
    parts: int = 1

    @property
    def size(self) -> int:
        """Bytes of an element."""
        return SIZES[self.memory] * self.parts


_TYPES = (
    NumberType("float16", "f", "half", "float"), NumberType("bfloat16", "f", "bfloat", "float"),
    NumberType("float32", "f", "float", "float"), NumberType("float64", "f", "double", "double"),
    *(NumberType(f"int{bits}", "i", f"i{bits}", f"i{bits}") for bits in (8, 16, 32, 64)),
    *(NumberType(f"uint{bits}", "u", f"i{bits}", f"i{bits}") for bits in (8, 16, 32, 64)),
    NumberType("bool", "b", "i8", "i1"),
    NumberType("complex64", "c", "float", "float", 2), NumberType("complex128", "c", "double", "double", 2),
)  # fmt: skip
NUMBER_TYPES = {one.name: one for one in _TYPES}


def number_type(name: str) -> NumberType:
    """The type of NumPy's name.

    Raises:
        InternalError: kernels compute with none of this name.
    """
    found = NUMBER_TYPES.get(name)
    if found is None:
        raise InternalError(
            f"no kernel for GPUs computes with elements of type {name}; expected {', '.join(NUMBER_TYPES)}"
        )
    return found


def real(number: Number) -> Value:
    """A number that is not complex.

    Raises:
        InternalError: it is.
    """
    if isinstance(number, ComplexNumber):
        raise InternalError("a complex number was given to what takes real ones")
    return number


def pair(number: Number) -> ComplexNumber:
    """A number that is complex.

    Raises:
        InternalError: it is not.
    """
    if not isinstance(number, ComplexNumber):
        raise InternalError("a real number was given to what takes complex ones")
    return number


def load(k: KernelBuilder, buffer: KernelBuffer, first: Value, offset: int, type: NumberType) -> Number:
    """The element `offset` behind one whose first part is at `first`, as kernels compute with it."""
    if type.parts == 2:
        return ComplexNumber(*(k.load(buffer, _at(k, first, 2 * offset + part)) for part in (0, 1)))
    value = k.load(buffer, _at(k, first, offset))
    return k.convert(value, type.register)


def store(k: KernelBuilder, buffer: KernelBuffer, first: Value, offset: int, number: Number, type: NumberType) -> None:
    """Write an element; see `load`."""
    if isinstance(number, ComplexNumber):
        for part, value in enumerate(number):
            k.store(buffer, _at(k, first, 2 * offset + part), value)
    else:
        k.store(buffer, _at(k, first, offset), k.convert(number, type.memory))


def _at(k: KernelBuilder, first: Value, offset: int) -> Value:
    return k.add(first, k.number(offset, first.type)) if offset else first


def rounded(k: KernelBuilder, number: Number, type: NumberType) -> Number:
    """A result as its type has it, still in registers."""
    if isinstance(number, ComplexNumber) or type.memory not in ("half", "bfloat"):
        return number
    return k.convert(k.convert(number, type.memory), type.register)
