"""Sums for the gradient of a batch norm, by the kernel that computes the gradient that they are of."""

from __future__ import annotations

import functools
from collections.abc import Sequence
from typing import Any

from toolkit.kernels.cpu.native.code import Lanes
from toolkit.kernels.cuda.nn.channel_sums import ChannelReduction, reduced
from toolkit.kernels.cuda.nn.norm_sums import gradients_beside
from toolkit.kernels.cuda.simt.builder import KernelBuilder
from toolkit.kernels.gpu.elementwise.nests import NestStep, step_result, steps_name
from toolkit.kernels.gpu.primitives.element_types import number_type
from toolkit.kernels.tensors import F32


@functools.cache
def summed_nest(
    members: tuple[NestStep, ...], dtype: str, reads: int, dy: int, stores: tuple[int, ...]
) -> ChannelReduction:
    """A nest of tensors of one type, and the sums of one of its results, in float32.

    Args:
        members: as of `nests.fused`; what is written is of the type, too.
        dtype: NumPy's name of it: "float32", "float16" or "bfloat16".
        reads: how many tensors are read, each element by element.
        dy: which result the sums are of, a position as in `NestStep.inputs`.
        stores: positions of what is written.
    """
    types = [number_type(dtype)] * reads + [number_type(member.dtype) for member in members]

    def compute(k: KernelBuilder, given: Sequence[Lanes]) -> tuple[Lanes, Sequence[Lanes]]:
        found: list[Any] = list(given)
        for member in members:
            inputs = [found[at] for at in member.inputs]
            found.append(step_result(k, member, inputs, [types[at] for at in member.inputs]))
        return found[dy], [found[at] for at in stores]

    return gradients_beside(steps_name(members), reads, len(stores), compute)


def launch_summed_nest(
    device: Any, what: ChannelReduction, reads: Sequence[Any], x: Any, scale: Any, mean: Any, variance: Any,
    epsilon: float,
) -> tuple[list[Any], list[Any]]:  # fmt: skip
    """What the nest writes, and what `norm_sums.norm_gradients` gives.

    Args:
        what: of `summed_nest`.
        reads, x: of one type and shape, channels last, with elements.
    """
    made = [device.empty(x.shape, x.dtype) for _ in range(what.written)]
    count, channels = x.nbytes // x.dtype.itemsize, x.shape[-1]
    sides = (count // channels, channels, 1)
    sums = reduced(
        device, what, [*reads, x], [mean, variance], sides, F32, given=[scale, variance],
        numbers=[epsilon, float(count // channels)], made=made,
    )  # fmt: skip
    return made, sums
