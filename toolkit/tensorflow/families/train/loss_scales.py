# TensorFlow's arguments may be anything, so what they are is for tests to say, not for types.
# pyright: basic
"""tf.mixed_precision: losses multiplied, and gradients divided, so that small gradients do not become zero."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Any

from toolkit.client import ops
from toolkit.client.construction.convert import convert_to_tensor
from toolkit.client.construction.grouping import group
from toolkit.client.construction.tensor import IndexedSlices
from toolkit.client.flow.control_flow import cond
from toolkit.client.math import math_ops
from toolkit.client.structures.nest import flatten
from toolkit.client.variables.creation import Variable
from toolkit.graph import dtypes
from toolkit.tensorflow.deprecation import log
from toolkit.tensorflow.families.train.optimizers import Optimizer


class LossScale(ABC):
    """What losses are multiplied by: a call gives the number, `update` what changes it."""

    def __init__(self) -> None:
        self._weights: dict[str, Any] = {}

    @abstractmethod
    def __call__(self) -> Any:
        """The scale as a float32 scalar."""

    @abstractmethod
    def update(self, grads: Any) -> tuple[Any, Any]:
        """From the gradients, divided already: the operation that changes the scale, and whether to apply them."""

    @abstractmethod
    def get_config(self) -> dict[str, Any]:
        """The arguments that make such a scale."""

    @classmethod
    def from_config(cls, config: dict[str, Any]) -> LossScale:
        return cls(**config)

    @property
    def weights(self) -> list[Any]:
        """The variables it keeps."""
        return list(self._weights.values())

    def _add_weight(self, name: str, initial_value: Any, dtype: Any = None) -> Any:
        if name in self._weights:
            raise RuntimeError(f"the loss scale has a variable '{name}' already")
        self._weights[name] = Variable(initial_value, trainable=False, name=name, dtype=dtype, use_resource=True)
        return self._weights[name]


class FixedLossScale(LossScale):
    """The same scale in all steps."""

    def __init__(self, loss_scale_value: float):
        super().__init__()
        if not isinstance(loss_scale_value, int | float):
            raise ValueError(f"loss_scale_value is a number, not {loss_scale_value!r}")
        if loss_scale_value < 1:
            raise ValueError(f"loss_scale_value is {loss_scale_value}; expected at least 1")
        self._value = float(loss_scale_value)

    def __call__(self) -> Any:
        return convert_to_tensor(self._value)

    def update(self, grads: Any) -> tuple[Any, Any]:
        return ops.no_op(), True

    def get_config(self) -> dict[str, Any]:
        return {"loss_scale_value": self._value}

    def __repr__(self) -> str:
        return f"FixedLossScale({self._value})"


class DynamicLossScale(LossScale):
    """A scale that grows while gradients are finite, and shrinks when one is not.

    Args:
        initial_loss_scale: of the first step.
        increment_period: after so many steps with finite gradients it is multiplied.
        multiplier: by what it is multiplied, or divided when a gradient is not finite.
    """

    def __init__(self, initial_loss_scale: float = 2**15, increment_period: int = 2000, multiplier: float = 2.0):
        super().__init__()
        self._initial = float(initial_loss_scale)
        self._period = int(increment_period)
        self._multiplier = float(multiplier)
        self._current = self._add_weight("current_loss_scale", self._initial, dtypes.float32)
        self._good_steps = self._add_weight("good_steps", 0, dtypes.int64)

    @property
    def initial_loss_scale(self) -> float:
        return self._initial

    @property
    def increment_period(self) -> int:
        return self._period

    @property
    def multiplier(self) -> float:
        return self._multiplier

    def __call__(self) -> Any:
        return convert_to_tensor(self._current)

    def update(self, grads: Any) -> tuple[Any, Any]:
        finite = _all_finite(flatten(grads))
        updated = cond(finite, self._after_a_good_step, self._after_a_bad_step)
        return updated, finite

    def _after_a_good_step(self) -> Any:
        def grow() -> Any:
            grown = self._current * self._multiplier
            assigned = cond(ops.is_finite(grown), lambda: self._current.assign(grown).op, ops.no_op)
            return group([assigned, self._good_steps.assign(0)])

        return cond(self._good_steps + 1 >= self._period, grow, lambda: self._good_steps.assign_add(1).op)

    def _after_a_bad_step(self) -> Any:
        smaller = math_ops.maximum(self._current / self._multiplier, 1)
        return group([self._good_steps.assign(0), self._current.assign(smaller)])

    def get_config(self) -> dict[str, Any]:
        return {
            "initial_loss_scale": self._initial, "increment_period": self._period, "multiplier": self._multiplier,
        }  # fmt: skip

    def __repr__(self) -> str:
        return (
            f"DynamicLossScale(initial_loss_scale={self._initial}, increment_period={self._period}, "
            f"multiplier={self._multiplier})"
        )


def _all_finite(grads: Any) -> Any:
    values = [grad.values if isinstance(grad, IndexedSlices) else grad for grad in grads if grad is not None]
    return math_ops.reduce_all([math_ops.reduce_all(ops.is_finite(value)) for value in values])


def _scale_of(given: Any) -> LossScale:
    """
    Raises:
        ValueError: it is no scale, number or "dynamic".
    """
    if isinstance(given, LossScale):
        return given
    if isinstance(given, int | float):
        return FixedLossScale(given)
    if given == "dynamic":
        return DynamicLossScale()
    raise ValueError(f"loss_scale is {given!r}; expected a LossScale, a number or 'dynamic'")


class MixedPrecisionLossScaleOptimizer(Optimizer):
    """An optimizer whose loss is scaled; with a dynamic scale, steps whose gradients are not finite change nothing."""

    def __init__(self, opt: Any, loss_scale: Any):
        if not isinstance(opt, Optimizer):
            raise ValueError(f"opt is an Optimizer, not {type(opt).__name__}")
        super().__init__(opt.use_locking, opt.name)
        self._optimizer = opt
        self._loss_scale = _scale_of(loss_scale)

    def compute_gradients(
        self, loss: Any, var_list: Any = None, gate_gradients: int = 1, aggregation_method: Any = None,
        colocate_gradients_with_ops: bool = False, grad_loss: Any = None,
    ) -> list[Any]:  # fmt: skip
        scale = self._loss_scale()
        scaled = loss * math_ops.cast(scale, loss.dtype)
        pairs = self._optimizer.compute_gradients(
            scaled, var_list, gate_gradients, aggregation_method, colocate_gradients_with_ops, grad_loss
        )
        reciprocal = 1 / self._loss_scale()
        return [(None if grad is None else _times(grad, reciprocal), variable) for grad, variable in pairs]

    def apply_gradients(self, grads_and_vars: Any, global_step: Any = None, name: Any = None) -> Any:
        pairs = list(grads_and_vars)
        if not isinstance(self._loss_scale, DynamicLossScale):
            return self._optimizer.apply_gradients(pairs, global_step, name)
        name = self.name if name is None else name
        updated, finite = self._loss_scale.update([grad for grad, _ in pairs])
        applied = cond(
            finite, lambda: group([self._optimizer.apply_gradients(pairs, global_step, f"{name}-wrapped")]), ops.no_op
        )
        return group([applied, updated], name=name)

    def variables(self) -> Any:
        return self._optimizer.variables() + self._loss_scale.weights


def _times(grad: Any, factor: Any) -> Any:
    if isinstance(grad, IndexedSlices):
        return IndexedSlices(grad.values * factor, grad.indices, grad.dense_shape)
    return grad * factor


def enable_mixed_precision_graph_rewrite(opt: Any, loss_scale: Any = "dynamic") -> MixedPrecisionLossScaleOptimizer:
    """An optimizer with a scaled loss. Which products are computed in half precision is for the device to say.

    TensorFlow's rewriting is for NVIDIA's GPUs alone and leaves what runs on a CPU as it is; here it is for
    `precision="bf16"` of a session, or `graphmill run --precision`.

    Raises:
        ValueError: it is no optimizer, or one whose loss is scaled already.
    """
    if isinstance(opt, MixedPrecisionLossScaleOptimizer):
        raise ValueError("opt scales its loss already; give the optimizer inside")
    log().info("mixed precision: the loss is scaled; products on a CPU stay in single precision")
    return MixedPrecisionLossScaleOptimizer(opt, loss_scale)


def disable_mixed_precision_graph_rewrite() -> None:
    """What has been made stays; nothing is rewritten here."""
