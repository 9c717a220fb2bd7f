"""Elementwise operations that run together: one pass over memory for a whole chain, compiled to machine code.

Operations of one shape wait until somebody needs one of them; then all that wait become one `FusedLoopNest`.
Nothing is moved before its place in the program, and nothing is held back beyond a change of variables.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from toolkit.compiler.backends.cpu.elementwise.makers import MAKERS, is_maker, write_maker
from toolkit.compiler.backends.cpu.elementwise.operations import (
    FusedLoopNest,
    Made,
    Member,
    Read,
    Source,
    Store,
    Window,
)
from toolkit.compiler.backends.cpu.elementwise.widening import along, repeated, rows_of
from toolkit.compiler.backends.cpu.emission.emit import Emitter
from toolkit.compiler.backends.cpu.emission.instance import Span
from toolkit.compiler.ir.block import Block
from toolkit.compiler.ir.conditions import NONE
from toolkit.compiler.ir.elementwise import ELEMENTWISE
from toolkit.compiler.ir.operation import Operation
from toolkit.compiler.ir.operations.memory import Part
from toolkit.compiler.ir.value import Value
from toolkit.compiler.transforms.elements import is_channels_first
from toolkit.compiler.transforms.waiting import Group, Groups
from toolkit.kernels.cpu.native.code import TYPES, Code, Lanes
from toolkit.kernels.cpu.native.compiler import Function, compiler
from toolkit.kernels.cpu.native.loops import Operand, is_long, nest
from toolkit.kernels.cpu.native.numbers import Numbers
from toolkit.kernels.cpu.native.openmp import OPENMP
from toolkit.kernels.cpu.native.operations import OPERATORS, accepts
from toolkit.kernels.cpu.onednn.library import library, openmp_symbols
from toolkit.kernels.tensors import row_major
from toolkit.target.thresholds import NestThresholds


def has_nests(block: Block) -> bool:
    """Whether there is anything to compile: loading LLVM takes 50 ms."""
    return any(_is_candidate(operation) and operation.op not in MAKERS for operation in block.operations)


def gather_nests(
    block: Block,
    refused: Callable[[Operation], bool],
    changes_variables: Callable[[Operation], bool],
    sizes: NestThresholds,
    *,
    everything: bool = False,
) -> None:
    """Put elementwise operations together.

    Args:
        everything: numbers and single operations too, which NumPy and Python do as well where they run anyway.
    """
    groups = Groups(sizes.separate)
    operations: list[Operation] = []

    def flush(group: Group) -> None:
        groups.remove(group)
        alone = not everything and _are_done_well(group.operations, sizes.large)
        operations.extend(group.operations if alone else [_joined(group.operations)])

    for operation in block.operations:
        is_candidate = _is_candidate(operation, scalars=everything) and not refused(operation)
        key = (operation.output.shape, operation.conditions) if is_candidate else None
        values = operation.inputs
        if operation.conditions is not NONE:
            values = (*values, *(predicate for predicate, _ in operation.predicates))
        for value in values:
            group = groups.place.get(value)
            # a part is read from memory, even if it is the whole
            if group is not None and (group.key != key or isinstance(operation, Part)):
                flush(group)
        if key is None:
            if changes_variables(operation):
                for group in groups:
                    flush(group)
            operations.append(operation)
            continue
        weight = min(_weight(operation), sizes.call)
        related = groups.related(operation, key)
        if related and (
            sum(group.weight for group in related) + weight > sizes.weight
            or len(set(operation.inputs).union(*(group.operands for group in related))) > sizes.operands
        ):
            for group in related:
                flush(group)
            related = []
        groups.add(operation, weight, key, related)
    for group in groups:
        flush(group)
    block.reorder(operations)


def _is_candidate(operation: Operation, *, scalars: bool = False) -> bool:
    """Whether LLVM computes it."""
    if isinstance(operation, Part):
        return True
    if operation.op in MAKERS:
        return is_maker(operation)
    if operation.op not in OPERATORS or len(operation.outputs) != 1:
        return False
    values, target = [*operation.inputs, operation.output], operation.output.shape
    if target is None or any(value.shape is None or value.dtype is None or 0 in value.shape for value in values):
        return False
    if not (target or scalars):
        return False
    if not accepts(operation.op, tuple([value.dtype for value in operation.inputs]), operation.output.dtype):
        return False
    if operation.op.startswith("BiasAdd") and is_channels_first(operation):
        return False
    if OPERATORS[operation.op].divides and not _is_divisor(operation.inputs[1]):
        return False
    # gradients and choices of the old kind want shapes that are equal, or follow rules of their own
    return all(value.shape is not None and _broadcasts(value.shape, target) for value in values) and (
        not ELEMENTWISE[operation.op].same_shapes or all(value.shape == target for value in values)
    )


def _is_divisor(value: Value) -> bool:
    """Whether integers can be divided by a value: by 0 is an error, and the least number by -1 is out of range.

    It is one number, for tensors are read as 0 where a loop's last lanes are beyond their end.
    """
    return value.is_constant and value.size == 1 and np.asarray(value.constant).item() not in (0, -1)


def _broadcasts(shape: tuple[int, ...], target: tuple[int, ...]) -> bool:
    if shape == target:
        return True
    padded = (1,) * (len(target) - len(shape)) + shape
    return len(padded) == len(target) and all(a in (1, b) for a, b in zip(padded, target, strict=True))


def _weight(operation: Operation) -> int:
    return 1 if isinstance(operation, Part) or operation.op in MAKERS else OPERATORS[operation.op].weight


def _joined(operations: Sequence[Operation]) -> Operation:
    """The operations as one."""
    reads: dict[Window, int] = {}
    found: dict[Value, Source] = {}
    members: list[Member] = []

    def source(value: Value) -> Source:
        if value in found:
            return found[value]
        return value.constant if value.is_constant else Read(reads.setdefault(Window(value), len(reads)))

    for operation in operations:
        if isinstance(operation, Part):
            window = Window(operation.input, operation.offset, operation.strides)
            found[operation.output] = Read(reads.setdefault(window, len(reads)))
            continue
        if operation.op in MAKERS:
            member = MAKERS[operation.op].member(operation, source)
        else:
            attributes = {name: operation.step.node.attr(name) for name in OPERATORS[operation.op].attributes}
            member = Member(operation.op, tuple(map(source, operation.inputs)), operation.output.dtype, attributes)
        found[operation.output] = Made(len(members))
        members.append(member)
    own = set(operations)
    outputs = [
        value
        for value in found
        if value.is_result or value.is_predicate or any(user not in own for user in value.users)
    ]
    for operation in operations:
        operation.drop_operands()
    first = operations[0]
    shape = first.output.shape
    assert shape is not None
    return FusedLoopNest(
        shape=shape,
        reads=tuple(reads),
        members=tuple(members),
        stores=tuple(Store(found[value]) for value in outputs),
        weight=sum(map(_weight, operations)),
        outputs=outputs,
        steps=[step for operation in operations for step in operation.steps],
        conditions=first.conditions,
    )


def _are_done_well(operations: Sequence[Operation], large: int) -> bool:
    """Whether operations are as fast one by one, each one call of NumPy or one primitive.

    Args:
        large: elements of a tensor that NumPy had better not compute with one thread.
    """
    return all(operation.op in MAKERS for operation in operations) or (
        len(operations) == 1 and _is_done_well(operations[0], large)
    )


def _is_done_well(operation: Operation, large: int) -> bool:
    row = ELEMENTWISE.get(operation.op)
    is_large = operation.output.size >= large
    return row is not None and row.single and not (is_large and row.one_thread)


@dataclass(frozen=True, slots=True)
class _Written:
    """What equal nests have in common.

    Attributes:
        rows: the shape of the nest where that is long rows (`widening`); None where it is the operation's own.
        reaches: bytes from the first element that is touched to the end of the last: of what is read, of constant
            tensors, of what is written.
        given: the numbers that the code takes behind those.
    """

    function: Function
    rows: tuple[int, int] | None
    reaches: Sequence[int]
    given: Sequence[int]


def write_nest(emitter: Emitter, operation: FusedLoopNest) -> None:
    """Compile the loop, or take that of an equal nest, and call it."""
    reads, windows = operation.reads, operation.written()
    constants: list[Any] = []
    for source in (source for member in operation.members for source in member.sources):
        if not isinstance(source, Read | Made) and source.size != 1 and all(source is not c for c in constants):
            constants.append(source)
    arrays = [np.ascontiguousarray(array) for array in constants]
    written = emitter.alike(
        _key(operation, windows, constants), lambda: _compiled(emitter, operation, windows, constants, arrays)
    )
    if written.rows is not None:
        arrays = [repeated(array, operation.shape[-1], written.rows[1]) for array in arrays]
    arrays = [emitter.kept(array) for array in arrays]
    things = [
        *((window.value, window.offset) for window in reads), *((array, 0) for array in arrays),
        *((window.value, window.offset) for window in windows),
    ]  # fmt: skip
    emitter.execute_native(
        written.function,
        [*(Span(thing, reach, offset=first * int(thing.dtype.itemsize))
           for (thing, first), reach in zip(things, written.reaches, strict=True)), *written.given],
    )  # fmt: skip


def _key(operation: FusedLoopNest, windows: Sequence[Window], constants: Sequence[Any]) -> Hashable:
    """All that a nest's code follows from: nests with the same key have the same code."""

    def of_source(source: Source) -> Hashable:
        if isinstance(source, Read | Made):
            return source
        if source.size == 1:  # a number in the code: the bytes of it, for zeros of either sign are equal
            return source.dtype, source.tobytes()
        return next(index for index, array in enumerate(constants) if array is source)

    members = [
        (member.op, member.dtype, tuple(map(of_source, member.sources)), repr(member.attributes))
        for member in operation.members
    ]
    return (
        write_nest,
        operation.shape,
        operation.weight,
        tuple(members),
        tuple([store.source for store in operation.stores]),
        tuple([(w.value.dtype, w.value.shape, w.strides) for w in (*operation.reads, *windows)]),
        tuple([(array.dtype, array.shape) for array in constants]),
    )


def _compiled(
    emitter: Emitter, operation: FusedLoopNest, windows: Sequence[Window], constants: Sequence[Any],
    arrays: Sequence[Any],
) -> _Written:  # fmt: skip
    """The code of a nest: the same for all sizes and numbers, which it is given.

    Args:
        constants: its constant tensors.
        arrays: the same, dense.
    """
    members, reads, stores = operation.members, operation.reads, operation.stores
    shape = operation.shape
    numbers = Numbers(len(reads) + len(arrays) + len(windows))

    def body(code: Code, given: Sequence[Lanes]) -> list[Lanes]:
        made: list[Lanes] = []
        fixed = {id(array): lanes for array, lanes in zip(constants, given[len(reads) :], strict=True)}

        def lanes(source: Source, dividing: str = "") -> Lanes:
            """The lanes of a source; of the op that divides by it."""
            if isinstance(source, Made):
                return made[source.index]
            if isinstance(source, Read):
                return given[source.index]
            if id(source) in fixed:
                return fixed[id(source)]
            number, type = source.reshape(()).item(), TYPES[source.dtype.name]
            in_text = type == "i1" or _divides_faster(dividing, number)
            return code.number(number, type) if in_text else numbers.lanes(number, type)

        for member in members:
            sources = [lanes(each, member.op if at == 1 else "") for at, each in enumerate(member.sources)]
            if member.op in MAKERS:
                made.append(write_maker(code, member, *sources))
            else:
                made.append(OPERATORS[member.op].write(code, *sources, **member.attributes))
        return [lanes(store.source) for store in stores]

    operands = [_operand(window.value, shape, window.strides) for window in reads]
    results = [_operand(window.value, shape, window.strides) for window in windows]
    rows = rows_of(shape, [*operands, *results], arrays, emitter.target.nests)
    if rows is not None:
        operands, results = ([along(operand, rows[1]) for operand in each] for each in (operands, results))
        arrays = [repeated(array, shape[-1], rows[1]) for array in arrays]
        shape = rows
    operands += [_operand(array, shape) for array in arrays]
    weight, target = operation.weight, emitter.target
    may_spread = is_long(shape, weight, target.threads.nest) and library() is not None
    symbols = openmp_symbols(*OPENMP) if may_spread else {}
    calls = weight > target.nests.written_out
    text = nest(shape, operands, results, body, calls=calls, spread=bool(symbols), numbers=numbers)
    machine = compiler()
    assert machine is not None
    function = machine.function(text, symbols)
    return _Written(function, rows, [operand.reach(shape) for operand in (*operands, *results)], numbers.given)


def _divides_faster(op: str, divisor: float) -> bool:
    """Whether an op is faster with its divisor in the text: integers are multiplied then, and so are floats where that
    is exact, by powers of two."""
    if op == "RealDiv":
        return math.isfinite(divisor) and abs(math.frexp(divisor)[0]) == 0.5
    return op in OPERATORS and OPERATORS[op].divides


def _operand(thing: Any, shape: tuple[int, ...], strides: tuple[int, ...] | None = None) -> Operand:
    own: tuple[int, ...] = thing.shape if strides is None else shape
    padded = (1,) * (len(shape) - len(own)) + own
    steps = strides or row_major(padded)
    return Operand(
        TYPES[thing.dtype.name], tuple(0 if a == 1 != b else s for a, b, s in zip(padded, shape, steps, strict=True))
    )
