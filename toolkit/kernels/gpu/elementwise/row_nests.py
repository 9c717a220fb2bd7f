"""Elementwise ops with reductions of the last axis between them, as one kernel: softmax, layer norms, their gradients.

A team of threads (`primitives.row_code`) holds a row in registers: what is read is read once, sums and maxima of the
row are put together between the threads, and what follows them is computed from what is held. A kernel is made for the
ops, the types, the length of the rows and how operands lie under them; how many rows there are is a number that it is
launched with.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, cast

from toolkit.errors import InternalError
from toolkit.kernels.cpu.native.code import Lanes
from toolkit.kernels.cuda.simt.builder import KernelBuilder
from toolkit.kernels.cuda.simt.ir import WARP, SimtKernel, Value
from toolkit.kernels.gpu.elementwise.nests import FusedKernel, NestOperand, NestStep, collapsed, step_result, steps_name
from toolkit.kernels.gpu.primitives.element_types import Number, load, number_type, real, rounded, store
from toolkit.kernels.gpu.primitives.reduce_code import largest, smallest
from toolkit.kernels.gpu.primitives.row_code import RowTeam, TeamShape, softmax_of

#: numbers of a row that fit: 512 threads with eight each
LONGEST_ROW = 4096
#: numbers of a row that a thread holds, by how many values of the whole row there are at most: 255 registers are there
_HELD = ((4, 32), (16, 16))
_HELD_OF_MANY = 8
_BYTES = 16  # that a thread loads at a time
_BLOCK = 256  # threads of a block whose teams are warps or less
_INT32 = (1 << 31) - 1

Combine = Callable[[KernelBuilder, Lanes, Lanes], Lanes]


def _add(k: KernelBuilder, a: Lanes, b: Lanes) -> Lanes:
    return k.add(a, b)


#: reductions: what puts two numbers together, and what stands where the row has ended
REDUCTIONS: dict[str, tuple[Combine, float]] = {
    "Sum": (_add, 0.0), "Mean": (_add, 0.0), "Max": (largest, -math.inf), "Min": (smallest, math.inf),
}  # fmt: skip
#: ops that make a row of a row, by its sum and its largest number
ROW_OPS = ("Softmax", "LogSoftmax")
#: a step that does nothing: the number of each row in another shape
RESHAPE = "Reshape"
_FLOATING = ("float16", "bfloat16", "float32", "float64")


def is_reduction(op: str, dtype: str) -> bool:
    """Whether an op of this type can be a step that makes one number of a row (`REDUCTIONS`) or reads all of it."""
    return dtype in _FLOATING and (op in REDUCTIONS or op in ROW_OPS)


@dataclass(frozen=True, slots=True)
class _Access:
    """How an operand lies under the rows.

    Attributes:
        dtype: NumPy's name.
        whole: it has a number for each column; else one for the row.
        axes: for each axis that is left of those before the last, whether it moves along it.
    """

    dtype: str
    whole: bool
    axes: tuple[bool, ...]


@dataclass(frozen=True, slots=True)
class _RowLayout:
    """Attributes:
    columns: of a row.
    team: how many threads hold one.
    accesses: of the operands.
    """

    columns: int
    team: TeamShape
    accesses: tuple[_Access, ...]


def whole_rows(steps: Sequence[NestStep], operands: Sequence[bool]) -> list[bool]:
    """Which of the operands and results have a number for each column: False for one number a row.

    Args:
        operands: whether each operand has.
    """
    found = list(operands)
    for step in steps:
        found.append(step.op not in REDUCTIONS and any(found[i] for i in step.inputs))
    return found


def fused_rows(
    steps: Sequence[NestStep], operands: Sequence[NestOperand], outputs: Sequence[int], shape: Sequence[int]
) -> FusedKernel:
    """One kernel for a list of operations on tensors of a shape, and reductions of their last axis.

    Args:
        steps: in order; `REDUCTIONS` make one number of a row, which those behind them take for all of its columns.
        operands: what is read; strides for each dimension of `shape`, the last one 1, or 0 for one number a row.
        outputs: positions, as in `NestStep.inputs`, of what is written: of the whole shape, or a number for each row;
            dense.

    Returns:
        the kernel, the blocks and the numbers to launch it with, behind operands and outputs.

    Raises:
        InternalError: rows are empty or too long, an op cannot be written, or a stride is none that rows have.
    """
    *lead, columns = shape
    if not 0 < columns <= LONGEST_ROW or 0 in lead:
        raise InternalError(f"rows of {columns} numbers were to be held in registers; expected 1 to {LONGEST_ROW}")
    for operand in operands:
        if len(operand.strides) != len(shape) or operand.strides[-1] not in (0, 1):
            raise InternalError(f"an operand with strides {list(operand.strides)} under rows of {list(shape)}")
    sizes, strides = collapsed(lead, [operand.strides[:-1] for operand in operands])
    if math.prod(sizes) == 1:  # nothing moves
        strides = [[0] for _ in operands]
    is_whole = whole_rows(steps, [operand.strides[-1] == 1 for operand in operands])
    types = [number_type(name) for name in (*(o.dtype for o in operands), *(step.dtype for step in steps))]
    vector = _vector(
        columns,
        [(types[i].size, strides[i] if i < len(operands) else []) for i in range(len(types)) if is_whole[i]],
    )
    team = _team(columns, vector, sum(is_whole))
    rows = math.prod(sizes)
    reach = max([rows * columns, *(sum((n - 1) * s for n, s in zip(sizes, own, strict=True)) for own in strides)])
    index = "i32" if reach + _BLOCK * columns <= _INT32 else "i64"
    accesses = tuple(
        _Access(operand.dtype, operand.strides[-1] == 1, tuple(stride != 0 for stride in own))
        for operand, own in zip(operands, strides, strict=True)
    )
    layout = _RowLayout(columns, TeamShape(team.threads, team.slots, vector, index), accesses)
    numbers = [rows, *sizes[1:]]
    for access, own in zip(accesses, strides, strict=True):
        numbers += [stride // (vector if access.whole else 1) for stride in own if stride]
    kernel = _made(tuple(steps), layout, tuple(outputs))
    return FusedKernel(kernel, layout.team.blocks(rows), tuple(numbers))


def _vector(columns: int, whole: Sequence[tuple[int, Sequence[int]]]) -> int:
    """Elements that a thread loads at a time, given size and strides of what has a number for each column."""
    vector = max(1, _BYTES // max((size for size, _ in whole), default=_BYTES))
    while vector > 1 and (columns % vector or any(stride % vector for _, own in whole for stride in own)):
        vector //= 2
    return vector


def _team(columns: int, vector: int, values: int) -> TeamShape:
    """The smallest team that holds a row, so that few shuffles put it together."""
    most = next((held for count, held in _HELD if values <= count), _HELD_OF_MANY)
    vectors = -(-columns // vector)
    for threads in (1, 2, 4, 8, 16, 32, 64, 128, 256, 512):
        slots = -(-vectors // threads)
        # a warp reads what lies together
        if slots * vector <= most and (slots == 1 or threads >= WARP):
            return TeamShape(threads, slots, vector, "i32")
    return TeamShape(512, -(-vectors // 512), vector, "i32")


@functools.lru_cache(maxsize=1024)
def _made(steps: tuple[NestStep, ...], layout: _RowLayout, outputs: tuple[int, ...]) -> SimtKernel:
    return _RowNest(steps, layout, outputs).made()


class _RowNest:
    """Writes one kernel."""

    def __init__(self, steps: tuple[NestStep, ...], layout: _RowLayout, outputs: tuple[int, ...]):
        self._steps, self._layout, self._outputs = steps, layout, outputs
        accesses = layout.accesses
        self._types = [number_type(name) for name in (*(a.dtype for a in accesses), *(step.dtype for step in steps))]
        k = self._k = KernelBuilder(f"rows_{steps_name(steps)}", layout.team.block)
        self._given = [k.buffer(f"x{i}", number_type(access.dtype).memory) for i, access in enumerate(accesses)]
        self._made = [k.buffer(f"y{i}", self._types[output].memory, written=True) for i, output in enumerate(outputs)]

    def made(self) -> SimtKernel:
        k, layout = self._k, self._layout
        shape, index = layout.team, layout.team.index
        rows = k.scalar("rows", index)
        axes = len(layout.accesses[0].axes) if layout.accesses else 1
        sizes = [k.scalar(f"size{axis}", index) for axis in range(1, axes)]
        strides = [
            [k.scalar(f"stride{i}_{axis}", index) if moves else None for axis, moves in enumerate(access.axes)]
            for i, access in enumerate(layout.accesses)
        ]
        vectors = -(-layout.columns // shape.vector)
        team = RowTeam(k, shape, rows, k.number(vectors, index))
        # teams beyond the last row compute the last one once more, and write nothing
        row = team.row
        if team.active is not None:
            row = k.select(team.active, row, k.sub(rows, k.number(1, index)))
        places = self._places(row, sizes)
        columns, inside = self._columns(team, vectors)
        values: list[Any] = []
        for buffer, access, own in zip(self._given, layout.accesses, strides, strict=True):
            terms = [k.mul(place, one) for place, one in zip(places, own, strict=True) if one is not None]
            first = functools.reduce(k.add, terms) if terms else None
            values.append(self._loaded(buffer, access, first, columns))
        for step in self._steps:
            values.append(self._computed(step, values, team, inside))
        for buffer, output in zip(self._made, self._outputs, strict=True):
            self._store(buffer, values[output], self._types[output], team, columns, inside)
        return k.finish()

    def _places(self, row: Value, sizes: Sequence[Value]) -> list[Value]:
        """Where a row is along each axis."""
        k, found, rest = self._k, list[Value](), row
        for size in reversed(sizes):
            quotient = k.binary("udiv", rest, size)
            found.append(k.sub(rest, k.mul(quotient, size)))
            rest = quotient
        return [rest, *reversed(found)]

    def _columns(self, team: RowTeam, vectors: int) -> tuple[list[Value], list[Value | None]]:
        """The vectors of a thread: their numbers in the row, of the last one's where there is none; and whether so."""
        k, shape = self._k, team.shape
        columns: list[Value] = []
        inside: list[Value | None] = []
        for slot in range(shape.slots):
            place = k.add(team.thread, k.number(slot * shape.threads, shape.index)) if slot else team.thread
            if (slot + 1) * shape.threads <= vectors:
                columns.append(place)
                inside.append(None)
            else:
                there = k.compare("slt", place, k.number(vectors, shape.index))
                columns.append(k.select(there, place, k.number(vectors - 1, shape.index)))
                inside.append(there)
        return columns, inside

    def _loaded(self, buffer: Any, access: _Access, first: Value | None, columns: Sequence[Value]) -> Any:
        """The thread's numbers of an operand, or the row's one."""
        k, type = self._k, number_type(access.dtype)
        if not access.whole:
            place = k.number(0, "i64") if first is None else k.convert(first, "i64")
            return load(k, buffer, place, 0, type)
        vector = self._layout.team.vector
        found: list[Number] = []
        for column in columns:
            base = self._scaled(column if first is None else k.add(first, column))
            found += [load(k, buffer, base, j, type) for j in range(vector)]
        return found

    def _scaled(self, vectors: Value) -> Value:
        k, vector = self._k, self._layout.team.vector
        wide = k.convert(vectors, "i64")
        return wide if vector == 1 else k.mul(wide, k.number(vector, "i64"))

    def _computed(self, step: NestStep, values: Sequence[Any], team: RowTeam, inside: Sequence[Value | None]) -> Any:
        """A step's result: numbers of a row in a list, or one number."""
        k, given = self._k, [values[i] for i in step.inputs]
        if step.op == RESHAPE:
            return given[0]
        types, target = [self._types[i] for i in step.inputs], number_type(step.dtype)
        if step.op in REDUCTIONS:
            combine, outside = REDUCTIONS[step.op]
            total = team.total(self._masked(given[0], inside, outside), lambda a, b: combine(k, a, b))
            if step.op == "Mean":
                total = k.div(total, k.number(self._layout.columns, total.type))
            return rounded(k, total, target)  # pyright: ignore[reportArgumentType] -- a builder's lanes are values
        if step.op in ROW_OPS:
            made = softmax_of(k, team, self._masked(given[0], inside, -math.inf), logarithm=step.op == "LogSoftmax")
            return [rounded(k, each, target) for each in made]  # pyright: ignore[reportArgumentType] -- as above
        count = self._layout.team.slots * self._layout.team.vector
        if not any(isinstance(each, list) for each in given):
            return step_result(k, step, given, types)
        return [
            step_result(k, step, [each[j] if isinstance(each, list) else each for each in given], types)
            for j in range(count)
        ]

    def _masked(self, row: Sequence[Number], inside: Sequence[Value | None], outside: float) -> list[Lanes]:
        """A row's numbers, with another one where it has ended."""
        k, vector = self._k, self._layout.team.vector
        found: list[Lanes] = []
        for at, number in enumerate(row):
            value, there = real(number), inside[at // vector]
            found.append(value if there is None else k.select(there, value, k.number(outside, value.type)))
        return found

    def _store(
        self, buffer: Any, value: Any, type: Any, team: RowTeam, columns: Sequence[Value],
        inside: Sequence[Value | None],
    ) -> None:  # fmt: skip
        k, vector = self._k, self._layout.team.vector
        if not isinstance(value, list):
            with k.when(team.first):
                store(k, buffer, k.convert(team.row, "i64"), 0, value, type)
            return
        numbers = cast("list[Number]", value)
        for slot, (column, there) in enumerate(zip(columns, inside, strict=True)):
            conditions = [each for each in (team.active, there) if each is not None]
            base = self._scaled(k.add(team.begin, column))
            row = numbers[slot * vector : (slot + 1) * vector]
            if conditions:
                with k.when(functools.reduce(k.both, conditions)):
                    for j, number in enumerate(row):
                        store(k, buffer, base, j, number, type)
            else:
                for j, number in enumerate(row):
                    store(k, buffer, base, j, number, type)
