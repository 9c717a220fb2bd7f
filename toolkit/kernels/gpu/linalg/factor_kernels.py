"""Matrices factored and systems solved, a block a matrix: small ones, many at a time.

The matrices lie in global memory. What a step reads from several threads is never written again, so that barriers are
all the order there is: rows are not exchanged, but chosen, and what a factor becomes is written beside its matrix.
Types of numbers are NumPy's, complex ones among them (`factor_numbers`).
"""

from __future__ import annotations

import functools
import math

from toolkit.kernels.cpu.native import functions
from toolkit.kernels.cpu.native.code import Lanes
from toolkit.kernels.cuda.simt.builder import KernelBuilder
from toolkit.kernels.cuda.simt.ir import SimtKernel, Value
from toolkit.kernels.gpu.linalg.factor_numbers import FactorNumbers
from toolkit.kernels.gpu.primitives.element_types import ComplexNumber
from toolkit.kernels.gpu.primitives.indexing import BLOCK

#: the most rows of a matrix: what is known of each is in shared memory
MOST_ROWS = 1024


@functools.cache
def lu(type: str) -> SimtKernel:
    """Factors P A = L U in place, rows where they were; takes work [batch, n, n], order [batch, n], state, n.

    `order` is which row is the next one of the factors, by partial pivoting: the largest number, the first of several.
    `state` [batch, 2] is how many pivots are 0, and whether the order is an odd permutation.
    """
    k = KernelBuilder(f"lu_{type}", BLOCK)
    f = FactorNumbers(k, type)
    part = f.part
    a, order = f.buffer("a", written=True), k.buffer("order", "i32", written=True)
    state = k.buffer("state", "i32", written=True)
    n = k.scalar("n", "i32")
    place_of, chosen = k.shared("place_of", "i32", MOST_ROWS), k.shared("chosen", "i32", MOST_ROWS)
    best, best_row = k.shared("best", part, BLOCK), k.shared("best_row", "i32", BLOCK)
    zero, one = k.number(0, "i32"), k.number(1, "i32")
    t, first = k.thread, k.mul(k.convert(k.block_index, "i64"), k.convert(k.mul(n, n), "i64"))

    def at(row: Lanes, column: Lanes) -> Value:
        return k.add(first, k.convert(k.add(k.mul(row, n), column), "i64"))

    with k.loop(t, n, BLOCK) as row:
        k.store(place_of, row, n)  # of no column yet
    bad = k.variable(zero)
    with k.loop(0, n) as column:
        k.barrier()
        top, top_row = k.variable(k.number(-1.0, part)), k.variable(n)
        with k.loop(t, n, BLOCK) as row, k.when(k.compare("eq", k.load(place_of, row), n)):
            size = f.size(f.load(a, at(row, column)))
            size = k.select(k.compare("uno", size, size), k.number(0.0, part), size)
            with k.when(k.compare("ogt", size, top.get())):
                top.set(size)
                top_row.set(row)
        k.store(best, t, top.get())
        k.store(best_row, t, top_row.get())
        step = BLOCK // 2
        while step:
            k.barrier()
            with k.when(k.compare("slt", t, k.number(step, "i32"))):
                other = k.add(t, k.number(step, "i32"))
                mine, its = k.load(best, t), k.load(best, other)
                row, its_row = k.load(best_row, t), k.load(best_row, other)
                nearer = k.both(k.compare("oeq", its, mine), k.compare("slt", its_row, row))
                with k.when(k.either(k.compare("ogt", its, mine), nearer)):
                    k.store(best, t, its)
                    k.store(best_row, t, its_row)
            step //= 2
        k.barrier()
        pivot = k.load(best_row, zero)
        with k.when(k.compare("eq", t, zero)):
            k.store(place_of, pivot, column)
            k.store(chosen, column, pivot)
            k.store(order, k.add(k.mul(k.block_index, n), column), pivot)
        k.barrier()
        divisor = f.load(a, at(pivot, column))
        bad.set(k.add(bad.get(), k.convert(f.is_zero(divisor), "i32")))
        with k.loop(t, n, BLOCK) as row, k.when(k.compare("eq", k.load(place_of, row), n)):
            place = at(row, column)
            f.store(a, place, f.div(f.load(a, place), divisor))
        k.barrier()
        width = k.sub(k.sub(n, column), one)
        with k.loop(t, k.mul(n, width), BLOCK) as j:
            row = k.div(j, width)
            with k.when(k.compare("eq", k.load(place_of, row), n)):
                across = k.add(k.add(column, one), k.rem(j, width))
                place = at(row, across)
                product = f.mul(f.load(a, at(row, column)), f.load(a, at(pivot, across)))
                f.store(a, place, f.sub(f.load(a, place), product))
    k.barrier()
    # an order is odd if an odd number of pairs stand the other way round
    turned = k.variable(zero)
    with k.loop(t, n, BLOCK) as i:
        mine = k.load(chosen, i)
        with k.loop(k.add(i, one), n) as j:
            turned.set(k.add(turned.get(), k.convert(k.compare("slt", k.load(chosen, j), mine), "i32")))
    k.barrier()
    k.store(best_row, t, turned.get())
    k.barrier()
    with k.when(k.compare("eq", t, zero)):
        total = k.variable(zero)
        with k.loop(0, k.number(BLOCK, "i32")) as i:
            total.set(k.add(total.get(), k.load(best_row, i)))
        place = k.mul(k.block_index, k.number(2, "i32"))
        k.store(state, place, bad.get())
        k.store(state, k.add(place, one), k.both(total.get(), one))
    return k.finish()


@functools.cache
def cholesky(type: str) -> SimtKernel:
    """Lower factors, row by row; takes work [batch, n, n], which is used up, factors, bad [batch], n.

    `bad` is how many numbers on the diagonal are not positive. What is above the diagonal is left as it is. Of complex
    matrices the diagonal's real parts count.
    """
    k = KernelBuilder(f"cholesky_{type}", BLOCK)
    f = FactorNumbers(k, type)
    a, y = f.buffer("a", written=True), f.buffer("y", written=True)
    bad, n = k.buffer("bad", "i32", written=True), k.scalar("n", "i32")
    one = k.number(1, "i32")
    t, first = k.thread, k.mul(k.convert(k.block_index, "i64"), k.convert(k.mul(n, n), "i64"))

    def at(row: Lanes, column: Lanes) -> Value:
        return k.add(first, k.convert(k.add(k.mul(row, n), column), "i64"))

    wrong = k.variable(k.number(0, "i32"))
    with k.loop(0, n) as column:
        k.barrier()
        square = f.real(f.load(a, at(column, column)))
        fine = k.compare("ogt", square, k.number(0.0, f.part))
        wrong.set(k.add(wrong.get(), k.convert(k.inverse(fine), "i32")))
        root = k.intrinsic("sqrt", square)
        with k.when(k.compare("eq", t, k.number(0, "i32"))):
            f.store(y, at(column, column), f.of(root))
        below = k.add(column, one)
        with k.loop(k.add(below, t), n, BLOCK) as row:
            f.store(y, at(row, column), f.shrunk(f.load(a, at(row, column)), root))
        k.barrier()
        rest = k.sub(n, below)
        with k.loop(t, k.mul(rest, rest), BLOCK) as j:
            row, across = k.add(below, k.div(j, rest)), k.add(below, k.rem(j, rest))
            with k.when(k.compare("sle", across, row)):
                product = f.mul(f.load(y, at(row, column)), f.conj(f.load(y, at(across, column))))
                f.store(a, at(row, across), f.sub(f.load(a, at(row, across)), product))
    with k.when(k.compare("eq", t, k.number(0, "i32"))):
        k.store(bad, k.block_index, wrong.get())
    return k.finish()


@functools.cache
def lower_or_nan(type: str) -> SimtKernel:
    """Lower triangles with zeros above; NaN in those that are bad. Takes y [batch, n, n], bad [batch], n, count."""
    k = KernelBuilder(f"lower_or_nan_{type}", BLOCK)
    f = FactorNumbers(k, type)
    y, bad = f.buffer("y", written=True), k.buffer("bad", "i32")
    n, count = k.scalar("n", "i64"), k.scalar("count", "i64")
    i = k.global_thread("i64")
    with k.when(k.compare("slt", i, count)):
        line = k.div(i, n)
        column, row = k.rem(i, n), k.rem(line, n)
        is_bad = k.compare("ne", k.load(bad, k.div(line, n)), k.number(0, "i32"))
        with k.when(k.compare("sgt", column, row)):
            f.store(y, i, f.number(0.0))
        with k.otherwise(), k.when(is_bad):
            f.store(y, i, f.number(float("nan")))
    return k.finish()


@functools.cache
def substitute(type: str, forward: bool, is_unit: bool) -> SimtKernel:
    """Triangular systems, a block for each right-hand side, in place.

    Takes the transposed matrices [batch, n, n], y [batch, n, m], n, m. Divisions by zeros give what they give.

    Args:
        forward: the matrices are lower ones (before they were transposed).
        is_unit: their diagonals are ones, whatever is there.
    """
    k = KernelBuilder(f"substitute_{'lower' if forward else 'upper'}_{type}", BLOCK)
    f = FactorNumbers(k, type)
    a, y = f.buffer("a"), f.buffer("y", written=True)
    n, m = k.scalar("n", "i32"), k.scalar("m", "i32")
    t, one = k.thread, k.number(1, "i32")
    system, column = k.convert(k.div(k.block_index, m), "i64"), k.convert(k.rem(k.block_index, m), "i64")
    first, own = k.mul(system, k.convert(k.mul(n, n), "i64")), k.mul(system, k.convert(k.mul(n, m), "i64"))

    def at(row: Lanes, across: Lanes) -> Value:
        return k.add(first, k.convert(k.add(k.mul(row, n), across), "i64"))

    def number(row: Lanes) -> Value:
        return k.add(k.add(own, k.convert(k.mul(row, m), "i64")), column)

    with k.loop(0, n) as step:
        i = step if forward else k.sub(k.sub(n, one), step)
        if not is_unit:
            # each row has one thread that changes it
            with k.when(k.compare("eq", t, k.rem(i, k.number(BLOCK, "i32")))):
                f.store(y, number(i), f.div(f.load(y, number(i)), f.load(a, at(i, i))))
        k.barrier()
        known = f.load(y, number(i))
        with k.loop(t, n, BLOCK) as row, k.when(k.compare("sgt" if forward else "slt", row, i)):
            changed = f.sub(f.load(y, number(row)), f.mul(f.load(a, at(i, row)), known))
            f.store(y, number(row), changed)
    return k.finish()


@functools.cache
def determinants(type: str, is_log: bool) -> SimtKernel:
    """From factors [batch, n, n] in order, and `state` of `lu`: the determinant, or its sign and the log of its size.

    Takes factors, state, one or two results [batch], n, batch; a thread for each matrix.
    """
    k = KernelBuilder(f"determinants_{type}", BLOCK)
    f = FactorNumbers(k, type)
    a, state = f.buffer("a"), k.buffer("state", "i32")
    y = f.buffer("y", written=True)
    logs = f.buffer("logs", written=True) if is_log else None
    n, batch = k.scalar("n", "i64"), k.scalar("batch", "i64")
    zero, one = k.number(0.0, f.part), k.number(1.0, f.part)
    i = k.global_thread("i64")
    with k.when(k.compare("slt", i, batch)):
        is_odd = k.load(state, k.add(k.mul(i, k.number(2, "i64")), k.number(1, "i64")))
        sign = k.select(k.convert(is_odd, "i1"), k.neg(one), one)
        product, log = f.variable(f.of(sign)), k.variable(zero)
        with k.loop(0, n) as j:
            value = f.load(a, k.add(k.mul(k.add(k.mul(i, n), j), n), j))
            if is_log:
                size = f.size(value)
                if isinstance(value, ComplexNumber):
                    is_usual = k.both(k.compare("ogt", size, zero), k.compare("olt", size, k.number(math.inf, f.part)))
                    sign = f.shrunk(value, k.select(is_usual, size, one))  # what is not finite, or 0, as it is
                else:
                    is_zero = k.compare("oeq", value, zero)
                    sign = k.select(is_zero, zero, k.intrinsic("copysign", one, value))
                    sign = k.select(k.compare("uno", value, value), value, sign)
                product.set(f.mul(product.get(), sign))
                log.set(k.add(log.get(), functions.log(k, size)))
            else:
                product.set(f.mul(product.get(), value))
        f.store(y, i, product.get())
        if logs is not None:
            f.store(logs, i, f.of(log.get()))
    return k.finish()


@functools.cache
def conjugate(type: str) -> SimtKernel:
    """Conjugates complex numbers in place, one a thread; takes y, count."""
    k = KernelBuilder(f"conjugated_{type}", BLOCK)
    f = FactorNumbers(k, type)
    y, count = f.buffer("y", written=True), k.scalar("count", "i64")
    i = k.global_thread("i64")
    with k.when(k.compare("slt", i, count)):
        f.store(y, i, f.conj(f.load(y, i)))
    return k.finish()
