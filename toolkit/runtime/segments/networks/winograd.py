"""Convolutions by Winograd's algorithm, where it takes less time than the definition."""

# numpy's overloads answer arrays typed Any with Unknown
# pyright: reportUnknownVariableType=false, reportUnknownMemberType=false, reportUnknownArgumentType=false

from __future__ import annotations

import ctypes
import math
from typing import Any, NamedTuple

import numpy as np

from toolkit.kernels.cpu.native.code import LANES
from toolkit.kernels.cpu.native.compiler import compiler
from toolkit.kernels.cpu.native.interpolation import Axis, supports, transform_filter
from toolkit.kernels.cpu.native.loops import OPENMP
from toolkit.kernels.cpu.native.winograd import winograd
from toolkit.kernels.cpu.onednn import memory
from toolkit.kernels.cpu.onednn.library import one_thread, openmp_symbols
from toolkit.kernels.cpu.onednn.memory import F32, Desc, any_layout
from toolkit.kernels.cpu.onednn.primitive import Arg, Binary, Eltwise, Query
from toolkit.runtime.segments.elementwise.elements import Combine
from toolkit.runtime.segments.emission.emit import Emitter
from toolkit.runtime.segments.emission.instance import Prepared, Region, Workspace
from toolkit.runtime.segments.emission.primitives import make, packed
from toolkit.runtime.segments.ir import Block, Operation, Value

_BLOCK = 64  # tiles at a time: they stay in the cache, and filters are read as seldom as may be
#: what a number costs when it is transformed, and when it is read from the filters, in multiplications: measured
_TRANSFORMED, _READ = 15, 20
_LEAST = 1e7  # multiplications of a convolution that is worth the compiler's time
_LARGEST = 1e30  # sums of such weights are finite
_GAIN = 0.85  # of the definition's cost, above which nothing is changed


class Epilogue(NamedTuple):
    """What happens to the outputs.

    Attributes:
        added: a tensor of their shape.
        low, high: the range they are clipped to.
    """

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


def lower_windows(block: Block, threads: int) -> None:
    """Turn "conv" to "winograd" where that pays; attrs as they were, and split.

    Args:
        threads: that a plan may use.
    """
    machine = None
    for operation in block.live():
        if operation.kind != "conv" or not _is_plain(operation):
            continue
        split = _split(operation, threads)
        if split is None or _epilogue(operation) is None:
            continue
        machine = machine or compiler()
        if machine is None or (split.shares > 1 and not openmp_symbols(*OPENMP)):
            return
        operation.attrs.update(split=split)
        operation.kind = "winograd"


def _is_plain(operation: Operation) -> bool:
    """Whether the algorithm is one for this convolution."""
    attrs, x, y = operation.attrs, operation.inputs[0], operation.output
    filter = attrs["filter"]
    return (
        supports(filter.shape[:-2])
        and x.dtype == F32 == y.dtype
        and attrs["groups"] == 1
        and not attrs["depthwise"]
        and set(attrs["strides"]) == set(attrs["dilations"]) == {1}
        and filter.shape[-2] % LANES == 0 == filter.shape[-1] % LANES
        and -_LARGEST < filter.min() <= filter.max() < _LARGEST
    )


def _epilogue(operation: Operation) -> Epilogue | None:
    """The post-ops, if they are a sum with another tensor, a range, or one after the other."""
    posts = list(operation.attrs["posts"])
    added: Value | None = None
    if posts and isinstance(posts[0], Combine):
        first = posts.pop(0)
        if first.algorithm is not Binary.ADD or first.other.is_constant or first.other.dtype != F32:
            return None
        if first.other.shape != operation.output.shape:
            return None
        added = first.other
    if not posts:
        return Epilogue(added)
    post = posts.pop(0)
    if posts or isinstance(post, Combine):
        return None
    match post.algorithm:
        case Eltwise.RELU if post.alpha == 0.0:
            return Epilogue(added, 0.0)
        case Eltwise.CLIP_V2 | Eltwise.CLIP:
            return Epilogue(added, post.alpha, post.beta)
        case _:
            return None


def _tiles(operation: Operation) -> tuple[int, int, int]:
    """Images, and tiles along height and width."""
    assert operation.output.shape is not None
    images, *sizes, _ = operation.output.shape
    down, across = (-(-size // axis.tile) for size, axis in zip(sizes, _axes(operation), strict=True))
    return images, down, across


def _axes(operation: Operation) -> list[Axis]:
    return [Axis(size) for size in operation.attrs["filter"].shape[:-2]]


def _points(operation: Operation) -> int:
    return math.prod(axis.size for axis in _axes(operation))


def _split(operation: Operation, threads: int) -> Split | None:
    """The way to share the work that takes the shortest time; None where the definition does not take much longer."""
    *window, channels, filters = operation.attrs["filter"].shape
    tiles, points = math.prod(_tiles(operation)), _points(operation)
    read = _READ * points * channels * filters

    def cost(tiles: int, filters: int, read: float) -> float:
        return points * tiles * (channels * filters + _TRANSFORMED * (channels + filters)) + read

    found = [Split(1, False, cost(tiles, filters, read))]
    if 1 < threads <= tiles:
        found.append(Split(threads, False, cost(-(-tiles // threads), filters, read)))
    if threads > 1 and filters % (threads * LANES) == 0:
        found.append(Split(threads, True, cost(tiles, filters // threads, read / threads)))
    best = min(found, key=lambda split: split.cost)
    definition = operation.output.size * channels * math.prod(window)
    return best if definition >= _LEAST and best.cost < _GAIN * definition / threads else None


def write_winograd(emitter: Emitter, operation: Operation) -> None:
    """The call of the compiled function, with a product for each share."""
    x, y, attrs = operation.inputs[0], operation.output, operation.attrs
    assert x.shape is not None and y.shape is not None
    epilogue = _epilogue(operation)
    assert epilogue is not None
    split: Split = attrs["split"]
    filter: Any = np.ascontiguousarray(attrs["filter"])
    *window, channels, filters = filter.shape
    images, down, across = _tiles(operation)
    points = _points(operation)
    parts = _parts(images * down * across, filters, split)
    most = max(last - first for first, last, _ in parts)
    block = -(-most // -(-most // _BLOCK))
    own = filters // split.shares if split.by_filters else filters
    given, made = memory.dense((points, block, channels), F32), memory.dense((points, block, own), F32)
    with one_thread():
        product = make(operation, "matmul", given, any_layout((points, channels, own), F32), None, made)
    emitter.chosen.append((operation, product))
    transformed = transform_filter(filter)
    wanted = product.desc(Query.WEIGHTS)
    weights: dict[int, Any] = {}
    bias = attrs["bias"]
    shared: list[Any] = [
        np.zeros(filters, np.float32) if bias is None else np.ascontiguousarray(bias, np.float32),
        np.zeros(channels, np.float32), np.zeros(filters, np.float32),
        np.array([len(parts), down, across, *x.shape[1:3], *y.shape[1:3], channels, filters,
                  *(before for before, _ in attrs["pads"]), block], np.int64),
    ]  # fmt: skip
    emitter.keep.extend(shared)
    regions: list[Region] = [(x, 0), (y, 0), (shared[0], 0), (epilogue.added or y, 0), *((a, 0) for a in shared[1:])]
    start = 0
    for first, last, filter_at in parts:
        if filter_at not in weights:
            weights[filter_at] = _packed(transformed[:, :, filter_at : filter_at + own], wanted)
        before, after = Workspace(start), Workspace(start + given.size)
        start += given.size + made.size
        operands = [(Arg.SRC, before, given), (Arg.WEIGHTS, weights[filter_at], None), (Arg.DST, after, made)]
        numbers = (0, first, last, filter_at, own)
        regions += [before, after, Prepared(product, operands, numbers)]
    emitter.workspace = max(emitter.workspace, start)
    spread = split.shares > 1
    machine = compiler()
    assert machine is not None
    text = winograd(
        (window[0], window[1]), adds=epilogue.added is not None, low=epilogue.low, high=epilogue.high, threads=spread
    )
    function = machine.function(text, openmp_symbols(*OPENMP) if spread else {}, ctypes.c_int)
    emitter.execute_checked(function, regions)


def _parts(tiles: int, filters: int, split: Split) -> list[tuple[int, int, int]]:
    """Of each share the first tile, the one behind the last, and the first filter."""
    count = split.shares
    if split.by_filters:
        return [(0, tiles, filters // count * index) for index in range(count)]
    return [(tiles * index // count, tiles * (index + 1) // count, 0) for index in range(count)]


def _packed(part: Any, wanted: Desc) -> Any:
    array = np.ascontiguousarray(part)
    return packed(array, memory.dense(array.shape, F32), wanted)
