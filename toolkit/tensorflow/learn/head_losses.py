# TensorFlow's arguments may be anything, so what they are is for tests to say, not for types.
# pyright: basic
"""The losses of tf.contrib.learn's heads: the mean that is trained, and the mean by weight that is reported."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from toolkit.client import ops
from toolkit.client.arrays import array_ops
from toolkit.client.construction.convert import convert_to_tensor
from toolkit.client.construction.scopes import control_dependencies, name_scope
from toolkit.client.construction.tensor import Tensor
from toolkit.client.flow.control_flow import Assert
from toolkit.client.losses import weighted as losses
from toolkit.client.losses.poisson import log_poisson_loss
from toolkit.client.losses.weights import broadcast_weights
from toolkit.client.math import math_ops
from toolkit.client.nn import nn_ops
from toolkit.graph import dtypes
from toolkit.tensorflow.deprecation import log
from toolkit.tensorflow.estimators.model_functions import arguments_of

#: of labels, logits and weights or None; the loss to train, and the one to show
Loss = Callable[[Any, Any, Any], tuple[Tensor, Tensor]]


def weights_of(features: Any, key: Any) -> Tensor | None:
    """The weights of examples, [batch, 1]; None where no feature is named.

    Raises:
        ValueError: there is no such feature.
    """
    if not key:
        return None
    if key not in features:
        raise ValueError(f"the weights '{key}' are no feature; there are: {', '.join(map(str, features))}")
    with name_scope(None, "weight_tensor", list(features.values())):
        weights = math_ops.cast(features[key], dtypes.float32)
        if weights.static_shape.rank != 1:
            return weights
        log().warning("the weights '%s' are of shape %s; taken as one column", key, weights.static_shape)
        return array_ops.reshape(weights, (-1, 1))


def _reduced(unreduced: Tensor, weights: Any) -> tuple[Tensor, Tensor]:
    """The mean over all examples, each times its weight; and the sum of these over that of the weights."""
    with name_scope("loss", values=(unreduced, weights)) as scope:
        if weights is None:
            loss = math_ops.reduce_mean(unreduced, name=scope)
            return loss, loss
        weights = broadcast_weights(weights, unreduced)
        with name_scope(None, "weighted_loss", (unreduced, weights)) as inner:
            weighted = math_ops.multiply(unreduced, weights, name=inner)
        mean = math_ops.reduce_mean(weighted, name=scope)
        total = math_ops.cast(math_ops.reduce_sum(weights), dtypes.float32)
        return mean, ops.real_div(math_ops.reduce_sum(weighted), total, name="weighted_average_loss")


def _column(tensor: Tensor) -> Tensor:
    return array_ops.expand_dims(tensor, 1) if tensor.static_shape.rank == 1 else tensor


def _columns(labels: Any, logits: Any) -> tuple[Tensor, Tensor]:
    """Both as [batch, dimension].

    Raises:
        ValueError: there are other counts of them.
    """
    logits = convert_to_tensor(logits)
    labels = convert_to_tensor(labels)
    labels, logits = _column(labels), _column(logits)
    if not logits.static_shape.is_compatible_with(labels.static_shape):
        raise ValueError(
            f"the labels are of shape {labels.static_shape} and the logits of {logits.static_shape}; give the head "
            "label_dimension, or labels of one number each"
        )
    return labels, logits


def squared(labels: Any, logits: Any, weights: Any = None) -> tuple[Tensor, Tensor]:
    with name_scope(None, "mean_squared_loss", (logits, labels)) as scope:
        labels, logits = _columns(labels, logits)
        unreduced = ops.squared_difference(logits, math_ops.cast(labels, dtypes.float32), name=scope)
        return _reduced(unreduced, weights)


def poisson(labels: Any, logits: Any, weights: Any = None) -> tuple[Tensor, Tensor]:
    with name_scope(None, "_poisson_loss", (logits, labels)) as scope:
        labels, logits = _columns(labels, logits)
        return _reduced(log_poisson_loss(labels, logits, True, scope), weights)


def logistic(labels: Any, logits: Any, weights: Any = None) -> tuple[Tensor, Tensor]:
    with name_scope(None, "log_loss_with_two_classes", (logits, labels)) as scope:
        logits = convert_to_tensor(logits)
        labels = _column(math_ops.cast(labels, dtypes.float32))
        return _reduced(nn_ops.sigmoid_cross_entropy_with_logits(labels, logits, scope), weights)


def softmax(labels: Any, logits: Any, weights: Any = None) -> tuple[Tensor, Tensor]:
    """Raises ValueError: labels are no integers."""
    with name_scope(None, "softmax_cross_entropy_loss", (logits, labels)) as scope:
        labels = convert_to_tensor(labels)
        if not labels.dtype.is_integer:
            raise ValueError(f"labels must be integers, the numbers of classes; they are {labels.dtype.base}")
        is_column = labels.static_shape.rank == 2
        if is_column:
            labels = array_ops.squeeze(labels, axis=(1,))
        unreduced = nn_ops.sparse_softmax_cross_entropy_with_logits(labels, logits, scope)
        return _reduced(array_ops.expand_dims(unreduced, (1,)) if is_column else unreduced, weights)


def sigmoid(labels: Any, logits: Any, weights: Any = None) -> tuple[Tensor, Tensor]:
    with name_scope(None, "sigmoid_cross_entropy_loss", (logits, labels)) as scope:
        labels = math_ops.cast(labels, dtypes.float32)
        return _reduced(nn_ops.sigmoid_cross_entropy_with_logits(labels, logits, scope), weights)


def hinge(labels: Any, logits: Any, weights: Any = None) -> tuple[Tensor, Tensor]:
    with name_scope(None, "hinge_loss", (logits, labels)) as scope:
        complaint = "labels shape should be either [batch_size, 1] or [batch_size]"
        with control_dependencies([Assert(ops.less_equal(array_ops.rank(labels), 2), [complaint])]):
            labels = array_ops.reshape(labels, (-1, 1))
        unreduced = losses.hinge_loss(labels=labels, logits=logits, scope=scope, reduction="none")
        return _reduced(unreduced, weights)


def of_program(loss_fn: Any) -> Loss | None:
    """A loss function of a program's own, which reduces itself; None where there is none.

    Raises:
        ValueError: it does not take labels, logits and weights.
    """
    if not loss_fn:
        return None
    lacking = [name for name in ("labels", "logits", "weights") if name not in arguments_of(loss_fn)]
    if lacking:
        raise ValueError(f"loss_fn must take labels, logits and weights; {', '.join(lacking)} missing")

    def call(labels: Any, logits: Any, weights: Any = None) -> tuple[Any, Any]:
        loss = loss_fn(labels, logits) if weights is None else loss_fn(labels, logits, weights)
        return loss, loss

    return call
