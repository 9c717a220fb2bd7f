"""Kernels of connectionist temporal classification: all are computed in double, as on the CPU.

States are labels with blanks around them. Probabilities of alignments are logarithms: `alpha` of the way to a state at
a time, `beta` of the way on from there, without what is emitted at the time itself.
"""

from __future__ import annotations

import functools
import math

from toolkit.kernels.cpu.native import functions
from toolkit.kernels.cpu.native.code import Lanes
from toolkit.kernels.cuda.simt.builder import KernelBuilder
from toolkit.kernels.cuda.simt.ir import SimtKernel, Value
from toolkit.kernels.gpu.primitives.indexing import BLOCK
from toolkit.kernels.gpu.primitives.reduce_code import BlockReduction, State

_NONE = -math.inf


def _log(k: KernelBuilder, x: Lanes) -> Value:
    return k.convert(functions.log(k, x), "double")


def _exp(k: KernelBuilder, x: Lanes) -> Value:
    return k.convert(functions.exp(k, x), "double")


def _both_ways(k: KernelBuilder, a: Value, b: Value) -> Value:
    """log(exp(a) + exp(b)); of two that cannot be, none."""
    a_is_more = k.compare("ogt", a, b)
    more, less = k.select(a_is_more, a, b), k.select(a_is_more, b, a)
    none = k.compare("oeq", more, k.number(_NONE, "double"))
    apart = k.sub(less, k.select(none, k.number(0.0, "double"), more))
    total = k.add(more, k.convert(functions.log1p(k, _exp(k, apart)), "double"))
    return k.select(none, more, total)


@functools.cache
def log_softmax(type: str) -> SimtKernel:
    """A block a row: takes x [rows, classes], y double, classes."""
    k = KernelBuilder(f"ctc_log_softmax_{type}", BLOCK)
    x, y = k.buffer("x", type), k.buffer("y", "double", written=True)
    classes = k.scalar("classes", "i32")
    first, block = k.mul(k.convert(k.block_index, "i64"), k.convert(classes, "i64")), BlockReduction(k, ["double"])

    def value(c: Lanes) -> Value:
        return k.convert(k.load(x, k.add(first, k.convert(c, "i64"))), "double")

    def larger(a: State, b: State) -> State:
        is_more = k.either(k.compare("ogt", a[0], b[0]), k.compare("uno", a[0], a[0]))
        return (k.select(is_more, a[0], b[0]),)

    def plus(a: State, b: State) -> State:
        return (k.add(a[0], b[0]),)

    own = k.variable(k.number(_NONE, "double"))
    with k.loop(k.thread, classes, BLOCK) as c:
        own.set(larger((value(c),), (own.get(),))[0])
    (most,) = block.reduce((own.get(),), larger)
    own.set(k.number(0.0, "double"))
    with k.loop(k.thread, classes, BLOCK) as c:
        own.set(k.add(own.get(), _exp(k, k.sub(value(c), most))))
    (total,) = block.reduce((own.get(),), plus)
    log = _log(k, total)
    with k.loop(k.thread, classes, BLOCK) as c:
        k.store(y, k.add(first, k.convert(c, "i64")), k.sub(k.sub(value(c), most), log))
    return k.finish()


@functools.cache
def ways(merge: bool) -> SimtKernel:
    """Alpha and beta of each example, a block each, as far as it has time.

    Takes log_y [time, batch, classes], path [batch, states], sizes and lengths [batch], alpha and beta
    [time, batch, states], totals [batch] (log probabilities of the labels), batch, classes, states, blank.

    Args:
        merge: repeated labels are merged: a label may last, and its repetition needs a blank.
    """
    k = KernelBuilder(f"ctc_ways{'_merged' if merge else ''}", BLOCK)
    log_y, path = k.buffer("log_y", "double"), k.buffer("path", "i32")
    sizes, lengths = k.buffer("sizes", "i32"), k.buffer("lengths", "i32")
    alpha, beta = k.buffer("alpha", "double", written=True), k.buffer("beta", "double", written=True)
    totals = k.buffer("totals", "double", written=True)
    batch, classes, states, blank = (k.scalar(name, "i32") for name in ("batch", "classes", "states", "blank"))
    example, t, zero, one, two = k.block_index, k.thread, *(k.number(n, "i32") for n in range(3))
    size, length = k.load(sizes, example), k.load(lengths, example)
    none = k.number(_NONE, "double")
    own_path = k.mul(example, states)

    def label(state: Lanes) -> Value:
        return k.load(path, k.add(own_path, k.convert(state, "i32")))

    def row(time: Lanes, width: Value) -> Value:
        """Where the numbers of a time begin."""
        line = k.add(k.mul(k.convert(time, "i64"), k.convert(batch, "i64")), k.convert(example, "i64"))
        return k.mul(line, k.convert(width, "i64"))

    def emitted(time: Lanes, state: Lanes) -> Value:
        return k.load(log_y, k.add(row(time, classes), k.convert(label(state), "i64")))

    def may_skip(state: Lanes) -> Value:
        """Whether a state can be reached from two states before, over a blank; asked for states from 2 on."""
        is_label = k.compare("ne", label(state), blank)
        return k.both(is_label, k.compare("ne", label(state), label(k.sub(state, two)))) if merge else is_label

    def may_stay(state: Lanes) -> Value:
        return k.number(1, "i1") if merge else k.compare("eq", label(state), blank)

    with k.when(k.compare("sgt", length, zero)):
        with k.loop(t, size, BLOCK) as s:
            way = k.variable(none)
            with k.when(k.compare("slt", s, two)):
                way.set(emitted(zero, s))
            k.store(alpha, k.add(row(zero, states), k.convert(s, "i64")), way.get())
        with k.loop(1, length) as time:
            k.barrier()
            before, now = row(k.sub(time, one), states), row(time, states)
            with k.loop(t, size, BLOCK) as s:
                place = k.convert(s, "i64")
                way = k.variable(k.select(may_stay(s), k.load(alpha, k.add(before, place)), none))
                with k.when(k.compare("sge", s, one)):
                    came = k.load(alpha, k.add(before, k.convert(k.sub(s, one), "i64")))
                    way.set(_both_ways(k, way.get(), came))
                with k.when(k.compare("sge", s, two)), k.when(may_skip(s)):
                    came = k.load(alpha, k.add(before, k.convert(k.sub(s, two), "i64")))
                    way.set(_both_ways(k, way.get(), came))
                k.store(alpha, k.add(now, place), k.add(way.get(), emitted(time, s)))
        last = k.sub(length, one)
        with k.loop(t, size, BLOCK) as s:
            ends = k.compare("sge", s, k.sub(size, two))
            k.store(beta, k.add(row(last, states), k.convert(s, "i64")), k.select(ends, k.number(0.0, "double"), none))
        with k.loop(1, length) as back:
            k.barrier()
            time = k.sub(last, back)
            after = k.add(time, one)
            following, now = row(after, states), row(time, states)

            def on(s: Lanes, after: Value = after, following: Value = following) -> Value:
                return k.add(k.load(beta, k.add(following, k.convert(s, "i64"))), emitted(after, s))

            with k.loop(t, size, BLOCK) as s:
                way = k.variable(k.select(may_stay(s), on(s), none))
                with k.when(k.compare("slt", k.add(s, one), size)):
                    way.set(_both_ways(k, way.get(), on(k.add(s, one))))
                with k.when(k.compare("slt", k.add(s, two), size)), k.when(may_skip(k.add(s, two))):
                    way.set(_both_ways(k, way.get(), on(k.add(s, two))))
                k.store(beta, k.add(now, k.convert(s, "i64")), way.get())
    k.barrier()
    with k.when(k.compare("eq", t, zero)):
        total = k.variable(none)
        with k.when(k.compare("sgt", length, zero)), k.loop(0, size) as s:
            place = k.add(row(zero, states), k.convert(s, "i64"))
            total.set(_both_ways(k, total.get(), k.add(k.load(alpha, place), k.load(beta, place))))
        k.store(totals, example, total.get())
    return k.finish()


@functools.cache
def results(type: str) -> SimtKernel:
    """Losses and gradients, a block for each time and example.

    Takes log_y [time, batch, classes], path [batch, states], sizes, counted (how much time of an example counts, 0
    where its loss is 0) and totals [batch], alpha, beta [time, batch, states], loss [batch], gradient
    [time, batch, classes], batch, classes, states.
    """
    k = KernelBuilder(f"ctc_results_{type}", BLOCK)
    log_y, path = k.buffer("log_y", "double"), k.buffer("path", "i32")
    sizes, counted, totals = k.buffer("sizes", "i32"), k.buffer("counted", "i32"), k.buffer("totals", "double")
    alpha, beta = k.buffer("alpha", "double"), k.buffer("beta", "double")
    loss, gradient = k.buffer("loss", type, written=True), k.buffer("gradient", type, written=True)
    batch, classes, states = (k.scalar(name, "i32") for name in ("batch", "classes", "states"))
    t, zero = k.thread, k.number(0, "i32")
    time = k.div(k.block_index, batch)
    example = k.sub(k.block_index, k.mul(time, batch))
    size, total = k.load(sizes, example), k.load(totals, example)
    counts = k.compare("slt", time, k.load(counted, example))
    line = k.convert(k.block_index, "i64")
    of_classes, of_states = (k.mul(line, k.convert(width, "i64")) for width in (classes, states))
    own_path = k.mul(example, states)
    nothing = k.number(0.0, "double")
    with k.when(k.both(k.compare("eq", time, zero), k.compare("eq", t, zero))):
        k.store(loss, example, k.convert(k.select(counts, k.neg(total), nothing), type))
    with k.loop(t, classes, BLOCK) as c:
        place = k.add(of_classes, k.convert(c, "i64"))
        value = k.variable(nothing)
        with k.when(counts):
            value.set(_exp(k, k.load(log_y, place)))
        k.store(gradient, place, k.convert(value.get(), type))
    k.barrier()
    is_finite = k.compare("olt", k.intrinsic("fabs", total), k.number(math.inf, "double"))
    base = k.select(is_finite, total, nothing)
    with k.when(counts), k.loop(t, size, BLOCK) as s:
        own = k.load(path, k.add(own_path, s))
        earlier, given = k.variable(zero), k.variable(nothing)
        with k.loop(0, size) as other, k.when(k.compare("eq", k.load(path, k.add(own_path, other)), own)):
            with k.when(k.compare("slt", other, s)):
                earlier.set(k.number(1, "i32"))
            place = k.add(of_states, k.convert(other, "i64"))
            both = k.add(k.load(alpha, place), k.load(beta, place))
            given.set(k.add(given.get(), _exp(k, k.sub(both, base))))
        with k.when(k.compare("eq", earlier.get(), zero)):  # the first state of a class is about all of them
            place = k.add(of_classes, k.convert(own, "i64"))
            value = k.sub(_exp(k, k.load(log_y, place)), given.get())
            k.store(gradient, place, k.convert(value, type))
    return k.finish()
