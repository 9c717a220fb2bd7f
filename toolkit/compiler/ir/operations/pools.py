"""Pools over windows of images, channels last, and their gradients."""

from __future__ import annotations

import enum
from collections.abc import Iterator

from toolkit.compiler.ir import relations
from toolkit.compiler.ir.fields import operand
from toolkit.compiler.ir.operation import Operation
from toolkit.compiler.ir.traits import Trait
from toolkit.compiler.ir.value import Value


class PoolFunction(enum.Enum):
    """What is made of the numbers of a window; what is padded is none of them."""

    MAX = enum.auto()
    MEAN = enum.auto()


class Pool(Operation, mnemonic="pool", traits=Trait.IN_ARENA | Trait.KEEPS_TYPE):
    """One number for each window and channel.

    Attributes:
        input: [batch, spatial..., channels].
        window: its size along each spatial axis.
        strides: steps between windows along each spatial axis.
        padding: places before and behind each spatial axis.
    """

    input: Value = operand()
    function: PoolFunction
    window: tuple[int, ...]
    strides: tuple[int, ...]
    padding: tuple[tuple[int, int], ...]

    @property
    def pooled_shape(self) -> tuple[int, ...]:
        """[batch, spatial..., channels] of the output, which may lack spatial axes of size 1."""
        batch, *spatial, channels = relations.shape(self.input)
        axes = zip(spatial, self.window, self.strides, self.padding, strict=True)
        places = [(size + sum(pair) - k) // stride + 1 for size, k, stride, pair in axes]
        return (batch, *places, channels)

    def verify(self) -> Iterator[str]:
        x, y = relations.shapes(self.input, self.output)
        if len(y) not in (2, len(x)) or (x[0], x[-1]) != (y[0], y[-1]):
            yield f"a pool of {list(x)} makes {list(y)}"
            return
        pooled = y if len(y) == len(x) else (y[0], *(1,) * (len(x) - 2), y[-1])
        yield from relations.windows(x, self.window, pooled, strides=self.strides, padding=self.padding)


class PoolGradient(Operation, mnemonic="pool_gradient", traits=Trait.IN_ARENA):
    """The gradient of a max pool with respect to its input.

    Attributes:
        input: that of the pool.
        pooled: what the pool made of it.
        gradient: with respect to that.
        window, strides, padding: those of the pool.
    """

    input: Value = operand()
    pooled: Value = operand()
    gradient: Value = operand()
    window: tuple[int, ...]
    strides: tuple[int, ...]
    padding: tuple[tuple[int, int], ...]

    def verify(self) -> Iterator[str]:
        yield from relations.same("the output of a pool and its gradient", self.pooled, self.gradient)
        yield from relations.same("the input of a pool and its gradient", self.input, self.output)
        x, y = relations.shapes(self.input, self.pooled)
        if (x[0], x[-1]) != (y[0], y[-1]):
            yield f"a pool of {list(x)} makes {list(y)}"
        yield from relations.windows(x, self.window, y, strides=self.strides, padding=self.padding)
