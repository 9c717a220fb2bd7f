"""What a batch norm and its gradient take of each channel, made by the kernels that put sums together.

A norm of 64 channels takes as long as its launches; whatever follows from the sums alone is computed where they are.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from toolkit.kernels.cpu.native.code import Lanes
from toolkit.kernels.cuda.nn.channel_sums import ChannelReduction, add_states, reduced
from toolkit.kernels.cuda.simt.builder import KernelBuilder, RegisterVariable
from toolkit.kernels.tensors import F32

#: of one number of each tensor: dy, and what is written
GradientWriter = Callable[[KernelBuilder, Sequence[Lanes]], tuple[Lanes, Sequence[Lanes]]]


def _moments_add(
    k: KernelBuilder, state: Sequence[RegisterVariable], values: Sequence[Lanes], _: Sequence[Lanes]
) -> None:
    """B. P. Welford, "Note on a method for calculating corrected sums of squares and products", 1962."""
    count, mean, squares = state
    number = k.add(count.get(), k.number(1.0, count.type))
    off = k.sub(values[0], mean.get())
    now = k.add(mean.get(), k.div(off, number))
    squares.set(k.add(squares.get(), k.mul(off, k.sub(values[0], now))))
    mean.set(now)
    count.set(number)


def _moments_merge(k: KernelBuilder, state: Sequence[RegisterVariable], other: Sequence[Lanes]) -> None:
    """T. F. Chan, G. H. Golub, R. J. LeVeque, "Updating formulae and a pairwise algorithm", 1979."""
    count, mean, squares = state
    their_count, their_mean, their_squares = other
    both = k.add(count.get(), their_count)
    some = k.compare("ogt", both, k.number(0.0, both.type))
    share = k.div(their_count, k.select(some, both, k.number(1.0, both.type)))
    off = k.sub(their_mean, mean.get())
    between = k.mul(k.mul(off, off), k.mul(count.get(), share))
    squares.set(k.add(k.add(squares.get(), their_squares), between))
    mean.set(k.add(mean.get(), k.mul(off, share)))
    count.set(both)


def _moments_finish(
    k: KernelBuilder, state: Sequence[Lanes], given: Sequence[Lanes], numbers: Sequence[Lanes]
) -> Sequence[Lanes]:
    """Mean, biased and unbiased variance, and the factor scale / sqrt(biased variance + epsilon)."""
    count, mean, squares = state
    one = k.number(1.0, count.type)
    fewer = k.sub(count, one)
    fewer = k.select(k.compare("olt", fewer, one), one, fewer)
    biased = k.div(squares, count)
    (scale,), (epsilon,) = given, numbers
    factor = k.div(scale, k.intrinsic("sqrt", k.add(biased, epsilon)))
    return [mean, biased, k.mul(biased, k.div(count, fewer)), factor]


MOMENTS = ChannelReduction(
    "moments", 1, 0, 3, _moments_add, _moments_merge, _moments_finish, 4, given=1, numbers=1
)  # fmt: skip


def _inverse(k: KernelBuilder, variance: Lanes, epsilon: Lanes) -> Lanes:
    return k.div(k.number(1.0, variance.type), k.intrinsic("sqrt", k.add(variance, epsilon)))


def _with_inverse(k: KernelBuilder, vectors: Sequence[Lanes], numbers: Sequence[Lanes]) -> Sequence[Lanes]:
    """1 / sqrt(variance + epsilon) in place of the variance."""
    mean, variance, *others = vectors
    return [mean, _inverse(k, variance, numbers[0]), *others]


def _gradients_add(
    k: KernelBuilder, state: Sequence[RegisterVariable], values: Sequence[Lanes], vectors: Sequence[Lanes]
) -> None:
    """Sums of dy and of dy times what was normalized, given mean and 1 / deviation."""
    dy, x = values
    mean, inverse = vectors
    state[0].set(k.add(state[0].get(), dy))
    state[1].set(k.fma(dy, k.mul(k.sub(x, mean), inverse), state[1].get()))


def _relu_gradients_add(
    k: KernelBuilder, state: Sequence[RegisterVariable], values: Sequence[Lanes], vectors: Sequence[Lanes]
) -> None:
    """The same where dy is by a relu of (x - mean) * factor + offset, computed as the norm computes it."""
    dy, x = values
    mean, inverse, factor, offset = vectors
    centered = k.sub(x, mean)
    passes = k.compare("ogt", k.add(k.mul(centered, factor), offset), k.number(0.0, dy.type))
    dy = k.select(passes, dy, k.number(0.0, dy.type))
    state[0].set(k.add(state[0].get(), dy))
    state[1].set(k.fma(dy, k.mul(centered, inverse), state[1].get()))


def _gradients_finish(
    k: KernelBuilder, state: Sequence[Lanes], given: Sequence[Lanes], numbers: Sequence[Lanes]
) -> Sequence[Lanes]:
    """The sums; inverse; and shift, slope and size of dx = (dy - shift - (x - mean) * slope) * size."""
    (d_offset, d_scale), (scale, variance), (epsilon, count) = state, given, numbers
    inverse = _inverse(k, variance, epsilon)
    slope = k.mul(inverse, k.div(d_scale, count))
    return [d_offset, d_scale, inverse, k.div(d_offset, count), slope, k.mul(scale, inverse)]


NORM_GRADIENTS, RELU_NORM_GRADIENTS = (
    ChannelReduction(name, 2, vectors, 2, add, add_states, _gradients_finish, 6, _with_inverse, given=2, numbers=2)
    for name, vectors, add in (
        ("norm_gradients", 2, _gradients_add), ("relu_norm_gradients", 4, _relu_gradients_add),
    )
)  # fmt: skip


def gradients_beside(name: str, tensors: int, written: int, compute: GradientWriter) -> ChannelReduction:
    """The sums of `NORM_GRADIENTS`, of a dy that is computed where they are, and written with what else is.

    Args:
        tensors: how many `compute` takes.
        compute: (builder, one number of each) dy, and what is written.
    """

    def add(
        k: KernelBuilder, state: Sequence[RegisterVariable], values: Sequence[Lanes], vectors: Sequence[Lanes]
    ) -> Sequence[Lanes]:
        *given, x = values
        dy, made = compute(k, given)
        _gradients_add(k, state, [dy, x], vectors)
        return made

    return ChannelReduction(
        f"{name}_norm_gradients", tensors + 1, 2, 2, add, add_states, _gradients_finish, 6, _with_inverse, given=2,
        numbers=2, written=written,
    )  # fmt: skip


def norm_moments(device: Any, x: Any, scale: Any, epsilon: float, sides: tuple[int, int, int]) -> list[Any]:
    """Mean, biased and unbiased variance of each channel, and scale / sqrt(biased variance + epsilon).

    Args:
        x: with elements.
        scale: float32 [channels].
        sides: of x: outer, channels, inner.
    """
    return reduced(device, MOMENTS, [x], [], sides, F32, given=[scale], numbers=[epsilon])


def norm_gradients(
    device: Any, dy: Any, x: Any, scale: Any, mean: Any, variance: Any, relu: Sequence[Any], epsilon: float,
    sides: tuple[int, int, int],
) -> list[Any]:  # fmt: skip
    """Sums of dy and of dy * normal over each channel, inverse = 1 / sqrt(variance + epsilon), and shift, slope and
    size of dx = (dy - shift - (x - mean) * slope) * size.

    Args:
        dy, x: with elements.
        relu: of the norm, factor and offset, where dy is by a relu of it; else nothing.
        sides: of x: outer, channels, inner.
    """
    what = RELU_NORM_GRADIENTS if relu else NORM_GRADIENTS
    numbers = [epsilon, float(sides[0] * sides[2])]
    return reduced(device, what, [dy, x], [mean, variance, *relu], sides, F32, given=[scale, variance], numbers=numbers)
