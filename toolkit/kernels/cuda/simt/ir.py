"""The kernel IR: typed values, instructions, and structured control flow.

Types are LLVM's: "i1", "i8", "i16", "i32", "i64", "half", "bfloat", "float", "double". A value is what one thread has
in a register. Control flow is structured (`If`, `While`), for then a machine that runs all threads at once knows where
they come together again.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import TypeAlias

from toolkit.kernels.cpu.native.code import Lanes

WARP = 32  # threads that exchange registers, on every GPU of NVIDIA
#: bytes of a type in memory
SIZES = {"i1": 1, "i8": 1, "i16": 2, "i32": 4, "i64": 8, "half": 2, "bfloat": 2, "float": 4, "double": 8}
#: the first compute capability whose registers become floats of 8 bits
FLOAT8_FROM = (8, 9)
FLOATING = frozenset({"half", "bfloat", "float", "double"})
#: NumPy's names of types and LLVM's, in memory
TYPES = {
    "bool": "i8", "int8": "i8", "uint8": "i8", "int16": "i16", "uint16": "i16", "int32": "i32", "uint32": "i32",
    "int64": "i64", "uint64": "i64", "float16": "half", "bfloat16": "bfloat", "float32": "float", "float64": "double",
}  # fmt: skip


def lacks_float8(capability: tuple[int, int]) -> str:
    """Why GPUs of a compute capability have no products of 8-bit floats; "" where they have."""
    if capability >= FLOAT8_FROM:
        return ""
    has, least = (".".join(map(str, each)) for each in (capability, FLOAT8_FROM))
    return f"the GPU has compute capability {has}; floats of 8 bits need {least} (Ada, Hopper and later)"


class Value(Lanes):
    """What a thread has in a register.

    Attributes:
        name: of the register; of a constant the text.
        type: its type.
        constant: the number, if it is one.
    """

    __slots__ = ("constant",)

    def __init__(self, name: str, type: str, constant: float | int | bool | None = None):
        super().__init__(name, type)
        self.constant = constant


@dataclass(frozen=True, slots=True, eq=False)
class KernelBuffer:
    """Numbers of one type in memory.

    Attributes:
        space: "global" (an argument), "shared" (of a block) or "local" (of a thread).
        size: elements; of arguments 0, for they are known when the kernel is launched.
        written: whether the kernel writes there.
    """

    name: str
    type: str
    space: str = "global"
    size: int = 0
    written: bool = False


@dataclass(slots=True, eq=False)
class Register:
    """A register whose value changes; LLVM makes it one (mem2reg)."""

    name: str
    type: str


@dataclass(slots=True, eq=False)
class Operation:
    """An instruction without control flow.

    Attributes:
        opcode: LLVM's name ("fadd", "icmp slt", "sitofp", "sqrt"), or one of `load`, `store`, `get`, `set`, `barrier`,
            `shuffle MODE`, `atomic KIND`, `compare_exchange`, `thread`, `block`, `blocks`, `condition`,
            `pack_e4m3`, `mma KIND` (`matrix`), `tf32`, `exp2`, `intrinsic NAME`.
        operands: values; a buffer or variable stands in `place`.
        results: of an instruction that has several; then `result` is None.
    """

    opcode: str
    operands: tuple[Value, ...]
    result: Value | None = None
    place: KernelBuffer | Register | None = None
    results: tuple[Value, ...] = ()


@dataclass(slots=True, eq=False)
class If:
    condition: Value
    then: list[Instruction] = field(default_factory=list["Instruction"])
    otherwise: list[Instruction] = field(default_factory=list["Instruction"])


@dataclass(slots=True, eq=False)
class While:
    """`head` computes `condition`; while that holds, `body` runs."""

    head: list[Instruction] = field(default_factory=list["Instruction"])
    condition: Value | None = None
    body: list[Instruction] = field(default_factory=list["Instruction"])


Instruction: TypeAlias = Operation | If | While


@dataclass(frozen=True, eq=False)
class SimtKernel:
    """A kernel: what it is launched with, and what every thread does.

    Attributes:
        block: threads of a block.
        parameters: buffers and numbers, in order.
        shared: buffers in the memory of the block.
        local: buffers in the memory of each thread.
    """

    name: str
    block: int
    parameters: tuple[KernelBuffer | Value, ...]
    shared: tuple[KernelBuffer, ...]
    local: tuple[KernelBuffer, ...]
    variables: tuple[Register, ...]
    body: Sequence[Instruction]

    @cached_property
    def text(self) -> str:
        """All that determines it, for people and as its identity."""
        lines = [f"kernel {self.name}, {self.block} threads a block"]
        for one in self.parameters:
            if isinstance(one, KernelBuffer):
                lines.append(f"    argument {one.name}: {one.type}[]{' written' if one.written else ''}")
            else:
                lines.append(f"    argument {one.name}: {one.type}")
        lines += [f"    {one.space} {one.name}: {one.type}[{one.size}]" for one in (*self.shared, *self.local)]
        _print(self.body, "    ", lines)
        return "\n".join(lines) + "\n"

    def __hash__(self) -> int:
        return hash(self.text)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, SimtKernel) and self.text == other.text

    @property
    def shared_bytes(self) -> int:
        """Of the memory of a block."""
        return sum(SIZES[one.type] * one.size for one in self.shared)


def _print(body: Sequence[Instruction], indent: str, lines: list[str]) -> None:
    deeper = indent + "    "
    for one in body:
        match one:
            case Operation():
                results = one.results if one.result is None else (one.result,)
                made = f"{', '.join(f'{each.name}: {each.type}' for each in results)} = " if results else ""
                place = "" if one.place is None else f" {one.place.name}"
                operands = ", ".join(operand.name for operand in one.operands)
                lines.append(f"{indent}{made}{one.opcode}{place} {operands}".rstrip())
            case If():
                lines.append(f"{indent}if {one.condition.name}:")
                _print(one.then, deeper, lines)
                if one.otherwise:
                    lines.append(f"{indent}else:")
                    _print(one.otherwise, deeper, lines)
            case While():
                assert one.condition is not None
                lines.append(f"{indent}while:")
                _print(one.head, deeper, lines)
                lines.append(f"{indent}holds {one.condition.name}:")
                _print(one.body, deeper, lines)
