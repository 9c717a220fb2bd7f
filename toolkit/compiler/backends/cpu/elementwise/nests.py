"""Elementwise operations that run together: one pass over memory for a whole chain, compiled to machine code.

Operations of one shape wait until somebody needs one of them; then all that wait become one operation, "nest".
Nothing is moved before its place in the program, and nothing is held back beyond a change of variables.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from toolkit.compiler.backends.cpu.elementwise.makers import MAKERS, is_maker, write_maker
from toolkit.compiler.backends.cpu.elementwise.widening import along, repeated, rows_of
from toolkit.compiler.backends.cpu.emission.emit import Emitter
from toolkit.compiler.backends.cpu.emission.instance import Span
from toolkit.compiler.ir.block import Block
from toolkit.compiler.ir.operation import Operation, Untyped
from toolkit.compiler.ir.value import Value
from toolkit.compiler.transforms.elements import COMPOSITIONS, is_channels_first
from toolkit.compiler.transforms.waiting import Group, Groups
from toolkit.kernels.cpu.native.code import TYPES, Code, Lanes
from toolkit.kernels.cpu.native.compiler import compiler
from toolkit.kernels.cpu.native.loops import OPENMP, Operand, is_long, nest
from toolkit.kernels.cpu.native.operations import OPERATORS, accepts
from toolkit.kernels.cpu.onednn.library import library, openmp_symbols
from toolkit.kernels.cpu.onednn.memory import row_major

_MAX_WEIGHT = 600  # instructions of one nest: LLVM's time grows faster than their number
_CALL = 4  # instructions that a call of a function takes
_MAX_OPERANDS = 40


@dataclass(slots=True)
class Member:
    """One operation of a nest.

    Attributes:
        sources: an index of what the nest reads, a member, or a constant each.
    """

    operation: Operation
    sources: list[int | Member | Any]


def has_nests(block: Block) -> bool:
    """Whether there is anything to compile: loading LLVM takes 50 ms."""
    return any(_is_candidate(operation) and operation.kind not in MAKERS for operation in block.operations)


def gather_nests(
    block: Block,
    refused: Callable[[Operation], bool],
    changes_variables: Callable[[Operation], bool],
    *,
    everything: bool = False,
) -> None:
    """Put elementwise operations together.

    Args:
        everything: numbers and single operations too, which NumPy and Python do as well where they run anyway.
    """
    groups = Groups()
    operations: list[Operation] = []

    def flush(group: Group) -> None:
        groups.remove(group)
        alone = not everything and _are_done_well(group.operations)
        operations.extend(group.operations if alone else [_joined(group.operations)])

    for operation in block.operations:
        is_candidate = _is_candidate(operation, scalars=everything) and not refused(operation)
        key = (operation.output.shape, operation.guard) if is_candidate else None
        for value in (*operation.inputs, *(predicate for predicate, _ in operation.predicates)):
            group = groups.place.get(value)
            # a part is read from memory, even if it is the whole
            if group is not None and (group.key != key or operation.kind == "part"):
                flush(group)
        if key is None:
            if changes_variables(operation):
                for group in groups:
                    flush(group)
            operations.append(operation)
            continue
        weight = min(_weight(operation), _CALL)
        related = groups.related(operation, key)
        if related and (
            sum(group.weight for group in related) + weight > _MAX_WEIGHT
            or len(set(operation.inputs).union(*(group.operands for group in related))) > _MAX_OPERANDS
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
    if operation.kind == "part":
        return True
    if operation.kind in MAKERS:
        return is_maker(operation)
    if len(operation.outputs) != 1 or operation.kind in COMPOSITIONS:
        return False
    values, target = [*operation.inputs, operation.output], operation.output.shape
    if target is None or any(value.shape is None or value.dtype is None or 0 in value.shape for value in values):
        return False
    if not (target or scalars):
        return False
    if not accepts(operation.kind, [value.dtype for value in operation.inputs], operation.output.dtype):
        return False
    if operation.kind.startswith("BiasAdd") and is_channels_first(operation):
        return False
    if OPERATORS[operation.kind].divides and not _is_divisor(operation.inputs[1]):
        return False
    # gradients and choices of the old kind want shapes that are equal, or follow rules of their own
    return all(value.shape is not None and _broadcasts(value.shape, target) for value in values) and (
        operation.kind not in _STRICT or all(value.shape == target for value in values)
    )


def _is_divisor(value: Value) -> bool:
    """Whether integers can be divided by a value: by 0 is an error, and the least number by -1 is out of range.

    It is one number, for tensors are read as 0 where a loop's last lanes are beyond their end.
    """
    return value.is_constant and value.size == 1 and np.asarray(value.constant).item() not in (0, -1)


_STRICT = frozenset(op for op in OPERATORS if op.endswith("Grad")) | {"AddN", "Select"}


def _broadcasts(shape: tuple[int, ...], target: tuple[int, ...]) -> bool:
    padded = (1,) * (len(target) - len(shape)) + shape
    return len(padded) == len(target) and all(a in (1, b) for a, b in zip(padded, target, strict=True))


def _weight(operation: Operation) -> int:
    return 1 if operation.kind == "part" or operation.kind in MAKERS else OPERATORS[operation.kind].weight


@dataclass(frozen=True, slots=True)
class Window:
    """What a nest reads or writes: a tensor, or a part of one.

    Attributes:
        offset: elements before its first.
        strides: elements, of every dimension; None: it is dense.
    """

    value: Value
    offset: int = 0
    strides: tuple[int, ...] | None = None


def _joined(operations: Sequence[Operation]) -> Operation:
    """The operations as one."""
    members: dict[Value, Member] = {}
    reads: dict[Window, int] = {}
    for operation in operations:
        sources: list[Any] = []
        for value in operation.inputs:
            if operation.kind == "part":
                window = Window(value, operation.attrs["offset"], operation.attrs["strides"])
                sources.append(reads.setdefault(window, len(reads)))
            elif value in members:
                sources.append(members[value])
            elif value.is_constant:
                sources.append(value.constant)
            else:
                sources.append(reads.setdefault(Window(value), len(reads)))
        members[operation.output] = Member(operation, sources)
    own = set(operations)
    outputs = [
        value
        for value in members
        if value.is_result or value.is_predicate or any(user not in own for user in value.users)
    ]
    steps = [step for operation in operations for step in operation.steps]
    for operation in operations:
        operation.set_inputs(())
    first = operations[0]
    inputs = dict.fromkeys(window.value for window in reads)
    joined = Untyped(
        "nest", inputs, outputs, steps, members=list(members.values()), reads=list(reads), shape=first.output.shape
    )
    joined.guard = first.guard
    return joined


def _are_done_well(operations: Sequence[Operation]) -> bool:
    """Whether operations are as fast one by one, each one call of NumPy or one primitive."""
    return all(operation.kind in MAKERS for operation in operations) or (
        len(operations) == 1 and _is_done_well(operations[0])
    )


def _is_done_well(operation: Operation) -> bool:
    is_large = operation.output.size >= _LARGE
    return operation.kind in _DONE_WELL and not (is_large and operation.kind in _BY_ONE_THREAD)


_LARGE = 1 << 15  # elements
#: those which primitives get wrong where there is NaN, so that NumPy has them
_BY_ONE_THREAD = frozenset({"Exp", "Maximum", "Minimum", "Relu"})
_DONE_WELL = frozenset({"Add", "AddV2", "Sub", "Mul", "RealDiv", "Neg", "Square", "Abs", "Maximum", "Minimum", "Sqrt",
                        "Exp", "BiasAdd", "Less", "LessEqual", "Greater", "GreaterEqual", "LogicalAnd", "LogicalOr",
                        "LogicalNot", "Relu"})  # fmt: skip


def write_nest(emitter: Emitter, operation: Operation) -> None:
    """Compile the loop, and call it; attrs `writes`, if there, says where outputs go that are parts of others."""
    members: list[Member] = operation.attrs["members"]
    reads: list[Window] = operation.attrs["reads"]
    writes: list[tuple[Value, Window]] = operation.attrs.get("writes") or [(v, Window(v)) for v in operation.outputs]
    shape: tuple[int, ...] = operation.attrs["shape"]
    constants: list[Any] = []

    def body(code: Code, given: Sequence[Lanes]) -> list[Lanes]:
        made: dict[int, Lanes] = {}
        taken = iter(given[len(reads) :])
        fixed = {id(array): next(taken) for array in constants}

        def lanes(source: Any) -> Lanes:
            if isinstance(source, Member):
                return made[id(source)]
            if isinstance(source, int):
                return given[source]
            return fixed[id(source)] if id(source) in fixed else code.number(source.reshape(()).item(), _type(source))

        for member in members:
            if member.operation.kind == "part":
                made[id(member)] = lanes(member.sources[0])
                continue
            if member.operation.kind in MAKERS:
                made[id(member)] = write_maker(code, member.operation, member.sources, lanes)
                continue
            rule = OPERATORS[member.operation.kind]
            more = {name: _attribute(member.operation, name) for name in rule.attributes}
            made[id(member)] = rule.write(code, *map(lanes, member.sources), **more)
        where = {member.operation.output: made[id(member)] for member in members}
        return [where[value] for value, _ in writes]

    for member in members:
        for source in member.sources if member.operation.kind not in MAKERS else ():
            if not isinstance(source, int | Member) and source.size != 1 and all(source is not c for c in constants):
                constants.append(source)
    arrays = [np.ascontiguousarray(array) for array in constants]
    # staging may have put other values in place of those that were read
    places = dict(zip(dict.fromkeys(window.value for window in reads), operation.inputs, strict=True))
    operands = [_operand(window.value, shape, window.strides) for window in reads]
    results = [_operand(window.value, shape, window.strides) for _, window in writes]
    rows = rows_of(shape, [*operands, *results], arrays)
    if rows is not None:
        operands, results = ([along(operand, rows[1]) for operand in each] for each in (operands, results))
        arrays = [repeated(array, shape[-1], rows[1]) for array in arrays]
        shape = rows
    operands += [_operand(array, shape) for array in arrays]
    arrays = [emitter.kept(array) for array in arrays]
    weight = sum(_weight(member.operation) for member in members)
    symbols = openmp_symbols(*OPENMP) if is_long(shape, weight) and library() is not None else {}
    text = nest(shape, operands, results, body, weight, threads=bool(symbols))
    machine = compiler()
    assert machine is not None
    things = [
        *((places[window.value], window.offset) for window in reads), *((array, 0) for array in arrays),
        *((window.value, window.offset) for _, window in writes),
    ]  # fmt: skip
    emitter.execute_native(
        machine.function(text, symbols),
        [Span(thing, operand.reach(shape), offset=first * int(thing.dtype.itemsize))
         for (thing, first), operand in zip(things, [*operands, *results], strict=True)],
    )  # fmt: skip


def _attribute(operation: Operation, name: str) -> Any:
    return operation.attrs[name] if name in operation.attrs else operation.step.node.attr(name)


def _operand(thing: Any, shape: tuple[int, ...], strides: tuple[int, ...] | None = None) -> Operand:
    own: tuple[int, ...] = thing.shape if strides is None else shape
    padded = (1,) * (len(shape) - len(own)) + own
    steps = strides or row_major(padded)
    return Operand(
        TYPES[thing.dtype.name], tuple(0 if a == 1 != b else s for a, b, s in zip(padded, shape, steps, strict=True))
    )


def _type(array: Any) -> str:
    return TYPES[array.dtype.name]
