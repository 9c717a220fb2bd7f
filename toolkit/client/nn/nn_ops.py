"""Neural network functions over the raw ops."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from toolkit.client import ops
from toolkit.client.arrays import array_ops
from toolkit.client.construction.convert import constant, convert_to_tensor
from toolkit.client.construction.scopes import name_scope
from toolkit.client.construction.tensor import Tensor, TensorLike
from toolkit.client.math import math_ops
from toolkit.client.random import random_ops
from toolkit.errors import GraphError, UsageError
from toolkit.graph import dtypes
from toolkit.graph.shape import Shape

Padding = str | Sequence[Sequence[int]]


def _padding(padding: Padding) -> tuple[str, list[int]]:
    """ "SAME", "VALID", or explicit [[before, after], ...] per dimension, as the op's two attributes."""
    if isinstance(padding, str):
        return padding.upper(), []
    return "EXPLICIT", [int(size) for pair in padding for size in pair]


def window(value: int | Sequence[int], data_format: str, rank: int = 2) -> list[int]:
    """A stride, window or dilation as one number per dimension of the data format.

    Raises:
        UsageError: the number of sizes fits neither the window nor the tensor.
    """
    sizes = [value] * rank if isinstance(value, int) else list(value)
    if len(sizes) == rank + 2:
        return sizes
    if len(sizes) == 1:
        sizes *= rank
    if len(sizes) != rank:
        raise UsageError(f"{list(sizes)}: expected one number, {rank}, or {rank + 2}")
    return [1, 1, *sizes] if data_format.startswith("NC") else [1, *sizes, 1]


def conv2d(
    x: TensorLike,
    filters: TensorLike,
    strides: int | Sequence[int] = 1,
    padding: Padding = "SAME",
    data_format: str = "NHWC",
    dilations: int | Sequence[int] = 1,
    name: str | None = None,
) -> Tensor:
    """2-D convolution. `x` is [batch, height, width, in] (NHWC), `filters` [height, width, in, out]."""
    kind, explicit = _padding(padding)
    return ops.conv2d(
        x, filters, strides=window(strides, data_format), padding=kind, explicit_paddings=explicit,
        data_format=data_format, dilations=window(dilations, data_format), name=name,
    )  # fmt: skip


def depthwise_conv2d(
    x: TensorLike,
    filters: TensorLike,
    strides: int | Sequence[int] = 1,
    padding: Padding = "SAME",
    data_format: str = "NHWC",
    dilations: int | Sequence[int] = 1,
    name: str | None = None,
) -> Tensor:
    """Each channel convolved on its own; `filters` is [height, width, in, multiplier]."""
    kind, explicit = _padding(padding)
    with name_scope(name, "depthwise", [x, filters]) as scope:
        return ops.depthwise_conv2d_native(
            convert_to_tensor(x, name="tensor_in"), convert_to_tensor(filters, name="filter_in"),
            strides=window(strides, data_format), padding=kind, explicit_paddings=explicit,
            data_format=data_format, dilations=window(dilations, data_format), name=scope,
        )  # fmt: skip


def conv2d_transpose(
    x: TensorLike,
    filters: TensorLike,
    output_shape: TensorLike,
    strides: int | Sequence[int] = 1,
    padding: Padding = "SAME",
    data_format: str = "NHWC",
    dilations: int | Sequence[int] = 1,
    name: str | None = None,
) -> Tensor:
    """The gradient of conv2d with respect to its input; `filters` is [height, width, out, in]."""
    kind, explicit = _padding(padding)
    with name_scope(name, "conv2d_transpose", [x, filters, output_shape]) as scope:
        return ops.conv2d_backprop_input(
            output_shape, filters, x, strides=window(strides, data_format), padding=kind, explicit_paddings=explicit,
            data_format=data_format, dilations=window(dilations, data_format), name=scope,
        )  # fmt: skip


def _pool(op: str, x: TensorLike, ksize: Any, strides: Any, padding: Padding, data_format: str, name: str | None):
    kind, explicit = _padding(padding)
    extra = {"explicit_paddings": explicit} if explicit else {}
    with name_scope(name, op, [x]) as scope:
        x = convert_to_tensor(x, name="value" if op == "AvgPool" else "input")
        result: Tensor = ops.function(op)(
            x, ksize=window(ksize, data_format), strides=window(strides, data_format), padding=kind,
            data_format=data_format, name=scope, **extra,
        )  # fmt: skip
    return result


def max_pool(
    x: TensorLike,
    ksize: int | Sequence[int],
    strides: int | Sequence[int],
    padding: Padding = "VALID",
    data_format: str = "NHWC",
    name: str | None = None,
) -> Tensor:
    """The largest value of each window."""
    return _pool("MaxPool", x, ksize, strides, padding, data_format, name)


def avg_pool(
    x: TensorLike,
    ksize: int | Sequence[int],
    strides: int | Sequence[int],
    padding: Padding = "VALID",
    data_format: str = "NHWC",
    name: str | None = None,
) -> Tensor:
    """The mean of each window; padding does not count."""
    return _pool("AvgPool", x, ksize, strides, padding, data_format, name)


def bias_add(value: TensorLike, bias: TensorLike, data_format: str = "NHWC", name: str | None = None) -> Tensor:
    """Add a vector over the channels."""
    with name_scope(name, "BiasAdd", [value, bias]) as scope:
        value = convert_to_tensor(value, name="input")
        bias = convert_to_tensor(bias, value.dtype.base, name="bias")
        return ops.bias_add(value, bias, data_format="NCHW" if data_format.startswith("NC") else "NHWC", name=scope)


def relu(x: TensorLike, name: str | None = None) -> Tensor:
    return ops.relu(x, name=name)


def relu6(x: TensorLike, name: str | None = None) -> Tensor:
    return ops.relu6(x, name=name)


def elu(x: TensorLike, name: str | None = None) -> Tensor:
    return ops.elu(x, name=name)


def selu(x: TensorLike, name: str | None = None) -> Tensor:
    return ops.selu(x, name=name)


def softplus(x: TensorLike, name: str | None = None) -> Tensor:
    return ops.softplus(x, name=name)


def softsign(x: TensorLike, name: str | None = None) -> Tensor:
    return ops.softsign(x, name=name)


def leaky_relu(x: TensorLike, alpha: float = 0.2, name: str | None = None) -> Tensor:
    return ops.leaky_relu(x, alpha=alpha, name=name)


def swish(x: TensorLike, name: str | None = None) -> Tensor:
    """x * sigmoid(x)."""
    with name_scope(name, "swish", [x]) as scope:
        x = convert_to_tensor(x)
        return math_ops.multiply(x, ops.sigmoid(x), name=scope)


def softmax(logits: TensorLike, axis: int = -1, name: str | None = None) -> Tensor:
    return _last_axis("Softmax", logits, axis, name)


def log_softmax(logits: TensorLike, axis: int = -1, name: str | None = None) -> Tensor:
    return _last_axis("LogSoftmax", logits, axis, name)


def _last_axis(op: str, logits: TensorLike, axis: int, name: str | None) -> Tensor:
    """Run an op that works on the last axis along another one, by swapping the two around it."""
    logits = convert_to_tensor(logits)
    known = logits.static_shape.rank
    if axis == -1 or (known is not None and axis % known == known - 1):
        return ops.function(op)(logits, name=name)
    if known is None:
        raise GraphError(f"'{logits.name}' has an unknown rank, so only axis -1 can be used, not {axis}")
    order = list(range(known))
    order[axis % known], order[-1] = order[-1], order[axis % known]
    with name_scope(name, op.lower(), [logits]) as scope:
        swapped = ops.function(op)(array_ops.transpose(logits, order))
        return array_ops.transpose(swapped, order, name=scope)


def l2_loss(t: TensorLike, name: str | None = None) -> Tensor:
    """sum(t ** 2) / 2."""
    return ops.l2_loss(t, name=name)


def dropout(
    x: TensorLike,
    rate: float | TensorLike,
    noise_shape: TensorLike = None,
    seed: int | None = None,
    name: str | None = None,
) -> Tensor:
    """Zero each element with probability `rate` and scale the rest by 1 / (1 - rate).

    `rate` may be a tensor, so that one graph trains with it and evaluates with 0.

    Raises:
        UsageError: a rate outside [0, 1).
    """
    with name_scope(name, "dropout", [x]) as scope:
        x = convert_to_tensor(x, name="x")
        if isinstance(rate, int | float):
            if not 0 <= rate < 1:
                raise UsageError(f"a dropout rate is in [0, 1), not {rate}")
            if rate == 0:
                return array_ops.identity(x, name=scope)
            scaled: Tensor = ops.mul(x, constant(1.0 / (1.0 - rate), x.dtype.base))
        else:
            rate = convert_to_tensor(rate, x.dtype.base, name="rate")
            scaled = ops.real_div(x, ops.sub(constant(1.0, x.dtype.base), rate))
        sizes = array_ops.shape(x) if noise_shape is None else convert_to_tensor(noise_shape, dtypes.int32)
        drawn = random_ops.random_uniform(sizes, dtype=x.dtype.base, seed=seed)
        keep = ops.greater_equal(drawn, rate)
        found = array_ops.where_v2(keep, scaled, constant(0.0, x.dtype.base))
        found.set_shape(x.static_shape)
        return found


def softmax_cross_entropy_with_logits(
    _sentinel: Any = None,
    labels: TensorLike = None,
    logits: TensorLike = None,
    dim: int = -1,
    name: str | None = None,
    axis: int | None = None,
) -> Tensor:
    """The loss of each row, as `softmax_cross_entropy_with_logits_v2`, without a gradient by the labels.

    Raises:
        UsageError: labels and logits are not given by name, or dim and axis both.
    """
    _named(_sentinel, labels, logits, "softmax_cross_entropy_with_logits")
    if axis is not None and dim != -1:
        raise UsageError("give axis or dim, not both: they are the same argument")
    with name_scope(name, "softmax_cross_entropy_with_logits_sg", [logits, labels]) as scope:
        labels = array_ops.stop_gradient(labels, name="labels_stop_gradient")
        return softmax_cross_entropy_with_logits_v2(labels, logits, dim if axis is None else axis, scope)


def softmax_cross_entropy_with_logits_v2(
    labels: TensorLike, logits: TensorLike, axis: int | None = None, name: str | None = None, dim: int | None = None
) -> Tensor:
    """The loss of each row; `labels` are distributions of the shape of `logits`, whose classes are along `axis`.

    Raises:
        UsageError: dim and axis are both given.
    """
    if axis is not None and dim is not None:
        raise UsageError("give axis or dim, not both: they are the same argument")
    given = axis if axis is not None else -1 if dim is None else dim
    with name_scope(name, "softmax_cross_entropy_with_logits", [logits, labels]) as scope:
        logits = convert_to_tensor(logits, name="logits")
        labels = convert_to_tensor(labels, name="labels")
        narrow = logits.dtype.base in (dtypes.float16, dtypes.bfloat16)
        precise = math_ops.cast(logits, dtypes.float32) if narrow else logits
        labels = math_ops.cast(labels, precise.dtype.base)
        rank = array_ops.rank(precise)
        if given != -1:
            precise, labels = (_last(x, given, math_ops.subtract(rank, 1)) for x in (precise, labels))
        inner = array_ops.shape(precise)
        rows = _in_rows(precise)
        losses = ops.softmax_cross_entropy_with_logits(rows, _in_rows(labels), name=scope)[0]
        kept = array_ops.slice(inner, [0], [math_ops.subtract(rank, 1)])
        losses = array_ops.reshape(losses, kept)
        if logits.static_shape.rank is not None:
            dims = list(logits.static_shape)
            del dims[given]
            losses.set_shape(dims)
        return math_ops.cast(losses, logits.dtype.base) if narrow else losses


def _in_rows(x: Tensor) -> Tensor:
    """All axes but the last as one."""
    rank = array_ops.rank(x)
    width = array_ops.slice(array_ops.shape(x), [math_ops.subtract(rank, 1)], [1])
    return array_ops.reshape(x, array_ops.concat([[-1], width], 0))


def _last(x: Tensor, axis: int, last: Tensor) -> Tensor:
    """An axis exchanged with the last one."""
    rank = array_ops.rank(x)
    place = axis if axis >= 0 else rank + axis
    order = [math_ops.range(place), [last], math_ops.range(place + 1, last), [place]]
    return array_ops.transpose(x, array_ops.concat(order, 0))


def _named(sentinel: Any, labels: Any, logits: Any, what: str) -> None:
    if sentinel is not None or labels is None or logits is None:
        raise UsageError(f"{what} takes its arguments by name: labels=..., logits=...")


def sparse_softmax_cross_entropy_with_logits(labels: TensorLike, logits: TensorLike, name: str | None = None) -> Tensor:
    """The loss of each row; `labels` are class numbers, of one dimension less than `logits`."""
    with name_scope(name, "SparseSoftmaxCrossEntropyWithLogits", [labels, logits]):
        labels = convert_to_tensor(labels)
        logits = convert_to_tensor(logits)
        label_shape = array_ops.shape(labels)
        if logits.static_shape.rank == 2:
            return ops.sparse_softmax_cross_entropy_with_logits(logits, labels, name=name)[0]
        classes = array_ops.shape(logits)[array_ops.rank(logits) - 1]
        flat = array_ops.reshape(logits, [-1, classes])
        flat_labels = array_ops.reshape(labels, [-1])
        losses: Tensor = ops.sparse_softmax_cross_entropy_with_logits(flat, flat_labels, name=name)[0]
        losses = array_ops.reshape(losses, label_shape)
        losses.set_shape(labels.static_shape)
        return losses


def sigmoid_cross_entropy_with_logits(labels: TensorLike, logits: TensorLike, name: str | None = None) -> Tensor:
    """max(x, 0) - x * z + log(1 + exp(-|x|)): the logistic loss of each element, without overflow."""
    with name_scope(name, "logistic_loss", [logits, labels]) as scope:
        logits = convert_to_tensor(logits, name="logits")
        labels = convert_to_tensor(labels, logits.dtype.base, name="labels")
        zeros = array_ops.zeros_like(logits)
        positive = ops.greater_equal(logits, zeros)
        hinge = ops.select(positive, logits, zeros)
        negative_magnitude = ops.select(positive, -logits, logits)
        return math_ops.add(hinge - logits * labels, ops.log1p(ops.exp(negative_magnitude)), name=scope)


def moments(
    x: TensorLike, axes: Sequence[int], keepdims: bool = False, name: str | None = None
) -> tuple[Tensor, Tensor]:
    """Mean and variance over `axes`."""
    with name_scope(name, "moments", [x]):
        x = convert_to_tensor(x)
        wide = math_ops.cast(x, dtypes.float32) if x.dtype.base is dtypes.float16 else x
        mean = math_ops.reduce_mean(wide, list(axes), keepdims=True, name="mean")
        spread = ops.squared_difference(wide, array_ops.stop_gradient(mean))
        variance = math_ops.reduce_mean(spread, list(axes), keepdims=True, name="variance")
        if not keepdims:
            mean, variance = array_ops.squeeze(mean, list(axes)), array_ops.squeeze(variance, list(axes))
        return math_ops.cast(mean, x.dtype.base), math_ops.cast(variance, x.dtype.base)


def batch_normalization(
    x: TensorLike,
    mean: TensorLike,
    variance: TensorLike,
    offset: TensorLike | None,
    scale: TensorLike | None,
    variance_epsilon: float,
    name: str | None = None,
) -> Tensor:
    """(x - mean) / sqrt(variance + epsilon) * scale + offset, as one multiplication and one addition."""
    with name_scope(name, "batchnorm", [x, mean, variance, scale, offset]):
        inverse = ops.rsqrt(convert_to_tensor(variance) + variance_epsilon)
        if scale is not None:
            inverse = inverse * scale
        x = convert_to_tensor(x)
        scaled = x * math_ops.cast(inverse, x.dtype)
        shift = -convert_to_tensor(mean) * inverse if offset is None else offset - mean * inverse
        return scaled + math_ops.cast(shift, x.dtype)


def fused_batch_norm(
    x: TensorLike,
    scale: TensorLike,
    offset: TensorLike,
    mean: TensorLike | None = None,
    variance: TensorLike | None = None,
    epsilon: float = 0.001,
    data_format: str = "NHWC",
    is_training: bool = True,
    name: str | None = None,
) -> tuple[Tensor, Tensor, Tensor]:
    """Batch normalization over all but the channels; returns the result and the batch's mean and variance.

    In training the statistics come from the batch, else from `mean` and `variance`.
    """
    x = convert_to_tensor(x, name="input")
    empty = constant([], dtypes.float32)
    y, batch_mean, batch_variance, *_ = ops.fused_batch_norm_v3(
        x, scale, offset, empty if mean is None else mean, empty if variance is None else variance,
        epsilon=max(epsilon, 1.001e-5), data_format=data_format, is_training=is_training,
        name="FusedBatchNorm" if name is None else name,
    )  # fmt: skip
    return y, batch_mean, batch_variance


def local_response_normalization(
    x: TensorLike, depth_radius: int = 5, bias: float = 1.0, alpha: float = 1.0, beta: float = 0.5,
    name: str | None = None,
) -> Tensor:  # fmt: skip
    return ops.lrn(x, depth_radius=depth_radius, bias=bias, alpha=alpha, beta=beta, name=name)


def in_top_k(predictions: TensorLike, targets: TensorLike, k: int, name: str | None = None) -> Tensor:
    """Whether the target class is among the k largest predictions of each row."""
    with name_scope(name, "in_top_k", [predictions, targets]):
        return ops.in_top_kv2(predictions, targets, k)


def top_k(x: TensorLike, k: TensorLike = 1, sorted: bool = True, name: str | None = None) -> tuple[Tensor, Tensor]:
    """The k largest values of the last axis and their positions."""
    return ops.top_kv2(x, k, sorted=sorted, name=name)


def embedding_lookup(params: Any, ids: TensorLike, name: str | None = None) -> Tensor:
    """Rows of an embedding: a variable, or a list of equal parts between which the ids are dealt out (mod)."""
    parts: list[Any] = list(params) if isinstance(params, list | tuple) else [params]  # type: ignore[arg-type]
    with name_scope(name, "embedding_lookup", [*parts, ids]) as scope:
        ids = convert_to_tensor(ids, name="ids")
        if len(parts) == 1:
            return array_ops.identity(array_ops.gather(parts[0], ids), name=scope)
        flat = array_ops.reshape(ids, [-1])
        count = constant(len(parts), flat.dtype.base)
        places = ops.dynamic_partition(
            math_ops.range(array_ops.size(flat)), math_ops.cast(flat % count, dtypes.int32), num_partitions=len(parts)
        )
        rows = ops.dynamic_partition(
            flat // count, math_ops.cast(flat % count, dtypes.int32), num_partitions=len(parts)
        )
        found = [array_ops.gather(part, row) for part, row in zip(parts, rows, strict=True)]
        stitched = ops.parallel_dynamic_stitch(places, found)
        width = found[0].static_shape.slice(1)
        if not width.is_fully_defined:
            raise GraphError(f"the rows of '{parts[0].name}' have an unknown shape {width}")
        sizes = array_ops.concat([array_ops.shape(ids), constant(width.as_list(), dtypes.int32)], 0)
        return array_ops.reshape(stitched, sizes, name=scope)


def zero_fraction(x: TensorLike, name: str | None = None) -> Tensor:
    """The share of zeros."""
    with name_scope(name, "zero_fraction", [x]) as scope:
        x = convert_to_tensor(x)
        return math_ops.reduce_mean(math_ops.cast(ops.equal(x, constant(0, x.dtype.base)), dtypes.float32), name=scope)


def channels(x: Tensor, data_format: str = "NHWC") -> int:
    """The number of channels.

    Raises:
        GraphError: it is not known.
    """
    shape: Shape = x.static_shape
    count = None if shape.rank is None else shape[1 if data_format.startswith("NC") else -1]
    if count is None:
        raise GraphError(f"the number of channels of '{x.name}' is not known: its shape is {shape}")
    return count
