"""Convolutions and matrix products, and the gradients of convolutions; images lie channels last.

What follows one of them elementwise becomes a post-op of it (`transforms.fuse`), a scale or an offset that is known
goes into its weights and its bias.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from toolkit.compiler.ir import relations
from toolkit.compiler.ir.fields import operand
from toolkit.compiler.ir.operation import Operation
from toolkit.compiler.ir.post_ops import PostOp, post_operations
from toolkit.compiler.ir.relations import Shape
from toolkit.compiler.ir.traits import Trait
from toolkit.compiler.ir.value import Value
from toolkit.compiler.steps import Step


@dataclass(frozen=True, slots=True)
class ConvolutionWindows:
    """How a filter goes over an image.

    Attributes:
        strides, dilations: for each spatial axis.
        padding: how many zeros are before and behind, for each spatial axis.
        groups: how many groups of channels are convolved, each by itself.
        depthwise: each channel is a group, and the filter is (spatial..., channels, multiplier); else it is
            (spatial..., channels of a group, outputs).
    """

    strides: Shape
    dilations: Shape
    padding: tuple[tuple[int, int], ...]
    groups: int = 1
    depthwise: bool = False

    def fit(self, x: Shape, w: Shape, y: Shape) -> Iterator[str]:
        """What is wrong where a filter w takes x to y."""
        return relations.convolution(
            x, w, y, strides=self.strides, dilations=self.dilations, padding=self.padding, groups=self.groups,
            depthwise=self.depthwise,
        )  # fmt: skip


class Convolution(Operation, mnemonic="conv", traits=Trait.IN_ARENA):
    """A convolution, with a filter that is constant or one that is computed.

    Attributes:
        input: the image.
        filter: where it is computed; None where it is `weights`.
        gates: a factor for each channel of the input, or None: constant weights only.
        post_ops: what is done to the sums, behind the bias.
        windows: how the filter goes over the image.
        weights: a constant filter, in TensorFlow's order of axes.
        bias: a number for each output channel, or None.
        gating: the program's steps that the gates were multiplied by: what must run by itself if this cannot.
    """

    input: Value = operand()
    filter: Value | None = operand(default=None)
    gates: Value | None = operand(default=None)
    post_ops: tuple[PostOp, ...] = post_operations()
    windows: ConvolutionWindows
    weights: Any = None
    bias: Any = None
    gating: tuple[Step, ...] = ()

    @property
    def filter_shape(self) -> Shape:
        """The filter's shape, constant or not."""
        return self.weights.shape if self.filter is None else relations.shape(self.filter)

    @property
    def is_pointwise(self) -> bool:
        """Whether the filter looks at one pixel at a time, at all of its channels."""
        windows = self.windows
        return windows.groups == 1 and not windows.depthwise and all(size == 1 for size in self.filter_shape[:-2])

    def verify(self) -> Iterator[str]:
        x, y = relations.shapes(self.input, self.output)
        yield from self.windows.fit(x, self.filter_shape, y)
        yield from relations.constant("the bias", self.bias, y[-1])
        if self.gates is not None and self.gates.size != x[-1]:
            yield f"{self.gates.size} gates for {x[-1]} channels"
        yield from relations.broadcast_post_ops(self.post_ops, self.output)

    def release(self) -> None:
        self.weights = None


class MatMul(Operation, mnemonic="matmul", traits=Trait.IN_ARENA | Trait.ADDRESSABLE):
    """A product of two matrices, or of batches of them that are broadcast to each other.

    Attributes:
        left: the first factor.
        right: the second one; None where it is `weights`.
        post_ops: what is done to the sums, behind the bias.
        transpose_left, transpose_right: whether the last two axes of a factor are exchanged.
        weights: a second factor that is one constant matrix, never to be transposed.
        first_column: where in the second factor the columns start that are wanted; None where all are.
        bias: a number for each column, or None.
    """

    left: Value = operand()
    right: Value | None = operand(default=None)
    post_ops: tuple[PostOp, ...] = post_operations()
    transpose_left: bool = False
    transpose_right: bool = False
    weights: Any = None
    first_column: int | None = None
    bias: Any = None

    @property
    def right_shape(self) -> Shape:
        """The second factor's shape, constant or not."""
        return self.weights.shape if self.right is None else relations.shape(self.right)

    @property
    def is_right_turned(self) -> bool:
        """Whether the second factor lies transposed."""
        return self.right is not None and self.transpose_right

    def verify(self) -> Iterator[str]:
        a, y = relations.shapes(self.left, self.output)
        yield from relations.product(
            a, self.right_shape, y, transpose_left=self.transpose_left, transpose_right=self.is_right_turned,
            first_column=self.first_column,
        )  # fmt: skip
        yield from relations.constant("the bias", self.bias, y[-1])
        yield from relations.broadcast_post_ops(self.post_ops, self.output)

    def release(self) -> None:
        self.weights = None


class ConvolutionInputGradient(Operation, mnemonic="conv_input", traits=Trait.IN_ARENA):
    """The gradient of a convolution with respect to its input.

    Attributes:
        output_gradient: with respect to the convolution's output.
        filter: the convolution's.
        windows: the convolution's.
    """

    output_gradient: Value = operand()
    filter: Value = operand()
    windows: ConvolutionWindows

    def verify(self) -> Iterator[str]:
        dy, w, dx = relations.shapes(self.output_gradient, self.filter, self.output)
        return self.windows.fit(dx, w, dy)


class FlipFilter(Operation, mnemonic="flip_filter", traits=Trait.IN_ARENA | Trait.READS_ANYWHERE):
    """A filter with its taps in reverse order, inputs and outputs exchanged: the gradient by the input convolves it."""

    input: Value = operand()

    def verify(self) -> Iterator[str]:
        w, flipped = relations.shapes(self.input, self.output)
        if len(w) < 2 or (*w[:-2], w[-1], w[-2]) != flipped:
            yield f"a filter {list(w)} flipped is {list(flipped)}"


class ConvolutionFilterGradient(Operation, mnemonic="conv_filter", traits=Trait.IN_ARENA):
    """The gradient of a convolution with respect to its filter.

    Attributes:
        input: the convolution's.
        output_gradient: with respect to the convolution's output.
        windows: the convolution's.
    """

    input: Value = operand()
    output_gradient: Value = operand()
    windows: ConvolutionWindows

    def verify(self) -> Iterator[str]:
        x, dy, dw = relations.shapes(self.input, self.output_gradient, self.output)
        return self.windows.fit(x, dw, dy)
