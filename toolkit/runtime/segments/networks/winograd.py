"""Convolutions by Winograd's algorithm, where it takes less time than the definition."""

# numpy's overloads answer arrays typed Any with Unknown
# pyright: reportUnknownVariableType=false, reportUnknownMemberType=false, reportUnknownArgumentType=false

from __future__ import annotations

import ctypes
import math
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from toolkit.kernels.cpu.native.code import LANES
from toolkit.kernels.cpu.native.compiler import Function, compiler
from toolkit.kernels.cpu.native.interpolation import Axis, filter_matrix, gradient_matrix, supports, transform_filter
from toolkit.kernels.cpu.native.loops import OPENMP
from toolkit.kernels.cpu.native.winograd import winograd, winograd_gradient
from toolkit.kernels.cpu.onednn import memory
from toolkit.kernels.cpu.onednn.library import one_thread, openmp_symbols
from toolkit.kernels.cpu.onednn.memory import F32, Desc, any_layout
from toolkit.kernels.cpu.onednn.primitive import Arg, Binary, Eltwise, Query, SumPost
from toolkit.runtime.segments.elementwise.elements import Combine
from toolkit.runtime.segments.emission.emit import Emitter
from toolkit.runtime.segments.emission.instance import Prepared, Region, Workspace
from toolkit.runtime.segments.emission.primitives import fixed, make, packed
from toolkit.runtime.segments.ir import Block, Operation, Value

_BLOCK = 64  # tiles at a time: they stay in the cache, and filters are read as seldom as may be
_ODD = 16  # from so many on one more is taken, if need be, to have an odd number of them
#: what a number costs when it is transformed, and when it is read from the filters, in multiplications: measured
_TRANSFORMED, _READ = 15, 20
_LEAST = 1e7  # multiplications of a convolution that is worth the compiler's time
_LARGEST = 1e30  # sums of such weights are finite
_MOST_SUMS = 1 << 24  # bytes of sums for a gradient, of each share
_GAIN = 0.85  # of the definition's cost, above which nothing is changed


class Epilogue(NamedTuple):
    """What happens to the outputs.

    Attributes:
        shift: a number for each filter, where it is not constant.
        added: a tensor of their shape.
        low, high: the range they are clipped to.
    """

    shift: Value | None = None
    added: Value | None = None
    low: float | None = None
    high: float | None = None


class Split(NamedTuple):
    """How the work is shared.

    Attributes:
        shares: for a thread each.
        by_filters: a share is some filters for all tiles; else all filters for some tiles.
        cost: of the longest share, in multiplications.
    """

    shares: int
    by_filters: bool
    cost: float


class _Work(NamedTuple):
    """A convolution, or the gradient by its filter."""

    window: tuple[int, int]
    channels: int
    filters: int
    input: tuple[int, ...]
    output: tuple[int, ...]

    @staticmethod
    def of(operation: Operation) -> _Work:
        x, y = operation.inputs[0].shape, operation.output.shape
        w: tuple[int, ...]
        if operation.kind in _GRADIENTS:
            y, w = operation.inputs[1].shape, operation.attrs["w_shape"]
        else:
            w = _filter_shape(operation)
        assert x is not None and y is not None
        return _Work((w[0], w[1]), w[-2], w[-1], x, y)

    @property
    def tiles(self) -> tuple[int, int, int]:
        """Images, and tiles along height and width."""
        down, across = (-(-size // Axis.of(n).tile) for size, n in zip(self.output[1:3], self.window, strict=True))
        return self.output[0], down, across

    @property
    def points(self) -> int:
        return math.prod(Axis.of(size).size for size in self.window)

    @property
    def definition(self) -> int:
        """Multiplications by the definition."""
        return math.prod(self.output) * self.channels * math.prod(self.window)

    def cost(self, tiles: int, filters: int) -> float:
        """Multiplications, and what takes as much time, of some tiles and filters."""
        return self.points * tiles * (self.channels * filters + _TRANSFORMED * (self.channels + filters))

    def numbers(self, shares: int, pads: Any, block: int) -> Any:
        """In the order of `Number`."""
        images, down, across = self.tiles
        before = [before for before, _ in pads]
        return np.array(
            [shares, down, across, *self.input[1:3], *self.output[1:3], self.channels, self.filters, *before, block,
             images],
            np.int64,
        )  # fmt: skip


_GRADIENTS = ("conv_filter", "winograd_filter")


def lower_windows(block: Block, threads: int) -> None:
    """Turn "conv", "variable_conv" and "conv_filter" to "winograd" and "winograd_filter" where that pays.

    Attrs split; exact: what a filter makes of nothing but zeros is exactly 0, as by the definition. That is so in
    programs that learn, for relu has no slope there.

    Args:
        threads: that a plan may use.
    """
    machine = None
    learns = any(_is_gradient(operation) for operation in block.live())
    for operation in block.live():
        if operation.kind not in _CHOSEN or not _is_plain(operation):
            continue
        split = _split(operation, threads)
        if split is None or (operation.kind != "conv_filter" and _epilogue(operation) is None):
            continue
        machine = machine or compiler()
        if machine is None or (split.shares > 1 and not openmp_symbols(*OPENMP)):
            return
        operation.attrs.update(split=split, exact=learns and not _is_gradient(operation))
        operation.kind = _CHOSEN[operation.kind]


def _is_gradient(operation: Operation) -> bool:
    return any(step.node.op.startswith("Conv2DBackprop") for step in operation.steps)


_CHOSEN = {"conv": "winograd", "conv_filter": "winograd_filter", "variable_conv": "winograd"}


def _filter_shape(operation: Operation) -> tuple[int, ...]:
    known = operation.attrs["filter"]
    found = operation.inputs[1].shape if known is None else known.shape
    assert found is not None
    return found


def _is_plain(operation: Operation) -> bool:
    """Whether the algorithm is one for this convolution."""
    attrs = operation.attrs
    known = attrs.get("filter")
    shape = attrs["w_shape"] if operation.kind in _GRADIENTS else _filter_shape(operation)
    return (
        supports(shape[:-2])
        and all(value.dtype == F32 for value in (*operation.inputs, operation.output))
        and attrs["groups"] == 1
        and not attrs["depthwise"]
        and set(attrs["strides"]) == set(attrs["dilations"]) == {1}
        and shape[-2] % LANES == 0 == shape[-1] % LANES
        and (known is None or -_LARGEST < known.min() <= known.max() < _LARGEST)
    )


def _epilogue(operation: Operation) -> Epilogue | None:
    """The post-ops, if they are a shift of the filters, a sum with another tensor and a range, in that order.

    The shift takes the bias's place: a convolution with both keeps to the definition.
    """
    posts = list(operation.attrs["posts"])
    shape = operation.output.shape
    assert shape is not None
    shift = posts.pop(0).other if operation.attrs.get("bias") is None and _adds(posts, (shape[-1],)) else None
    added = posts.pop(0).other if _adds(posts, shape) else None
    if not posts:
        return Epilogue(shift, added)
    post = posts.pop(0)
    if posts or isinstance(post, Combine):
        return None
    match post.algorithm:
        case Eltwise.RELU if post.alpha == 0.0:
            return Epilogue(shift, added, 0.0)
        case Eltwise.CLIP_V2 | Eltwise.CLIP:
            return Epilogue(shift, added, post.alpha, post.beta)
        case _:
            return None


def _adds(posts: Sequence[Any], shape: tuple[int, ...]) -> bool:
    """Whether the first post-op adds a tensor of this shape; axes of size 1 in front of it may be there."""
    if not posts or not isinstance(posts[0], Combine) or posts[0].algorithm is not Binary.ADD:
        return False
    other = posts[0].other
    own = other.shape or ()
    return (
        not other.is_constant and other.dtype == F32 and own[-len(shape) :] == shape and other.size == math.prod(shape)
    )


def _split(operation: Operation, threads: int) -> Split | None:
    """The way to share the work that takes the shortest time; None where the definition does not take much longer."""
    work = _Work.of(operation)
    tiles, matrix = math.prod(work.tiles), work.points * work.channels * work.filters
    is_gradient = operation.kind in _GRADIENTS
    if is_gradient and 4 * matrix > _MOST_SUMS:
        return None
    # sums of a gradient are added to by every block, and transformed at the end
    read = matrix * (_READ + math.prod(work.window)) if is_gradient else matrix * _READ
    found = [Split(1, False, work.cost(tiles, work.filters) + read)]
    if 1 < threads <= tiles:
        found.append(Split(threads, False, work.cost(-(-tiles // threads), work.filters) + read))
    if threads > 1 and work.filters % (threads * LANES) == 0 and operation.attrs.get("filter") is not None:
        found.append(Split(threads, True, work.cost(tiles, work.filters // threads) + read / threads))
    best = min(found, key=lambda split: split.cost)
    return best if work.definition >= _LEAST and best.cost < _GAIN * work.definition / threads else None


def _block(tiles: int) -> int:
    """So many tiles or one more: with a power of 2 of them all points of a tile would want the same lines of L1."""
    return tiles | 1 if tiles >= _ODD else tiles


def write_winograd(emitter: Emitter, operation: Operation) -> None:
    """The call of the compiled function, with a product for each share."""
    attrs, work = operation.attrs, _Work.of(operation)
    shift, added, low, high = _epilogue(operation) or Epilogue()
    split: Split = attrs["split"]
    points, channels, filters = work.points, work.channels, work.filters
    parts = _parts(math.prod(work.tiles), filters, split)
    most = max(last - first for first, last, _ in parts)
    block = _block(-(-most // -(-most // _BLOCK)))
    own = filters // split.shares if split.by_filters else filters
    given, made = memory.dense((points, block, channels), F32), memory.dense((points, block, own), F32)
    # filters that change are taken as they are: packing them takes longer than it saves
    layout = any_layout if attrs["filter"] is not None else memory.dense
    with one_thread():
        product = make(operation, "matmul", given, layout((points, channels, own), F32), None, made)
    emitter.chosen.append((operation, product))
    weights = _weights(emitter, operation, product.desc(Query.WEIGHTS), sorted({part[-1] for part in parts}), own)
    bias = np.zeros(filters, np.float32) if attrs["bias"] is None else np.ascontiguousarray(attrs["bias"], np.float32)
    regions = _shared(emitter, work, operation.inputs[0], operation.output, shift or bias, added)
    regions.append((emitter.kept(work.numbers(len(parts), attrs["pads"], block)), 0))
    start = 0
    for first, last, filter_at in parts:
        before, after = Workspace(start), Workspace(start + given.size)
        start += given.size + made.size
        operands = [(Arg.SRC, before, given), (Arg.WEIGHTS, *weights[filter_at]), (Arg.DST, after, made)]
        regions += [before, after, Prepared(product, operands, (0, first, last, filter_at, own))]
    emitter.workspace = max(emitter.workspace, start)
    spread = split.shares > 1
    text = winograd(work.window, adds=added is not None, low=low, high=high, exact=attrs["exact"], threads=spread)
    emitter.execute_checked(_function(text, spread), regions)


def write_winograd_filter(emitter: Emitter, operation: Operation) -> None:
    """The gradient by the filter: sums of products at the points, a share for each thread, then what they stand for."""
    x, dy = operation.inputs
    attrs, work = operation.attrs, _Work.of(operation)
    split: Split = attrs["split"]
    points, channels, filters = work.points, work.channels, work.filters
    tiles = math.prod(work.tiles)
    block = _block(min(_BLOCK, -(-tiles // split.shares)))
    blocks = -(-tiles // block)
    shares = min(split.shares, blocks)
    given = memory.strided((points, channels, block), F32, (block * channels, 1, channels))
    other = memory.dense((points, block, filters), F32)
    sums = memory.dense((points, channels, filters), F32)
    with one_thread():
        product = make(operation, "matmul", given, other, None, sums, posts=[SumPost()])
    emitter.chosen.append((operation, product))
    regions = _shared(emitter, work, x, dy, np.zeros(0, np.float32), None)
    regions.append((emitter.kept(work.numbers(shares, attrs["pads"], block)), 0))
    start = 0
    results: list[Workspace] = []
    for index in range(shares):
        first, last = (min(tiles, blocks * at // shares * block) for at in (index, index + 1))
        places = [Workspace(start + size) for size in (0, given.size, given.size + other.size)]
        start += given.size + other.size + sums.size
        operands = [(Arg.SRC, places[0], given), (Arg.WEIGHTS, places[1], other), (Arg.DST, places[2], sums)]
        regions += [places[0], places[2], Prepared(product, operands, (0, first, last, 0, filters))]
        results.append(places[2])
    emitter.workspace = max(emitter.workspace, start)
    spread = shares > 1
    emitter.execute_checked(_function(winograd_gradient(work.window, threads=spread), spread), regions)
    matrix = gradient_matrix(work.window)
    flat, target = (memory.dense((size, channels * filters), F32) for size in (points, len(matrix)))
    for index, place in enumerate(results):
        posts = [SumPost()] if index else []
        primitive = make(operation, "matmul", memory.dense(matrix.shape, F32), flat, None, target, posts=posts)
        emitter.execute(
            primitive, [(Arg.SRC, fixed(matrix), None), (Arg.WEIGHTS, place, flat), (Arg.DST, operation.output, target)]
        )


def _shared(emitter: Emitter, work: _Work, x: Value, y: Value, bias: Any, added: Value | None) -> list[Region]:
    """The operands in the order of `Place`, without the numbers."""
    spare = [emitter.kept(np.zeros(max(work.channels, work.filters), np.float32)) for _ in range(2)]
    first = bias if isinstance(bias, Value) else emitter.kept(bias)
    return [(x, 0), (y, 0), (first, 0), (added or y, 0), (spare[0], 0), (spare[1], 0)]


def _weights(
    emitter: Emitter, operation: Operation, wanted: Desc, starts: list[int], own: int
) -> dict[int, tuple[Any, Desc | None]]:
    """Transformed filters in the layout of the product: of a share from its first filter on.

    Args:
        wanted: that layout; of filters that change it is a plain one.
    """
    known = operation.attrs["filter"]
    if known is not None:
        made = transform_filter(known)
        parts = {start: np.ascontiguousarray(made[:, :, start : start + own]) for start in starts}
        return {start: (packed(part, memory.dense(part.shape, F32), wanted), None) for start, part in parts.items()}
    work, w = _Work.of(operation), operation.inputs[1]
    matrix = filter_matrix(work.window)
    flat, target = (memory.dense((size, work.channels * work.filters), F32) for size in matrix.shape[::-1])
    transformed = emitter.scratch(wanted)
    primitive = make(operation, "matmul", memory.dense(matrix.shape, F32), flat, None, target)
    emitter.execute(primitive, [(Arg.SRC, fixed(matrix), None), (Arg.WEIGHTS, w, flat), (Arg.DST, transformed, target)])
    return {0: (transformed, wanted)}


def _parts(tiles: int, filters: int, split: Split) -> list[tuple[int, int, int]]:
    """Of each share the first tile, the one behind the last, and the first filter."""
    count = split.shares
    if split.by_filters:
        return [(0, tiles, filters // count * index) for index in range(count)]
    return [(tiles * index // count, tiles * (index + 1) // count, 0) for index in range(count)]


def _function(text: str, spread: bool) -> Function:
    machine = compiler()
    assert machine is not None
    return machine.function(text, openmp_symbols(*OPENMP) if spread else {}, ctypes.c_int)
