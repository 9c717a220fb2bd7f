"""Elementwise ops as one kernel: every operand is read once, a chain of ops runs in registers, outputs are written.

A kernel is made for the ops and types, and for how operands lie to the outputs: all sizes and strides are numbers that
it is launched with, so that one kernel serves all shapes. Where it can, a thread takes 16 bytes at a time of what is
read or written element by element.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from toolkit.errors import InternalError
from toolkit.kernels.cuda.simt.builder import KernelBuilder
from toolkit.kernels.cuda.simt.ir import SimtKernel, Value
from toolkit.kernels.gpu.operators import (
    basic,
    bessel,
    complex_numbers,
    incomplete,
    integer,
    integrals,
    special,
    table,
    trigonometric,
)
from toolkit.kernels.gpu.primitives.element_types import (
    NUMBER_TYPES,
    ComplexNumber,
    Number,
    NumberType,
    load,
    number_type,
    real,
    rounded,
    store,
)
from toolkit.kernels.gpu.primitives.number_casts import cast_number, is_castable

#: the modules that fill the table of operators
TABLES = (basic, bessel, complex_numbers, incomplete, integer, integrals, special, trigonometric)
BLOCK = 256  # threads: enough blocks for a small tensor, enough threads of a multiprocessor for a large one
_BYTES = 16  # that a thread takes at a time: the widest load that there is
_MOST_ELEMENTS = 8  # of a thread: of 16 single bytes ptxas keeps some of a shift's in memory
#: instructions that a thread's elements may come to before they are no longer written out one after the other
_MOST_WRITTEN_OUT = 480
_INT32 = (1 << 31) - 1


@dataclass(frozen=True, slots=True)
class NestOperand:
    """A tensor that is read.

    Attributes:
        dtype: NumPy's name of its type.
        strides: elements from one index to the next, for each dimension of the nest; 0 where it is broadcast.
    """

    dtype: str
    strides: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class NestStep:
    """An op of a nest.

    Attributes:
        op: its name in graphs.
        inputs: positions among the operands, and behind these the results of the steps before.
        dtype: NumPy's name of the result's type.
        attributes: names and values of those that the op's writer wants (`wanted_attributes`).
    """

    op: str
    inputs: tuple[int, ...]
    dtype: str
    attributes: tuple[tuple[str, Any], ...] = ()


@dataclass(frozen=True, slots=True)
class FusedKernel:
    """A kernel for one shape.

    It is launched with the operands in order, then the outputs, each dense, then `numbers`. It is launched with no
    blocks, which is nothing to launch, where the shape has no elements.
    """

    kernel: SimtKernel
    blocks: int
    numbers: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class _Access:
    """How an operand lies to the outputs.

    Attributes:
        kind: "dense" as the outputs, "scalar" one number, "rows" with strides and side by side along the last
            dimension, "column" with strides and the same number along the last dimension, "strided" in any way.
    """

    dtype: str
    kind: str


@dataclass(frozen=True, slots=True)
class _Layout:
    """Attributes:
    rank: dimensions, after those that can be are put together.
    vector: elements of a thread.
    index: the type of indices, "i32" or "i64".
    has_tail: the elements of the last thread may be fewer.
    stores: how outputs lie; empty where all are dense.
    """

    rank: int
    vector: int
    index: str
    has_tail: bool
    accesses: tuple[_Access, ...]
    stores: tuple[_Access, ...] = ()


def is_writable(op: str, inputs: Sequence[str], output: str) -> bool:
    """Whether an op of these types (NumPy's names) can be a step."""
    if any(name not in NUMBER_TYPES for name in (*inputs, output)):
        return False
    if op == "Cast":
        return is_castable(inputs[0], output)
    return table.find(op, inputs) is not None


def wanted_attributes(op: str, inputs: Sequence[str]) -> tuple[str, ...]:
    """The attributes of a node that the step of its op needs."""
    if op == "Cast":
        return ("Truncate",)
    found = table.find(op, inputs)
    return () if found is None else found.attributes


def step_weight(op: str, inputs: Sequence[str]) -> int:
    """Roughly how many instructions an op is for each element."""
    found = None if op == "Cast" else table.find(op, inputs)
    return 2 if found is None else found.weight


def fused(
    steps: Sequence[NestStep],
    operands: Sequence[NestOperand],
    outputs: Sequence[int],
    shape: Sequence[int],
    *,
    aligned: bool = True,
    placed: Sequence[tuple[int, ...]] = (),
) -> FusedKernel:
    """One kernel for a list of operations.

    half and bfloat16 are computed in float, and rounded where an op ends, as if each op ran by itself.

    Args:
        steps: in order; each result may be used by later ones.
        operands: what is read; strides for each dimension of `shape`, in elements.
        outputs: positions, as in `NestStep.inputs`, of what is written; each of the whole shape.
        aligned: all tensors begin at a multiple of 16 bytes, as those do that are no parts of others.
        placed: strides of each output, in elements; by default all are dense.

    Returns:
        the kernel, the blocks and the numbers to launch it with.

    Raises:
        InternalError: an op cannot be written (`is_writable` says so), or a stride lacks.
    """
    for own in (*(operand.strides for operand in operands), *placed):
        if len(own) != len(shape):
            raise InternalError(f"an operand has {len(own)} strides in a nest of {len(shape)} dimensions")
    if 0 in shape:
        return FusedKernel(_made(tuple(steps), _flat(operands, steps, outputs), tuple(outputs)), 0, ())
    sizes, strides = collapsed(shape, [*(operand.strides for operand in operands), *placed])
    types = _types(steps, [operand.dtype for operand in operands])
    names = [*types[: len(operands)], *(types[output] for output in outputs if placed)]
    accesses = tuple(_Access(name, _kind(sizes, own)) for name, own in zip(names, strides, strict=True))
    total = math.prod(sizes)
    vector = _vector(steps, operands, outputs, accesses) if aligned else 1
    if all(access.kind in ("dense", "scalar") for access in accesses):
        layout = _Layout(1, vector, "i64", vector > 1, accesses[: len(operands)], accesses[len(operands) :])
        groups, numbers = -(-total // vector), (total,)
    else:
        if len(sizes) == 1:  # strides are told of two dimensions and more
            sizes, strides = [1, *sizes], [[sizes[0] * own[0], *own] for own in strides]
        while vector > 1 and not _fits(vector, sizes, strides, accesses):
            vector //= 2
        if vector == 1:  # then it does not matter how they lie along the last dimension
            accesses = tuple(
                _Access(each.dtype, "strided" if each.kind in ("rows", "column") else each.kind) for each in accesses
            )
        groups = total // vector
        reach = max([total, *(sum((n - 1) * s for n, s in zip(sizes, own, strict=True)) for own in strides)])
        # indices of threads go beyond the elements up to the end of a block
        index = "i32" if reach + BLOCK <= _INT32 else "i64"
        given, made = accesses[: len(operands)], accesses[len(operands) :]
        layout = _Layout(len(sizes), vector, index, False, given, made)
        numbers = (groups, *_numbers(vector, sizes, strides, accesses))
    return FusedKernel(_made(tuple(steps), layout, tuple(outputs)), -(-groups // BLOCK), numbers)


def broadcast_strides(shape: Sequence[int], target: Sequence[int]) -> tuple[int, ...]:
    """The strides of a dense tensor that is broadcast to a shape, for `NestOperand`."""
    padded = (1,) * (len(target) - len(shape)) + tuple(shape)
    found: list[int] = []
    step = 1
    for size in reversed(padded):
        found.append(0 if size == 1 else step)
        step *= size
    return tuple(reversed(found))


# -- how it lies ---------------------------------------------------------------------------------------------------


def _flat(operands: Sequence[NestOperand], steps: Sequence[NestStep], outputs: Sequence[int]) -> _Layout:
    accesses = tuple(_Access(operand.dtype, "dense") for operand in operands)
    vector = _vector(steps, operands, outputs, accesses)
    return _Layout(1, vector, "i64", vector > 1, accesses)


def collapsed(shape: Sequence[int], strides: Sequence[Sequence[int]]) -> tuple[list[int], list[list[int]]]:
    """Fewer dimensions: those of size 1 go, neighbours become one where every operand lies so."""
    sizes: list[int] = []
    steps: list[list[int]] = [[] for _ in strides]
    for axis, size in enumerate(shape):
        if size == 1:
            continue
        own = [operand[axis] for operand in strides]
        if sizes and all(step[-1] == stride * size for step, stride in zip(steps, own, strict=True)):
            sizes[-1] *= size
            for step, stride in zip(steps, own, strict=True):
                step[-1] = stride
        else:
            sizes.append(size)
            for step, stride in zip(steps, own, strict=True):
                step.append(stride)
    if not sizes:
        return [1], [[1] for _ in strides]
    return sizes, steps


def _kind(sizes: Sequence[int], strides: Sequence[int]) -> str:
    step, is_dense = 1, True
    for size, stride in zip(reversed(sizes), reversed(strides), strict=True):
        is_dense = is_dense and stride == step
        step *= size
    if is_dense:
        return "dense"
    if not any(strides):
        return "scalar"
    return {0: "column", 1: "rows"}.get(strides[-1], "strided")


def _vector(
    steps: Sequence[NestStep], operands: Sequence[NestOperand], outputs: Sequence[int], accesses: Sequence[_Access]
) -> int:
    """Elements of a thread: 16 bytes of the widest, fewer of long computations."""
    types = _types(steps, [operand.dtype for operand in operands])
    wide = [number_type(access.dtype).size for access in accesses if access.kind in ("dense", "rows")]
    vector = min(
        _MOST_ELEMENTS, max(1, _BYTES // max([*wide, *(number_type(types[output]).size for output in outputs)]))
    )
    weight = sum(step_weight(step.op, [types[i] for i in step.inputs]) for step in steps)
    while vector > 1 and vector * weight > _MOST_WRITTEN_OUT:
        vector //= 2
    return vector


def _types(steps: Sequence[NestStep], operands: Sequence[str]) -> list[str]:
    return [*operands, *(step.dtype for step in steps)]


def _fits(vector: int, sizes: Sequence[int], strides: Sequence[Sequence[int]], accesses: Sequence[_Access]) -> bool:
    """Whether the elements of a thread are in one row, and lie side by side at a multiple of their number."""
    if sizes[-1] % vector:
        return False
    for own, access in zip(strides, accesses, strict=True):
        if access.kind == "strided" or (access.kind == "rows" and any(stride % vector for stride in own[:-1])):
            return False
    return True


def _numbers(
    vector: int, sizes: Sequence[int], strides: Sequence[Sequence[int]], accesses: Sequence[_Access]
) -> list[int]:
    """Sizes but the first, then the strides of each tensor that has some: of "rows" in groups of `vector`."""
    found = [*sizes[1:-1], sizes[-1] // vector]
    for own, access in zip(strides, accesses, strict=True):
        match access.kind:
            case "rows":
                found += [stride // vector for stride in own[:-1]]
            case "column":
                found += own[:-1]
            case "strided":
                found += own
            case _:
                pass
    return found


# -- the kernel ----------------------------------------------------------------------------------------------------


@functools.lru_cache(maxsize=4096)
def _made(steps: tuple[NestStep, ...], layout: _Layout, outputs: tuple[int, ...]) -> SimtKernel:
    return _Nest(steps, layout, outputs).made()


class _Nest:
    """Writes one kernel."""

    def __init__(self, steps: tuple[NestStep, ...], layout: _Layout, outputs: tuple[int, ...]):
        self._steps, self._layout, self._outputs = steps, layout, outputs
        self._types = [number_type(name) for name in _types(steps, [access.dtype for access in layout.accesses])]
        k = self._k = KernelBuilder(steps_name(steps) or f"copied_{len(outputs)}", BLOCK)
        self._given = [k.buffer(f"x{i}", number_type(access.dtype).memory) for i, access in enumerate(layout.accesses)]
        self._made = [k.buffer(f"y{i}", self._types[output].memory, written=True) for i, output in enumerate(outputs)]

    def made(self) -> SimtKernel:
        k, layout = self._k, self._layout
        total = k.scalar("n", layout.index)
        offsets = self._numbers()
        group = k.global_thread(layout.index)
        vector = k.number(layout.vector, layout.index)
        if layout.has_tail:
            first = k.mul(group, vector)
            behind = k.add(first, vector)
            with k.when(k.compare("sle", behind, total)):
                self._elements(first, layout.vector, offsets)
            with k.otherwise(), k.loop(first, total) as one:
                self._elements(one, 1, offsets)
        else:
            with k.when(k.compare("slt", group, total)):
                self._elements(group, layout.vector, offsets)
        return k.finish()

    def _numbers(self) -> tuple[list[Value], list[list[Value]]]:
        """The sizes, and the strides of each operand and output, among the kernel's arguments."""
        k, layout = self._k, self._layout
        every = (*layout.accesses, *layout.stores)
        if layout.rank == 1:
            return [], [[] for _ in every]
        sizes = [k.scalar(f"size{axis}", layout.index) for axis in range(1, layout.rank)]
        counts = {"rows": layout.rank - 1, "column": layout.rank - 1, "strided": layout.rank}
        strides = [
            [k.scalar(f"stride{i}_{axis}", layout.index) for axis in range(counts.get(access.kind, 0))]
            for i, access in enumerate(every)
        ]
        return sizes, strides

    def _elements(self, index: Value, count: int, numbers: tuple[list[Value], list[list[Value]]]) -> None:
        """Elements side by side: all are read, then computed, then written.

        Args:
            index: of the first element in a nest of one dimension, else of the group.
        """
        k, layout = self._k, self._layout
        sizes, strides = numbers
        places: list[Value] = []
        rest = index
        for size in reversed(sizes):
            quotient = k.binary("udiv", rest, size)
            places.append(k.sub(rest, k.mul(quotient, size)))
            rest = quotient
        places = [rest, *reversed(places)]
        scale = 1 if layout.rank == 1 else layout.vector
        given: list[list[Number]] = []
        for buffer, access, own in zip(self._given, layout.accesses, strides, strict=False):
            first = self._first(index, scale, access, places, own)
            type = number_type(access.dtype)
            many = access.kind in ("dense", "rows") and count > 1
            if many:
                given.append([load(k, buffer, first, j, type) for j in range(count)])
            else:
                given.append([load(k, buffer, first, 0, type)] * count)
        results = [self._computed([each[j] for each in given]) for j in range(count)]
        stores = layout.stores or tuple(_Access("", "dense") for _ in self._outputs)
        behind = strides[len(layout.accesses) :] or [[] for _ in self._outputs]
        for buffer, output, access, own in zip(self._made, self._outputs, stores, behind, strict=True):
            type = self._types[output]
            first = self._first(index, scale, _Access(type.name, access.kind), places, own)
            for j, values in enumerate(results):
                store(k, buffer, first, j, values[output], type)

    def _first(self, index: Value, scale: int, access: _Access, places: list[Value], strides: list[Value]) -> Value:
        """Where the first part of an operand's element is, an i64."""
        k, parts = self._k, number_type(access.dtype).parts
        match access.kind:
            case "dense":
                return self._scaled(index, scale * parts)
            case "scalar":
                return k.number(0, "i64")
            case kind:
                used = places if kind == "strided" else places[:-1]
                terms = [k.mul(place, stride) for place, stride in zip(used, strides, strict=True)]
                terms += [places[-1]] if kind == "rows" else []
                return self._scaled(functools.reduce(k.add, terms), (scale if kind == "rows" else 1) * parts)

    def _scaled(self, index: Value, by: int) -> Value:
        k = self._k
        wide = k.convert(index, "i64")
        return wide if by == 1 else k.mul(wide, k.number(by, "i64"))

    def _computed(self, values: list[Number]) -> list[Number]:
        """An element of all operands and results."""
        found = list(values)
        for step in self._steps:
            types = [self._types[i] for i in step.inputs]
            found.append(step_result(self._k, step, [found[i] for i in step.inputs], types))
        return found


def step_result(k: KernelBuilder, step: NestStep, inputs: list[Number], types: Sequence[NumberType]) -> Number:
    """What a step makes of numbers of these types, rounded to its own.

    Raises:
        InternalError: no kernel computes the op (`is_writable` says so).
    """
    target = number_type(step.dtype)
    attributes = dict(step.attributes)
    if step.op == "Cast":
        made = cast_number(k, inputs[0], types[0], target, bool(attributes.get("Truncate", False)))
    else:
        made = _applied(k, step.op, inputs, [type.name for type in types], attributes, target.register)
    return rounded(k, made, target)


def _applied(
    k: KernelBuilder, op: str, inputs: list[Number], types: list[str], attributes: dict[str, Any], register: str
) -> Number:
    row = table.find(op, types)
    if row is None:
        raise InternalError(f"no kernel for GPUs computes {op} of {', '.join(types)}")
    if not row.in_double:
        return row.write(k, *inputs, **attributes)
    wide = [k.convert(real(each), "double") for each in inputs]
    made = row.write(k, *wide, **attributes)
    return made if isinstance(made, ComplexNumber) else k.convert(made, register)


def steps_name(steps: Sequence[NestStep]) -> str:
    """For people: the ops, as far as a name may be long."""
    whole = "_".join(step.op for step in steps)
    return whole if len(whole) <= 60 else f"{whole[:48]}_and_more_{len(steps)}"
