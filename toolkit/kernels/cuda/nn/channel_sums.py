"""Sums, means and variances over all but the channels.

Where channels are last, a block takes 32 neighbouring channels and eight rows at a time, so that what a warp reads lies
together; where they are first, it takes one channel, along which its threads go. Positions are shared out to blocks as
in `shares`, and the second kernel puts the shares together in their order.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

from toolkit.kernels.cpu.native.code import Lanes
from toolkit.kernels.cuda.nn.common import BLOCK, index_type, llvm_type, sum_type
from toolkit.kernels.cuda.nn.shares import shares_of
from toolkit.kernels.cuda.simt.builder import KernelBuilder, RegisterVariable
from toolkit.kernels.cuda.simt.ir import WARP, KernelBuffer, SimtKernel

_ROWS = BLOCK // WARP
_MERGING = 512  # threads of a block that puts shares together: sixteen at a time


class ChannelReduction(NamedTuple):
    """What is reduced, a state of several numbers.

    Attributes:
        name: for people, and part of the kernel's identity.
        tensors: how many there are.
        vectors: how many vectors with a number for each channel are given.
        state: how many numbers are kept; at first all are 0.
        add: (builder, state, one number of each tensor, the channel's of each vector) puts one element in.
        merge: (builder, state, other) puts another state in.
        finish: (builder, state) gives the results.
        results: how many there are.
    """

    name: str
    tensors: int
    vectors: int
    state: int
    add: Callable[[KernelBuilder, Sequence[RegisterVariable], Sequence[Lanes], Sequence[Lanes]], None]
    merge: Callable[[KernelBuilder, Sequence[RegisterVariable], Sequence[Lanes]], None]
    finish: Callable[[KernelBuilder, Sequence[Lanes]], Sequence[Lanes]]
    results: int


def _sum_add(k: KernelBuilder, state: Sequence[RegisterVariable], values: Sequence[Lanes], _: Sequence[Lanes]) -> None:
    state[0].set(k.add(state[0].get(), values[0]))


def _sum_merge(k: KernelBuilder, state: Sequence[RegisterVariable], other: Sequence[Lanes]) -> None:
    for mine, theirs in zip(state, other, strict=True):
        mine.set(k.add(mine.get(), theirs))


def _as_they_are(_: KernelBuilder, state: Sequence[Lanes]) -> Sequence[Lanes]:
    return state


SUM = ChannelReduction("sum", 1, 0, 1, _sum_add, _sum_merge, _as_they_are, 1)


def _moments_add(
    k: KernelBuilder, state: Sequence[RegisterVariable], values: Sequence[Lanes], _: Sequence[Lanes]
) -> None:
    """B. P. Welford, "Note on a method for calculating corrected sums of squares and products", 1962."""
    count, mean, squares = state
    number = k.add(count.get(), k.number(1.0, count.type))
    off = k.sub(values[0], mean.get())
    now = k.add(mean.get(), k.div(off, number))
    squares.set(k.add(squares.get(), k.mul(off, k.sub(values[0], now))))
    mean.set(now)
    count.set(number)


def _moments_merge(k: KernelBuilder, state: Sequence[RegisterVariable], other: Sequence[Lanes]) -> None:
    """T. F. Chan, G. H. Golub, R. J. LeVeque, "Updating formulae and a pairwise algorithm", 1979."""
    count, mean, squares = state
    their_count, their_mean, their_squares = other
    both = k.add(count.get(), their_count)
    some = k.compare("ogt", both, k.number(0.0, both.type))
    share = k.div(their_count, k.select(some, both, k.number(1.0, both.type)))
    off = k.sub(their_mean, mean.get())
    between = k.mul(k.mul(off, off), k.mul(count.get(), share))
    squares.set(k.add(k.add(squares.get(), their_squares), between))
    mean.set(k.add(mean.get(), k.mul(off, share)))
    count.set(both)


def _moments_finish(k: KernelBuilder, state: Sequence[Lanes]) -> Sequence[Lanes]:
    """Mean, biased and unbiased variance."""
    count, mean, squares = state
    one = k.number(1.0, count.type)
    fewer = k.sub(count, one)
    fewer = k.select(k.compare("olt", fewer, one), one, fewer)
    biased = k.div(squares, count)
    return [mean, biased, k.mul(biased, k.div(count, fewer))]


MOMENTS = ChannelReduction("moments", 1, 0, 3, _moments_add, _moments_merge, _moments_finish, 3)


def _gradients_add(
    k: KernelBuilder, state: Sequence[RegisterVariable], values: Sequence[Lanes], vectors: Sequence[Lanes]
) -> None:
    """Sums of dy and of dy times what was normalized, given mean and 1 / deviation."""
    dy, x = values
    mean, inverse = vectors
    state[0].set(k.add(state[0].get(), dy))
    state[1].set(k.fma(dy, k.mul(k.sub(x, mean), inverse), state[1].get()))


NORM_GRADIENTS = ChannelReduction("norm_gradients", 2, 2, 2, _gradients_add, _sum_merge, _as_they_are, 2)


def _relu_gradients_add(
    k: KernelBuilder, state: Sequence[RegisterVariable], values: Sequence[Lanes], vectors: Sequence[Lanes]
) -> None:
    """The same where dy is by a relu of (x - mean) * factor + offset, computed as the norm computes it."""
    dy, x = values
    mean, inverse, factor, offset = vectors
    centered = k.sub(x, mean)
    passes = k.compare("ogt", k.add(k.mul(centered, factor), offset), k.number(0.0, dy.type))
    dy = k.select(passes, dy, k.number(0.0, dy.type))
    state[0].set(k.add(state[0].get(), dy))
    state[1].set(k.fma(dy, k.mul(centered, inverse), state[1].get()))


RELU_NORM_GRADIENTS = ChannelReduction(
    "relu_norm_gradients", 2, 4, 2, _relu_gradients_add, _sum_merge, _as_they_are, 2
)  # fmt: skip

_REDUCTIONS = {each.name: each for each in (SUM, MOMENTS, NORM_GRADIENTS, RELU_NORM_GRADIENTS)}


@functools.cache
def share_kernel(name: str, type: str, channels_last: bool, index: str) -> SimtKernel:
    """States of shares: (share, number, channel)."""
    what, wide = _REDUCTIONS[name], sum_type(type)
    k = KernelBuilder(f"channel_{name}_{type}_{'last' if channels_last else 'first'}", BLOCK)
    tensors = [k.buffer(f"tensor{n}", type) for n in range(what.tensors)]
    vectors = [k.buffer(f"vector{n}", wide) for n in range(what.vectors)]
    out = k.buffer("states", wide, written=True)
    positions, channels, inner, length = (
        k.scalar(each, index) for each in ("positions", "channels", "inner", "length")
    )
    state = [k.variable(k.number(0.0, wide)) for _ in range(what.state)]
    shared = [k.shared(f"state{n}", wide, BLOCK) for n in range(what.state)]
    thread = k.thread
    lane, row = k.rem(thread, k.number(WARP, "i32")), k.div(thread, k.number(WARP, "i32"))
    block = k.convert(k.block_index, index)
    if channels_last:
        groups = k.div(k.add(channels, k.number(WARP - 1, index)), k.number(WARP, index))
        share = k.div(block, groups)
        group = k.sub(block, k.mul(share, groups))
        channel = k.add(k.mul(group, k.number(WARP, index)), k.convert(lane, index))
        start, step = k.convert(row, index), _ROWS
    else:
        share = k.div(block, channels)
        channel = k.sub(block, k.mul(share, channels))
        start, step = k.convert(thread, index), BLOCK
    first = k.mul(share, length)
    last = k.add(first, length)
    last = k.select(k.compare("slt", last, positions), last, positions)
    with k.when(k.compare("slt", channel, channels)):
        given = [k.load(each, channel) for each in vectors]
        with k.loop(k.add(first, start), last, step) as position:
            if channels_last:
                where = k.add(k.mul(position, channels), channel)
            else:
                outer = k.div(position, inner)
                within = k.sub(position, k.mul(outer, inner))
                where = k.add(k.mul(k.add(k.mul(outer, channels), channel), inner), within)
            what.add(k, state, [k.convert(k.load(each, where), wide) for each in tensors], given)
    _merge_in_block(k, what, state, shared, BLOCK, WARP if channels_last else 1)
    writes = k.compare("slt", thread, k.number(WARP if channels_last else 1, "i32"))
    with k.when(k.both(writes, k.compare("slt", channel, channels))):
        for n, number in enumerate(state):
            line = k.add(k.mul(share, k.number(what.state, index)), k.number(n, index))
            _store(k, out, k.add(k.mul(line, channels), channel), number.get())
    return k.finish()


def _store(k: KernelBuilder, buffer: KernelBuffer, where: Lanes, value: Lanes) -> None:
    k.store(buffer, where, k.convert(value, buffer.type))


@functools.cache
def merge_kernel(name: str, type: str, result: str) -> SimtKernel:
    """Results of all shares' states: (share, number, channel); a block takes 32 channels."""
    what, wide = _REDUCTIONS[name], sum_type(type)
    k = KernelBuilder(f"channel_{name}_{type}_of_shares", _MERGING)
    states = k.buffer("states", wide)
    out = [k.buffer(f"result{n}", result, written=True) for n in range(what.results)]
    shares, channels = k.scalar("shares", "i32"), k.scalar("channels", "i32")
    shared = [k.shared(f"state{n}", wide, _MERGING) for n in range(what.state)]
    thread, warp = k.thread, k.number(WARP, "i32")
    channel = k.add(k.mul(k.block_index, warp), k.rem(thread, warp))
    state = [k.variable(k.number(0.0, wide)) for _ in range(what.state)]
    is_there = k.compare("slt", channel, channels)
    with k.when(is_there), k.loop(k.div(thread, warp), shares, _MERGING // WARP) as share:
        line = k.mul(share, k.number(what.state, "i32"))
        places = [k.add(k.mul(k.add(line, k.number(n, "i32")), channels), channel) for n in range(what.state)]
        what.merge(k, state, [k.load(states, each) for each in places])
    _merge_in_block(k, what, state, shared, _MERGING, WARP)
    with k.when(k.both(k.compare("slt", thread, warp), is_there)):
        for buffer, value in zip(out, what.finish(k, [each.get() for each in state]), strict=True):
            _store(k, buffer, channel, value)
    return k.finish()


def _merge_in_block(
    k: KernelBuilder,
    what: ChannelReduction,
    state: Sequence[RegisterVariable],
    shared: Sequence[KernelBuffer],
    block: int,
    width: int,
) -> None:
    """States of threads whose numbers are the same modulo `width` become one, in the first of them."""
    thread = k.thread
    for each, number in zip(shared, state, strict=True):
        k.store(each, thread, number.get())
    half = block // 2
    while half >= width:
        k.barrier()
        with k.when(k.compare("slt", thread, k.number(half, "i32"))):
            other = [k.load(each, k.add(thread, k.number(half, "i32"))) for each in shared]
            what.merge(k, state, other)
            for each, number in zip(shared, state, strict=True):
                k.store(each, thread, number.get())
        half //= 2


def launch_merge(device: Any, what: ChannelReduction, type: str, states: Any, results: Sequence[Any]) -> None:
    """Put the states of shares (share, number, channel) together.

    Args:
        type: of what was reduced, in memory.
    """
    shares, channels = states.shape[0], states.shape[-1]
    kernel = merge_kernel(what.name, type, llvm_type(results[0].dtype))
    device.launch(kernel, -(-channels // WARP), states, *results, shares, channels)


def reduced(
    device: Any,
    what: ChannelReduction,
    tensors: Sequence[Any],
    vectors: Sequence[Any],
    sides: tuple[int, int, int],
    dtype: Any,
) -> list[Any]:
    """The results of a reduction, a vector each, of a type.

    Args:
        tensors: of one type and size, with elements.
        vectors: in the type of the sums.
        sides: outer, channels, inner.
    """
    outer, channels, inner = sides
    type = llvm_type(tensors[0].dtype)
    positions = outer * inner
    channels_last = inner == 1
    columns = -(-channels // WARP) if channels_last else channels
    # a block has a row of threads for eight positions, or all its threads along one channel
    shares, length = shares_of(positions, columns * BLOCK)
    states = device.empty((shares, what.state, channels), "float64" if sum_type(type) == "double" else "float32")
    kernel = share_kernel(what.name, type, channels_last, index_type(*tensors))
    device.launch(kernel, shares * columns, *tensors, *vectors, states, positions, channels, inner, length)
    results = [device.empty((channels,), dtype) for _ in range(what.results)]
    launch_merge(device, what, type, states, results)
    return results
