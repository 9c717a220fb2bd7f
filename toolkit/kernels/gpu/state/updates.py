"""Kernels that change variables in place by a rule (`rules`): whole, or some rows, one after the other.

Each thread changes 16 bytes of a whole variable. Of rows a thread has one element, in the order in which the rows'
numbers come, so that a row that is named several times is changed as often, as the CPU does it: the row is that of
the first one, which looks up the next in a list that `primitives.ordering` makes.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import Any

from toolkit.kernels.cuda.device import CudaDevice
from toolkit.kernels.cuda.memory import GpuArray
from toolkit.kernels.cuda.simt.builder import KernelBuilder, RegisterVariable
from toolkit.kernels.cuda.simt.ir import SIZES, TYPES, KernelBuffer, SimtKernel, Value
from toolkit.kernels.gpu.primitives.element_types import NUMBER_TYPES, ComplexNumber, load, store
from toolkit.kernels.gpu.primitives.ordering import order_of
from toolkit.kernels.gpu.state.cells import aligned
from toolkit.kernels.gpu.state.rules import COMPLEX_TYPES, Rule, branching, follow

_BLOCK = 256
_VECTOR = 16  # bytes that one instruction loads
_MOST = (1 << 31) - (1 << 20)  # elements that are numbered by 32 bits, with room for the last blocks


def blocks_for(count: int, block: int = _BLOCK) -> int:
    """Blocks with a thread for each of so many."""
    return (count + block - 1) // block


def index_type(*counts: int) -> str:
    """The type of numbers up to these."""
    return "i32" if max(counts, default=0) < _MOST else "i64"


# -- elements: a register of the memory's own type, or the two parts of a complex number ---------------------------


def _type_of(dtype: Any) -> str:
    """What kernels call a type: the kernel IR's name, of complex ones NumPy's."""
    name: str = dtype.name
    return TYPES.get(name, name)


def _memory(type: str) -> str:
    return NUMBER_TYPES[type].memory if type in COMPLEX_TYPES else type


def _size(type: str) -> int:
    return NUMBER_TYPES[type].size if type in COMPLEX_TYPES else SIZES[type]


def _parts(type: str) -> int:
    """Numbers in memory of an element."""
    return 2 if type in COMPLEX_TYPES else 1


def _width(type: str) -> int:
    """How many elements a thread has."""
    return max(1, _VECTOR // _size(type))


def _zero(k: KernelBuilder, type: str) -> Any:
    zero = k.number(0, _memory(type))
    return ComplexNumber(zero, zero) if type in COMPLEX_TYPES else zero


def _loaded(k: KernelBuilder, buffer: KernelBuffer, at: Value, type: str) -> Any:
    if type not in COMPLEX_TYPES:
        return k.load(buffer, at)
    return load(k, buffer, k.mul(at, k.number(2, at.type)), 0, NUMBER_TYPES[type])


def _stored(k: KernelBuilder, buffer: KernelBuffer, at: Value, value: Any, type: str) -> None:
    if type not in COMPLEX_TYPES:
        k.store(buffer, at, value)
    else:
        store(k, buffer, k.mul(at, k.number(2, at.type)), 0, value, NUMBER_TYPES[type])


class _ElementVariable:
    """An element that changes: one register, or two."""

    def __init__(self, k: KernelBuilder, value: Any):
        parts = value if isinstance(value, ComplexNumber) else (value,)
        self._parts: list[RegisterVariable] = [k.variable(part) for part in parts]

    def get(self) -> Any:
        parts = [part.get() for part in self._parts]
        return ComplexNumber(*parts) if len(parts) > 1 else parts[0]

    def set(self, value: Any) -> None:
        for part, now in zip(self._parts, value if isinstance(value, ComplexNumber) else (value,), strict=True):
            part.set(now)


# -- whole variables -----------------------------------------------------------------------------------------------


@functools.cache
def dense(name: str, rule: Rule, cells: int, place: int, numbers: int, type: str, index: str) -> SimtKernel:
    """The kernel of a rule over whole variables.

    Args:
        rule: takes cells, then numbers with the gradient at `place` among them.
        cells: how many variables it takes first.
        numbers: how many scalars it takes, each in memory of the device.
        type: of the elements, of complex ones NumPy's name.
        index: the type of elements' numbers.

    Returns:
        a kernel of: cells, gradient, numbers, n.
    """
    k = KernelBuilder(f"{name}_{type}_{index}", block=_BLOCK)
    buffers = [k.buffer(f"cell{at}", _memory(type), written=True) for at in range(cells)]
    gradient = k.buffer("gradient", _memory(type))
    given = [k.buffer(f"number{at}", _memory(type)) for at in range(numbers)]
    n = k.scalar("n", index)
    width = _width(type)
    scalars = [_loaded(k, one, k.number(0, "i32"), type) for one in given]
    first = k.mul(k.global_thread(index), k.number(width, index))
    last = k.add(first, k.number(width, index))

    def change(at: Sequence[Value], decisions: Sequence[bool]) -> None:
        before = [[_loaded(k, one, each, type) for one in (*buffers, gradient)] for each in at]
        after = [_after(k, type, rule, row, scalars, place, cells, decisions) for row in before]
        for position, each in enumerate(at):
            _store(k, type, buffers, each, before[position], after[position])

    def body(decisions: Sequence[bool]) -> None:
        with k.when(k.compare("sle", last, n)):
            change([k.add(first, k.number(offset, index)) for offset in range(width)], decisions)
        with k.otherwise(), k.loop(first, n) as at:
            change([at], decisions)

    zeros = [_zero(k, type)] * (cells + 1)
    branching(k, type, rule, _ordered(zeros, scalars, place), body)
    return k.finish()


def _ordered(row: Sequence[Any], scalars: Sequence[Any], place: int) -> list[Any]:
    """A rule's arguments: cells, and the gradient, which is last in `row`, among the numbers."""
    return [*row[:-1], *scalars[:place], row[-1], *scalars[place:]]


def _after(
    k: KernelBuilder, type: str, rule: Rule, row: Sequence[Any], scalars: Sequence[Any], place: int, cells: int,
    decisions: Sequence[bool],
) -> list[Any]:  # fmt: skip
    return follow(k, type, rule, _ordered(row, scalars, place), decisions)[:cells]


def _store(
    k: KernelBuilder, type: str, buffers: Sequence[KernelBuffer], at: Value, before: Sequence[Any], after: Sequence[Any]
) -> None:
    for buffer, was, now in zip(buffers, before, after, strict=False):
        if now is not was:
            _stored(k, buffer, at, now, type)


def run_dense(
    device: CudaDevice, name: str, rule: Rule, cells: Sequence[GpuArray], gradient: GpuArray,
    numbers: Sequence[GpuArray], place: int,
) -> None:  # fmt: skip
    """Change whole variables of one shape in place."""
    count = gradient.size
    if not count:
        return
    type = _type_of(cells[0].dtype)
    kernel = dense(name, rule, len(cells), place, len(numbers), type, index_type(count * _parts(type)))
    width = _width(type)
    blocks = blocks_for(blocks_for(count, width))
    device.launch(kernel, blocks, *cells, aligned(device, gradient), *numbers, count)


#: variables of one kernel, whose arguments have 4 KB: four tensors and two numbers of each of 24 take 960 bytes
MOST_TOGETHER = 24


@functools.cache
def together(
    name: str, rule: Rule, count: int, cells: int, place: int, numbers: int, type: str, index: str
) -> SimtKernel:
    """The kernel of a rule over several sets of variables; see `dense`.

    Returns:
        a kernel of: numbers, then of each set: cells, gradient, n, and the first block that is not its own.
    """
    k = KernelBuilder(f"{name}_of_{count}_{type}_{index}", block=_BLOCK)
    given = [k.buffer(f"number{at}", _memory(type)) for at in range(numbers)]
    sets: list[tuple[list[KernelBuffer], Value, Value]] = []
    for one in range(count):
        buffers = [k.buffer(f"cell{one}_{at}", _memory(type), written=True) for at in range(cells)]
        buffers.append(k.buffer(f"gradient{one}", _memory(type)))
        sets.append((buffers, k.scalar(f"n{one}", index), k.scalar(f"end{one}", "i32")))
    width = _width(type)
    scalars = [_loaded(k, one, k.number(0, "i32"), type) for one in given]
    block, thread = k.block_index, k.convert(k.thread, index)

    def change(buffers: Sequence[KernelBuffer], at: Sequence[Value], decisions: Sequence[bool]) -> None:
        before = [[_loaded(k, one, each, type) for one in buffers] for each in at]
        after = [_after(k, type, rule, row, scalars, place, cells, decisions) for row in before]
        for position, each in enumerate(at):
            _store(k, type, buffers[:cells], each, before[position], after[position])

    def body(decisions: Sequence[bool]) -> None:
        start: Value = k.number(0, "i32")
        for buffers, n, end in sets:
            with k.when(k.both(k.compare("sge", block, start), k.compare("slt", block, end))):
                within = k.convert(k.sub(block, start), index)
                first = k.mul(k.add(k.mul(within, k.number(_BLOCK, index)), thread), k.number(width, index))
                last = k.add(first, k.number(width, index))
                with k.when(k.compare("sle", last, n)):
                    change(buffers, [k.add(first, k.number(offset, index)) for offset in range(width)], decisions)
                with k.otherwise(), k.loop(first, n) as at:
                    change(buffers, [at], decisions)
            start = end

    zeros = [_zero(k, type)] * (cells + 1)
    branching(k, type, rule, _ordered(zeros, scalars, place), body)
    return k.finish()


def run_together(
    device: CudaDevice, name: str, rule: Rule, sets: Sequence[tuple[Sequence[GpuArray], GpuArray]],
    numbers: Sequence[GpuArray], place: int,
) -> None:  # fmt: skip
    """Change several sets of whole variables, each of one shape, with its gradient, in place.

    Args:
        sets: of one type; cells and gradient.
    """
    sets = [(cells, gradient) for cells, gradient in sets if gradient.size]
    if not sets:
        return
    type, cells = _type_of(sets[0][1].dtype), len(sets[0][0])
    width, index = _width(type), index_type(*(gradient.size * _parts(type) for _, gradient in sets))
    kernel = together(name, rule, len(sets), cells, place, len(numbers), type, index)
    arguments: list[GpuArray | int] = []
    end = 0
    for arrays, gradient in sets:
        end += blocks_for(blocks_for(gradient.size, width))
        arguments += [*arrays, aligned(device, gradient), gradient.size, end]
    device.launch(kernel, end, *numbers, *arguments)


# -- rows ------------------------------------------------------------------------------------------------------------


@functools.cache
def _rows(name: str, rule: Rule, cells: int, place: int, numbers: int, type: str, ids: str, is_one: bool) -> SimtKernel:
    """The kernel of a rule over rows.

    Args:
        is_one: there is one number in place of the gradient's rows.

    Returns:
        a kernel of: cells, gradient, numbers, rows' numbers, again, behind, n, width, limit.
    """
    k = KernelBuilder(f"rows_{name}_{type}_{ids}", block=_BLOCK)
    buffers = [k.buffer(f"cell{at}", _memory(type), written=True) for at in range(cells)]
    gradient = k.buffer("gradient", _memory(type))
    given = [k.buffer(f"number{at}", _memory(type)) for at in range(numbers)]
    rows, again, behind = k.buffer("rows", ids), k.buffer("again", "i32"), k.buffer("behind", "i32")
    n, width, limit = k.scalar("n", "i32"), k.scalar("width", "i64"), k.scalar("limit", "i64")
    scalars = [_loaded(k, one, k.number(0, "i32"), type) for one in given]
    zero = k.number(0, "i64")

    def body(decisions: Sequence[bool]) -> None:
        thread = k.global_thread("i64")
        with k.when(k.compare("slt", thread, k.mul(k.convert(n, "i64"), width))):
            first = k.convert(k.div(thread, width), "i32")
            column = k.rem(thread, width)
            row = k.convert(k.load(rows, first), "i64")
            inside = k.both(k.compare("sge", row, zero), k.compare("slt", row, limit))
            is_first = k.compare("eq", k.load(again, first), k.number(0, "i32"))
            with k.when(k.both(inside, is_first)):
                at = k.add(k.mul(row, width), column)
                before = [_loaded(k, one, at, type) for one in buffers]
                now = [_ElementVariable(k, value) for value in before]
                turn = k.variable(first)
                with k.while_(lambda: k.compare("slt", turn.get(), n)):
                    here = turn.get()
                    place_of = zero if is_one else k.add(k.mul(k.convert(here, "i64"), width), column)
                    present = [variable.get() for variable in now]
                    line = [*present, _loaded(k, gradient, place_of, type)]
                    after = _after(k, type, rule, line, scalars, place, cells, decisions)
                    for variable, was, value in zip(now, present, after, strict=True):
                        if value is not was:
                            variable.set(value)
                    turn.set(k.load(behind, here))
                for buffer, variable in zip(buffers, now, strict=True):
                    _stored(k, buffer, at, variable.get(), type)

    zeros = [_zero(k, type)] * (cells + 1)
    branching(k, type, rule, _ordered(zeros, scalars, place), body)
    return k.finish()


def run_rows(
    device: CudaDevice, name: str, rule: Rule, cells: Sequence[GpuArray], gradient: GpuArray, rows: GpuArray,
    width: int, numbers: Sequence[GpuArray] = (), place: int = 0,
) -> None:  # fmt: skip
    """Change rows of variables in place, in the order of their numbers; what is out of range is left out.

    Args:
        cells: of one shape.
        gradient: a row for each number, or one element for all.
        rows: numbers [n], int32 or int64.
        width: elements of a row.
    """
    count = rows.size
    if not count or not width or not cells[0].size:
        return
    limit = cells[0].size // width
    again, behind = order_of(device, rows, limit)
    is_one = not gradient.shape
    kernel = _rows(
        name, rule, len(cells), place, len(numbers), _type_of(cells[0].dtype), TYPES[rows.dtype.name], is_one
    )
    device.launch(
        kernel, blocks_for(count * width), *cells, gradient, *numbers, rows, again, behind, count, width, limit
    )


def settled(rule: Callable[..., None], attributes: dict[str, Any]) -> Rule:
    """A rule whose attributes are known; the same object for the same ones, so that its kernels are found again."""
    return _settled(rule, tuple(sorted(attributes.items())))


@functools.cache
def _settled(rule: Callable[..., None], attributes: tuple[tuple[str, Any], ...]) -> Rule:
    return functools.partial(rule, **dict(attributes))
