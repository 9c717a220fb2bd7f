"""Softmax, its logarithm, and cross entropies.

All work on matrices (batch, classes); Softmax and LogSoftmax on the last axis of any tensor. float16 and bfloat16
are computed in float32 and rounded once.
"""

# numpy's overloads answer arrays typed Any with Unknown
# pyright: reportUnknownVariableType=false, reportUnknownMemberType=false, reportUnknownArgumentType=false

from __future__ import annotations

import numpy as np

from toolkit.errors import InvalidArgumentError
from toolkit.kernels.cpu.nn.window import widen
from toolkit.kernels.registry import FLOATING, INDEX, Compute, KernelNode, kernel
from toolkit.kernels.types import Array


def _shifted(x: Array) -> Array:
    """x minus the maximum of its row, which keeps exp from overflowing; a new array in row-major order."""
    return np.subtract(x, np.maximum.reduce(x, axis=-1, keepdims=True), order="C") if x.size else x.copy()


@kernel("Softmax", types={"T": FLOATING})
def softmax(op: KernelNode) -> Compute:
    def compute(x: Array) -> Array:
        if x.ndim == 0:
            raise InvalidArgumentError("logits must have at least one dimension", node=op.name)
        y = _shifted(widen(x))
        np.exp(y, out=y)
        y /= y.sum(axis=-1, keepdims=True)
        return y.astype(x.dtype, copy=False)

    return compute


@kernel("LogSoftmax", types={"T": FLOATING})
def log_softmax(op: KernelNode) -> Compute:
    def compute(x: Array) -> Array:
        if x.ndim == 0:
            raise InvalidArgumentError("logits must have at least one dimension", node=op.name)
        y = _shifted(widen(x))
        y -= np.log(np.exp(y).sum(axis=-1, keepdims=True))
        return y.astype(x.dtype, copy=False)

    return compute


@kernel("SoftmaxCrossEntropyWithLogits", types={"T": FLOATING})
def softmax_cross_entropy(op: KernelNode) -> Compute:
    """loss = -sum(labels * log softmax), backprop = softmax - labels."""

    def compute(features: Array, labels: Array) -> tuple[Array, Array]:
        try:
            shape = np.broadcast_shapes(features.shape, labels.shape)
        except ValueError:
            raise InvalidArgumentError(
                f"logits and labels must be broadcastable: {list(features.shape)} and {list(labels.shape)}",
                node=op.name,
            ) from None
        if len(shape) != 2:
            raise InvalidArgumentError(f"logits and labels must be 2-dimensional, not {list(shape)}", node=op.name)
        dtype = features.dtype
        shifted = _shifted(np.broadcast_to(widen(features), shape))
        wide_labels = np.broadcast_to(widen(labels), shape)
        exponents = np.exp(shifted)
        total = exponents.sum(axis=-1, keepdims=True)
        # a label of zero contributes nothing, even where the logit is -inf
        terms = np.where(wide_labels == 0, 0, wide_labels * (np.log(total) - shifted))
        loss = terms.sum(axis=-1)
        backprop = exponents / total - wide_labels
        return loss.astype(dtype, copy=False), backprop.astype(dtype, copy=False)

    return compute


@kernel("SparseSoftmaxCrossEntropyWithLogits", types={"T": FLOATING, "Tlabels": INDEX})
def sparse_softmax_cross_entropy(op: KernelNode) -> Compute:
    def compute(features: Array, labels: Array) -> tuple[Array, Array]:
        if features.ndim != 2:
            raise InvalidArgumentError(f"logits must be 2-dimensional, not {list(features.shape)}", node=op.name)
        if labels.ndim != 1:
            raise InvalidArgumentError(f"labels must be 1-dimensional, not {list(labels.shape)}", node=op.name)
        batch, classes = features.shape
        if labels.shape[0] != batch:
            raise InvalidArgumentError(
                f"logits and labels must have the same first dimension: {batch} and {labels.shape[0]}", node=op.name
            )
        if classes == 0:
            raise InvalidArgumentError("there must be at least one class", node=op.name)
        # one pass: as unsigned numbers, negative ones are above any limit
        if batch and np.maximum.reduce(labels.view(f"u{labels.dtype.itemsize}")) >= classes:
            bad = (labels < 0) | (labels >= classes)
            raise InvalidArgumentError(
                f"Received a label value of {labels[bad][0]} which is outside the valid range of [0, {classes}).  "
                f"Label values: {' '.join(map(str, labels[:50]))}",
                node=op.name,
            )
        places = np.arange(0, batch * classes, classes) + labels
        shifted = _shifted(widen(features))
        at_labels = shifted.take(places)
        backprop = np.exp(shifted, out=shifted)
        total = np.add.reduce(backprop, axis=-1, keepdims=True)
        loss = np.log(total).reshape(batch) - at_labels
        backprop /= total
        np.subtract.at(backprop.reshape(-1), places, backprop.dtype.type(1))  # no place occurs twice
        return loss.astype(features.dtype, copy=False), backprop.astype(features.dtype, copy=False)

    return compute
