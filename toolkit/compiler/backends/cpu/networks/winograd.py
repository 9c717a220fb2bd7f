"""The calls of convolutions by Winograd's algorithm: products of oneDNN's, shared by threads, in compiled functions."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from toolkit.compiler.backends.cpu.emission.emit import Emitter
from toolkit.compiler.backends.cpu.emission.instance import PreparedPrimitive, Region, Span, Workspace, whole
from toolkit.compiler.backends.cpu.emission.primitives import fixed, make, packed
from toolkit.compiler.backends.cpu.networks.operations import Winograd, WinogradFilterGradient, WinogradSchedule
from toolkit.compiler.backends.cpu.networks.windows import ConvolutionProblem, WinogradEpilogue, epilogue_of
from toolkit.compiler.ir.operation import Operation
from toolkit.compiler.ir.value import Value
from toolkit.kernels.cpu.native.compiler import INT32, Function, compiler
from toolkit.kernels.cpu.native.interpolation import filter_matrix, gradient_matrix, transform_filter
from toolkit.kernels.cpu.native.openmp import OPENMP
from toolkit.kernels.cpu.native.winograd import winograd, winograd_gradient
from toolkit.kernels.cpu.onednn import memory
from toolkit.kernels.cpu.onednn.library import one_thread, openmp_symbols
from toolkit.kernels.cpu.onednn.memory import Desc, any_layout
from toolkit.kernels.cpu.onednn.primitive import Arg, DescriptorQuery, SumPost
from toolkit.kernels.tensors import F32


def _block(tiles: int, odd: int) -> int:
    """So many tiles or one more: with a power of 2 of them all points of a tile would want the same lines of L1.

    Args:
        odd: tiles from which on that is done.
    """
    return tiles | 1 if tiles >= odd else tiles


def write_winograd(emitter: Emitter, operation: Operation) -> None:
    """The call of the compiled function, with a product for each share."""
    assert isinstance(operation, Winograd)
    schedule, sizes = operation.schedule, emitter.target.winograd
    work = ConvolutionProblem.of(operation, schedule.axes)
    shift, added, low, high = epilogue_of(operation) or WinogradEpilogue()
    points, channels, filters = work.points, work.channels, work.filters
    parts = _parts(math.prod(work.tiles), filters, schedule)
    most = max(last - first for first, last, _ in parts)
    block = _block(-(-most // -(-most // sizes.block)), sizes.odd)
    own = filters // schedule.shares if schedule.by_filters else filters
    given, made = memory.dense((points, block, channels), F32), memory.dense((points, block, own), F32)
    # filters that change are taken as they are: packing them takes longer than it saves
    layout = any_layout if operation.weights is not None else memory.dense
    with one_thread():
        product = make(operation, "matmul", given, layout((points, channels, own), F32), None, made)
    emitter.chosen.append((operation, product))
    weights = _weights(
        emitter, operation, product.desc(DescriptorQuery.WEIGHTS), sorted({part[-1] for part in parts}), own
    )
    known = operation.bias
    bias = np.zeros(filters, np.float32) if known is None else np.ascontiguousarray(known, np.float32)
    regions = _shared(emitter, work, operation.input, operation.output, shift or bias, added)
    regions.append(whole(emitter.kept(work.numbers(len(parts), operation.windows.padding, block))))
    start = 0
    for first, last, filter_at in parts:
        before, after = Workspace(start), Workspace(start + given.size)
        start += given.size + made.size
        operands = [(Arg.SRC, before, given), (Arg.WEIGHTS, *weights[filter_at]), (Arg.DST, after, made)]
        regions += [
            Span(before, given.size),
            Span(after, made.size),
            PreparedPrimitive(product, operands, (0, first, last, filter_at, own)),
        ]
    emitter.workspace = max(emitter.workspace, start)
    spread = schedule.shares > 1
    text = winograd(work.axes, adds=added is not None, low=low, high=high, exact=operation.exact, threads=spread)
    emitter.execute_checked(_function(text, spread), regions)


def write_winograd_filter(emitter: Emitter, operation: Operation) -> None:
    """The gradient by the filter: sums of products at the points, a share for each thread, then what they stand for."""
    assert isinstance(operation, WinogradFilterGradient)
    x, dy, schedule = operation.input, operation.output_gradient, operation.schedule
    work = ConvolutionProblem.of(operation, schedule.axes)
    points, channels, filters = work.points, work.channels, work.filters
    tiles, sizes = math.prod(work.tiles), emitter.target.winograd
    block = _block(min(sizes.block, -(-tiles // schedule.shares)), sizes.odd)
    blocks = -(-tiles // block)
    shares = min(schedule.shares, blocks)
    given = memory.strided((points, channels, block), F32, (block * channels, 1, channels))
    other = memory.dense((points, block, filters), F32)
    sums = memory.dense((points, channels, filters), F32)
    with one_thread():
        product = make(operation, "matmul", given, other, None, sums, posts=[SumPost()])
    emitter.chosen.append((operation, product))
    regions = _shared(emitter, work, x, dy, np.zeros(0, np.float32), None)
    regions.append(whole(emitter.kept(work.numbers(shares, operation.windows.padding, block))))
    start = 0
    results: list[Workspace] = []
    for index in range(shares):
        first, last = (min(tiles, blocks * at // shares * block) for at in (index, index + 1))
        places = [Workspace(start + size) for size in (0, given.size, given.size + other.size)]
        start += given.size + other.size + sums.size
        operands = [(Arg.SRC, places[0], given), (Arg.WEIGHTS, places[1], other), (Arg.DST, places[2], sums)]
        transformed = Span(places[0], given.size + other.size)
        prepared = PreparedPrimitive(product, operands, (0, first, last, 0, filters))
        regions += [transformed, Span(places[2], sums.size), prepared]
        results.append(places[2])
    emitter.workspace = max(emitter.workspace, start)
    spread = shares > 1
    emitter.execute_checked(_function(winograd_gradient(work.axes, threads=spread), spread), regions)
    matrix = gradient_matrix(work.axes)
    flat, target = (memory.dense((size, channels * filters), F32) for size in (points, len(matrix)))
    for index, place in enumerate(results):
        posts = [SumPost()] if index else []
        primitive = make(operation, "matmul", memory.dense(matrix.shape, F32), flat, None, target, posts=posts)
        emitter.execute(
            primitive, [(Arg.SRC, fixed(matrix), None), (Arg.WEIGHTS, place, flat), (Arg.DST, operation.output, target)]
        )


def _shared(
    emitter: Emitter, work: ConvolutionProblem, x: Value, y: Value, bias: Any, added: Value | None
) -> list[Region]:
    """The operands in the order of `tiles.WinogradOperand`, without the numbers."""
    spare = [emitter.kept(np.zeros(max(work.channels, work.filters), np.float32)) for _ in range(2)]
    first = bias if isinstance(bias, Value) else emitter.kept(bias)
    given, made = 4 * math.prod(work.input), 4 * math.prod(work.output)
    shift = 0 if first.size == 0 else 4 * work.filters  # gradients have none
    return [Span(x, given), Span(y, made), Span(first, shift), Span(added or y, made), *map(whole, spare)]


def _weights(
    emitter: Emitter, operation: Winograd, wanted: Desc, starts: list[int], own: int
) -> dict[int, tuple[Any, Desc | None]]:
    """Transformed filters in the layout of the product: of a share from its first filter on.

    Args:
        wanted: that layout; of filters that change it is a plain one.
    """
    known, w = operation.weights, operation.filter
    if w is None:
        made = transform_filter(known, operation.schedule.axes)
        parts = {start: np.ascontiguousarray(made[:, :, start : start + own]) for start in starts}
        return {start: (packed(part, memory.dense(part.shape, F32), wanted), None) for start, part in parts.items()}
    work = ConvolutionProblem.of(operation, operation.schedule.axes)
    matrix = filter_matrix(work.axes)
    flat, target = (memory.dense((size, work.channels * work.filters), F32) for size in matrix.shape[::-1])
    transformed = emitter.scratch(wanted)
    primitive = make(operation, "matmul", memory.dense(matrix.shape, F32), flat, None, target)
    emitter.execute(primitive, [(Arg.SRC, fixed(matrix), None), (Arg.WEIGHTS, w, flat), (Arg.DST, transformed, target)])
    return {0: (transformed, wanted)}


def _parts(tiles: int, filters: int, schedule: WinogradSchedule) -> list[tuple[int, int, int]]:
    """Of each share the first tile, the one behind the last, and the first filter."""
    count = schedule.shares
    if schedule.by_filters:
        return [(0, tiles, filters // count * index) for index in range(count)]
    return [(tiles * index // count, tiles * (index + 1) // count, 0) for index in range(count)]


def _function(text: str, spread: bool) -> Function:
    machine = compiler()
    assert machine is not None
    return machine.function(text, openmp_symbols(*OPENMP) if spread else {}, INT32)
