"""The SIMT machine: runs the kernel IR on the CPU, all threads of some blocks at a time.

Every value is an array with an element for each thread, and a mask says which threads are active. It finds what a GPU
would not tell: elements out of bounds, races between barriers, shared memory that nobody wrote, barriers and shuffles
that not all threads reach. Blocks run in groups, in an order of its choice, for nothing orders them on a GPU either.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, cast

import numpy as np

from toolkit.kernels.cuda.simt import arithmetic, matrix
from toolkit.kernels.cuda.simt.arithmetic import BINARY, COMPARE, DIVISIONS, DTYPES, INTRINSICS
from toolkit.kernels.cuda.simt.ir import (
    SIZES,
    WARP,
    If,
    Instruction,
    KernelBuffer,
    Operation,
    Register,
    SimtKernel,
    Value,
    While,
)
from toolkit.kernels.cuda.simt.memory import KernelFaultError, KernelMemory
from toolkit.kernels.types import Array

_LANES = 1 << 15  # threads at a time: arrays of that size stay in the cache
_MOST_ITERATIONS = 1 << 26  # of a loop; more is one that never ends
_FLOPS = {"fadd": 1, "fsub": 1, "fmul": 1, "fdiv": 1, "intrinsic fma": 2, "intrinsic fmuladd": 2, "intrinsic sqrt": 1}


@dataclass(slots=True)
class Statistics:
    """What a launch did.

    Attributes:
        flops: additions, multiplications, divisions and roots of floating numbers.
        loaded, stored: bytes of global memory, each access counted.
    """

    flops: int = 0
    loaded: int = 0
    stored: int = 0


def run(
    kernel: SimtKernel, blocks: int, arguments: Sequence[Array | int | float], *, races: bool = True, seed: int = 0,
    condition: Callable[[int, int], None] | None = None,
) -> Statistics:  # fmt: skip
    """Launch a kernel.

    Args:
        arguments: for buffers one-dimensional arrays of their element type, which are changed; else numbers.
        races: whether races are looked for, which takes four times the memory.
        seed: of the order of blocks.
        condition: sets a condition of the graph that the kernel runs in; None outside of graphs.

    Raises:
        KernelFaultError: it does what is not allowed; the message names kernel and element.
    """
    machine = _Machine(kernel, blocks, arguments, races, condition)
    group = max(1, _LANES // kernel.block)
    order = np.random.default_rng(seed).permutation(blocks)
    try:
        with np.errstate(all="ignore"):
            for first in range(0, blocks, group):
                machine.run(order[first : first + group])
    except KernelFaultError as fault:
        raise KernelFaultError(f"kernel {kernel.name}: {fault.message}") from None
    return machine.statistics


class _Machine:
    """One launch."""

    def __init__(
        self, kernel: SimtKernel, blocks: int, arguments: Sequence[Array | int | float], races: bool,
        condition: Callable[[int, int], None] | None,
    ):  # fmt: skip
        if len(arguments) != len(kernel.parameters):
            raise KernelFaultError(f"{len(arguments)} arguments were given; it takes {len(kernel.parameters)}")
        self._kernel = kernel
        self._blocks = blocks
        self._races = races
        self._condition = condition
        self.statistics = Statistics()
        self._memories: dict[KernelBuffer, KernelMemory] = {}
        self._numbers: dict[str, Array] = {}
        for one, given in zip(kernel.parameters, arguments, strict=True):
            if isinstance(one, Value):
                self._numbers[one.name] = np.asarray(given).astype(DTYPES[one.type])
            else:
                given = cast("Array", given)
                if given.dtype != DTYPES[one.type]:
                    raise KernelFaultError(f"{one.name} takes {one.type}; it was given {given.dtype}")
                self._memories[one] = KernelMemory(one.name, given, 0, is_checked=races and one.written)

    # -- a group of blocks -----------------------------------------------------------------------------------------

    def run(self, blocks: Array) -> None:
        """Some blocks, by their numbers, from beginning to end."""
        block, count = self._kernel.block, len(blocks)
        self._lanes = count * block
        lanes = np.arange(self._lanes)
        self._slot = lanes // block  # of the block in this group
        self._thread = (lanes % block).astype(np.int32)
        self._block = np.repeat(blocks, block).astype(np.int32)
        self._number = self._block.astype(np.int64) * block + self._thread
        self._time = np.zeros(count, np.int32)
        self._values = dict(self._numbers)
        self._variables: dict[Register, Array] = {}
        for one in self._kernel.shared:
            self._memories[one] = self._own(one, count, is_checked=self._races)
        for one in self._kernel.local:
            self._memories[one] = self._own(one, self._lanes, is_checked=False)
        self._execute(self._kernel.body, np.ones(self._lanes, np.bool_), True)

    @staticmethod
    def _own(buffer: KernelBuffer, owners: int, *, is_checked: bool) -> KernelMemory:
        elements = np.zeros(buffer.size * owners, DTYPES[buffer.type])
        written = np.zeros(len(elements), np.bool_)
        return KernelMemory(buffer.name, elements, buffer.size, is_checked=is_checked, written=written)

    def _execute(self, body: Sequence[Instruction], mask: Array, whole: bool) -> None:
        """Instructions, in the threads of a mask.

        Args:
            whole: these are all.
        """
        for one in body:
            match one:
                case Operation():
                    self._operation(one, mask, whole)
                case If():
                    holds = np.broadcast_to(self._read(one.condition), mask.shape)
                    taken = mask & holds
                    if taken.any():
                        self._execute(one.then, taken, whole and bool(taken.all()))
                    if one.otherwise:
                        rest = mask & ~holds
                        if rest.any():
                            self._execute(one.otherwise, rest, whole and bool(rest.all()))
                case While():
                    self._while(one, mask, whole)

    def _while(self, one: While, mask: Array, whole: bool) -> None:
        assert one.condition is not None
        for _ in range(_MOST_ITERATIONS):
            self._execute(one.head, mask, whole)
            mask = mask & self._read(one.condition)
            if not mask.any():
                return
            whole = whole and bool(mask.all())
            self._execute(one.body, mask, whole)
        raise KernelFaultError(f"a loop did not end after {_MOST_ITERATIONS:,} iterations")

    # -- instructions ----------------------------------------------------------------------------------------------

    def _read(self, value: Value) -> Array:
        if value.constant is not None:
            return np.asarray(value.constant).astype(DTYPES[value.type])
        return self._values[value.name]

    def _operation(self, one: Operation, mask: Array, whole: bool) -> None:
        opcode, result = one.opcode, one.result
        place = one.place
        if isinstance(place, Register):
            if result is not None:
                self._values[result.name] = self._variables[place]
            else:
                self._set(place, self._read(one.operands[0]), mask, whole)
            return
        operands = [self._read(each) for each in one.operands]
        if isinstance(place, KernelBuffer):
            found = self._memory(one, self._memories[place], operands, mask)
        elif (binary := BINARY.get(opcode)) is not None:
            if opcode in DIVISIONS and bool((mask & (operands[1] == 0)).any()):
                raise KernelFaultError("an integer is divided by zero")
            found = binary(*operands)
        elif (compare := COMPARE.get(opcode)) is not None:
            found = compare(*operands)
        else:
            found = self._special(one, opcode, operands, mask)
        if result is not None:
            assert found is not None
            self._values[result.name] = found
        flops = _FLOPS.get(opcode)
        if flops is not None:
            self.statistics.flops += flops * int(np.count_nonzero(mask))

    def _special(self, one: Operation, opcode: str, operands: list[Array], mask: Array) -> Array | None:
        match opcode.partition(" "):
            case "select", _, _:
                condition, first, second = operands
                return cast("Array", np.where(condition, first, second))
            case "fneg", _, _:
                return -operands[0]
            case "intrinsic", _, name:
                return INTRINSICS[name](*operands)
            case "pack_e4m3", _, _:
                return arithmetic.pack_e4m3(*operands)
            case "thread", _, _:
                return self._thread
            case "block", _, _:
                return self._block
            case "blocks", _, _:
                return np.asarray(self._blocks, np.int32)
            case "barrier", _, _:
                self._require_together(mask, self._kernel.block, "a barrier")
                self._time += mask.reshape(-1, self._kernel.block)[:, 0]
                return None
            case "condition", _, _:
                self._set_condition(operands, mask)
                return None
            case "mma", _, kind:
                self._multiply_matrices(one, kind, operands, mask)
                return None
            case "tf32", _, _:
                return matrix.round_tf32(operands[0])
            case "exp2", _, _:
                return matrix.exp2_approximate(operands[0])
            case "shuffle", _, mode:
                return self._shuffle(mode, operands[0], operands[1], mask)
            case _:
                assert one.result is not None
                return arithmetic.convert(opcode, operands[0], one.result.type)

    def _set_condition(self, operands: list[Array], mask: Array) -> None:
        handles, values = (np.broadcast_to(each, self._lanes)[mask] for each in operands)
        if len(handles) > 1:
            raise KernelFaultError(f"{len(handles)} threads set conditions of a graph: which of them comes last?")
        if self._condition is None:
            raise KernelFaultError("a condition of a graph is set by a kernel that is launched outside of one")
        self._condition(int(handles[0]), int(values[0]))

    def _set(self, place: Register, value: Array, mask: Array, whole: bool) -> None:
        before = self._variables.get(place)
        if whole or before is None:
            self._variables[place] = np.array(np.broadcast_to(value, self._lanes))
        else:
            self._variables[place] = np.where(mask, value, before)

    @staticmethod
    def _require_together(mask: Array, group: int, what: str) -> None:
        active = mask.reshape(-1, group)
        if (active.any(1) != active.all(1)).any():
            raise KernelFaultError(
                f"{what} is reached by some threads of a {'warp' if group == WARP else 'block'} only"
            )

    def _shuffle(self, mode: str, value: Array, lane: Array, mask: Array) -> Array:
        self._require_together(mask, WARP, "a shuffle")
        here = self._thread % WARP
        there = {"xor": here ^ lane, "down": here + lane, "up": here - lane, "index": lane & (WARP - 1)}[mode]
        there = np.where((there < 0) | (there >= WARP), here, there)
        first = np.arange(self._lanes) // WARP * WARP
        return np.broadcast_to(value, self._lanes)[first + there]

    def _multiply_matrices(self, one: Operation, kind: str, operands: list[Array], mask: Array) -> None:
        self._require_together(mask, WARP, "a product of matrices")
        active = np.flatnonzero(mask)
        made = matrix.multiply(kind, [np.broadcast_to(each, self._lanes)[active] for each in operands])
        for result, values in zip(one.results, made, strict=True):
            found = np.zeros(self._lanes, np.float32)
            found[active] = values
            self._values[result.name] = found
        sums = len(active) * matrix.SUMS  # of which each is one product and one addition for each step of depth
        self.statistics.flops += 2 * sums * matrix.MATRIX_KINDS[kind].depth

    def _memory(self, one: Operation, memory: KernelMemory, operands: list[Array], mask: Array) -> Array | None:
        buffer, kind = one.place, one.opcode.partition(" ")
        assert isinstance(buffer, KernelBuffer)
        active = np.flatnonzero(mask)
        owner = {"global": self._slot, "shared": self._slot, "local": np.arange(self._lanes)}[buffer.space][active]
        at = memory.places(np.broadcast_to(operands[0], self._lanes)[active], owner)
        thread, time = self._number[active], self._time[self._slot[active]]
        values = [np.broadcast_to(each, self._lanes)[active] for each in operands[1:]]
        is_global, width = buffer.space == "global", SIZES[buffer.type] * len(active)
        if kind[0] == "store":
            memory.write(at, values[0], thread, time, self._kernel.block)
            self.statistics.stored += width * is_global
            return None
        found = np.zeros(self._lanes, DTYPES[buffer.type])
        self.statistics.loaded += width * is_global
        if kind[0] == "load":
            found[active] = memory.read(at, thread, time, self._kernel.block)
            return found
        memory.touch_atomically(at, thread, time, self._kernel.block)
        self.statistics.stored += width * is_global
        found[active] = _atomically(kind[2] or kind[0], memory.elements, at, values)
        return found


def _atomically(kind: str, elements: Array, places: Array, values: list[Array]) -> Array:
    """One thread after the other, in their order; what each found."""
    before = np.empty(len(places), elements.dtype)
    if len(np.unique(places)) == len(places):
        before[:] = elements[places]
        elements[places] = _changed(kind, before, values)
        return before
    for position, place in enumerate(places.tolist()):
        before[position] = elements[place]
        one = [each[position : position + 1] for each in values]
        elements[place] = _changed(kind, before[position : position + 1], one)[0]
    return before


def _changed(kind: str, before: Array, values: list[Array]) -> Array:
    match kind:
        case "add" | "fadd":
            return before + values[0]
        case "max":
            return np.maximum(before, values[0])
        case "min":
            return np.minimum(before, values[0])
        case "umax" | "umin":
            choose: Any = np.maximum if kind == "umax" else np.minimum
            unsigned = np.dtype(f"u{before.dtype.name}")
            return choose(before.view(unsigned), values[0].view(unsigned)).view(before.dtype)
        case "and":
            return before & values[0]
        case "or":
            return before | values[0]
        case "xor":
            return before ^ values[0]
        case "exchange":
            return values[0]
        case "compare_exchange":
            return cast("Array", np.where(before == values[0], values[1], before))
        case _:
            raise KernelFaultError(f"there is no atomic {kind}")
