"""Forms of convolutions and products that this backend computes by code of its own, instead of oneDNN's primitives."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from toolkit.compiler.ir import relations
from toolkit.compiler.ir.block import Block
from toolkit.compiler.ir.fields import operand
from toolkit.compiler.ir.operation import Operation
from toolkit.compiler.ir.operations.products import Convolution, ConvolutionFilterGradient
from toolkit.compiler.ir.post_ops import Apply, PostOp, post_operations
from toolkit.compiler.ir.traits import Trait
from toolkit.compiler.ir.value import Value
from toolkit.kernels.cpu.native.interpolation import Axes

#: the first row, the one behind the last, and the first and the last panel likewise
GemmShare = tuple[int, int, int, int]


@dataclass(frozen=True, slots=True)
class GemmSplit:
    """How a product is made.

    Attributes:
        rows, vectors: of a tile.
        shares: for a thread each.
        cost: of the longest share, in multiplications of vectors.
    """

    rows: int
    vectors: int
    shares: tuple[GemmShare, ...]
    cost: float

    @property
    def panels(self) -> int:
        """How many there are."""
        return max(share[3] for share in self.shares)


class PackedGemm(Operation, mnemonic="packed_gemm", traits=Trait.IN_ARENA | Trait.MACHINE_CODE):
    """The product of rows and a constant matrix that is packed into panels; a 1x1 convolution is such a product.

    Attributes:
        input: (..., inner).
        post_ops: what is done to the sums, behind the bias, while they are in registers.
        weights: (inner, columns).
        bias: a number for each column, or None.
        schedule: which algorithm, and how the work is shared.
    """

    input: Value = operand()
    post_ops: tuple[PostOp, ...] = post_operations()
    weights: Any = None
    bias: Any = None
    split: GemmSplit

    def verify(self) -> Iterator[str]:
        x, y = relations.shapes(self.input, self.output)
        if (*x[:-1], *self.weights.shape) != (*y[:-1], x[-1], y[-1]):
            yield f"a product of {list(x)} and {list(self.weights.shape)} makes {list(y)}"
        yield from relations.constant("the bias", self.bias, y[-1])
        yield from relations.broadcast_post_ops(self.post_ops, self.output)

    def release(self) -> None:
        self.weights = None


class DepthwiseConvolution(Convolution, mnemonic="depthwise", traits=Trait.IN_ARENA | Trait.MACHINE_CODE):
    """A convolution of each channel by itself with a constant filter, its channels in vectors.

    Attributes:
        threads: that share the work.
    """

    threads: int


@dataclass(frozen=True, slots=True)
class Strip:
    """Rows of an output, and the rows of what is in between that they need."""

    image: int
    first: int
    last: int
    top: int
    bottom: int


class Strips(Operation, mnemonic="strips", traits=Trait.IN_ARENA | Trait.MACHINE_CODE):
    """A 1x1 convolution and the depthwise one behind it, strip by strip: what is in between stays in the cache.

    Attributes:
        input: what the 1x1 convolution takes.
        body: one argument and one result; a `PackedGemm`, whose split is that of a strip, and a `DepthwiseConvolution`.
        shares: the strips of each thread.
    """

    input: Value = operand()
    body: Block
    shares: tuple[tuple[Strip, ...], ...]

    @property
    def widening(self) -> PackedGemm:
        """The first operation of the body."""
        first = self.body.operations[0]
        assert isinstance(first, PackedGemm)
        return first

    @property
    def narrowing(self) -> DepthwiseConvolution:
        """The last operation of the body."""
        last = self.body.last
        assert isinstance(last, DepthwiseConvolution)
        return last

    def regions(self) -> Sequence[Block]:
        return (self.body,)

    def verify(self) -> Iterator[str]:
        widening, narrowing = self.widening, self.narrowing
        if narrowing.input is not widening.output:
            yield "one convolution does not take what the other makes"
        yield from relations.same("the input of strips", self.input, widening.input)
        yield from relations.same("the output of strips", self.output, narrowing.output)
        yield from widening.verify()
        yield from narrowing.verify()

    def release(self) -> None:
        for operation in self.body:
            operation.release()


@dataclass(frozen=True, slots=True)
class WinogradSchedule:
    """Which of Winograd's algorithms makes a convolution, and how its work is shared.

    Attributes:
        axes: the algorithm along height and width.
        shares: for a thread each.
        by_filters: a share is some filters for all tiles; else all filters for some tiles.
        cost: of the longest share, in multiplications.
    """

    axes: Axes
    shares: int
    by_filters: bool
    cost: float


class Winograd(Convolution, mnemonic="winograd", traits=Trait.IN_ARENA):
    """A convolution by Winograd's algorithm.

    Attributes:
        schedule: which algorithm, and how the work is shared.
        exact: what a filter makes of nothing but zeros is exactly 0, as by the definition.
    """

    schedule: WinogradSchedule
    exact: bool


class WinogradFilterGradient(ConvolutionFilterGradient, mnemonic="winograd_filter", traits=Trait.IN_ARENA):
    """The gradient of a convolution with respect to its filter, by Winograd's algorithm.

    Attributes:
        schedule: which algorithm, and how the work is shared.
    """

    schedule: WinogradSchedule


class Activate(Operation, mnemonic="activate", traits=Trait.IN_ARENA | Trait.REUSES_INPUT | Trait.MACHINE_CODE):
    """A function of each number, by code that is quicker than oneDNN's.

    Attributes:
        input: of the type and shape of the output.
        post_op: the function.
    """

    input: Value = operand()
    post_op: Apply

    def verify(self) -> Iterator[str]:
        return relations.same("operands of one shape and type", self.output, self.input)
