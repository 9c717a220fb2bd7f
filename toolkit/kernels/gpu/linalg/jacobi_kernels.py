"""Singular values and vectors by one-sided Jacobi rotations, a block a matrix (G. H. Golub, C. F. Van Loan, "Matrix
Computations", 2013, section 8.6.3).

Pairs of columns are made orthogonal until all are: a warp has a pair, and pairs of one round have no column in common
(a round robin), so that a round takes one barrier. A symmetric matrix is shifted until nothing of it is negative: its
singular vectors are then its eigenvectors.

In memory a column lies in one piece: work matrices are [batch, column, row].
"""

from __future__ import annotations

import functools
from collections.abc import Callable

import numpy as np

from toolkit.kernels.cpu.native.code import Lanes
from toolkit.kernels.cuda.simt.builder import KernelBuilder, RegisterVariable
from toolkit.kernels.cuda.simt.ir import WARP, KernelBuffer, SimtKernel, Value
from toolkit.kernels.gpu.primitives.indexing import BLOCK
from toolkit.kernels.gpu.primitives.reduce_code import BlockReduction, State, lane_and_warp, largest, warp_reduce

#: the most rows and columns of a matrix: a number of each is in shared memory
MOST = 1024
#: rounds over all pairs: convergence is quadratic, LAPACK's gesvj allows as many
_SWEEPS = 30


def _add(k: KernelBuilder) -> Callable[[State, State], State]:
    return lambda a, b: tuple(k.add(x, y) for x, y in zip(a, b, strict=True))


def _eps(type: str) -> float:
    return float(np.finfo(np.float32 if type == "float" else np.float64).eps)


class _Matrix:
    """A block's matrix in a batch of [size] numbers each."""

    def __init__(self, k: KernelBuilder, size: Value):
        self._k = k
        self._first = k.mul(k.convert(k.block_index, "i64"), k.convert(size, "i64"))

    def at(self, column: Lanes, row: Lanes, rows: Value) -> Value:
        k = self._k
        return k.add(self._first, k.convert(k.add(k.mul(column, rows), row), "i64"))


@functools.cache
def prepare(type: str, kind: str) -> SimtKernel:
    """Takes x [batch, ...], a [batch, n, m], v [batch, n, n], scale [batch], m, n.

    `a` becomes the matrix, divided by `scale`, and `v` the identity. What holds a NaN or an infinity is NaN.

    Args:
        kind: "tall": x is [m, n]; "wide": x is [n, m], and decomposed transposed; "symmetric": x is [n, n], of which
            the lower triangle is read, `scale` bounds its eigenvalues' sizes, and the identity is added.
    """
    k = KernelBuilder(f"jacobi_prepare_{kind}_{type}", BLOCK)
    x = k.buffer("x", type)
    a, v = k.buffer("a", type, written=True), k.buffer("v", type, written=True)
    scale = k.buffer("scale", type, written=True)
    m, n = k.scalar("m", "i32"), k.scalar("n", "i32")
    zero, one, t = k.number(0.0, type), k.number(1.0, type), k.thread
    work, square = _Matrix(k, k.mul(m, n)), _Matrix(k, k.mul(n, n))

    def source(column: Lanes, row: Lanes) -> Value:
        if kind == "wide":
            return k.load(x, work.at(column, row, m))
        if kind == "tall":
            return k.load(x, work.at(row, column, n))
        above = k.compare("sgt", column, row)
        return k.load(x, work.at(k.select(above, column, row), k.select(above, row, column), n))

    most, odd = k.variable(zero), k.variable(zero)  # the latter is NaN where something is not finite
    with k.loop(t, n, BLOCK) as column:
        total = k.variable(zero)
        with k.loop(0, m) as row:
            value = k.intrinsic("fabs", source(column, row))
            odd.set(k.add(odd.get(), k.mul(value, zero)))
            if kind == "symmetric":
                total.set(k.add(total.get(), value))
            else:
                total.set(largest(k, total.get(), value))
        most.set(largest(k, most.get(), total.get()))

    def both(p: State, q: State) -> State:
        return (largest(k, p[0], q[0]), k.add(p[1], q[1]))

    found, wrong = BlockReduction(k, [type, type]).reduce((most.get(), odd.get()), both)
    by = k.select(k.compare("oeq", found, zero), one, found)
    by = k.add(by, wrong)
    with k.when(k.compare("eq", t, k.number(0, "i32"))):
        k.store(scale, k.block_index, by)
    with k.loop(t, k.mul(m, n), BLOCK) as j:
        column, row = k.div(j, m), k.rem(j, m)
        value = k.div(source(column, row), by)
        if kind == "symmetric":
            value = k.add(value, k.select(k.compare("eq", column, row), one, zero))
        k.store(a, work.at(column, row, m), value)
    with k.loop(t, k.mul(n, n), BLOCK) as j:
        column, row = k.div(j, n), k.rem(j, n)
        k.store(v, square.at(column, row, n), k.select(k.compare("eq", column, row), one, zero))
    return k.finish()


@functools.cache
def rotate(type: str) -> SimtKernel:
    """Makes the columns of a [batch, n, m] orthogonal, and does the same to v [batch, n, n]. Takes a, v, m, n."""
    k = KernelBuilder(f"jacobi_rotate_{type}", BLOCK)
    a, v = k.buffer("a", type, written=True), k.buffer("v", type, written=True)
    m, n = k.scalar("m", "i32"), k.scalar("n", "i32")
    turned = k.shared("turned", "i32", 1)
    work, square = _Matrix(k, k.mul(m, n)), _Matrix(k, k.mul(n, n))
    zero, one, zero_float = k.number(0, "i32"), k.number(1, "i32"), k.number(0.0, type)
    lane, warp = lane_and_warp(k)
    even = k.add(n, k.both(n, one))
    rounds, pairs = k.sub(even, one), k.div(even, k.number(2, "i32"))
    # a product of columns is known to about so many units (gesvj's bound, too)
    bound = k.mul(k.intrinsic("sqrt", k.convert(m, type)), k.number(_eps(type), type))
    goes_on, sweep = k.variable(one), k.variable(zero)

    def wanted() -> Value:
        return k.both(k.convert(goes_on.get(), "i1"), k.compare("slt", sweep.get(), k.number(_SWEEPS, "i32")))

    def turn(buffer: KernelBuffer, matrix: _Matrix, rows: Value, p: Value, q: Value, c: Value, s: Value) -> None:
        with k.loop(lane, rows, WARP) as row:
            one_place, other_place = matrix.at(p, row, rows), matrix.at(q, row, rows)
            x, y = k.load(buffer, one_place), k.load(buffer, other_place)
            k.store(buffer, one_place, k.sub(k.mul(c, x), k.mul(s, y)))
            k.store(buffer, other_place, k.add(k.mul(s, x), k.mul(c, y)))

    with k.while_(wanted):
        k.barrier()
        with k.when(k.compare("eq", k.thread, zero)):
            k.store(turned, zero, zero)
        with k.loop(0, rounds) as turn_number:
            k.barrier()
            with k.loop(warp, pairs, BLOCK // WARP) as pair:
                is_first = k.compare("eq", pair, zero)
                left = k.rem(k.add(turn_number, pair), rounds)
                right = k.rem(k.add(k.sub(turn_number, pair), rounds), rounds)
                right = k.select(is_first, k.sub(even, one), right)
                is_lower = k.compare("slt", left, right)
                p, q = k.select(is_lower, left, right), k.select(is_lower, right, left)
                with k.when(k.compare("slt", q, n)):
                    sums = [k.variable(zero_float) for _ in range(3)]
                    with k.loop(lane, m, WARP) as row:
                        x, y = k.load(a, work.at(p, row, m)), k.load(a, work.at(q, row, m))
                        for held, term in zip(sums, ((x, x), (y, y), (x, y)), strict=True):
                            held.set(k.add(held.get(), k.mul(*term)))
                    alpha, beta, gamma = warp_reduce(k, tuple(each.get() for each in sums), _add(k))
                    # the roots one by one: a product of squares may be 0 where neither is
                    least = k.mul(k.mul(bound, k.intrinsic("sqrt", alpha)), k.intrinsic("sqrt", beta))
                    with k.when(k.compare("ogt", k.intrinsic("fabs", gamma), least)):
                        with k.when(k.compare("eq", lane, zero)):
                            k.atomic("add", turned, zero, one)
                        unit = k.number(1.0, type)
                        zeta = k.div(k.sub(beta, alpha), k.add(gamma, gamma))
                        size = k.intrinsic("fabs", zeta)
                        root = k.intrinsic("sqrt", k.add(unit, k.mul(zeta, zeta)))
                        tangent = k.intrinsic("copysign", k.div(unit, k.add(size, root)), zeta)
                        c = k.div(unit, k.intrinsic("sqrt", k.add(unit, k.mul(tangent, tangent))))
                        s = k.mul(c, tangent)
                        turn(a, work, m, p, q, c, s)
                        turn(v, square, n, p, q, c, s)
        k.barrier()
        goes_on.set(k.load(turned, zero))
        sweep.set(k.add(sweep.get(), one))
    return k.finish()


@functools.cache
def finish(type: str, *, symmetric: bool, with_u: bool, with_v: bool) -> SimtKernel:
    """In order: values [batch, n], u [batch, m, width] without what has the value 0, v [batch, n, n].

    Takes a, v of `rotate`, scale, values, then u and the vectors' v where they are wanted, m, n, width. Singular values
    fall; eigenvalues of a symmetric matrix rise.
    """
    k = KernelBuilder(f"jacobi_finish_{type}{'_symmetric' * symmetric}{'_u' * with_u}{'_v' * with_v}", BLOCK)
    a, v, scale = (k.buffer(name, type) for name in ("a", "v", "scale"))
    values = k.buffer("values", type, written=True)
    into_u = k.buffer("into_u", type, written=True) if with_u else None
    into_v = k.buffer("into_v", type, written=True) if with_v else None
    m, n, width = (k.scalar(name, "i32") for name in ("m", "n", "width"))
    sizes, ranks = k.shared("sizes", type, MOST), k.shared("ranks", "i32", MOST)
    work, square, wide = _Matrix(k, k.mul(m, n)), _Matrix(k, k.mul(n, n)), _Matrix(k, k.mul(m, width))
    line = _Matrix(k, n)
    zero, zero_float, one = k.number(0, "i32"), k.number(0.0, type), k.number(1, "i32")
    lane, warp = lane_and_warp(k)
    with k.loop(warp, n, BLOCK // WARP) as column:
        total = k.variable(zero_float)
        with k.loop(lane, m, WARP) as row:
            value = k.load(a, work.at(column, row, m))
            total.set(k.add(total.get(), k.mul(value, value)))
        (size,) = warp_reduce(k, (total.get(),), _add(k))
        with k.when(k.compare("eq", lane, zero)):
            k.store(sizes, column, k.intrinsic("sqrt", size))
    k.barrier()
    with k.loop(k.thread, n, BLOCK) as i:
        mine, place = k.load(sizes, i), k.variable(zero)
        with k.loop(0, n) as j:
            other = k.load(sizes, j)
            before = k.compare("olt" if symmetric else "ogt", other, mine)
            behind = k.compare("ogt" if symmetric else "olt", other, mine)
            tied = k.both(k.inverse(k.either(before, behind)), k.compare("slt", j, i))
            place.set(k.add(place.get(), k.convert(k.either(before, tied), "i32")))
        k.store(ranks, i, place.get())
        by = k.load(scale, k.block_index)
        moved = k.sub(mine, k.number(1.0, type)) if symmetric else mine
        k.store(values, line.at(zero, place.get(), one), k.mul(moved, by))
    k.barrier()
    if into_u is not None:
        with k.loop(k.thread, k.mul(n, m), BLOCK) as j:
            column, row = k.div(j, m), k.rem(j, m)
            size = k.load(sizes, column)
            value = k.div(k.load(a, work.at(column, row, m)), size)
            with k.when(k.compare("une", size, zero_float)):
                k.store(into_u, wide.at(row, k.load(ranks, column), width), value)
    if into_v is not None:
        with k.loop(k.thread, k.mul(n, n), BLOCK) as j:
            column, row = k.div(j, n), k.rem(j, n)
            odd = k.mul(k.load(scale, k.block_index), zero_float)  # NaN where something is not finite
            found = k.add(k.load(v, square.at(column, row, n)), odd)
            k.store(into_v, square.at(row, k.load(ranks, column), n), found)
    return k.finish()


@functools.cache
def complete(type: str) -> SimtKernel:
    """Columns of u [batch, m, width] that have no value yet, orthogonal to all others: those from n on, or of value 0.

    Each is what is left of a unit vector; one of m has at least the m-th part left of its square. Twice is enough
    (B. N. Parlett, "The Symmetric Eigenvalue Problem", 1998, section 6.9). Takes u, values, m, n, width.
    """
    k = KernelBuilder(f"jacobi_complete_{type}", BLOCK)
    u, values = k.buffer("u", type, written=True), k.buffer("values", type)
    m, n, width = (k.scalar(name, "i32") for name in ("m", "n", "width"))
    rest = k.shared("rest", type, MOST)
    reduction = BlockReduction(k, [type])
    wide, line = _Matrix(k, k.mul(m, width)), _Matrix(k, n)
    zero, one, zero_float = k.number(0, "i32"), k.number(1, "i32"), k.number(0.0, type)

    def is_missing(column: Lanes) -> Value:
        found = k.variable(k.number(1, "i1"))
        with k.when(k.compare("slt", column, n)):
            found.set(k.compare("oeq", k.load(values, line.at(zero, column, one)), zero_float))
        return found.get()

    def total_of(other: Lanes | None) -> Lanes:
        """The product of what is left with a column, or with itself."""
        held = k.variable(zero_float)
        with k.loop(k.thread, m, BLOCK) as row:
            mine = k.load(rest, row)
            by = mine if other is None else k.load(u, wide.at(row, other, width))
            held.set(k.add(held.get(), k.mul(mine, by)))
        k.barrier()
        return reduction.reduce((held.get(),), _add(k))[0]

    with k.loop(0, width) as column, k.when(is_missing(column)):
        candidate = k.variable(zero)
        left = k.variable(zero_float)
        needed = k.div(k.number(0.5, type), k.convert(m, type))

        def wanted(candidate: RegisterVariable, left: RegisterVariable, needed: Value) -> Value:
            return k.both(k.compare("olt", left.get(), needed), k.compare("slt", candidate.get(), m))

        with k.while_(functools.partial(wanted, candidate, left, needed)):
            k.barrier()
            with k.loop(k.thread, m, BLOCK) as row:
                is_it = k.compare("eq", row, candidate.get())
                k.store(rest, row, k.select(is_it, k.number(1.0, type), zero_float))
            k.barrier()
            for _ in range(2):
                with k.loop(0, width) as other:
                    is_there = k.either(k.compare("slt", other, column), k.inverse(is_missing(other)))
                    with k.when(is_there):
                        product = total_of(other)
                        with k.loop(k.thread, m, BLOCK) as row:
                            taken = k.mul(product, k.load(u, wide.at(row, other, width)))
                            k.store(rest, row, k.sub(k.load(rest, row), taken))
                        k.barrier()
            left.set(total_of(None))
            candidate.set(k.add(candidate.get(), one))
        size = k.intrinsic("sqrt", left.get())
        with k.loop(k.thread, m, BLOCK) as row:
            k.store(u, wide.at(row, column, width), k.div(k.load(rest, row), size))
        k.barrier()
    return k.finish()
