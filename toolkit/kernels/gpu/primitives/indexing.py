"""Positions in tensors, inside of kernels: coordinates without divisions.

A division by a number that is known only when the kernel is launched takes some twenty instructions, which is more than
all else that a copy does. For 32-bit positions it is a multiplication and a shift (Granlund and Montgomery, "Division
by invariant integers using multiplication", 1994): with s = ceil(log2 d) and m = floor(2^(31+s) / d) + 1, the quotient
of any n < 2^31 is floor(n m / 2^(31+s)). Tensors of 2^31 elements or more have 64-bit positions and divisions.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from toolkit.kernels.cpu.native.code import Lanes
from toolkit.kernels.cuda.simt.builder import KernelBuilder
from toolkit.kernels.cuda.simt.ir import Value

#: threads of a block, where nothing asks for another number: eight warps keep a multiprocessor busy on every GPU
BLOCK = 256
#: the largest position of 32 bits
MOST_32 = (1 << 31) - 1


def index_type(*sizes: int) -> str:
    """The type of positions in tensors of these many elements, counted in whole blocks."""
    return "i32" if max(sizes, default=0) <= MOST_32 - BLOCK else "i64"


def blocks_for(count: int, block: int = BLOCK) -> int:
    """How many blocks have a thread for each of so many elements."""
    return -(-count // block)


@dataclass(frozen=True, slots=True)
class Divisor:
    """A size that positions are divided by, as arguments of a kernel."""

    size: Value
    multiplier: Value | None
    shift: Value | None

    @staticmethod
    def argument(k: KernelBuilder, name: str, type: str) -> Divisor:
        """The parameters that it takes; `divisor` gives their values."""
        if type == "i64":
            return Divisor(k.scalar(name, type), None, None)
        return Divisor(k.scalar(name, type), k.scalar(f"{name}_multiplier", "i64"), k.scalar(f"{name}_shift", "i64"))

    def divide(self, k: KernelBuilder, position: Lanes) -> tuple[Value, Value]:
        """Quotient and rest of a position, which is not negative."""
        if self.multiplier is None or self.shift is None:
            quotient = k.div(position, self.size)
        else:
            wide = k.mul(k.convert(position, "i64", unsigned=True), self.multiplier)
            quotient = k.convert(k.binary("lshr", wide, self.shift), "i32")
        return quotient, k.sub(position, k.mul(quotient, self.size))


def divisor(size: int, type: str) -> tuple[int, ...]:
    """The arguments for a `Divisor`; of what is empty nothing is ever divided."""
    size = max(size, 1)
    if type == "i64":
        return (size,)
    shift = 31 + (size - 1).bit_length()
    return size, (1 << shift) // size + 1, shift


def divisors(sizes: Sequence[int], type: str) -> tuple[int, ...]:
    """The arguments for several."""
    return tuple(number for size in sizes for number in divisor(size, type))


def coordinates(k: KernelBuilder, position: Lanes, sizes: Sequence[Divisor]) -> list[Lanes]:
    """The coordinates of a position in C order. `sizes` are those of all dimensions but the first."""
    found: list[Lanes] = []
    for size in reversed(sizes):
        position, rest = size.divide(k, position)
        found.append(rest)
    return [position, *reversed(found)]
