"""Normalizing flows: couplings, autoregressive functions, batch normalization, and networks for them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from toolkit.client.arrays import array_ops
from toolkit.client.bijectors.base import Bijector
from toolkit.client.construction.convert import constant
from toolkit.client.construction.scopes import name_scope
from toolkit.client.construction.tensor import Tensor
from toolkit.client.flow.control_flow import while_loop
from toolkit.client.layers.core import Dense
from toolkit.client.layers.normalization import BatchNormalization as NormalizationLayer
from toolkit.client.math import clip_ops, math_ops
from toolkit.client.nn import nn_ops
from toolkit.client.variables import initializers
from toolkit.client.variables.templates import make_template
from toolkit.errors import ArgumentValueError

#: x -> what is added, and the logarithms of what is multiplied with; either may be None
ShiftAndLogScale = Callable[..., tuple[Any, Any]]


def _last_size(x: Tensor) -> int:
    """The size of the last dimension.

    Raises:
        NotImplementedError: it is not known.
    """
    size = x.static_shape[-1] if x.static_shape.rank else None
    if size is None:
        raise NotImplementedError(f"'{x.name}': the size of the last dimension has to be known, it is {x.static_shape}")
    return size


def _moved(x: Tensor, shift: Any, log_scale: Any) -> Any:
    y: Any = x if log_scale is None else x * math_ops.exp(log_scale)
    return y if shift is None else y + shift


def _moved_back(y: Any, shift: Any, log_scale: Any) -> Any:
    x = y if shift is None else y - shift
    return x if log_scale is None else x * math_ops.exp(-log_scale)


class RealNVP(Bijector):
    """The first numbers of a vector stay; what the others are multiplied with and moved by follows from them
    (Dinh et al., arXiv 1605.08803).

    Args:
        num_masked: how many stay.
        shift_and_log_scale_fn: (those that stay, how many others) -> (shift, log_scale).

    Raises:
        ValueError: `num_masked` is not positive, or not below the size of vectors.
    """

    def __init__(
        self, num_masked: int, shift_and_log_scale_fn: ShiftAndLogScale, is_constant_jacobian: bool = False,
        validate_args: bool = False, name: str | None = None,
    ):  # fmt: skip
        if num_masked <= 0:
            raise ArgumentValueError(f"num_masked: expected a positive number, got {num_masked}")
        self._kept = num_masked
        self._function = shift_and_log_scale_fn
        super().__init__(None, is_constant_jacobian, validate_args, None, 1, name=name or "real_nvp")

    def _others(self, x: Tensor) -> int:
        size = _last_size(x)
        if self._kept >= size:
            raise ArgumentValueError(f"num_masked: expected less than the {size} numbers of a vector, got {self._kept}")
        return size - self._kept

    def _forward(self, x: Tensor) -> Any:
        count, kept = self._others(x), x[:, : self._kept]
        return array_ops.concat([kept, _moved(x[:, self._kept :], *self._function(kept, count))], -1)

    def _inverse(self, y: Tensor) -> Any:
        count, kept = self._others(y), y[:, : self._kept]
        return array_ops.concat([kept, _moved_back(y[:, self._kept :], *self._function(kept, count))], -1)

    def _sum_of_logs(self, value: Tensor) -> Any:
        _, log_scale = self._function(value[:, : self._kept], self._others(value))
        return constant(0.0, value.dtype.base) if log_scale is None else math_ops.reduce_sum(log_scale, -1)

    def _inverse_log_det_jacobian(self, y: Tensor) -> Any:
        return -self._sum_of_logs(y)

    def _forward_log_det_jacobian(self, x: Tensor) -> Any:
        return self._sum_of_logs(x)


def real_nvp_default_template(
    hidden_layers: Sequence[int], shift_only: bool = False, activation: Any = nn_ops.relu, name: str | None = None,
    *args: Any, **kwargs: Any,
) -> ShiftAndLogScale:  # fmt: skip
    """A network of dense layers for RealNVP; further arguments go to each layer.

    Args:
        hidden_layers: how many units each has.
        shift_only: numbers are moved, not multiplied.
    """
    with name_scope(name, "real_nvp_default_template"):

        def network(x: Tensor, output_units: int) -> tuple[Any, Any]:
            for units in hidden_layers:
                x = Dense(units, activation, *args, **kwargs)(x)
            x = Dense((1 if shift_only else 2) * output_units, None, *args, **kwargs)(x)
            if shift_only:
                return x, None
            shift, log_scale = array_ops.split(x, 2, -1)
            return shift, log_scale

        return make_template("real_nvp_default_template", network)


class MaskedAutoregressiveFlow(Bijector):
    """Each number of a vector is moved and multiplied by what follows from those before it (Papamakarios et al.,
    arXiv 1705.07057): the inverse is one call, the forward direction one for each number.

    Args:
        shift_and_log_scale_fn: y -> (shift, log_scale), each of whose numbers depends on those before it only.
        unroll_loop: the calls stand in the graph one by one, instead of in a loop.
    """

    def __init__(
        self, shift_and_log_scale_fn: ShiftAndLogScale, is_constant_jacobian: bool = False,
        validate_args: bool = False, unroll_loop: bool = False, name: str | None = None,
    ):  # fmt: skip
        self._function = shift_and_log_scale_fn
        self._unroll = unroll_loop
        super().__init__(None, is_constant_jacobian, validate_args, None, 1, name=name or "masked_autoregressive_flow")

    def _forward(self, x: Tensor) -> Any:
        y: Any = array_ops.zeros_like(x, name="y0")
        if self._unroll:
            for _ in range(_last_size(x)):
                y = _moved(x, *self._function(y))
            return y
        self._function(y)  # makes its variables outside of the loop
        known = x.static_shape[-1] if x.static_shape.rank else None
        size = array_ops.shape(x)[-1]
        return while_loop(
            lambda i, _: i < size, lambda i, before: (i + 1, _moved(x, *self._function(before))), (0, y),
            maximum_iterations=known,
        )[1]  # fmt: skip

    def _inverse(self, y: Tensor) -> Any:
        return _moved_back(y, *self._function(y))

    def _inverse_log_det_jacobian(self, y: Tensor) -> Any:
        _, log_scale = self._function(y)
        return constant(0.0, y.dtype.base) if log_scale is None else -math_ops.reduce_sum(log_scale, -1)


def _mask(blocks: int, inputs: int, units: int, exclusive: bool) -> Any:
    """[inputs, units]: ones where a block of units may depend on a block of inputs: those before, and its own."""
    mask = np.zeros([units, inputs])
    wide, high = inputs // blocks, units // blocks
    for block in range(blocks):
        mask[(block + exclusive) * high :, block * wide : (block + 1) * wide] = 1
    return mask.T


def masked_dense(
    inputs: Tensor, units: int, num_blocks: Any = None, exclusive: bool = False, kernel_initializer: Any = None,
    reuse: Any = None, name: str | None = None, *args: Any, **kwargs: Any,
) -> Any:  # fmt: skip
    """A dense layer whose units depend on the inputs of their block and those before it only (Germain et al., arXiv
    1502.03509).

    Args:
        num_blocks: into how many inputs and units are divided.
        exclusive: not on those of their own block.

    Raises:
        NotImplementedError: the size of the input is not known.
    """
    kind = inputs.dtype.base
    mask = _mask(num_blocks, _last_size(inputs), units, exclusive).astype(kind.numpy)
    start = kernel_initializer or initializers.glorot_normal()

    def masked(shape: Any, dtype: Any = None, partition_info: Any = None) -> Any:
        return mask * start(shape, dtype)

    with name_scope(name, "masked_dense", [inputs, units, num_blocks]):
        layer = Dense(
            units, *args, kernel_initializer=masked, kernel_constraint=lambda kernel: mask * kernel, name=name,
            dtype=kind, _scope=name, _reuse=reuse, **kwargs,
        )  # fmt: skip
        return layer(inputs)


def masked_autoregressive_default_template(
    hidden_layers: Sequence[int], shift_only: bool = False, activation: Any = nn_ops.relu,
    log_scale_min_clip: float = -5.0, log_scale_max_clip: float = 3.0, log_scale_clip_gradient: bool = False,
    name: str | None = None, *args: Any, **kwargs: Any,
) -> ShiftAndLogScale:  # fmt: skip
    """A network of masked layers for MaskedAutoregressiveFlow; further arguments go to each layer.

    Args:
        log_scale_clip_gradient: gradients end where the logarithms are cut off, too.
    """
    name = name or "masked_autoregressive_default_template"
    with name_scope(name, None, [log_scale_min_clip, log_scale_max_clip]):

        def network(x: Tensor) -> tuple[Any, Any]:
            size = _last_size(x)
            shape: Any = x.static_shape.as_list() if x.static_shape.is_fully_defined else array_ops.shape(x)
            for i, units in enumerate(hidden_layers):
                x = masked_dense(x, units, size, i == 0, None, None, None, *args, activation=activation, **kwargs)
            total = (1 if shift_only else 2) * size
            x = masked_dense(x, total, size, False, None, None, None, *args, activation=None, **kwargs)
            if shift_only:
                return array_ops.reshape(x, shape), None
            shift, log_scale = array_ops.unstack(array_ops.reshape(x, array_ops.concat([shape, [2]], 0)), 2, -1)
            clipped: Any = clip_ops.clip_by_value(log_scale, log_scale_min_clip, log_scale_max_clip)
            if not log_scale_clip_gradient:
                clipped = log_scale + array_ops.stop_gradient(clipped - log_scale)
            return shift, clipped

        return make_template(name, network)


class BatchNormalizationBijector(Bijector):
    """The inverse normalizes a batch, as the layer does (Dinh et al., arXiv 1605.08803); forward undoes it with the
    moving averages.

    Args:
        batchnorm_layer: a BatchNormalization layer; by default one whose gamma stays positive.
        training: whether the batch's own mean and variance are taken.

    Raises:
        ValueError: the layer is of another kind.
    """

    def __init__(
        self, batchnorm_layer: Any = None, training: bool = True, validate_args: bool = False,
        name: str = "batch_normalization",
    ):  # fmt: skip
        layer = batchnorm_layer or NormalizationLayer(gamma_constraint=lambda gamma: nn_ops.relu(gamma) + 1e-6)
        if not isinstance(layer, NormalizationLayer):
            raise ArgumentValueError(f"batchnorm_layer: expected a BatchNormalization layer, got {batchnorm_layer!r}")
        self.batchnorm: Any = layer
        self._training = training
        count = 1 if isinstance(layer.axis, int) else len(layer.axis)
        super().__init__(None, False, validate_args, None, count, name=name)

    def _ready(self, value: Tensor) -> list[int]:
        """The axes that are normalized over; makes the layer's variables.

        Raises:
            ValueError: the shape is not known.
        """
        shape = value.static_shape
        if not shape.is_fully_defined:
            raise ArgumentValueError(f"{self._name}: the shape has to be known, '{value.name}' has {shape}")
        if not self.batchnorm.built:
            self.batchnorm.build(shape)
            self.batchnorm.built = True
        given = self.batchnorm.axis
        rank = len(shape.as_list())
        kept = [axis % rank for axis in ([given] if isinstance(given, int) else given)]
        return [axis for axis in range(rank) if axis not in kept]

    def _inverse(self, y: Tensor) -> Any:
        return self.batchnorm.apply(y, training=self._training)

    def _forward(self, x: Tensor) -> Any:
        axes, layer = self._ready(x), self.batchnorm
        sizes = [1 if axis in axes else size for axis, size in enumerate(x.static_shape.as_list())]

        def spread(v: Any) -> Any:
            return array_ops.reshape(v, sizes) if axes != list(range(len(sizes) - 1)) else v

        rescale: Any = math_ops.sqrt(spread(layer.moving_variance) + layer.epsilon)
        if layer.scale:
            rescale = rescale / spread(layer.gamma)
        mean = spread(layer.moving_mean)
        return x * rescale + (mean - spread(layer.beta) * rescale if layer.center else mean)

    def _forward_log_det_jacobian(self, x: Tensor) -> Any:
        return -self._log_determinant(x, False)

    def _inverse_log_det_jacobian(self, y: Tensor) -> Any:
        return self._log_determinant(y, self._training)

    def _log_determinant(self, value: Tensor, of_batch: bool) -> Any:
        axes, layer = self._ready(value), self.batchnorm
        variance: Any = nn_ops.moments(value, axes, keepdims=True)[1] if of_batch else layer.moving_variance
        logs = math_ops.reduce_sum(math_ops.log(variance + layer.epsilon))
        return math_ops.reduce_sum(math_ops.log(layer.gamma)) - 0.5 * logs
