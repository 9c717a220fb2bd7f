"""Batch norms at inference as a step of a fused kernel: their statistics are numbers for each channel."""

from __future__ import annotations

from toolkit.kernels.cuda.simt.builder import KernelBuilder
from toolkit.kernels.cuda.simt.ir import Value
from toolkit.kernels.gpu.operators.table import gpu_operator

#: what the step is called: no op of graphs, whose kernels have more outputs
BATCH_NORM_STEP = "_BatchNormInference"
#: steps of training: what a norm makes of an element, and its gradient
NORM_STEP, NORM_GRADIENT_STEP = "_Normalize", "_NormalizeGradient"


@gpu_operator(BATCH_NORM_STEP, kinds="f", attributes=("epsilon",), weight=8)
def batch_norm(
    k: KernelBuilder, x: Value, scale: Value, offset: Value, mean: Value, variance: Value, epsilon: float
) -> Value:
    """(x - mean) scale / sqrt(variance + epsilon) + offset."""
    one = k.number(1.0, x.type)
    factor = k.mul(scale, k.div(one, k.intrinsic("sqrt", k.add(variance, k.number(epsilon, x.type)))))
    return k.add(k.mul(k.sub(x, mean), factor), offset)


@gpu_operator(NORM_STEP, kinds="f", weight=3)
def normalize(k: KernelBuilder, x: Value, mean: Value, factor: Value, offset: Value) -> Value:
    """(x - mean) * factor + offset, in this order: what is near the mean keeps its digits."""
    return k.add(k.mul(k.sub(x, mean), factor), offset)


@gpu_operator(NORM_GRADIENT_STEP, kinds="f", weight=5)
def normalize_gradient(
    k: KernelBuilder, dy: Value, x: Value, mean: Value, shift: Value, slope: Value, size: Value
) -> Value:
    """(dy - shift - (x - mean) * slope) * size; see `ChannelGradients`."""
    return k.mul(k.sub(k.sub(dy, shift), k.mul(k.sub(x, mean), slope)), size)
