"""Batch normalization."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, cast

from toolkit.client import ops
from toolkit.client.arrays import array_ops
from toolkit.client.construction.convert import as_shape, constant, convert_to_tensor
from toolkit.client.construction.scopes import colocate_with, name_scope
from toolkit.client.construction.tensor import Tensor
from toolkit.client.flow import control_flow
from toolkit.client.layers.base import InputSpec, Layer
from toolkit.client.math import math_ops
from toolkit.client.nn import nn_ops
from toolkit.client.variables import initializers
from toolkit.graph import dtypes

_ZEROS = initializers.Zeros()
_ONES = initializers.Ones()


class BatchNormalization(Layer):
    """Batch normalization over all axes but one (Ioffe and Szegedy, arXiv 1502.03167).

    In training the batch's statistics are used, and operations that move the kept ones towards them are added to the
    layer's updates and to UPDATE_OPS: let the training operation depend on these.

    Raises:
        ValueError: the size of the axis is not known.
        NotImplementedError: renorm, virtual batches, adjustments.
    """

    def __init__(
        self, axis: Any = -1, momentum: float = 0.99, epsilon: float = 0.001, center: bool = True, scale: bool = True,
        beta_initializer: Any = _ZEROS, gamma_initializer: Any = _ONES, moving_mean_initializer: Any = _ZEROS,
        moving_variance_initializer: Any = _ONES, beta_regularizer: Any = None, gamma_regularizer: Any = None,
        beta_constraint: Any = None, gamma_constraint: Any = None, renorm: bool = False, renorm_clipping: Any = None,
        renorm_momentum: float = 0.99, fused: bool | None = None, trainable: bool = True,
        virtual_batch_size: int | None = None, adjustment: Any = None, name: str | None = None, **kwargs: Any,
    ):  # fmt: skip
        super().__init__(trainable, name, **kwargs)
        if renorm or virtual_batch_size is not None or adjustment is not None:
            raise NotImplementedError("batch normalization with renorm, virtual_batch_size or adjustment")
        given: list[Any] = list(cast("Any", axis)) if isinstance(axis, list | tuple) else [axis]
        if len(given) != 1 or not isinstance(given[0], int):
            raise NotImplementedError(f"batch normalization over one axis only, not over {axis!r}")
        self.axis: int = given[0]
        self.momentum, self.epsilon, self.center, self.scale = momentum, epsilon, center, scale
        self.beta_initializer, self.gamma_initializer = beta_initializer, gamma_initializer
        self.moving_mean_initializer = moving_mean_initializer
        self.moving_variance_initializer = moving_variance_initializer
        self.beta_regularizer, self.gamma_regularizer = beta_regularizer, gamma_regularizer
        self.beta_constraint, self.gamma_constraint = beta_constraint, gamma_constraint
        self.fused = fused
        self.gamma: Any = None
        self.beta: Any = None
        self.moving_mean: Any = None
        self.moving_variance: Any = None
        self._channels = 0
        self._scale: Any = None
        self._offset: Any = None

    def build(self, input_shape: Any) -> None:
        shape = as_shape(input_shape)
        if shape.rank is None:
            raise ValueError(f"the rank of the inputs is not known: {shape}")
        if not -shape.rank <= self.axis < shape.rank:
            raise ValueError(f"axis: {self.axis} is none of the {shape.rank} axes of the inputs")
        self.axis %= shape.rank
        if self.fused is None:
            self.fused = shape.rank == 4 and self.axis in (1, 3)
        elif self.fused and (shape.rank != 4 or self.axis not in (1, 3)):
            raise ValueError(f"fused batch normalization takes 4 dimensions, and axis 1 or 3; got {shape}, {self.axis}")
        size = shape[self.axis]
        if size is None:
            raise ValueError(f"the size of the inputs along the normalized axis is not known: {shape}")
        self._channels = size
        self.input_spec = InputSpec(ndim=shape.rank, axes={self.axis: size})
        kept = dtypes.float32 if self._dtype in (dtypes.float16, dtypes.bfloat16) else self._dtype
        if self.scale:
            self.gamma = self.add_weight(
                "gamma", [size], kept, self.gamma_initializer, self.gamma_regularizer, True, self.gamma_constraint
            )
        elif self.fused:
            self._scale = constant([1.0] * size)
        if self.center:
            self.beta = self.add_weight(
                "beta", [size], kept, self.beta_initializer, self.beta_regularizer, True, self.beta_constraint
            )
        elif self.fused:
            self._offset = constant([0.0] * size)
        with self._whole():  # moving averages are never cut into parts
            self.moving_mean = self.add_weight(
                "moving_mean", [size], kept, self.moving_mean_initializer, trainable=False
            )
            self.moving_variance = self.add_weight(
                "moving_variance", [size], kept, self.moving_variance_initializer, trainable=False
            )

    def call(self, inputs: Any, training: Any = False, **_: Any) -> Tensor:
        x = convert_to_tensor(inputs)
        return self._fused(x, training) if self.fused else self._plain(x, training)

    # -- by one op -------------------------------------------------------------------------------------------------

    def _fused(self, x: Tensor, training: Any) -> Tensor:
        gamma = self.gamma if self.scale else self._scale
        beta = self.beta if self.center else self._offset
        layout = "NHWC" if self.axis == 3 else "NCHW"

        def learning() -> list[Tensor]:
            empty = [constant([], dtypes.float32) for _ in range(2)]
            return self._normalized(x, gamma, beta, empty, layout, True)

        def fixed() -> list[Tensor]:
            return self._normalized(x, gamma, beta, [self.moving_mean, self.moving_variance], layout, False)

        y, mean, variance = _chosen(training, learning, fixed)
        momentum = _chosen(
            training,
            lambda: constant(self.momentum),
            lambda: constant(1.0 if isinstance(training, Tensor) else self.momentum),
        )
        if _may_learn(training):
            self._move(momentum, mean, variance)
        return y

    def _normalized(self, x: Tensor, gamma: Any, beta: Any, statistics: list[Any], layout: str, learn: bool) -> Any:
        y, mean, variance, *_ = ops.fused_batch_norm_v3(
            x, gamma, beta, *statistics, epsilon=max(self.epsilon, 1.001e-5), data_format=layout, is_training=learn
        )
        return [y, mean, variance]

    # -- by its parts ----------------------------------------------------------------------------------------------

    def _plain(self, x: Tensor, training: Any) -> Tensor:
        rank = x.static_shape.rank
        assert rank is not None
        others = [axis for axis in range(rank) if axis != self.axis]
        wide = [1] * rank
        wide[self.axis] = self._channels

        def broadcast(value: Any) -> Any:
            if value is None or others == list(range(rank - 1)):
                return value
            return array_ops.reshape(value, wide)

        scale, offset = broadcast(self.gamma), broadcast(self.beta)
        if not _may_learn(training):
            mean, variance = self.moving_mean, self.moving_variance
        else:
            keep = others != list(range(rank - 1)) and rank > 2
            batch_mean, batch_variance = nn_ops.moments(x, others, keep)
            mean = _chosen(training, lambda: batch_mean, lambda: convert_to_tensor(self.moving_mean))
            variance = _chosen(training, lambda: batch_variance, lambda: convert_to_tensor(self.moving_variance))
            self._move_if(training, mean, variance)
        result = nn_ops.batch_normalization(
            x, broadcast(mean), broadcast(variance), offset, scale, self.epsilon
        )  # fmt: skip
        result.set_shape(x.static_shape)
        return result

    # -- what is kept ----------------------------------------------------------------------------------------------

    def _move_if(self, training: Any, mean: Tensor, variance: Tensor) -> None:
        """Move the kept statistics towards the batch's where the layer learns."""
        if not isinstance(training, Tensor):
            self._move(self.momentum, mean, variance)
            return
        for kept, value in ((self.moving_mean, mean), (self.moving_variance, variance)):
            moved = self._moved(kept, value, self.momentum)
            self.add_update(control_flow.cond(training, moved, lambda kept=kept: convert_to_tensor(kept)))

    def _move(self, momentum: Any, mean: Tensor, variance: Tensor) -> None:
        for kept, value in ((self.moving_mean, mean), (self.moving_variance, variance)):
            self.add_update(self._moved(kept, value, momentum)())

    def _moved(self, kept: Any, value: Tensor, momentum: Any) -> Callable[[], Any]:
        """What makes the operation that takes `kept` a part of the way to `value`."""

        def update() -> Any:
            with name_scope("AssignMovingAvg", None, [kept, value, momentum]) as scope, colocate_with(kept):
                rest: Any = 1.0 - momentum if isinstance(momentum, Tensor) else constant(1.0 - momentum, name="decay")
                step = (kept.to_tensor() - math_ops.cast(value, kept.dtype.base)) * rest
                return kept.assign_sub(step, name=scope)

        return update


def _may_learn(training: Any) -> bool:
    return isinstance(training, Tensor) or bool(training)


def _chosen(training: Any, learning: Callable[[], Any], fixed: Callable[[], Any]) -> Any:
    """One of two, now, or when the step runs."""
    if isinstance(training, Tensor):
        return control_flow.cond(training, learning, fixed)
    return learning() if training else fixed()
