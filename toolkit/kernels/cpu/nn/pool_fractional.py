"""Fractional pooling (Graham 2014): regions of two sizes, in random order, over NHWC images."""

from __future__ import annotations

import math
from collections.abc import Iterator
from itertools import product
from typing import Any

from toolkit.errors import InvalidArgumentError, UnimplementedError
from toolkit.graph import dtypes
from toolkit.kernels.context import StepContext
from toolkit.kernels.cpu.common import np, require, shape_text
from toolkit.kernels.cpu.nn.pool import lowest
from toolkit.kernels.cpu.random.basic import guarded
from toolkit.kernels.random.philox import GuardedPhilox, WordStream
from toolkit.kernels.registry import Compute, KernelNode, Kind, kernel
from toolkit.kernels.types import Array

_TYPES = {"T": {dtypes.float32, dtypes.float64, dtypes.int32, dtypes.int64}}


def pooling_sequence(size: int, count: int, generator: GuardedPhilox, pseudo_random: bool) -> Array:
    """Where `count` regions over `size` elements start, and `size` at the end; int64 [count + 1]."""
    if pseudo_random:
        ratio, whole = size / count, size // count
        # the largest offset for which neither the first nor the last region is too long
        most = min((whole + 2) / ratio - 1, (size + 1 - whole) / ratio - (count - 1))
        offset = WordStream(generator.reserve(1)).double() * most
        inner = [math.ceil(ratio * (i + offset)) for i in range(1, count)]
        return np.array([1, *inner, size + 1], np.int64) - 1
    lengths = [size // count + (i < size % count) for i in range(count)]
    words = WordStream(generator.reserve(-(-count // 4)))
    for i in range(count - 1):  # each exchange is over what is left
        j = i + words.uniform32(count - i)
        lengths[i], lengths[j] = lengths[j], lengths[i]
    return np.cumsum([0, *lengths]).astype(np.int64)


class _Regions:
    """The cells of a pooling over rows and columns."""

    def __init__(self, rows: Array, columns: Array, height: int, width: int, overlapping: bool):
        self.starts = (rows[:-1], columns[:-1])
        more = 1 if overlapping else 0
        # one past the last element; regions that overlap share the element where the next one starts
        self.ends = (np.minimum(rows[1:] + more, height), np.minimum(columns[1:] + more, width))

    def taps(self) -> Iterator[tuple[Array, Array, Array]]:
        """For each place inside the cells: its rows, its columns, and where cells are that large [rows, columns]."""
        longest = [int((ends - starts).max(initial=0)) for starts, ends in zip(self.starts, self.ends, strict=True)]
        for dy, dx in product(*map(range, longest)):
            y, x = self.starts[0] + dy, self.starts[1] + dx
            inside = (y < self.ends[0])[:, None] & (x < self.ends[1])
            yield np.minimum(y, self.ends[0] - 1), np.minimum(x, self.ends[1] - 1), inside

    def counts(self) -> Array:
        return (self.ends[0] - self.starts[0])[:, None] * (self.ends[1] - self.starts[1])


def _largest(x: Array, regions: _Regions) -> tuple[Array, Array]:
    """The maximum of each cell [n, rows, columns, c], and its flat place in the image plane."""
    shape = (x.shape[0], len(regions.starts[0]), len(regions.starts[1]), x.shape[3])
    best = np.full(shape, lowest(x.dtype), x.dtype)
    place = np.full(shape, -1, np.int64)
    for y, column, inside in regions.taps():
        value = x[:, y[:, None], column]
        better = ((value > best) | (place < 0)) & inside[None, :, :, None]
        np.copyto(best, value, where=better)
        np.copyto(place, (y[:, None] * x.shape[2] + column)[None, :, :, None], where=better)
    return best, place


@kernel("FractionalMaxPool", "FractionalAvgPool", types=_TYPES, kind=Kind.STATEFUL)
def fractional_pool(op: KernelNode) -> Compute:
    """Outputs: the pooled image, and the row and column sequences that the gradient needs."""
    ratio: list[float] = op.attr("pooling_ratio")
    pseudo_random, overlapping = op.attr("pseudo_random"), op.attr("overlapping")
    generator, deterministic = guarded(op), op.attr("deterministic")
    if len(ratio) != 4:
        raise InvalidArgumentError("pooling_ratio field must specify 4 dimensions", node=op.name)
    if min(ratio) < 1:
        raise InvalidArgumentError(f"pooling_ratio cannot be smaller than 1, got: {min(ratio)}", node=op.name)
    if ratio[0] != 1 or ratio[3] != 1:
        raise UnimplementedError(
            "Fractional pooling is not yet supported on the batch nor channel dimension.", node=op.name
        )
    if not deterministic and (op.attr("seed") or op.attr("seed2")):
        raise InvalidArgumentError("Both seed and seed2 should be 0 if deterministic is false.", node=op.name)
    is_max = op.op == "FractionalMaxPool"
    key = f"{op.name}/regions"

    def compute(step: StepContext, x: Array) -> tuple[Array, Array, Array]:
        require(x.ndim == 4, f"input must be 4-dimensional, not {x.ndim}")
        require(
            all(n >= r for n, r in zip(x.shape, ratio, strict=True)),
            f"the pooling ratio {ratio} is higher than a size of {shape_text(x)}",
        )
        sizes = [math.floor(np.float32(n) / np.float32(r)) for n, r in zip(x.shape, ratio, strict=True)]
        sequences: Any = step.graph_seed_state.get(key) if deterministic else None
        if sequences is None:
            source = generator(step)
            sequences = tuple(
                pooling_sequence(n, m, source, pseudo_random) for n, m in zip(x.shape[1:3], sizes[1:3], strict=True)
            )
            if deterministic:
                step.graph_seed_state[key] = sequences
        regions = _Regions(sequences[0], sequences[1], x.shape[1], x.shape[2], overlapping)
        return (_largest(x, regions)[0] if is_max else _mean(x, regions), *sequences)

    return compute


def _mean(x: Array, regions: _Regions) -> Array:
    total = np.zeros((x.shape[0], len(regions.starts[0]), len(regions.starts[1]), x.shape[3]), x.dtype)
    for y, column, inside in regions.taps():
        total += x[:, y[:, None], column] * inside[None, :, :, None]
    counts = regions.counts()[None, :, :, None].astype(x.dtype)
    if x.dtype.kind in "iu":  # towards zero
        return np.sign(total) * (np.abs(total) // counts)
    return total / counts


def _check_sequences(rows: Array, columns: Array, dy: Array) -> None:
    require(dy.ndim == 4, f"out_backprop must be 4-dimensional, not {dy.ndim}")
    for what, sequence, size in (("row", rows, dy.shape[1]), ("col", columns, dy.shape[2])):
        require(
            sequence.size == size + 1,
            f"{what}_pooling_sequence must have {size + 1} elements, not shape {shape_text(sequence)}",
        )


def _check_limits(rows: Array, columns: Array, height: int, width: int) -> None:
    for what, sequence, size in (("row", rows, height), ("col", columns, width)):
        require(
            not len(sequence) or (sequence.min() >= 0 and sequence.max() <= size),
            f"{what}_pooling_sequence must lie in [0, {size}], got {sequence.tolist()}",
        )


@kernel("FractionalMaxPoolGrad", types=_TYPES)
def fractional_max_pool_grad(op: KernelNode) -> Compute:
    overlapping = op.attr("overlapping")

    def compute(x: Array, y: Array, dy: Array, rows: Array, columns: Array) -> Array:
        require(x.ndim == 4 and y.ndim == 4, "orig_input and orig_output must be 4-dimensional")
        _check_sequences(rows, columns, dy)
        rows, columns = rows.reshape(-1), columns.reshape(-1)
        require(
            y.shape == dy.shape == (x.shape[0], len(rows) - 1, len(columns) - 1, x.shape[3]),
            f"orig_output and out_backprop must have the output's shape: {shape_text(y)} and {shape_text(dy)}",
        )
        _check_limits(rows, columns, x.shape[1], x.shape[2])
        best, place = _largest(x, _Regions(rows, columns, x.shape[1], x.shape[2], overlapping))
        require(bool((best == y).all()), "orig_output is not what pooling orig_input by these sequences gives")
        dx = np.zeros((x.shape[0], x.shape[1] * x.shape[2], x.shape[3]), dy.dtype)
        batch = np.arange(x.shape[0]).reshape(-1, 1, 1, 1)
        np.add.at(dx, (batch, place, np.arange(x.shape[3])), dy)
        return dx.reshape(x.shape)

    return compute


@kernel("FractionalAvgPoolGrad", types=_TYPES)
def fractional_avg_pool_grad(op: KernelNode) -> Compute:
    """Each gradient is shared evenly by its cell; integers are truncated at the end, as TensorFlow has it."""
    overlapping = op.attr("overlapping")

    def compute(sizes: Array, dy: Array, rows: Array, columns: Array) -> Array:
        require(
            sizes.shape == (4,),
            f"original input tensor shape must be 1-dimensional and 4 elements: {shape_text(sizes)}",
        )
        _check_sequences(rows, columns, dy)
        rows, columns = rows.reshape(-1), columns.reshape(-1)
        shape: tuple[Any, ...] = tuple(sizes.tolist())
        require(
            min(shape) >= 0 and (shape[0], shape[3]) == (dy.shape[0], dy.shape[3]),
            f"orig_input_tensor_shape {list(shape)} does not fit out_backprop {shape_text(dy)}",
        )
        _check_limits(rows, columns, shape[1], shape[2])
        regions = _Regions(rows, columns, shape[1], shape[2], overlapping)
        share = dy.astype(np.float64) / regions.counts()[None, :, :, None]
        dx = np.zeros(shape)
        # from the last place to the first, so that shared elements add up in the order of the cells
        for y, column, inside in reversed(list(regions.taps())):
            np.add.at(dx, (slice(None), y[:, None], column), share * inside[None, :, :, None])
        return dx.astype(dy.dtype)

    return compute
