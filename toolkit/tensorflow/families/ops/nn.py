# TensorFlow's arguments may be anything, so what they are is for tests to say, not for types.
# pyright: basic
"""tf.nn: activations, losses, convolutions, pooling, normalization, embeddings."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from toolkit.client import ops
from toolkit.client.arrays import array_ops
from toolkit.client.construction import context
from toolkit.client.construction.convert import convert_to_tensor
from toolkit.client.construction.scopes import name_scope
from toolkit.client.construction.tensor import Tensor
from toolkit.client.losses import poisson
from toolkit.client.losses.cross_entropy import softmax_cross_entropy
from toolkit.client.math import math_ops
from toolkit.client.nn import nn_ops
from toolkit.client.random import random_ops
from toolkit.graph import dtypes
from toolkit.tensorflow.families.arguments import needed, renamed

_ONES = [1, 1, 1, 1]


def softmax(logits: Any, axis: Any = None, name: Any = None, dim: Any = None) -> Tensor:
    axis = renamed("axis", axis, "dim", dim)
    return nn_ops.softmax(logits, -1 if axis is None else axis, name)


def log_softmax(logits: Any, axis: Any = None, name: Any = None, dim: Any = None) -> Tensor:
    axis = renamed("axis", axis, "dim", dim)
    return nn_ops.log_softmax(logits, -1 if axis is None else axis, name)


def relu6(features: Any, name: Any = None) -> Tensor:
    with name_scope(name, "Relu6", [features]) as scope:
        return ops.relu6(convert_to_tensor(features, name="features"), name=scope)


def leaky_relu(features: Any, alpha: Any = 0.2, name: Any = None) -> Tensor:
    with name_scope(name, "LeakyRelu", [features, alpha]) as scope:
        features = convert_to_tensor(features, name="features")
        if features.dtype.base.is_integer:
            features = math_ops.cast(features, dtypes.float32)
        if isinstance(alpha, Tensor):
            return ops.maximum(alpha * features, features, name=scope)
        return ops.leaky_relu(features, alpha=alpha, name=scope)


def crelu(features: Any, name: Any = None, axis: int = -1) -> Tensor:
    with name_scope(name, "CRelu", [features]) as scope:
        features = convert_to_tensor(features, name="features")
        return ops.relu(array_ops.concat([features, -features], axis, name=scope))


def xw_plus_b(x: Any, weights: Any, biases: Any, name: Any = None) -> Tensor:
    with name_scope(name, "xw_plus_b", [x, weights, biases]) as scope:
        x = convert_to_tensor(x, name="x")
        weights = convert_to_tensor(weights, name="weights")
        biases = convert_to_tensor(biases, name="biases")
        return ops.bias_add(math_ops.matmul(x, weights), biases, name=scope)


def relu_layer(x: Any, weights: Any, biases: Any, name: Any = None) -> Tensor:
    with name_scope(name, "relu_layer", [x, weights, biases]) as scope:
        x = convert_to_tensor(x, name="x")
        weights = convert_to_tensor(weights, name="weights")
        biases = convert_to_tensor(biases, name="biases")
        return ops.relu(ops.bias_add(math_ops.matmul(x, weights), biases), name=scope)


def bias_add(value: Any, bias: Any, data_format: Any = None, name: Any = None) -> Tensor:
    return nn_ops.bias_add(value, bias, data_format or "NHWC", name)


def softmax_cross_entropy_with_logits_v2(
    labels: Any, logits: Any, axis: Any = None, name: Any = None, dim: Any = None
) -> Tensor:
    axis = renamed("axis", axis, "dim", dim)
    return softmax_cross_entropy(labels, logits, -1 if axis is None else axis, name)


def softmax_cross_entropy_with_logits(
    labels: Any = None, logits: Any = None, dim: int = -1, name: Any = None, axis: Any = None
) -> Tensor:
    """As the second version, but without a gradient for the labels."""
    if labels is None or logits is None:
        raise ValueError("Both labels and logits must be provided.")
    with name_scope(name, "softmax_cross_entropy_with_logits_sg", [logits, labels]) as scope:
        labels = array_ops.stop_gradient(labels, name="labels_stop_gradient")
        return softmax_cross_entropy(labels, logits, dim if axis is None else axis, scope)


def sparse_softmax_cross_entropy_with_logits(labels: Any = None, logits: Any = None, name: Any = None) -> Tensor:
    if labels is None or logits is None:
        raise ValueError("Both labels and logits must be provided.")
    return nn_ops.sparse_softmax_cross_entropy_with_logits(labels, logits, name)


def sigmoid_cross_entropy_with_logits(labels: Any = None, logits: Any = None, name: Any = None) -> Tensor:
    if labels is None or logits is None:
        raise ValueError("Both labels and logits must be provided.")
    return nn_ops.sigmoid_cross_entropy_with_logits(labels, logits, name)


def weighted_cross_entropy_with_logits(
    labels: Any = None, logits: Any = None, pos_weight: Any = None, name: Any = None, targets: Any = None
) -> Tensor:
    labels = needed("labels", renamed("labels", labels, "targets", targets))
    with name_scope(name, "logistic_loss", [logits, labels]) as scope:
        logits = convert_to_tensor(logits, name="logits")
        labels = convert_to_tensor(labels, name="labels")
        weight = 1 + (pos_weight - 1) * labels
        rest = (1 - labels) * logits
        return math_ops.add(rest, weight * (ops.log1p(ops.exp(-math_ops.abs(logits))) + ops.relu(-logits)), name=scope)


def dropout(
    x: Any, keep_prob: Any = None, noise_shape: Any = None, seed: Any = None, name: Any = None, rate: Any = None
) -> Tensor:
    if keep_prob is not None and rate is not None:
        raise ValueError("Specify exactly one of `rate` and `keep_prob`")
    if rate is None:
        if keep_prob is None:
            raise ValueError("You must provide a rate to dropout.")
        rate = 1.0 - keep_prob
    return nn_ops.dropout(x, rate, noise_shape, seed, name)


def conv2d(
    input: Any, filter: Any = None, strides: Any = None, padding: Any = None, use_cudnn_on_gpu: bool = True,
    data_format: str = "NHWC", dilations: Any = _ONES, name: Any = None, filters: Any = None,
) -> Tensor:  # fmt: skip
    filter = renamed("filters", filters, "filter", filter)
    kind, explicit = _padding(padding)
    return ops.conv2d(
        input, filter, strides=_window(strides, data_format), padding=kind, use_cudnn_on_gpu=use_cudnn_on_gpu,
        explicit_paddings=explicit, data_format=data_format, dilations=_window(dilations, data_format), name=name,
    )  # fmt: skip


def _padding(padding: Any) -> tuple[str, list[int]]:
    if padding is None:
        raise ValueError("padding must be specified.")
    if isinstance(padding, str):
        return padding, []
    pairs: list[Any] = list(padding)
    return "EXPLICIT", [int(size) for pair in pairs for size in pair]


def _window(value: Any, data_format: str | None, rank: int = 2) -> list[int]:
    if value is None:
        return [1] * (rank + 2)
    return nn_ops.window(value, data_format or "N", rank)


def conv2d_transpose(
    value: Any = None, filter: Any = None, output_shape: Any = None, strides: Any = None, padding: str = "SAME",
    data_format: str = "NHWC", name: Any = None, input: Any = None, filters: Any = None, dilations: Any = None,
) -> Tensor:  # fmt: skip
    value = renamed("input", input, "value", value)
    filter = renamed("filters", filters, "filter", filter)
    return nn_ops.conv2d_transpose(
        value, filter, output_shape, strides, padding, data_format, 1 if dilations is None else dilations, name
    )


def max_pool(
    value: Any, ksize: Any, strides: Any, padding: Any, data_format: str = "NHWC", name: Any = None, input: Any = None
) -> Tensor:
    value = renamed("input", input, "value", value)
    return nn_ops.max_pool(value, ksize, strides, padding, data_format, name)


def avg_pool(
    value: Any, ksize: Any, strides: Any, padding: Any, data_format: str = "NHWC", name: Any = None, input: Any = None
) -> Tensor:
    value = renamed("input", input, "value", value)
    return nn_ops.avg_pool(value, ksize, strides, padding, data_format, name)


def moments(
    x: Any, axes: Any, shift: Any = None, name: Any = None, keep_dims: Any = None, keepdims: Any = None
) -> tuple[Tensor, Tensor]:
    keep = renamed("keepdims", keepdims, "keep_dims", keep_dims)
    return nn_ops.moments(x, axes, bool(keep), name)


def batch_normalization(
    x: Any, mean: Any, variance: Any, offset: Any, scale: Any, variance_epsilon: Any, name: Any = None
) -> Tensor:
    return nn_ops.batch_normalization(x, mean, variance, offset, scale, variance_epsilon, name)


def fused_batch_norm(
    x: Any, scale: Any, offset: Any, mean: Any = None, variance: Any = None, epsilon: float = 0.001,
    data_format: str = "NHWC", is_training: bool = True, name: Any = None, exponential_avg_factor: float = 1.0,
) -> Any:  # fmt: skip
    empty: Any = array_ops.constant([], dtypes.float32)
    y, batch_mean, batch_variance, *_ = ops.fused_batch_norm_v3(
        x, scale, offset, empty if mean is None else mean, empty if variance is None else variance,
        epsilon=max(epsilon, 1.001e-5), exponential_avg_factor=exponential_avg_factor, data_format=data_format,
        is_training=is_training, name=name,
    )  # fmt: skip
    return y, batch_mean, batch_variance


def l2_normalize(x: Any, axis: Any = None, epsilon: float = 1e-12, name: Any = None, dim: Any = None) -> Tensor:
    axis = renamed("axis", axis, "dim", dim)
    with name_scope(name, "l2_normalize", [x]) as scope:
        x = convert_to_tensor(x, name="x")
        squares = math_ops.reduce_sum(ops.square(x), axis, keepdims=True)
        return ops.mul(x, ops.rsqrt(ops.maximum(squares, epsilon)), name=scope)


def top_k(input: Any, k: Any = 1, sorted: bool = True, index_type: Any = dtypes.int32, name: Any = None) -> Any:
    import collections

    values = ops.top_kv2(input, k, sorted=sorted, index_type=index_type, name=name)
    return collections.namedtuple("TopKV2", ["values", "indices"])(*values)


def in_top_k(predictions: Any, targets: Any, k: Any, name: Any = None) -> Tensor:
    return nn_ops.in_top_k(predictions, targets, k, name)


def log_poisson_loss(targets: Any, log_input: Any, compute_full_loss: bool = False, name: Any = None) -> Tensor:
    return poisson.log_poisson_loss(targets, log_input, compute_full_loss, name)


def random_normal(
    shape: Any, mean: Any = 0.0, stddev: Any = 1.0, dtype: Any = dtypes.float32, seed: Any = None, name: Any = None
) -> Tensor:
    return random_ops.random_normal(shape, mean, stddev, dtype, seed, name)


def random_truncated_normal(
    shape: Any, mean: Any = 0.0, stddev: Any = 1.0, dtype: Any = dtypes.float32, seed: Any = None, name: Any = None
) -> Tensor:
    return random_ops.truncated_normal(shape, mean, stddev, dtype, seed, name)


def random_uniform(
    shape: Any, minval: Any = 0, maxval: Any = None, dtype: Any = dtypes.float32, seed: Any = None, name: Any = None
) -> Tensor:
    return random_ops.random_uniform(shape, minval, maxval, dtype, seed, name)


def random_shuffle(value: Any, seed: Any = None, name: Any = None) -> Tensor:
    return random_ops.random_shuffle(value, seed, name)


def multinomial(logits: Any, num_samples: Any, seed: Any = None, name: Any = None, output_dtype: Any = None) -> Tensor:
    with name_scope(name, "multinomial", [logits]):
        return random_ops.multinomial(logits, num_samples, seed, dtypes.int64 if output_dtype is None else output_dtype)


def set_random_seed(seed: Any) -> None:
    from toolkit.client.random import seeds

    seeds.set_random_seed(seed)


def get_seed(op_seed: Any) -> Sequence[Any]:
    from toolkit.client.random import seeds

    if op_seed is None and context.get_default_graph().seed is None:
        return None, None
    return seeds.get_seed(op_seed)
