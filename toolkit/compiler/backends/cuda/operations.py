"""What the GPU's backend adds to calls of kernels."""

from __future__ import annotations

import math
from collections.abc import Iterator

from toolkit.compiler.ir import relations
from toolkit.compiler.ir.fields import operand, operands
from toolkit.compiler.ir.operation import Operation
from toolkit.compiler.ir.traits import Trait
from toolkit.compiler.ir.value import Value
from toolkit.kernels.gpu.elementwise import row_nests
from toolkit.kernels.gpu.elementwise.nests import NestStep
from toolkit.kernels.gpu.operators import norms

#: of a number in 16 bits
NARROW_BYTES = 2


def _rounded_to(value: Value) -> str:
    return "" if value.dtype.itemsize != NARROW_BYTES else f", as {value.dtype}"


class FusedCall(Operation):
    """Operations over one shape as one kernel.

    Attributes:
        shape: of what is computed.
        reads: tensors that are broadcast to it.
        strides: of each read, in elements, one for each dimension of the shape; 0 where it is broadcast.
        members: what is computed, in an order in which it can be.
        stores: what the outputs are: positions as in `NestStep.inputs`.
    """

    shape: tuple[int, ...]
    reads: tuple[Value, ...] = operands()
    strides: tuple[tuple[int, ...], ...]
    members: tuple[NestStep, ...]
    stores: tuple[int, ...]

    def computed_by(self) -> str | None:
        return f"one kernel of {len(self.members)} operations"

    def _verify_members(self) -> Iterator[str]:
        if len(self.strides) != len(self.reads) or len(self.stores) != len(self.outputs):
            yield f"{len(self.reads)} reads, {len(self.strides)} strides, {len(self.stores)} stores"
        for index, member in enumerate(self.members):
            if any(not 0 <= source < len(self.reads) + index for source in member.inputs):
                yield f"{member.op} takes what is not there yet"


class FusedKernelCall(FusedCall, mnemonic="gpu_nest"):
    """Elementwise operations of one shape as one kernel: what is between them stays in registers."""

    def verify(self) -> Iterator[str]:
        yield from self._verify_members()
        for output in self.outputs:
            if output.shape != self.shape:
                yield f"{relations.text(output)} of a kernel over {list(self.shape)}"


class FusedRowsCall(FusedCall, mnemonic="gpu_rows"):
    """Elementwise operations of one shape with reductions of its last axis between them, as one kernel.

    Results are of the shape, or a number for each row; members are `toolkit.kernels.gpu.elementwise.row_nests`'.
    """

    def computed_by(self) -> str | None:
        return f"{super().computed_by()}, whose rows are in registers"

    def verify(self) -> Iterator[str]:
        wrong = list(self._verify_members())
        if wrong:
            yield from wrong
            return
        whole = row_nests.whole_rows(self.members, [strides[-1:] == (1,) for strides in self.strides])
        rows = self.shape[:-1]
        for output, place in zip(self.outputs, self.stores, strict=True):
            if output.shape not in ((self.shape,) if whole[place] else (rows, (*rows, 1))):
                yield f"{relations.text(output)} of a kernel over rows of {list(self.shape)}"


class ChannelMoments(Operation, mnemonic="gpu_moments"):
    """Mean and variance of each channel, in one pass, and the factor scale / sqrt(variance + epsilon).

    Its outputs are those of a batch norm in training but for the first one: mean, unbiased variance, mean, biased
    variance, and an empty tensor if the norm has it; then the factor.

    Attributes:
        x: float32 [batch, spatial..., channels], or channels behind the batch.
        scale: [channels].
    """

    x: Value = operand()
    scale: Value = operand()
    epsilon: float
    channels_first: bool

    def computed_by(self) -> str | None:
        return "statistics of channels in one pass"

    def verify(self) -> Iterator[str]:
        channels = relations.shape(self.scale)
        for value in (*self.outputs[:4], self.outputs[-1]):
            if value.shape != channels:
                yield f"{relations.text(value)} of a norm of {list(channels)} channels"


class ChannelGradients(Operation, mnemonic="gpu_norm_sums"):
    """The sums over each channel that the gradient of a batch norm takes, in one pass.

    Its outputs are the gradients by scale, sum(dy * normal), and by offset, sum(dy), with normal = (x - mean) * inverse
    and inverse = 1 / sqrt(variance + epsilon); then inverse, and for dx = (dy - shift - (x - mean) * slope) * size:
    shift = sum(dy) / n, slope = inverse * sum(dy * normal) / n, size = scale * inverse, for n elements of a channel.

    Attributes:
        dy: by what the norm gives; or by the relu of it, where factor and offset are.
        x, scale, mean, variance: those of the norm.
        factor, offset: of the norm: dy counts where (x - mean) * factor + offset is above 0.
    """

    dy: Value = operand()
    x: Value = operand()
    scale: Value = operand()
    mean: Value = operand()
    variance: Value = operand()
    factor: Value | None = operand(default=None)
    offset: Value | None = operand(default=None)
    epsilon: float
    channels_first: bool

    def computed_by(self) -> str | None:
        return f"sums over channels in one pass{'' if self.factor is None else ', through the relu'}"

    def verify(self) -> Iterator[str]:
        yield from relations.same("a norm's input and gradient", self.x, self.dy)
        channels = relations.shape(self.scale)
        for value in self.outputs:
            if value.shape != channels:
                yield f"{relations.text(value)} of a norm of {list(channels)} channels"


class NormStep(Operation, mnemonic="gpu_norm"):
    """(x - mean) * factor + offset for each element, which is fused with what is around it.

    Attributes:
        mean, factor, offset: a number for each channel.
    """

    op = norms.NORM_STEP
    x: Value = operand()
    mean: Value = operand()
    factor: Value = operand()
    offset: Value = operand()
    channels_first: bool

    def verify(self) -> Iterator[str]:
        yield from relations.same("a norm's input and output", self.x, self.output)


class NormGradientStep(Operation, mnemonic="gpu_norm_gradient"):
    """(dy - shift - (x - mean) * slope) * size for each element, which is fused with what is around it.

    Attributes:
        mean, shift, slope, size: a number for each channel (`ChannelGradients`).
    """

    op = norms.NORM_GRADIENT_STEP
    dy: Value = operand()
    x: Value = operand()
    mean: Value = operand()
    shift: Value = operand()
    slope: Value = operand()
    size: Value = operand()
    channels_first: bool

    def verify(self) -> Iterator[str]:
        yield from relations.same("a norm's input and gradients", self.x, self.dy, self.output)


class UpdatesCall(Operation, mnemonic="gpu_updates", traits=Trait.EFFECT):
    """Several variables changed by one rule, with the same numbers beside their gradients.

    Attributes:
        rule: the op that each of its steps is.
        targets: handles or references: the variable and its slots, of one step after the other.
        gradients: of each step.
        numbers: what the rule takes besides, in its order.
    """

    rule: str
    targets: tuple[Value, ...] = operands()
    gradients: tuple[Value, ...] = operands()
    numbers: tuple[Value, ...] = operands()

    def computed_by(self) -> str | None:
        return f"{self.rule} of {len(self.gradients)} variables as one kernel"

    def verify(self) -> Iterator[str]:
        if not self.gradients or len(self.targets) % len(self.gradients):
            yield f"{len(self.targets)} variables and {len(self.gradients)} gradients"


class LibraryConvolution(Operation, mnemonic="gpu_convolution"):
    """activation(norm(convolution(x, w) + bias) + added); the first of its steps is the convolution.

    Attributes:
        x: of the convolution.
        w: [kernel..., channels / groups, filters].
        bias: [filters], where there is one.
        scale, offset, mean, variance: [filters], of a batch norm at inference, in whose place no bias is.
        added: of the result's shape, where something is.
        epsilon: of the batch norm.
        activation: as TensorFlow's `fused_ops` name it.
    """

    x: Value = operand()
    w: Value = operand()
    bias: Value | None = operand(default=None)
    scale: Value | None = operand(default=None)
    offset: Value | None = operand(default=None)
    mean: Value | None = operand(default=None)
    variance: Value | None = operand(default=None)
    added: Value | None = operand(default=None)
    epsilon: float
    activation: str

    @property
    def norm(self) -> tuple[Value, ...]:
        """Scale, offset, mean and variance, or nothing."""
        found = (self.scale, self.offset, self.mean, self.variance)
        return tuple(value for value in found if value is not None)

    def computed_by(self) -> str | None:
        parts = ["its bias"] if self.bias is not None else ["the batch norm in its filters"] if self.norm else []
        parts += ["a residual"] if self.added is not None else []
        parts += [self.activation] if self.activation != "Identity" else []
        what = f" with {', '.join(parts)}" if parts else ""
        return f"one convolution{what}{_rounded_to(self.output)}"

    def verify(self) -> Iterator[str]:
        filters = relations.shape(self.w)[-1]
        for value in (*([] if self.bias is None else [self.bias]), *self.norm):
            yield from relations.vector("a vector behind a convolution", value, filters)
        if self.added is not None:
            yield from relations.same("what is added to a convolution", self.output, self.added)


class LibraryProduct(Operation, mnemonic="gpu_product"):
    """activation(op(a) @ op(b) + bias): a matrix product of cuBLASLt's with its epilogue.

    Attributes:
        a: [..., k], or [k, m] where it is turned; its rows of all axes are those of one matrix.
        b: [k, n], or [n, k] where it is turned; axes before these have one element.
        bias: [n].
        turn_a, turn_b: a and b are stored transposed.
        activation: as TensorFlow's `fused_ops` name it: "Identity", "Relu", "GeluApproximate" (by tanh).
    """

    a: Value = operand()
    b: Value = operand()
    bias: Value = operand()
    turn_a: bool
    turn_b: bool
    activation: str

    @property
    def sizes(self) -> tuple[int, int, int]:
        """m, n, k."""
        a, b = relations.shape(self.a), relations.shape(self.b)
        k, n = b[:-3:-1] if self.turn_b else b[-2:]
        return (math.prod(a[:-1]) if not self.turn_a else a[-1]), n, k

    def computed_by(self) -> str | None:
        activation = "" if self.activation == "Identity" else f" and {self.activation}"
        return f"cuBLASLt, with bias{activation}{_rounded_to(self.output)}"

    def verify(self) -> Iterator[str]:
        m, n, k = self.sizes
        a = relations.shape(self.a)
        yield from relations.vector("a product's bias", self.bias, n)
        if (
            (a[-2] if self.turn_a else a[-1]) != k
            or self.output.size != m * n
            or relations.shape(self.output)[-1:] != (n,)
        ):
            yield f"{relations.text(self.a)} times {relations.text(self.b)} is {relations.text(self.output)}"


class AddedProduct(Operation, mnemonic="gpu_added_product"):
    """op(a) @ op(b) + added: a matrix product of cuBLASLt's that adds up to another matrix.

    Attributes:
        a: [m, k], or [k, m] where it is turned.
        b: [k, n], or [n, k] where it is turned.
        added: [m, n], of the result's type.
        turn_a, turn_b: a and b are stored transposed.
    """

    a: Value = operand()
    b: Value = operand()
    added: Value = operand()
    turn_a: bool
    turn_b: bool

    @property
    def sizes(self) -> tuple[int, int, int]:
        """m, n, k."""
        a, b = relations.shape(self.a), relations.shape(self.b)
        m, k = a[::-1] if self.turn_a else a
        return m, (b[0] if self.turn_b else b[1]), k

    def computed_by(self) -> str | None:
        return f"cuBLASLt, with what it adds up to{_rounded_to(self.output)}"

    def verify(self) -> Iterator[str]:
        m, n, k = self.sizes
        yield from relations.same("a product and what is added", self.added, self.output)
        if relations.shape(self.b)[int(self.turn_b)] != k or relations.shape(self.output) != (m, n):
            yield f"{relations.text(self.a)} times {relations.text(self.b)} is {relations.text(self.output)}"
