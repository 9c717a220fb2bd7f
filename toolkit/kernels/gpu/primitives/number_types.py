"""How numbers of a tensor's type lie in memory and in which type a kernel computes with them."""

from __future__ import annotations

import functools
from dataclasses import dataclass
from typing import Any

import numpy as np

from toolkit.kernels.cpu.common import finfo
from toolkit.kernels.cpu.native.code import Lanes
from toolkit.kernels.cuda.memory import GpuArray
from toolkit.kernels.cuda.simt.builder import KernelBuilder
from toolkit.kernels.cuda.simt.ir import FLOATING, SIZES, TYPES, KernelBuffer, Value

#: a thread loads or stores at most so many bytes at once
VECTOR_BYTES = 16
_COMPUTED = {"half": "float", "bfloat": "float", "i8": "i32", "i16": "i32"}


@dataclass(frozen=True, slots=True)
class GpuNumber:
    """A type of numbers.

    Attributes:
        name: NumPy's.
        memory: the type in memory.
        compute: the type in registers: half and bfloat16 are computed in float, small integers in 32 bits.
        unsigned: an integer without sign.
    """

    name: str
    memory: str
    compute: str
    unsigned: bool

    @property
    def floating(self) -> bool:
        return self.memory in FLOATING

    @property
    def vector(self) -> int:
        """How many are loaded at once."""
        return VECTOR_BYTES // SIZES[self.memory]

    @property
    def words(self) -> int:
        """Registers that one takes."""
        return max(1, SIZES[self.compute] // 4)

    def load(self, k: KernelBuilder, buffer: KernelBuffer, index: Lanes) -> Value:
        """Element `index`, in the type of registers."""
        return k.convert(k.load(buffer, index), self.compute, unsigned=self.unsigned)

    def store(self, k: KernelBuilder, buffer: KernelBuffer, index: Lanes, value: Lanes) -> None:
        """Write element `index` from the type of registers."""
        k.store(buffer, index, k.convert(value, self.memory, unsigned=self.unsigned))

    def lowest(self) -> float:
        """The identity of max."""
        if self.floating:
            return -float("inf")
        return 0 if self.unsigned else int(np.iinfo(self.name).min)

    def highest(self) -> float:
        """The identity of min."""
        return float("inf") if self.floating else int(np.iinfo(self.name).max)

    def finite(self, sign: int) -> float:
        """The lowest (sign -1) or highest number of the type that is no infinity."""
        if self.floating:
            return sign * float(finfo(self.name).max)
        return self.lowest() if sign < 0 else self.highest()


@functools.cache
def number_of(dtype: Any) -> GpuNumber:
    """What a tensor's type is on a GPU.

    Args:
        dtype: NumPy's; bool is a byte that is 0 or 1.
    """
    name: str = np.dtype(dtype).name
    memory = TYPES[name]
    return GpuNumber(name, memory, _COMPUTED.get(memory, memory), name.startswith("u") or name == "bool")


def real_of(dtype: Any) -> Any:
    """The type of the parts of a complex number; of others the type itself."""
    found = np.dtype(dtype)
    return found.type(0).real.dtype if found.kind == "c" else found


def vector_of(number: GpuNumber, columns: int, *arrays: GpuArray) -> int:
    """How many numbers of rows that lie one behind the other can be loaded at once: all that 16 bytes hold, or one."""
    fits = columns % number.vector == 0 and all(each.address % VECTOR_BYTES == 0 for each in arrays)
    return number.vector if fits else 1


def load_vector(k: KernelBuilder, number: GpuNumber, buffer: KernelBuffer, group: Lanes, count: int) -> list[Value]:
    """The `count` elements of group `group` of a buffer, by one instruction where they are 4, 8 or 16 bytes."""
    if count == 1:
        return [number.load(k, buffer, group)]
    base = k.mul(group, k.number(count, group.type))
    return [number.load(k, buffer, k.add(base, k.number(i, group.type))) for i in range(count)]


def store_vector(k: KernelBuilder, number: GpuNumber, buffer: KernelBuffer, group: Lanes, values: list[Lanes]) -> None:
    """Write the elements of group `group`."""
    if len(values) == 1:
        number.store(k, buffer, group, values[0])
        return
    base = k.mul(group, k.number(len(values), group.type))
    for i, value in enumerate(values):
        number.store(k, buffer, k.add(base, k.number(i, group.type)), value)


def index_type(elements: int) -> str:
    """The type of indices: 32 bits where no step over the end can overflow them."""
    return "i32" if elements < 1 << 30 else "i64"
