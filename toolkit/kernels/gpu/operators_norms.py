"""Batch norms at inference as a step of a fused kernel: their statistics are numbers for each channel."""

from __future__ import annotations

from toolkit.kernels.cuda.simt.builder import KernelBuilder
from toolkit.kernels.cuda.simt.ir import Value
from toolkit.kernels.gpu.operators import gpu_operator

#: what the step is called: no op of graphs, whose kernels have more outputs
BATCH_NORM_STEP = "_BatchNormInference"


@gpu_operator(BATCH_NORM_STEP, kinds="f", attributes=("epsilon",), weight=8)
def batch_norm(
    k: KernelBuilder, x: Value, scale: Value, offset: Value, mean: Value, variance: Value, epsilon: float
) -> Value:
    """(x - mean) scale / sqrt(variance + epsilon) + offset."""
    one = k.number(1.0, x.type)
    factor = k.mul(scale, k.div(one, k.intrinsic("sqrt", k.add(variance, k.number(epsilon, x.type)))))
    return k.add(k.mul(k.sub(x, mean), factor), offset)
