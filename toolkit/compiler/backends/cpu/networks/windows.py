"""Which convolutions run by Winograd's algorithm, for it takes less time than the definition; how work is shared."""

# numpy's overloads answer arrays typed Any with Unknown
# pyright: reportUnknownVariableType=false, reportUnknownMemberType=false, reportUnknownArgumentType=false

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np

from toolkit.compiler.backends.cpu.networks.operations import Winograd, WinogradFilterGradient, WinogradSchedule
from toolkit.compiler.ir.block import Block
from toolkit.compiler.ir.operation import Operation
from toolkit.compiler.ir.operations.products import Convolution, ConvolutionFilterGradient
from toolkit.compiler.ir.post_ops import BinaryFunction, Combine, PostOp, UnaryFunction
from toolkit.compiler.ir.value import Value
from toolkit.kernels.cpu.native.code import LANES
from toolkit.kernels.cpu.native.compiler import compiler
from toolkit.kernels.cpu.native.interpolation import Axes, algorithms, supports
from toolkit.kernels.cpu.native.openmp import OPENMP
from toolkit.kernels.cpu.onednn.library import openmp_symbols
from toolkit.kernels.tensors import F32
from toolkit.passes.measuring.operations import multiplications
from toolkit.target.thresholds import WinogradThresholds

_LARGEST = 1e30  # sums of such weights are finite


class WinogradEpilogue(NamedTuple):
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


class ConvolutionProblem(NamedTuple):
    """A convolution, or the gradient by its filter, by one of Winograd's algorithms.

    Attributes:
        axes: which one, along height and width.
    """

    axes: Axes
    channels: int
    filters: int
    input: tuple[int, ...]
    output: tuple[int, ...]

    @staticmethod
    def of(operation: Convolution | ConvolutionFilterGradient, axes: Axes) -> ConvolutionProblem:
        is_gradient = isinstance(operation, ConvolutionFilterGradient)
        x, y = operation.input.shape, (operation.output_gradient if is_gradient else operation.output).shape
        w = _filter_shape(operation)
        assert x is not None and y is not None
        return ConvolutionProblem(axes, w[-2], w[-1], x, y)

    @property
    def tiles(self) -> tuple[int, int, int]:
        """Images, and tiles along height and width."""
        down, across = (-(-size // axis.tile) for size, axis in zip(self.output[1:3], self.axes, strict=True))
        return self.output[0], down, across

    @property
    def points(self) -> int:
        return math.prod(axis.size for axis in self.axes)

    @property
    def window(self) -> tuple[int, int]:
        """Height and width of the filter."""
        down, across = self.axes
        return down.window, across.window

    @property
    def definition(self) -> int:
        """Multiplications by the definition."""
        return multiplications(math.prod(self.output), (*self.window, self.channels, self.filters))

    def cost(self, tiles: int, filters: int, transformed: float) -> float:
        """Multiplications, and what takes as much time, of some tiles and filters.

        Args:
            transformed: what a number costs when it is transformed.
        """
        return self.points * tiles * (self.channels * filters + transformed * (self.channels + filters))

    def numbers(self, shares: int, pads: Any, block: int) -> Any:
        """In the order of `tiles.WinogradSize`."""
        images, down, across = self.tiles
        before = [before for before, _ in pads]
        return np.array(
            [shares, down, across, *self.input[1:3], *self.output[1:3], self.channels, self.filters, *before, block,
             images],
            np.int64,
        )  # fmt: skip


def lower_windows(block: Block, threads: int, sizes: WinogradThresholds) -> None:
    """Have convolutions and their gradients by the filter computed by Winograd's algorithm where that pays.

    In programs that learn they are exact (`Winograd.exact`), for relu has no slope at 0.

    Args:
        threads: that a plan may use.
        sizes: what decides where it pays.
    """
    machine = None
    learns = any(_is_gradient(operation) for operation in block.operations)
    for operation in block.operations:
        if type(operation) is not Convolution and type(operation) is not ConvolutionFilterGradient:
            continue
        schedule = _schedule(operation, threads, sizes) if _is_plain(operation) else None
        if schedule is None or (isinstance(operation, Convolution) and epilogue_of(operation) is None):
            continue
        machine = machine or compiler()
        if machine is None or (schedule.shares > 1 and not openmp_symbols(*OPENMP)):
            return
        fields = operation.own_fields()
        if isinstance(operation, Convolution):
            operation.become(Winograd, **fields, schedule=schedule, exact=learns and not _is_gradient(operation))
        else:
            operation.become(WinogradFilterGradient, **fields, schedule=schedule)


def _is_gradient(operation: Operation) -> bool:
    return any(step.node.op.startswith("Conv2DBackprop") for step in operation.steps)


def _filter_shape(operation: Convolution | ConvolutionFilterGradient) -> tuple[int, ...]:
    found = operation.filter_shape if isinstance(operation, Convolution) else operation.output.shape
    assert found is not None
    return found


def _is_plain(operation: Convolution | ConvolutionFilterGradient) -> bool:
    """Whether the algorithm is one for this convolution."""
    known = operation.weights if isinstance(operation, Convolution) else None
    windows, shape = operation.windows, _filter_shape(operation)
    return (
        supports(shape[:-2])
        and all(value.dtype == F32 for value in (*operation.inputs, operation.output))
        and windows.groups == 1
        and not windows.depthwise
        and set(windows.strides) == set(windows.dilations) == {1}
        and shape[-2] % LANES == 0 == shape[-1] % LANES
        and (known is None or -_LARGEST < known.min() <= known.max() < _LARGEST)
    )


def epilogue_of(operation: Convolution) -> WinogradEpilogue | None:
    """The post-ops, if they are a shift of the filters, a sum with another tensor and a range, in that order.

    The shift takes the bias's place: a convolution with both keeps to the definition.
    """
    posts = list(operation.post_ops)
    shape = operation.output.shape
    assert shape is not None
    shift = _added(posts, (shape[-1],)) if operation.bias is None else None
    added = _added(posts, shape)
    if not posts:
        return WinogradEpilogue(shift, added)
    post = posts.pop(0)
    if posts or isinstance(post, Combine):
        return None
    match post.function:
        case UnaryFunction.RELU if post.alpha == 0.0:
            return WinogradEpilogue(shift, added, 0.0)
        case UnaryFunction.CLIP_V2 | UnaryFunction.CLIP:
            return WinogradEpilogue(shift, added, post.alpha, post.beta)
        case _:
            return None


def _added(posts: list[PostOp], shape: tuple[int, ...]) -> Value | None:
    """What the first post-op adds, which is taken out, if it has this shape; axes of size 1 may be in front of it."""
    first = posts[0] if posts else None
    if not isinstance(first, Combine) or first.function is not BinaryFunction.ADD:
        return None
    other = first.other
    own = other.shape or ()
    if other.is_constant or other.dtype != F32 or own[-len(shape) :] != shape or other.size != math.prod(shape):
        return None
    posts.pop(0)
    return other


def _schedule(
    operation: Convolution | ConvolutionFilterGradient, threads: int, sizes: WinogradThresholds
) -> WinogradSchedule | None:
    """The way that takes the shortest time; None where the definition does not take much longer."""
    height, width = _filter_shape(operation)[:2]
    found = [
        schedule
        for axes in algorithms((height, width))
        for schedule in _shared(operation, ConvolutionProblem.of(operation, axes), threads, sizes)
    ]
    best = min(found, key=lambda schedule: schedule.cost, default=None)
    if best is None:
        return None
    definition = ConvolutionProblem.of(operation, best.axes).definition
    pays = definition >= sizes.least_work and best.cost < sizes.gain * definition / threads
    return best if pays else None


def _shared(
    operation: Convolution | ConvolutionFilterGradient, work: ConvolutionProblem, threads: int,
    sizes: WinogradThresholds,
) -> Iterator[WinogradSchedule]:  # fmt: skip
    """The ways to share the work of one algorithm."""
    tiles, matrix = math.prod(work.tiles), work.points * work.channels * work.filters
    is_gradient = isinstance(operation, ConvolutionFilterGradient)
    if is_gradient and 4 * matrix > sizes.most_sums:
        return
    # sums of a gradient are added to by every block, and transformed at the end
    read = matrix * (sizes.read + (math.prod(work.window) if is_gradient else 0))
    yield WinogradSchedule(work.axes, 1, False, work.cost(tiles, work.filters, sizes.transformed) + read)
    if 1 < threads <= tiles:
        cost = work.cost(-(-tiles // threads), work.filters, sizes.transformed)
        yield WinogradSchedule(work.axes, threads, False, cost + read)
    is_constant = isinstance(operation, Convolution) and operation.weights is not None
    if threads > 1 and work.filters % (threads * LANES) == 0 and is_constant:
        cost = work.cost(tiles, work.filters // threads, sizes.transformed)
        yield WinogradSchedule(work.axes, threads, True, cost + read / threads)
