"""Kernels of sparse matrices in compressed rows: places taken apart and put together, products, softmax of rows.

A matrix is row-major places and their values (`toolkit.kernels.resources.sparse_matrix`); offsets say where rows begin.
"""

from __future__ import annotations

import functools

from toolkit.kernels.cpu.native import functions
from toolkit.kernels.cpu.native.code import Lanes
from toolkit.kernels.cuda.simt.builder import KernelBuilder
from toolkit.kernels.cuda.simt.ir import WARP, KernelBuffer, SimtKernel, Value
from toolkit.kernels.gpu.operators.complex_numbers import mul
from toolkit.kernels.gpu.primitives.element_types import (
    ComplexNumber,
    Number,
    NumberType,
    load,
    number_type,
    real,
    store,
)
from toolkit.kernels.gpu.primitives.indexing import BLOCK
from toolkit.kernels.gpu.primitives.reduce_code import State, largest, warp_reduce


@functools.cache
def indices_kernel(rank: int) -> SimtKernel:
    """Coordinates of places: places, indices; how many, the sizes behind the first."""
    k = KernelBuilder(f"csr_indices_{rank}", BLOCK)
    places, indices = k.buffer("places", "i64"), k.buffer("indices", "i64", written=True)
    count = k.scalar("count", "i64")
    sizes = [k.scalar(f"size{d}", "i64") for d in range(1, rank)]
    i = k.global_thread("i64")
    with k.when(k.compare("slt", i, count)):
        place: Value = k.load(places, i)
        first = k.mul(i, k.number(rank, "i64"))
        for d in range(rank - 1, 0, -1):
            k.store(indices, k.add(first, k.number(d, "i64")), k.rem(place, sizes[d - 1]))
            place = k.div(place, sizes[d - 1])
        k.store(indices, first, place)
    return k.finish()


@functools.cache
def lines_kernel() -> SimtKernel:
    """The rows of places, counted through all matrices: places, lines; how many, columns."""
    k = KernelBuilder("csr_lines", BLOCK)
    places, lines = k.buffer("places", "i64"), k.buffer("lines", "i64", written=True)
    count, columns = k.scalar("count", "i64"), k.scalar("columns", "i64")
    i = k.global_thread("i64")
    with k.when(k.compare("slt", i, count)):
        k.store(lines, i, k.div(k.load(places, i), columns))
    return k.finish()


@functools.cache
def turned_kernel() -> SimtKernel:
    """Places in the transposed matrices: places, y; how many, rows, columns."""
    k = KernelBuilder("csr_turned", BLOCK)
    places, y = k.buffer("places", "i64"), k.buffer("y", "i64", written=True)
    count, rows, columns = (k.scalar(name, "i64") for name in ("count", "rows", "columns"))
    i = k.global_thread("i64")
    with k.when(k.compare("slt", i, count)):
        place = k.load(places, i)
        line, column = k.div(place, columns), k.rem(place, columns)
        batch, row = k.div(line, rows), k.rem(line, rows)
        k.store(y, i, k.add(k.mul(k.add(k.mul(batch, columns), column), rows), row))
    return k.finish()


@functools.cache
def components_kernel() -> SimtKernel:
    """Row pointers and columns of one matrix, of 32 bits.

    Takes offsets, places, pointers, columns; the matrix' first row, rows, the place in `places` where it begins, how
    many of its values there are, columns.
    """
    k = KernelBuilder("csr_components", BLOCK)
    offsets, places = k.buffer("offsets", "i64"), k.buffer("places", "i64")
    pointers, made = k.buffer("pointers", "i32", written=True), k.buffer("made", "i32", written=True)
    line, rows, first, count, columns = (k.scalar(n, "i64") for n in ("line", "rows", "first", "count", "columns"))
    i = k.global_thread("i64")
    with k.when(k.compare("sle", i, rows)):
        k.store(pointers, i, k.convert(k.sub(k.load(offsets, k.add(line, i)), first), "i32"))
    with k.when(k.compare("slt", i, count)):
        k.store(made, i, k.convert(k.rem(k.load(places, k.add(first, i)), columns), "i32"))
    return k.finish()


def _first(k: KernelBuilder, at: Lanes, type: NumberType) -> Lanes:
    """Where the parts of an element begin."""
    return k.mul(at, k.number(type.parts, "i64")) if type.parts > 1 else at


def _loaded(k: KernelBuilder, buffer: KernelBuffer, at: Lanes, type: NumberType) -> Number:
    return load(k, buffer, k.convert(_first(k, at, type), "i64"), 0, type)


def _stored(k: KernelBuilder, buffer: KernelBuffer, at: Lanes, number: Number, type: NumberType) -> None:
    store(k, buffer, k.convert(_first(k, at, type), "i64"), 0, number, type)


def _product(k: KernelBuilder, a: Number, b: Number) -> Number:
    if isinstance(a, ComplexNumber) and isinstance(b, ComplexNumber):
        return mul(k, a, b)
    return k.mul(real(a), real(b))


@functools.cache
def times_dense_kernel(name: str) -> SimtKernel:
    """A thread for each number of the product, whose summands are added in the order of columns.

    Takes offsets of rows, places, values, b [batch, inner, width], y [batch, rows, width]; how many numbers there are
    in y, rows, inner, width.
    """
    type = number_type(name)
    k = KernelBuilder(f"csr_times_dense_{name}", BLOCK)
    offsets, places = k.buffer("offsets", "i64"), k.buffer("places", "i64")
    values, b, y = k.buffer("values", type.memory), k.buffer("b", type.memory), k.buffer("y", type.memory, written=True)
    count, rows, inner, width = (k.scalar(each, "i64") for each in ("count", "rows", "inner", "width"))
    i = k.global_thread("i64")
    with k.when(k.compare("slt", i, count)):
        line, across = k.div(i, width), k.rem(i, width)
        first = k.mul(k.div(line, rows), inner)
        total = [k.variable(k.number(0.0, type.register)) for _ in range(type.parts)]
        with k.loop(k.load(offsets, line), k.load(offsets, k.add(line, k.number(1, "i64")))) as entry:
            column = k.rem(k.load(places, entry), inner)
            from_b = _loaded(k, b, k.add(k.mul(k.add(first, column), width), across), type)
            found = _product(k, _loaded(k, values, entry, type), from_b)
            for variable, part in zip(total, found if isinstance(found, ComplexNumber) else [found], strict=True):
                variable.set(k.add(variable.get(), part))
        parts = [variable.get() for variable in total]
        _stored(k, y, i, ComplexNumber(*parts) if type.parts == 2 else parts[0], type)
    return k.finish()


@functools.cache
def met_kernel() -> SimtKernel:
    """How many values of b each value of a meets.

    Takes the offsets of b's rows, a's places, counts; how many, a's rows and columns, which are b's rows.
    """
    k = KernelBuilder("csr_met", BLOCK)
    offsets, places, counts = (
        k.buffer("offsets", "i64"),
        k.buffer("places", "i64"),
        k.buffer("counts", "i64", written=True),
    )
    count, rows, inner = (k.scalar(each, "i64") for each in ("count", "rows", "inner"))
    i = k.global_thread("i64")
    with k.when(k.compare("slt", i, count)):
        line = _line_of_b(k, k.load(places, i), rows, inner)
        k.store(counts, i, k.sub(k.load(offsets, k.add(line, k.number(1, "i64"))), k.load(offsets, line)))
    return k.finish()


def _line_of_b(k: KernelBuilder, place: Value, rows: Value, inner: Value) -> Value:
    """The row of b, counted through all matrices, that a place of a meets."""
    batch = k.div(k.div(place, inner), rows)
    return k.add(k.mul(batch, inner), k.rem(place, inner))


@functools.cache
def times_sparse_kernel(name: str) -> SimtKernel:
    """Every product of two values, and its place.

    Takes the offsets of b's rows, cumulated counts (`met_kernel`), places and values of a and b, places and values of
    the products; how many products, values of a, a's rows and columns, b's columns.
    """
    type = number_type(name)
    k = KernelBuilder(f"csr_times_sparse_{name}", BLOCK)
    offsets, ends = k.buffer("offsets", "i64"), k.buffer("ends", "i64")
    places_a, places_b = k.buffer("places_a", "i64"), k.buffer("places_b", "i64")
    values_a, values_b = k.buffer("values_a", type.memory), k.buffer("values_b", type.memory)
    places, values = k.buffer("places", "i64", written=True), k.buffer("values", type.memory, written=True)
    count, entries, rows, inner, columns = (
        k.scalar(each, "i64") for each in ("count", "entries", "rows", "inner", "columns")
    )
    i, one = k.global_thread("i64"), k.number(1, "i64")
    with k.when(k.compare("slt", i, count)):
        left = _behind(k, ends, entries, i)  # the first whose products end behind this one
        begun = k.variable(k.number(0, "i64"))
        with k.when(k.compare("sgt", left, k.number(0, "i64"))):
            begun.set(k.load(ends, k.sub(left, one)))
        place = k.load(places_a, left)
        right = k.add(k.load(offsets, _line_of_b(k, place, rows, inner)), k.sub(i, begun.get()))
        column = k.rem(k.load(places_b, right), columns)
        k.store(places, i, k.add(k.mul(k.div(place, inner), columns), column))
        product = _product(k, _loaded(k, values_a, left, type), _loaded(k, values_b, right, type))
        _stored(k, values, i, product, type)
    return k.finish()


def _behind(k: KernelBuilder, numbers: KernelBuffer, count: Value, number: Value) -> Value:
    """The first place of numbers that never fall whose number is larger than another; `count` where none is."""
    one = k.number(1, "i64")
    low, high = k.variable(k.number(0, "i64")), k.variable(count)
    with k.while_(lambda: k.compare("slt", low.get(), high.get())):
        middle = k.binary("lshr", k.add(low.get(), high.get()), one)
        before = k.compare("sle", k.load(numbers, middle), number)
        low.set(k.select(before, k.add(middle, one), low.get()))
        high.set(k.select(before, high.get(), middle))
    return low.get()


@functools.cache
def matched_kernel(type: str) -> SimtKernel:
    """What another matrix has at places, the last one of several values, or 0.

    Takes places, the other's places and values, y; how many places, and how many of the other.
    """
    k = KernelBuilder(f"csr_matched_{type}", BLOCK)
    places, others = k.buffer("places", "i64"), k.buffer("others", "i64")
    values, y = k.buffer("values", type), k.buffer("y", type, written=True)
    count, other_count = k.scalar("count", "i64"), k.scalar("other_count", "i64")
    i = k.global_thread("i64")
    with k.when(k.compare("slt", i, count)):
        place = k.load(places, i)
        behind, found = _behind(k, others, other_count, place), k.variable(k.number(0.0, type))
        with k.when(k.compare("sgt", behind, k.number(0, "i64"))):
            at = k.sub(behind, k.number(1, "i64"))
            with k.when(k.compare("eq", k.load(others, at), place)):
                found.set(k.load(values, at))
        k.store(y, i, found.get())
    return k.finish()


@functools.cache
def scaled_kernel(name: str, rank: int) -> SimtKernel:
    """Values times numbers of a tensor that is broadcast.

    Takes places, values, factors, y; how many, the sizes of the matrices' axes, the factors' steps along these.
    """
    type = number_type(name)
    k = KernelBuilder(f"csr_scaled_{name}_{rank}", BLOCK)
    places, values = k.buffer("places", "i64"), k.buffer("values", type.memory)
    factors, y = k.buffer("factors", type.memory), k.buffer("y", type.memory, written=True)
    count = k.scalar("count", "i64")
    sizes = [k.scalar(f"size{d}", "i64") for d in range(rank)]
    steps = [k.scalar(f"step{d}", "i64") for d in range(rank)]
    i = k.global_thread("i64")
    with k.when(k.compare("slt", i, count)):
        rest, at = k.load(places, i), k.number(0, "i64")
        for size, step in zip(reversed(sizes), reversed(steps), strict=True):
            at = k.add(at, k.mul(k.rem(rest, size), step))
            rest = k.div(rest, size)
        _stored(k, y, i, _product(k, _loaded(k, values, i, type), _loaded(k, factors, at, type)), type)
    return k.finish()


def _sum(k: KernelBuilder, a: State, b: State) -> State:
    return (k.add(a[0], b[0]),)


@functools.cache
def softmax_kernel(type: str, is_gradient: bool) -> SimtKernel:
    """Softmax over the values of each row, or its gradient; a row for each warp.

    Takes offsets of rows, x, for the gradient the dense one's numbers at the places of x, y; rows.
    """
    k = KernelBuilder(f"csr_softmax{'_grad' if is_gradient else ''}_{type}", BLOCK)
    offsets, x = k.buffer("offsets", "i64"), k.buffer("x", type)
    incoming = k.buffer("incoming", type) if is_gradient else None
    y, rows = k.buffer("y", type, written=True), k.scalar("rows", "i64")
    thread = k.global_thread("i64")
    line = k.binary("lshr", thread, k.number(WARP.bit_length() - 1, "i64"))
    lane = k.binary("and", thread, k.number(WARP - 1, "i64"))
    none = k.number(0, "i64")
    begin, end = k.variable(none), k.variable(none)
    with k.when(k.compare("slt", line, rows)):
        begin.set(k.load(offsets, line))
        end.set(k.load(offsets, k.add(line, k.number(1, "i64"))))
    first, last, step = k.add(begin.get(), lane), end.get(), k.number(WARP, "i64")
    if incoming is not None:
        total = k.variable(k.number(0.0, type))
        with k.loop(first, last, step) as entry:
            total.set(k.add(total.get(), k.mul(k.load(x, entry), k.load(incoming, entry))))
        (found,) = warp_reduce(k, (total.get(),), lambda a, b: _sum(k, a, b))
        with k.loop(first, last, step) as entry:
            k.store(y, entry, k.mul(k.load(x, entry), k.sub(k.load(incoming, entry), found)))
        return k.finish()
    peak = k.variable(k.number(float("-inf"), type))
    with k.loop(first, last, step) as entry:
        peak.set(largest(k, peak.get(), k.load(x, entry)))
    (top,) = warp_reduce(k, (peak.get(),), lambda a, b: (largest(k, a[0], b[0]),))
    total = k.variable(k.number(0.0, type))
    with k.loop(first, last, step) as entry:
        total.set(k.add(total.get(), functions.exp(k, k.sub(k.load(x, entry), top))))
    (found,) = warp_reduce(k, (total.get(),), lambda a, b: _sum(k, a, b))
    with k.loop(first, last, step) as entry:
        k.store(y, entry, k.div(functions.exp(k, k.sub(k.load(x, entry), top)), found))
    return k.finish()
