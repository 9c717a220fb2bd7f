"""Optimizers around another one: variables clipped after its updates, gradients that come too late dropped."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import nullcontext
from typing import Any

from toolkit.client import ops
from toolkit.client.arrays import array_ops
from toolkit.client.construction.grouping import group
from toolkit.client.construction.operation import Operation
from toolkit.client.construction.scopes import colocate_with, control_dependencies, name_scope
from toolkit.client.construction.tensor import IndexedSlices, Tensor
from toolkit.client.flow.control_flow import cond
from toolkit.client.math import clip_ops
from toolkit.client.math.math_ops import cast
from toolkit.client.summaries import summary
from toolkit.client.train.optimizer import GradientAndVariable, Optimizer
from toolkit.client.variables import initializers
from toolkit.client.variables.base import BaseVariable
from toolkit.client.variables.store import get_variable
from toolkit.errors import UsageError
from toolkit.graph import dtypes


class Wrapped(Optimizer):
    """What another optimizer does, and more."""

    def __init__(self, opt: Optimizer, use_locking: bool, name: str):
        super().__init__(use_locking, name)
        self._opt = opt

    def compute_gradients(self, *args: Any, **kwargs: Any) -> list[GradientAndVariable]:
        return self._opt.compute_gradients(*args, **kwargs)

    def get_slot(self, *args: Any, **kwargs: Any) -> BaseVariable | None:
        return self._opt.get_slot(*args, **kwargs)

    def get_slot_names(self, *args: Any, **kwargs: Any) -> list[str]:
        return self._opt.get_slot_names(*args, **kwargs)


class VariableClipping(Wrapped):
    """After each update, variables whose norm has become too large are made shorter.

    Args:
        vars_to_clip_dims: a variable to the dimensions that a norm is taken over.
        max_norm: the largest norm.
        colocate_clip_ops_with_vars: compute where the variables are.
    """

    def __init__(
        self, opt: Optimizer, vars_to_clip_dims: Mapping[Any, Sequence[int]], max_norm: float,
        use_locking: bool = False, colocate_clip_ops_with_vars: bool = False, name: str = "VariableClipping",
    ):  # fmt: skip
        super().__init__(opt, use_locking, name)
        self._dims = {v: list(dims) for v, dims in vars_to_clip_dims.items()}
        self._limit, self._beside = max_norm, colocate_clip_ops_with_vars

    def apply_gradients(
        self, grads_and_vars: Sequence[GradientAndVariable], global_step: Any = None, name: str | None = None
    ) -> Operation:
        with name_scope(name, self.name) as scope:
            update = self._opt.apply_gradients(grads_and_vars, global_step=global_step)
            clipped: list[Any] = []
            with control_dependencies([update]):
                for grad, v in grads_and_vars:
                    if grad is not None and v in self._dims:
                        with name_scope("clip_" + v.op.name):
                            clipped.append(self._clip(grad, v))
            return group([update, *clipped], name=scope)

    def _clip(self, grad: Tensor | IndexedSlices, v: Any) -> Any:
        """All of the variable, or the rows that were changed, where rows have norms of their own."""
        dims = self._dims[v]
        where = colocate_with(v) if self._beside else nullcontext()
        if isinstance(grad, IndexedSlices) and 0 not in dims:
            with colocate_with(v):
                rows = array_ops.gather(v, grad.indices)
            with where:
                excess = rows - clip_ops.clip_by_norm(rows, self._limit, dims)
            with colocate_with(v):
                return v.scatter("ScatterSub", IndexedSlices(excess, grad.indices, grad.dense_shape))
        with where:
            value = v.read_value()
            excess = value - clip_ops.clip_by_norm(value, self._limit, dims)
        with colocate_with(v):
            return v.assign_sub(excess, use_locking=self.use_locking)


class TransformedGradients(Wrapped):
    """Another optimizer whose gradients are what a function makes of them.

    Args:
        transform: pairs of gradients and variables to such pairs.
    """

    def __init__(
        self, opt: Optimizer, transform: Callable[[Sequence[GradientAndVariable]], Sequence[GradientAndVariable]],
        name: str,
    ):  # fmt: skip
        super().__init__(opt, False, name)
        self._transform = transform

    def apply_gradients(
        self, grads_and_vars: Sequence[GradientAndVariable], global_step: Any = None, name: str | None = None
    ) -> Operation:
        return self._opt.apply_gradients(self._transform(grads_and_vars), global_step, name)


class DropStaleGradient(Wrapped):
    """Updates that are left out where the global step has gone on by more than `staleness` since the gradient began.

    A variable `stale_counter` says how often that was, a summary how large a share.
    """

    def __init__(self, opt: Optimizer, staleness: int, use_locking: bool = False, name: str = "DropStaleGradient"):
        super().__init__(opt, use_locking, name)
        self._staleness = staleness
        self._begun: Tensor | None = None

    def compute_gradients(self, loss: Tensor, *args: Any, **kwargs: Any) -> list[GradientAndVariable]:
        """As of the other optimizer; the global step is looked at first.

        Raises:
            UsageError: the graph has no global step.
        """
        from toolkit.client.train.global_step import get_global_step

        step: Any = get_global_step()
        if step is None:
            raise UsageError("gradients age by global steps: make one with tf.train.create_global_step()")
        with colocate_with(loss):
            self._begun = step + 0
        with control_dependencies([self._begun]):
            return self._opt.compute_gradients(array_ops.identity(loss), *args, **kwargs)

    def apply_gradients(
        self, grads_and_vars: Sequence[GradientAndVariable], global_step: Any = None, name: str | None = None
    ) -> Any:
        """Adds 0 or 1 to the counter.

        Raises:
            UsageError: there is no global step, or the gradients are not of `compute_gradients`.
        """
        if global_step is None or self._begun is None:
            raise UsageError("apply_gradients of DropStaleGradientOptimizer needs global_step, after compute_gradients")
        with colocate_with(global_step):
            counter: Any = get_variable("stale_counter", [], initializer=initializers.Zeros(), trainable=False)
        waits = [g if isinstance(g, Tensor) else g.values for g, _ in grads_and_vars if g is not None]
        with control_dependencies(waits), colocate_with(global_step):
            age = array_ops.reshape(global_step - self._begun, shape=())

        def accept() -> Tensor:
            update = self._opt.apply_gradients(grads_and_vars, global_step=global_step, name=name)
            with control_dependencies([update]):
                return array_ops.identity(0.0)

        done = counter.assign_add(cond(ops.less_equal(age, self._staleness), accept, lambda: array_ops.identity(1.0)))
        share = counter.to_tensor() / cast(global_step + 1, dtypes.float32)
        summary.scalar("Gradient staleness percentage", share)
        return done
