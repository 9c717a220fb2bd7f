"""Gradients of samples by the parameters of their distribution, and of regressions on sorted numbers.

A sample of a truncated normal distribution is a function of its parameters that keeps the share of the distribution
below it (Figurnov et al., Implicit Reparameterization Gradients, arXiv 1805.08498).
"""

from __future__ import annotations

import math

import numpy as np

from toolkit.client import ops
from toolkit.client.arrays import array_ops
from toolkit.client.construction.convert import constant
from toolkit.client.construction.operation import Operation
from toolkit.client.construction.tensor import Tensor
from toolkit.client.gradients.common import reduce_broadcast
from toolkit.client.gradients.registry import Gradient, gradient
from toolkit.client.math import math_ops
from toolkit.client.math.clip_ops import clip_by_value


@gradient("StatelessParameterizedTruncatedNormal")
def truncated_normal(op: Operation, grad: Tensor) -> list[Gradient]:
    """By mean, standard deviation and both limits."""
    _, _, mean, deviation, low, high = op.inputs
    sample = op.outputs[0]
    least, most, at = ((x - mean) / deviation for x in (low, high, sample))
    share = (_share_below(at) - _share_below(least)) / (_share_below(most) - _share_below(least))
    limits = np.finfo(mean.dtype.base.numpy)
    share = clip_by_value(share, float(limits.tiny), float(1 - limits.eps))
    by_low = ops.exp(0.5 * (at * at - least * least) + ops.log1p(-share))
    by_high = ops.exp(0.5 * (at * at - most * most) + ops.log(share))
    slopes = {mean: ops.ones_like(at), deviation: at, low: by_low, high: by_high}
    found = [
        reduce_broadcast(parameter, sample, grad * slopes[parameter], None)[0]
        for parameter in (mean, deviation, low, high)
    ]
    return [None, None, *found]


def _share_below(x: Tensor) -> Tensor:
    """How much of the standard normal distribution lies below x."""
    return 0.5 * ops.erfc(x * constant(-math.sqrt(0.5), x.dtype.base))


@gradient("IsotonicRegression", accepts_none=True)
def isotonic(op: Operation, grad: Tensor, segments_grad: Gradient) -> Tensor:
    """Each output is the mean of a run of inputs; gradients are means of the same runs, which restart in each row."""
    x, segments = op.inputs[0], op.outputs[1]
    size = array_ops.shape(segments)
    width = size[-1]
    rows = array_ops.reshape(segments, array_ops.stack([-1, width]))
    runs = array_ops.reshape(rows + array_ops.expand_dims(math_ops.range(array_ops.shape(rows)[0]) * width, 1), [-1])
    flat = array_ops.reshape(grad, [-1])
    count = array_ops.size(flat)
    sums = ops.unsorted_segment_sum(flat, runs, count)
    lengths = ops.unsorted_segment_sum(ops.ones_like(flat), runs, count)
    means = array_ops.gather(sums / ops.maximum(lengths, constant(1, flat.dtype.base)), runs)
    return math_ops.cast(array_ops.reshape(means, size), x.dtype.base)
