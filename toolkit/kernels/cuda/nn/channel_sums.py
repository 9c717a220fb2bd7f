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
#: positions of a thread that are on their way from memory at the same time: one alone would leave it idle
_AT_ONCE = 4
_MERGING = 512  # threads of a block that puts shares together: sixteen at a time


class ChannelReduction(NamedTuple):
    """What is reduced, a state of several numbers.

    Attributes:
        name: for people, and part of the kernel's identity.
        tensors: how many there are.
        vectors: how many vectors with a number for each channel `prepare` takes.
        state: how many numbers are kept; at first all are 0.
        add: (builder, state, one number of each tensor, what was prepared of the channel) puts one element in; it gives
            what is written in the element's place.
        merge: (builder, state, other) puts another state in.
        finish: (builder, state, the channel's of what is `given`, numbers) gives the results.
        results: how many there are.
        prepare: (builder, the channel's of each vector, numbers) what `add` takes; by default the vectors.
        given: how many vectors with a number for each channel `finish` takes.
        numbers: how many numbers `prepare` and `finish` take.
        written: how many tensors of the type are written.
    """

    name: str
    tensors: int
    vectors: int
    state: int
    add: Callable[[KernelBuilder, Sequence[RegisterVariable], Sequence[Lanes], Sequence[Lanes]], Sequence[Lanes] | None]
    merge: Callable[[KernelBuilder, Sequence[RegisterVariable], Sequence[Lanes]], None]
    finish: Callable[[KernelBuilder, Sequence[Lanes], Sequence[Lanes], Sequence[Lanes]], Sequence[Lanes]]
    results: int
    prepare: Callable[[KernelBuilder, Sequence[Lanes], Sequence[Lanes]], Sequence[Lanes]] | None = None
    given: int = 0
    numbers: int = 0
    written: int = 0


def _sum_add(k: KernelBuilder, state: Sequence[RegisterVariable], values: Sequence[Lanes], _: Sequence[Lanes]) -> None:
    state[0].set(k.add(state[0].get(), values[0]))


def add_states(k: KernelBuilder, state: Sequence[RegisterVariable], other: Sequence[Lanes]) -> None:
    """Of sums."""
    for mine, theirs in zip(state, other, strict=True):
        mine.set(k.add(mine.get(), theirs))


def _as_they_are(_: KernelBuilder, state: Sequence[Lanes], *__: Sequence[Lanes]) -> Sequence[Lanes]:
    return state


SUM = ChannelReduction("sum", 1, 0, 1, _sum_add, add_states, _as_they_are, 1)


@functools.cache
def share_kernel(what: ChannelReduction, type: str, channels_last: bool, index: str) -> SimtKernel:
    """States of shares: (share, number, channel)."""
    wide = sum_type(type)
    k = KernelBuilder(f"channel_{what.name}_{type}_{'last' if channels_last else 'first'}", BLOCK)
    tensors = [k.buffer(f"tensor{n}", type) for n in range(what.tensors)]
    vectors = [k.buffer(f"vector{n}", wide) for n in range(what.vectors)]
    made = [k.buffer(f"made{n}", type, written=True) for n in range(what.written)]
    out = k.buffer("states", wide, written=True)
    positions, channels, inner, length = (
        k.scalar(each, index) for each in ("positions", "channels", "inner", "length")
    )
    numbers = [k.scalar(f"number{n}", wide) for n in range(what.numbers)]
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
        given: Sequence[Lanes] = [k.load(each, channel) for each in vectors]
        if what.prepare is not None:
            given = what.prepare(k, given, numbers)
        at = k.variable(k.add(first, start))

        def put(count: int) -> None:
            """So many positions, `step` apart: all are loaded before the first is added."""
            places = [k.add(at.get(), k.number(n * step, index)) for n in range(count)]
            if not channels_last:
                outer = [k.div(position, inner) for position in places]
                within = [k.sub(position, k.mul(one, inner)) for position, one in zip(places, outer, strict=True)]
                lines = [k.mul(k.add(k.mul(one, channels), channel), inner) for one in outer]
                where = [k.add(line, rest) for line, rest in zip(lines, within, strict=True)]
            else:
                where = [k.add(k.mul(position, channels), channel) for position in places]
            loaded = [[k.convert(k.load(each, one), wide) for each in tensors] for one in where]
            for place, values in zip(where, loaded, strict=True):
                for buffer, value in zip(made, what.add(k, state, values, given) or (), strict=True):
                    _store(k, buffer, place, value)
            at.set(k.add(at.get(), k.number(count * step, index)))

        several = k.sub(last, k.number((_AT_ONCE - 1) * step, index))
        with k.while_(lambda: k.compare("slt", at.get(), several)):
            put(_AT_ONCE)
        with k.while_(lambda: k.compare("slt", at.get(), last)):
            put(1)
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
def merge_kernel(what: ChannelReduction, type: str, result: str) -> SimtKernel:
    """Results of all shares' states: (share, number, channel); a block takes 32 channels."""
    wide = sum_type(type)
    k = KernelBuilder(f"channel_{what.name}_{type}_of_shares", _MERGING)
    states = k.buffer("states", wide)
    given = [k.buffer(f"given{n}", wide) for n in range(what.given)]
    out = [k.buffer(f"result{n}", result, written=True) for n in range(what.results)]
    shares, channels = k.scalar("shares", "i32"), k.scalar("channels", "i32")
    numbers = [k.scalar(f"number{n}", wide) for n in range(what.numbers)]
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
        vectors = [k.load(each, channel) for each in given]
        for buffer, value in zip(out, what.finish(k, [each.get() for each in state], vectors, numbers), strict=True):
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


def launch_merge(
    device: Any,
    what: ChannelReduction,
    type: str,
    states: Any,
    results: Sequence[Any],
    given: Sequence[Any] = (),
    numbers: Sequence[float] = (),
) -> None:
    """Put the states of shares (share, number, channel) together.

    Args:
        type: of what was reduced, in memory.
        given: vectors in the type of the sums.
    """
    shares, channels = states.shape[0], states.shape[-1]
    kernel = merge_kernel(what, type, llvm_type(results[0].dtype))
    device.launch(kernel, -(-channels // WARP), states, *given, *results, shares, channels, *numbers)


def reduced(
    device: Any,
    what: ChannelReduction,
    tensors: Sequence[Any],
    vectors: Sequence[Any],
    sides: tuple[int, int, int],
    dtype: Any,
    *,
    given: Sequence[Any] = (),
    numbers: Sequence[float] = (),
    made: Sequence[Any] = (),
) -> list[Any]:
    """The results of a reduction, a vector each, of a type.

    Args:
        tensors: of one type and size, with elements.
        vectors, given: in the type of the sums.
        sides: outer, channels, inner.
        made: of the tensors' type and size, to be written.
    """
    outer, channels, inner = sides
    type = llvm_type(tensors[0].dtype)
    positions = outer * inner
    channels_last = inner == 1
    columns = -(-channels // WARP) if channels_last else channels
    # a block has a row of threads for eight positions, or all its threads along one channel
    shares, length = shares_of(positions, columns * BLOCK)
    states = device.empty((shares, what.state, channels), "float64" if sum_type(type) == "double" else "float32")
    kernel = share_kernel(what, type, channels_last, index_type(*tensors))
    sizes = (positions, channels, inner, length)
    device.launch(kernel, shares * columns, *tensors, *vectors, *made, states, *sizes, *numbers)
    results = [device.empty((channels,), dtype) for _ in range(what.results)]
    launch_merge(device, what, type, states, results, given, numbers)
    return results
