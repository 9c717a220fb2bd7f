"""Normalization over batches, layers, instances and groups of channels."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from toolkit.client import ops
from toolkit.client.argument_scopes import add_arg_scope
from toolkit.client.arrays import array_ops
from toolkit.client.construction.context import get_default_graph
from toolkit.client.construction.convert import constant, convert_to_tensor
from toolkit.client.construction.scopes import control_dependencies
from toolkit.client.construction.tensor import Tensor
from toolkit.client.layers.normalization import BatchNormalization
from toolkit.client.math import statistics
from toolkit.client.nn import nn_ops
from toolkit.client.scoped_layers import common
from toolkit.client.scoped_layers.common import ONES, ZEROS
from toolkit.client.train.averages import assign_moving_average
from toolkit.client.variables.model_variables import model_variable
from toolkit.client.variables.store import get_variable_scope, variable_scope
from toolkit.graph import dtypes

_FLAT = ("NCHW", "NHWC")
_UPDATES = "update_ops"


class _Parameters:
    """Makes the variables of one normalization: beta, gamma, and the kept mean and variance."""

    def __init__(
        self, shape: list[int], dtype: Any, initializers: Any, regularizers: Any, collections: Any, trainable: Any
    ):
        self.shape, self.dtype, self.trainable = shape, dtype, trainable
        self._initializers: dict[str, Any] = initializers or {}
        self._regularizers: dict[str, Any] = regularizers or {}
        self._collections = collections

    def make(self, name: str, default: Any, trainable: bool) -> Any:
        return model_variable(
            name, self.shape, self.dtype, self._initializers.get(name, default), self._regularizers.get(name),
            trainable, common.collections_of(self._collections, name),
        )  # fmt: skip

    def beta(self) -> Any:
        return self.make("beta", ZEROS, self.trainable)

    def gamma(self) -> Any:
        return self.make("gamma", ONES, self.trainable)

    def kept(self) -> tuple[Any, Any]:
        with variable_scope(get_variable_scope()) as local:
            local.set_partitioner(None)
            return self.make("moving_mean", ZEROS, False), self.make("moving_variance", ONES, False)


@add_arg_scope
def batch_norm(
    inputs: Any, decay: Any = 0.999, center: bool = True, scale: bool = False, epsilon: float = 0.001,
    activation_fn: Any = None, param_initializers: Any = None, param_regularizers: Any = None,
    updates_collections: Any = _UPDATES, is_training: Any = True, reuse: Any = None, variables_collections: Any = None,
    outputs_collections: Any = None, trainable: bool = True, batch_weights: Any = None, fused: Any = None,
    data_format: Any = "NHWC", zero_debias_moving_mean: bool = False, scope: Any = None, renorm: bool = False,
    renorm_clipping: Any = None, renorm_decay: Any = 0.99, adjustment: Any = None,
) -> Tensor:  # fmt: skip
    """Batch normalization (Ioffe and Szegedy, arXiv 1502.03167).

    Args:
        updates_collections: where the operations go that move the kept statistics; None: they run with the layer.
        is_training: whether to use the batch's statistics: a bool or a tensor.
        batch_weights: [batch], of the examples.
        fused: by one op; default: where there is one.
        zero_debias_moving_mean: correct the kept mean for having started at zero.

    Raises:
        ValueError: the layout is none, the number of channels is not known, or renorm together with other options.
    """
    fused = True if fused is None else fused
    inputs = convert_to_tensor(inputs)
    rank = inputs.static_shape.rank
    is_plain = batch_weights is None and not renorm and adjustment is None
    delays = updates_collections == _UPDATES
    first = common.channels_first(data_format, _FLAT)
    collections = (updates_collections, variables_collections, outputs_collections)
    if fused and is_plain and rank in (2, 4) and (zero_debias_moving_mean or rank == 2 or not delays):
        return _fused(
            inputs, decay, center, scale, epsilon, activation_fn, param_initializers, param_regularizers, is_training,
            reuse, collections, trainable, data_format, zero_debias_moving_mean, scope,
        )  # fmt: skip
    with variable_scope(scope, "BatchNorm", [inputs], reuse=reuse, custom_getter=common.variable_getter()) as opened:
        if batch_weights is None and delays and not zero_debias_moving_mean:
            outputs = _by_layer(
                inputs, 1 if first else -1, decay, center, scale, epsilon, param_initializers or {},
                param_regularizers or {}, is_training, reuse, variables_collections, trainable, fused, opened,
                (renorm, renorm_clipping, renorm_decay, adjustment),
            )  # fmt: skip
        elif renorm:
            raise ValueError("renorm goes with neither batch_weights, updates_collections nor zero_debias_moving_mean")
        else:
            outputs = _by_parts(
                inputs, decay, center, scale, epsilon, param_initializers, is_training, collections, trainable,
                batch_weights, first, zero_debias_moving_mean,
            )  # fmt: skip
        if activation_fn is not None:
            outputs = activation_fn(outputs)
        return common.collected(outputs_collections, opened.name, outputs)


def _by_layer(
    inputs: Tensor, axis: int, decay: Any, center: bool, scale: bool, epsilon: float, initializers: Any,
    regularizers: Any, is_training: Any, reuse: Any, collections: Any, trainable: bool, fused: Any, opened: Any,
    renorm: tuple[Any, ...],
) -> Any:  # fmt: skip
    layer = BatchNormalization(
        axis, decay, epsilon, center, scale, initializers.get("beta", ZEROS), initializers.get("gamma", ONES),
        initializers.get("moving_mean", ZEROS), initializers.get("moving_variance", ONES), regularizers.get("beta"),
        regularizers.get("gamma"), renorm=renorm[0], renorm_clipping=renorm[1], renorm_momentum=renorm[2],
        adjustment=renorm[3], fused=fused, trainable=trainable, name=opened.name, _scope=opened, _reuse=reuse,
    )  # fmt: skip
    outputs = layer.apply(inputs, training=common.training_flag(is_training))
    for name in ("moving_mean", "moving_variance", "beta", "gamma"):
        if getattr(layer, name) is not None:
            common.add_to_collections(getattr(layer, name), collections, name)
    return outputs


def _updates(kept: tuple[Any, Any], statistics: tuple[Any, Any], decay: Any, debias: bool) -> list[Any]:
    """Operations that move the kept mean and variance towards the batch's."""
    return [
        assign_moving_average(kept[0], statistics[0], decay, debias),
        assign_moving_average(kept[1], statistics[1], decay),
    ]


def _delayed(
    is_training: Any, updates_collections: Any, updates: Callable[[], list[Any]], kept: tuple[Any, Any]
) -> None:
    """Put the updates into their collections; outside of training they are the kept values."""
    graph = get_default_graph()
    for each in common.smart_cond(is_training, updates, lambda: list(kept)):
        graph.add_to_collections(updates_collections, each)


def _may_learn(is_training: Any) -> bool:
    known = common.constant_value(is_training)
    return known is None or bool(known)


def _fused(
    inputs: Tensor, decay: Any, center: bool, scale: bool, epsilon: float, activation_fn: Any, initializers: Any,
    regularizers: Any, is_training: Any, reuse: Any, collections: tuple[Any, Any, Any], trainable: bool,
    data_format: str, debias: bool, scope: Any,
) -> Tensor:  # fmt: skip
    """By one op; two dimensions become four."""
    updates_collections, variables_collections, outputs_collections = collections
    with variable_scope(scope, "BatchNorm", [inputs], reuse=reuse) as opened:
        given, first = inputs, data_format == "NCHW"
        if inputs.static_shape.rank == 2:
            channels = common.known_size(inputs, -1)
            inputs = array_ops.reshape(inputs, [-1, channels, 1, 1] if first else [-1, 1, 1, channels])
        shape = [common.known_size(inputs, 1 if first else -1)]
        made = _Parameters(shape, dtypes.float32, initializers, regularizers, variables_collections, trainable)
        beta = made.beta() if center else constant(0.0, dtypes.float32, shape)
        gamma = made.gamma() if scale else constant(1.0, dtypes.float32, shape)
        kept = made.kept()

        def normalized(*statistics: Any) -> Any:
            empty = statistics or [constant([], dtypes.float32) for _ in range(2)]
            y, mean, variance, *_ = ops.fused_batch_norm_v3(
                inputs, gamma, beta, *empty, epsilon=max(epsilon, 1.001e-5), data_format=data_format,
                is_training=not statistics,
            )  # fmt: skip
            return [y, mean, variance]

        outputs, mean, variance = common.smart_cond(is_training, normalized, lambda: normalized(*kept))

        def updates() -> list[Any]:
            return _updates(kept, (mean, variance), decay, debias)

        if _may_learn(is_training):
            if updates_collections is None:
                now = outputs

                def forced() -> Tensor:
                    with control_dependencies(updates()):
                        return array_ops.identity(now)

                outputs = common.smart_cond(is_training, forced, lambda: now)
            else:
                _delayed(is_training, updates_collections, updates, kept)
        outputs.set_shape(inputs.static_shape)
        if given.static_shape.rank == 2:
            outputs = array_ops.reshape(outputs, array_ops.shape(given))
        if activation_fn is not None:
            outputs = activation_fn(outputs)
        return common.collected(outputs_collections, opened.name, outputs)


def _by_parts(
    inputs: Tensor, decay: Any, center: bool, scale: bool, epsilon: float, initializers: Any, is_training: Any,
    collections: tuple[Any, Any, Any], trainable: bool, batch_weights: Any, first: bool, debias: bool,
) -> Any:  # fmt: skip
    """By moments, with weights of examples, updates at once, or unbiased averages."""
    rank = inputs.static_shape.rank
    if rank is None:
        raise ValueError(f"the rank of '{inputs.name}' is not known; set its shape")
    shape = [common.known_size(inputs, 1 if first else -1)]
    weights = None
    if batch_weights is not None:
        weights = array_ops.reshape(convert_to_tensor(batch_weights), [-1] + [1] * (rank - 1))
    axes = [0, *range(2, rank)] if first else list(range(rank - 1))
    made = _Parameters(shape, inputs.dtype.base, initializers, None, collections[1], trainable)
    beta = made.beta() if center else None
    gamma = made.gamma() if scale else None
    kept = made.kept()
    mean, variance = kept
    if _may_learn(is_training):
        if weights is None:
            batch = nn_ops.moments(inputs, axes, keepdims=first)
        else:
            batch = statistics.weighted_moments(inputs, axes, weights, keepdims=first)
        if first:
            batch = array_ops.reshape(batch[0], [-1]), array_ops.reshape(batch[1], [-1])
        mean, variance = _chosen(is_training, batch, kept, collections[0], decay, debias)
    if first:
        wide = [1, *shape] + [1] * (rank - 2)
        mean, variance = array_ops.reshape(mean, wide), array_ops.reshape(variance, wide)
        beta = None if beta is None else array_ops.reshape(beta, wide)
        gamma = None if gamma is None else array_ops.reshape(gamma, wide)
    outputs = nn_ops.batch_normalization(inputs, mean, variance, beta, gamma, epsilon)
    outputs.set_shape(inputs.static_shape)
    return outputs


def _chosen(
    is_training: Any,
    batch: tuple[Tensor, Tensor],
    kept: tuple[Any, Any],
    updates_collections: Any,
    decay: Any,
    debias: bool,
) -> tuple[Any, Any]:
    """The statistics to normalize by, with the updates of the kept ones arranged for."""

    def updates() -> list[Any]:
        return _updates(kept, batch, decay, debias)

    if updates_collections is not None:
        _delayed(is_training, updates_collections, updates, kept)
        return common.smart_cond(is_training, lambda: batch, lambda: kept)

    def forced() -> tuple[Tensor, Tensor]:
        with control_dependencies(updates()):
            return array_ops.identity(batch[0]), array_ops.identity(batch[1])

    return common.smart_cond(is_training, forced, lambda: kept)


@add_arg_scope
def layer_norm(
    inputs: Any, center: bool = True, scale: bool = True, activation_fn: Any = None, reuse: Any = None,
    variables_collections: Any = None, outputs_collections: Any = None, trainable: bool = True,
    begin_norm_axis: int = 1, begin_params_axis: int = -1, scope: Any = None,
) -> Tensor:  # fmt: skip
    """Normalization of each example (Ba, Kiros and Hinton, arXiv 1607.06450).

    Args:
        begin_norm_axis: mean and variance are over this axis and all after it.
        begin_params_axis: beta and gamma have this axis and all after it.

    Raises:
        ValueError: there is no such axis, or a size is not known.
    """
    with variable_scope(scope, "LayerNorm", [inputs], reuse=reuse) as opened:
        inputs = convert_to_tensor(inputs)
        shape = inputs.static_shape
        rank = shape.rank
        if rank is None:
            raise ValueError(f"the rank of '{inputs.name}' is not known; set its shape")
        first = begin_norm_axis + rank if begin_norm_axis < 0 else begin_norm_axis
        for axis, what in ((first, "begin_norm_axis"), (begin_params_axis, "begin_params_axis")):
            if axis >= rank:
                raise ValueError(f"{what}: there is no axis {axis}, the inputs have {rank} dimensions")
        sizes = common.known_sizes(
            inputs, shape.slice(begin_params_axis), f"the sizes from axis {begin_params_axis} on"
        )
        made = _Parameters(sizes, inputs.dtype.base, None, None, variables_collections, trainable)
        beta = made.beta() if center else None
        gamma = made.gamma() if scale else None
        mean, variance = nn_ops.moments(inputs, list(range(first, rank)), keepdims=True)
        # half precision has no numbers as small as the other epsilon
        epsilon = 1e-3 if inputs.dtype.base is dtypes.float16 else 1e-12
        outputs: Any = nn_ops.batch_normalization(inputs, mean, variance, beta, gamma, epsilon)
        outputs.set_shape(shape)
        if activation_fn is not None:
            outputs = activation_fn(outputs)
        return common.collected(outputs_collections, opened.name, outputs)


@add_arg_scope
def instance_norm(
    inputs: Any, center: bool = True, scale: bool = True, epsilon: float = 1e-6, activation_fn: Any = None,
    param_initializers: Any = None, reuse: Any = None, variables_collections: Any = None,
    outputs_collections: Any = None, trainable: bool = True, data_format: Any = "NHWC", scope: Any = None,
) -> Tensor:  # fmt: skip
    """Normalization of each channel of each example (Ulyanov and others, arXiv 1607.08022).

    Raises:
        ValueError: the layout is none, or the number of channels is not known.
    """
    inputs = convert_to_tensor(inputs)
    first = common.channels_first(data_format, _FLAT)
    rank = inputs.static_shape.rank
    if rank is None:
        raise ValueError(f"the rank of '{inputs.name}' is not known; set its shape")
    with variable_scope(scope, "InstanceNorm", [inputs], reuse=reuse) as opened:
        channels = common.known_size(inputs, 1 if first else -1)
        made = _Parameters(
            [channels], inputs.dtype.base, param_initializers, None, variables_collections, trainable
        )  # fmt: skip

        def wide(value: Any) -> Any:
            return array_ops.reshape(value, [1, channels] + [1] * (rank - 2)) if first else value

        beta = wide(made.beta()) if center else None
        gamma = wide(made.gamma()) if scale else None
        axes = list(range(2, rank)) if first else list(range(1, rank - 1))
        mean, variance = nn_ops.moments(inputs, axes, keepdims=True)
        outputs: Any = nn_ops.batch_normalization(inputs, mean, variance, beta, gamma, epsilon, name="instancenorm")
        if activation_fn is not None:
            outputs = activation_fn(outputs)
        return common.collected(outputs_collections, opened.name, outputs)


@add_arg_scope
def group_norm(
    inputs: Any, groups: int = 32, channels_axis: int = -1, reduction_axes: Any = (-3, -2), center: bool = True,
    scale: bool = True, epsilon: float = 1e-6, activation_fn: Any = None, param_initializers: Any = None,
    reuse: Any = None, variables_collections: Any = None, outputs_collections: Any = None, trainable: bool = True,
    scope: Any = None, mean_close_to_zero: bool = False,
) -> Tensor:  # fmt: skip
    """Normalization of groups of channels of each example (Wu and He, arXiv 1803.08494).

    Args:
        reduction_axes: the axes that mean and variance are over, besides a group's channels.
        mean_close_to_zero: compute the variance by the sum of squares.

    Raises:
        ValueError: an axis is none, or not known, or the channels make no such groups.
    """
    inputs = convert_to_tensor(inputs)
    shape = inputs.static_shape
    rank = shape.rank
    if rank is None:
        raise ValueError(f"the rank of '{inputs.name}' is not known; set its shape")
    if not -rank <= channels_axis < rank:
        raise ValueError(f"channels_axis: there is no axis {channels_axis}, the inputs have {rank} dimensions")
    dynamic = array_ops.shape(inputs)
    sizes: list[Any] = [dynamic[axis] if size is None else size for axis, size in enumerate(shape)]
    channel_axis = channels_axis % rank
    channels = common.known_size(inputs, channel_axis)
    axes: list[int] = []
    for axis in reduction_axes:
        if not -rank <= axis < rank or axis % rank == channel_axis:
            raise ValueError(f"reduction_axes: {axis} is no axis besides that of the channels, {channels_axis}")
        common.known_size(inputs, axis % rank)
        axes.append(axis % rank)
    if groups > channels or channels % groups:
        raise ValueError(f"groups: {channels} channels make no {groups} groups of one size")
    before, after = sizes[:channel_axis], sizes[channel_axis + 1 :]
    split = [groups, channels // groups]
    wide = [1] * len(before) + split + [1] * len(after)
    x = array_ops.reshape(inputs, [*before, *split, *after])
    over = [channel_axis + 1, *(axis + 1 if axis > channel_axis else axis for axis in axes)]
    with variable_scope(scope, "GroupNorm", [x], reuse=reuse) as opened:
        made = _Parameters([channels], x.dtype.base, param_initializers, None, variables_collections, trainable)
        beta = array_ops.reshape(made.beta(), wide) if center else None
        gamma = array_ops.reshape(made.gamma(), wide) if scale else None
        if mean_close_to_zero:
            count, sums, squares, _ = statistics.sufficient_statistics(x, over, keepdims=True)
            mean, variance = statistics.normalize_moments(count, sums, squares)
        else:
            mean, variance = nn_ops.moments(x, over, keepdims=True)
        gain = ops.rsqrt(variance + epsilon)
        offset = -mean * gain
        if gamma is not None:
            gain, offset = gain * gamma, offset * gamma
        if beta is not None:
            offset = offset + beta
        outputs: Any = array_ops.reshape(x * gain + offset, sizes)
        if activation_fn is not None:
            outputs = activation_fn(outputs)
        return common.collected(outputs_collections, opened.name, outputs)
