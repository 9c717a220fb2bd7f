"""Normalisations: of batches in training steps, of rows; softmax."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from toolkit.compiler.ir import relations
from toolkit.compiler.ir.fields import operand
from toolkit.compiler.ir.operation import Operation
from toolkit.compiler.ir.traits import Trait
from toolkit.compiler.ir.value import Value


class BatchNorm(Operation, mnemonic="batch_norm", traits=Trait.IN_ARENA):
    """(input - mean) / sqrt(variance + epsilon) * scale + offset, with the statistics of the batch.

    Its outputs are that, the mean and the variance (biased: divided by the count), one number a channel.

    Attributes:
        input: float32 [batch, spatial..., channels].
        scale, offset: float32 [channels].
    """

    input: Value = operand()
    scale: Value = operand()
    offset: Value = operand()
    epsilon: float

    def verify(self) -> Iterator[str]:
        yield from relations.same("a norm's input and output", self.input, self.output)
        channels = relations.shape(self.input)[-1]
        for value in (self.scale, self.offset, *self.outputs[1:]):
            yield from relations.vector("a parameter of a norm", value, channels)


class BatchNormGradient(Operation, mnemonic="batch_norm_gradient", traits=Trait.IN_ARENA):
    """The gradients of a batch norm with respect to its input, scale and offset.

    Attributes:
        gradient: with respect to the norm's output.
        input, scale, epsilon: those of the norm.
        mean, variance: what it made of its input.
    """

    gradient: Value = operand()
    input: Value = operand()
    scale: Value = operand()
    mean: Value = operand()
    variance: Value = operand()
    epsilon: float

    def verify(self) -> Iterator[str]:
        yield from relations.same("a norm's input and its gradients", self.input, self.gradient, self.output)
        channels = relations.shape(self.input)[-1]
        for value in (self.scale, self.mean, self.variance, *self.outputs[1:]):
            yield from relations.vector("a parameter of a norm", value, channels)


class LayerNorm(Operation, mnemonic="layer_norm", traits=Trait.IN_ARENA | Trait.KEEPS_TYPE):
    """(input - mean) / sqrt(variance + epsilon) * scale + shift, with the statistics of each row.

    Attributes:
        input: [..., columns].
        scale, shift: constants, float32 [columns].
    """

    input: Value = operand()
    scale: Any
    shift: Any
    epsilon: float

    def verify(self) -> Iterator[str]:
        yield from relations.same("a norm's input and output", self.input, self.output)
        columns = relations.shape(self.input)[-1]
        yield from relations.constant("the scale", self.scale, columns)
        yield from relations.constant("the shift", self.shift, columns)


class Softmax(Operation, mnemonic="softmax", traits=Trait.IN_ARENA | Trait.KEEPS_TYPE):
    """Softmax along the last axis."""

    input: Value = operand()

    def verify(self) -> Iterator[str]:
        yield from relations.same("a softmax and its input", self.output, self.input)
