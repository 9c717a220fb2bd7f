"""Which convolutions run by Winograd's algorithm, for it takes less time than the definition; how work is shared."""

# numpy's overloads answer arrays typed Any with Unknown
# pyright: reportUnknownVariableType=false, reportUnknownMemberType=false, reportUnknownArgumentType=false

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from toolkit.compiler.ir.block import Block
from toolkit.compiler.ir.operation import Operation
from toolkit.compiler.ir.post_ops import BinaryFunction, Combine, UnaryFunction
from toolkit.compiler.ir.value import Value
from toolkit.kernels.cpu.native.code import LANES
from toolkit.kernels.cpu.native.compiler import compiler
from toolkit.kernels.cpu.native.interpolation import Axis, supports
from toolkit.kernels.cpu.native.loops import OPENMP
from toolkit.kernels.cpu.onednn.library import openmp_symbols
from toolkit.kernels.cpu.onednn.memory import F32

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


class Work(NamedTuple):
    """A convolution, or the gradient by its filter."""

    window: tuple[int, int]
    channels: int
    filters: int
    input: tuple[int, ...]
    output: tuple[int, ...]

    @staticmethod
    def of(operation: Operation) -> Work:
        x, y = operation.inputs[0].shape, operation.output.shape
        w: tuple[int, ...]
        if operation.kind in GRADIENTS:
            y, w = operation.inputs[1].shape, operation.attrs["w_shape"]
        else:
            w = _filter_shape(operation)
        assert x is not None and y is not None
        return Work((w[0], w[1]), w[-2], w[-1], x, y)

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


GRADIENTS = ("conv_filter", "winograd_filter")


def lower_windows(block: Block, threads: int) -> None:
    """Turn "conv", "variable_conv" and "conv_filter" to "winograd" and "winograd_filter" where that pays.

    Attrs split; exact: what a filter makes of nothing but zeros is exactly 0, as by the definition. That is so in
    programs that learn, for relu has no slope there.

    Args:
        threads: that a plan may use.
    """
    machine = None
    learns = any(_is_gradient(operation) for operation in block.operations)
    for operation in block.operations:
        if operation.kind not in _CHOSEN or not _is_plain(operation):
            continue
        split = _split(operation, threads)
        if split is None or (operation.kind != "conv_filter" and epilogue_of(operation) is None):
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
    shape = attrs["w_shape"] if operation.kind in GRADIENTS else _filter_shape(operation)
    return (
        supports(shape[:-2])
        and all(value.dtype == F32 for value in (*operation.inputs, operation.output))
        and attrs["groups"] == 1
        and not attrs["depthwise"]
        and set(attrs["strides"]) == set(attrs["dilations"]) == {1}
        and shape[-2] % LANES == 0 == shape[-1] % LANES
        and (known is None or -_LARGEST < known.min() <= known.max() < _LARGEST)
    )


def epilogue_of(operation: Operation) -> Epilogue | None:
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
    match post.function:
        case UnaryFunction.RELU if post.alpha == 0.0:
            return Epilogue(shift, added, 0.0)
        case UnaryFunction.CLIP_V2 | UnaryFunction.CLIP:
            return Epilogue(shift, added, post.alpha, post.beta)
        case _:
            return None


def _adds(posts: Sequence[Any], shape: tuple[int, ...]) -> bool:
    """Whether the first post-op adds a tensor of this shape; axes of size 1 in front of it may be there."""
    if not posts or not isinstance(posts[0], Combine) or posts[0].function is not BinaryFunction.ADD:
        return False
    other = posts[0].other
    own = other.shape or ()
    return (
        not other.is_constant and other.dtype == F32 and own[-len(shape) :] == shape and other.size == math.prod(shape)
    )


def _split(operation: Operation, threads: int) -> Split | None:
    """The way to share the work that takes the shortest time; None where the definition does not take much longer."""
    work = Work.of(operation)
    tiles, matrix = math.prod(work.tiles), work.points * work.channels * work.filters
    is_gradient = operation.kind in GRADIENTS
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
