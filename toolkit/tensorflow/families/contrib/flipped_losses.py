# TensorFlow's arguments may be anything, so what they are is for tests to say, not for types.
# pyright: basic
"""tf.contrib.nn's cross entropies in the order of arguments that they had before TensorFlow 1.0: logits first."""

from __future__ import annotations

from typing import Any

from toolkit.client.construction.tensor import Tensor
from toolkit.tensorflow.families.ops import nn


def deprecated_flipped_softmax_cross_entropy_with_logits(
    logits: Any, labels: Any, dim: int = -1, name: Any = None
) -> Tensor:
    return nn.softmax_cross_entropy_with_logits(labels=labels, logits=logits, dim=dim, name=name)


def deprecated_flipped_sparse_softmax_cross_entropy_with_logits(logits: Any, labels: Any, name: Any = None) -> Tensor:
    return nn.sparse_softmax_cross_entropy_with_logits(labels=labels, logits=logits, name=name)


def deprecated_flipped_sigmoid_cross_entropy_with_logits(logits: Any, targets: Any, name: Any = None) -> Tensor:
    return nn.sigmoid_cross_entropy_with_logits(labels=targets, logits=logits, name=name)
