"""Batch normalisation and its gradient, node by node."""

from __future__ import annotations

from typing import Any

import numpy as np

from toolkit.kernels.cpu.nn import norm as nn_norm
from toolkit.kernels.cpu.nn.window import Layout
from toolkit.kernels.cpu.onednn.cached import KEPT, Kept, is_worth, last, onednn, restored
from toolkit.kernels.cpu.onednn.memory import channels_last, dense
from toolkit.kernels.cpu.onednn.primitive import BACKWARD, FORWARD_INFERENCE, FORWARD_TRAINING, Arg, Primitive
from toolkit.kernels.cpu.onednn.windows import Shape
from toolkit.kernels.registry import Compute, KernelNode
from toolkit.kernels.tensors import F32
from toolkit.kernels.types import Array

_GIVEN_STATISTICS = 1  # dnnl_use_global_stats
_SCALE_AND_SHIFT = 2 | 4  # dnnl_use_scale, dnnl_use_shift


def forward(shape: Shape, epsilon: float, *, training: bool) -> Primitive:
    """y = (x - mean) / sqrt(variance + epsilon) * scale + shift over channels-last tensors.

    At training mean and the biased variance are outputs.

    Raises:
        OneDnnError: oneDNN cannot do it.
    """
    desc = channels_last(shape, F32)
    kind, flags = (FORWARD_TRAINING, 0) if training else (FORWARD_INFERENCE, _GIVEN_STATISTICS)
    return Primitive("batch_normalization_forward", kind, desc, desc, epsilon, _SCALE_AND_SHIFT | flags)


def backward(shape: Shape, epsilon: float) -> Primitive:
    """The gradients by x, scale and shift of a step of training."""
    desc = channels_last(shape, F32)
    hint = forward(shape, epsilon, training=True)
    return Primitive(
        "batch_normalization_backward", BACKWARD, desc, desc, desc, epsilon, _SCALE_AND_SHIFT, hint.descriptor
    )


class _Node:
    """What the nodes of both directions say."""

    def __init__(self, op: KernelNode):
        self.first = Layout.of(op).channels_first
        self.epsilon = float(op.attr("epsilon"))
        self.training = bool(op.attr("is_training"))
        self.target = op.target
        self.least = op.target.kernels.norm_training if self.training else op.target.kernels.norm
        self.ranks = (4, 5) if op.op.endswith("V3") else (4,)

    def is_fit(self, x: Array, *vectors: Array) -> bool:
        if x.ndim not in self.ranks or not is_worth(x.size, self.least):
            return False
        channels = (x.shape[1 if self.first else -1],)
        return all(vector.shape == channels for vector in vectors)

    def shape(self, x: Shape) -> Shape:
        return Layout(self.first).shape_last(x)

    def key(self, what: str, shape: Shape) -> tuple[Any, ...]:
        return ("batch norm", what, self.training, self.epsilon, shape)


@onednn("FusedBatchNorm", numpy=nn_norm.fused_batch_norm)
@onednn("FusedBatchNormV2", "FusedBatchNormV3", numpy=nn_norm.fused_batch_norm, attrs=("T", "U"))
def fused_batch_norm(op: KernelNode, numpy: Compute) -> Compute:
    node = _Node(op)
    factor = np.float32(op.attr("exponential_avg_factor"))
    third = (np.zeros((0,), np.float32),) if op.op == "FusedBatchNormV3" else ()
    if node.training and factor != 1:  # a moving average of statistics
        return numpy

    def make(shape: Shape) -> Kept:
        desc, vector = channels_last(shape, F32), dense((shape[-1],), F32)
        names = (Arg.SRC, Arg.SCALE, Arg.SHIFT, Arg.MEAN, Arg.VARIANCE, Arg.DST)
        return Kept(
            forward(shape, node.epsilon, training=node.training),
            [(name, desc if name in (Arg.SRC, Arg.DST) else vector) for name in names],
            op.target,
        )

    def compute(x: Array, scale: Array, offset: Array, mean: Array, variance: Array) -> tuple[Array, ...]:
        given = (mean, variance)
        if mean.ndim + variance.ndim != 2 or not node.is_fit(x, scale, offset, *(() if node.training else given)):
            return numpy(x, scale, offset, mean, variance)
        shape = node.shape(x.shape)
        kept = KEPT.get(node.key("forward", shape), lambda: make(shape))
        if kept is None:
            return numpy(x, scale, offset, mean, variance)
        if node.training:
            mean, variance = np.empty_like(scale), np.empty_like(scale)
        y = np.empty(shape, x.dtype)
        vectors = [np.ascontiguousarray(vector) for vector in (scale, offset, mean, variance)]
        kept.run(last(x, node.target, channels_first=node.first), *vectors, y)
        unbiased = variance
        if node.training:
            count = y.size // shape[-1]
            mean, variance = vectors[2:]
            unbiased = variance * np.float32(count / max(count - 1, 1))
        return (restored(y, node.target, channels_first=node.first), mean, unbiased, mean, variance, *third)

    return compute


@onednn("FusedBatchNormGrad", numpy=nn_norm.fused_batch_norm_grad)
@onednn("FusedBatchNormGradV2", "FusedBatchNormGradV3", numpy=nn_norm.fused_batch_norm_grad, attrs=("T", "U"))
def fused_batch_norm_grad(op: KernelNode, numpy: Compute) -> Compute:
    node = _Node(op)
    if not node.training:
        return numpy

    def make(shape: Shape) -> Kept:
        desc, vector = channels_last(shape, F32), dense((shape[-1],), F32)
        images = (Arg.DIFF_DST, Arg.SRC, Arg.DIFF_SRC)
        names = (Arg.DIFF_DST, Arg.SRC, Arg.SCALE, Arg.MEAN, Arg.VARIANCE, Arg.DIFF_SRC, Arg.DIFF_SCALE, Arg.DIFF_SHIFT)
        arguments = [(name, desc if name in images else vector) for name in names]
        return Kept(backward(shape, node.epsilon), arguments, op.target)

    def compute(dy: Array, x: Array, scale: Array, mean: Array, variance: Array, *rest: Array) -> tuple[Array, ...]:
        shape = node.shape(x.shape)
        kept = None
        if dy.shape == x.shape and node.is_fit(x, scale, mean, variance):
            kept = KEPT.get(node.key("backward", shape), lambda: make(shape))
        if kept is None:
            return numpy(dy, x, scale, mean, variance, *rest)
        made = np.empty(shape, x.dtype), np.empty_like(scale), np.empty_like(scale)
        vectors = [np.ascontiguousarray(vector) for vector in (scale, mean, variance)]
        kept.run(*(last(image, node.target, channels_first=node.first) for image in (dy, x)), *vectors, *made)
        empty = np.zeros((), np.float32)
        return restored(made[0], node.target, channels_first=node.first), made[1], made[2], empty, empty.copy()

    return compute
