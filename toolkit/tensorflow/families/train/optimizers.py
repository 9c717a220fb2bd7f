# TensorFlow's arguments may be anything, so what they are is for tests to say, not for types.
# pyright: basic
"""tf.train's optimizers, under TensorFlow's class names and with its arguments."""

from __future__ import annotations

from typing import Any

from toolkit.client import ops
from toolkit.client.construction.context import get_default_graph
from toolkit.client.construction.operation import Operation
from toolkit.client.construction.scopes import control_dependencies
from toolkit.client.construction.tensor import IndexedSlices
from toolkit.client.train import averages, optimizer, optimizers, proximal
from toolkit.errors import GraphError
from toolkit.tensorflow.families.framework.attributes import Adams, Also, LearningRate, Momenta, Penalties


class Optimizer(optimizer.Optimizer):
    """Base of the optimizers, also of those that programs define.

    These override `_create_slots`, `_prepare`, `_apply_dense`, `_resource_apply_dense`, `_apply_sparse`,
    `_resource_apply_sparse` and `_finish`, and call `_zeros_slot`, `_get_or_make_slot` and their like.
    """

    GATE_NONE = 0
    GATE_OP = 1
    GATE_GRAPH = 2

    def __init__(self, use_locking: bool, name: str, use_own_namescope_for_non_slot_vars: bool = False):
        super().__init__(use_locking, name)

    # -- the client's steps, by the names that subclasses know them by ----------------------------------------

    def create_slots(self, var_list: Any) -> None:
        self._create_slots(var_list)

    def prepare(self) -> None:
        self._prepare()

    def apply_dense(self, grad: Any, v: Any) -> Operation:
        done = self._resource_apply_dense(grad, v) if v.is_resource else self._apply_dense(grad, v)
        return getattr(done, "op", done)

    def apply_sparse(self, grad: Any, v: Any) -> Operation:
        done = (
            self._resource_apply_sparse(grad.values, v, grad.indices) if v.is_resource else self._apply_sparse(grad, v)
        )
        return getattr(done, "op", done)

    def apply_sparse_duplicates(self, grad: Any, v: Any) -> Operation:
        if v.is_resource:
            done = self._resource_apply_sparse_duplicate_indices(grad.values, v, grad.indices)
        else:
            done = self._apply_sparse_duplicate_indices(grad, v)
        return getattr(done, "op", done)

    def finish(self, updates: Any, name: str) -> Operation:
        return self._finish(updates, name)

    def _create_slots(self, var_list: Any) -> None:
        super().create_slots(var_list)

    def _prepare(self) -> None:
        super().prepare()

    def _apply_dense(self, grad: Any, var: Any) -> Any:
        return super().apply_dense(grad, var)

    def _resource_apply_dense(self, grad: Any, handle: Any) -> Any:
        return super().apply_dense(grad, handle)

    def _apply_sparse(self, grad: Any, var: Any) -> Any:
        return super().apply_sparse(grad, var)

    def _resource_apply_sparse(self, grad: Any, handle: Any, indices: Any) -> Any:
        return super().apply_sparse(IndexedSlices(grad, indices), handle)

    def _apply_sparse_duplicate_indices(self, grad: Any, var: Any) -> Any:
        return super().apply_sparse_duplicates(grad, var)

    def _resource_apply_sparse_duplicate_indices(self, grad: Any, handle: Any, indices: Any) -> Any:
        return super().apply_sparse_duplicates(IndexedSlices(grad, indices), handle)

    def _finish(self, update_ops: Any, name_scope: str) -> Any:
        return super().finish(update_ops, name_scope)

    # -- what subclasses call -----------------------------------------------------------------------------------

    @property
    def _name(self) -> str:
        return self.name

    @property
    def _use_locking(self) -> bool:
        return self.use_locking

    def _zeros_slot(self, var: Any, slot_name: str, op_name: str) -> Any:
        return self.slot_zeros(var, slot_name, op_name)

    def _get_or_make_slot(self, var: Any, val: Any, slot_name: str, op_name: str) -> Any:
        return self.slot_filled(var, val, slot_name, op_name)

    def _get_or_make_slot_with_initializer(
        self, var: Any, initializer: Any, shape: Any, dtype: Any, slot_name: str, op_name: str
    ) -> Any:
        return self.slot_filled(var, initializer, slot_name, op_name, var.static_shape, var.dtype.base)

    def _slot_dict(self, slot_name: str) -> dict[Any, Any]:
        return self._slots.setdefault(slot_name, {})

    def _create_non_slot_variable(self, initial_value: Any, name: str, colocate_with: Any) -> Any:
        return self.shared_variable(initial_value, name, colocate_with)

    def _get_non_slot_variable(self, name: str, graph: Any = None) -> Any:
        return self._shared.get((name, graph or get_default_graph()))

    def _non_slot_variables(self) -> list[Any]:
        return list(self._shared.values())

    @staticmethod
    def _call_if_callable(param: Any) -> Any:
        return param() if callable(param) else param

    def _resource_scatter_add(self, x: Any, i: Any, v: Any) -> Any:
        with control_dependencies([ops.resource_scatter_add(x.handle, i, v)]):
            return x.value()

    # -- TensorFlow's arguments -----------------------------------------------------------------------------------

    def minimize(  # pyright: ignore[reportIncompatibleMethodOverride]  # TensorFlow's arguments
        self, loss: Any, global_step: Any = None, var_list: Any = None, gate_gradients: int = 1,
        aggregation_method: Any = None, colocate_gradients_with_ops: bool = False, name: Any = None,
        grad_loss: Any = None,
    ) -> Operation:  # fmt: skip
        pairs = self.compute_gradients(
            loss, var_list, gate_gradients, aggregation_method, colocate_gradients_with_ops, grad_loss
        )
        if all(grad is None for grad, _ in pairs):
            raise ValueError(
                f"there is no gradient of {loss} for any of the variables {', '.join(v.name for _, v in pairs)}: "
                "nothing that can be differentiated leads from them to it"
            )
        return self.apply_gradients(pairs, global_step, name)

    def compute_gradients(  # pyright: ignore[reportIncompatibleMethodOverride]  # TensorFlow's arguments
        self, loss: Any, var_list: Any = None, gate_gradients: int = 1, aggregation_method: Any = None,
        colocate_gradients_with_ops: bool = False, grad_loss: Any = None,
    ) -> list[Any]:  # fmt: skip
        return super().compute_gradients(loss, var_list, gate_gradients, colocate_gradients_with_ops, grad_loss)

    def apply_gradients(  # pyright: ignore[reportIncompatibleMethodOverride]  # TensorFlow's arguments
        self, grads_and_vars: Any, global_step: Any = None, name: Any = None, skip_gradients_aggregation: bool = False
    ) -> Operation:
        return super().apply_gradients(list(grads_and_vars), global_step, name)

    def get_name(self) -> str:
        return self.name


class GradientDescentOptimizer(Optimizer, optimizers.GradientDescent, LearningRate):
    def __init__(self, learning_rate: Any, use_locking: bool = False, name: str = "GradientDescent"):
        optimizers.GradientDescent.__init__(self, learning_rate, use_locking, name)


class MomentumOptimizer(Optimizer, optimizers.Momentum, Momenta):
    def __init__(
        self, learning_rate: Any, momentum: Any, use_locking: bool = False, name: str = "Momentum",
        use_nesterov: bool = False,
    ):  # fmt: skip
        optimizers.Momentum.__init__(self, learning_rate, momentum, use_locking, name, use_nesterov)


class AdamOptimizer(Optimizer, optimizers.Adam, Adams):
    def __init__(
        self, learning_rate: Any = 0.001, beta1: Any = 0.9, beta2: Any = 0.999, epsilon: Any = 1e-08,
        use_locking: bool = False, name: str = "Adam", use_own_namescope_for_non_slot_vars: bool = False,
    ):  # fmt: skip
        optimizers.Adam.__init__(self, learning_rate, beta1, beta2, epsilon, use_locking, name)


class AdagradOptimizer(Optimizer, optimizers.Adagrad, LearningRate):
    _initial_accumulator_value = Also("_initial")

    def __init__(
        self, learning_rate: Any, initial_accumulator_value: float = 0.1, use_locking: bool = False,
        name: str = "Adagrad",
    ):  # fmt: skip
        optimizers.Adagrad.__init__(self, learning_rate, initial_accumulator_value, use_locking, name)


class AdadeltaOptimizer(Optimizer, optimizers.Adadelta):
    _lr = Also("_rate")
    _lr_t = Also("_rate_t", unset=None)
    _rho_t: Any = None
    _epsilon_t: Any = None

    def __init__(
        self, learning_rate: Any = 0.001, rho: Any = 0.95, epsilon: Any = 1e-08, use_locking: bool = False,
        name: str = "Adadelta",
    ):  # fmt: skip
        optimizers.Adadelta.__init__(self, learning_rate, rho, epsilon, use_locking, name)


class RMSPropOptimizer(Optimizer, optimizers.RMSProp, LearningRate):
    _decay_tensor = Also("_decay_t", unset=None)
    _momentum_tensor = Also("_momentum_t", unset=None)
    _epsilon_tensor = Also("_epsilon_t", unset=None)

    def __init__(
        self, learning_rate: Any, decay: Any = 0.9, momentum: Any = 0.0, epsilon: Any = 1e-10,
        use_locking: bool = False, centered: bool = False, name: str = "RMSProp",
    ):  # fmt: skip
        optimizers.RMSProp.__init__(self, learning_rate, decay, momentum, epsilon, use_locking, centered, name)


class FtrlOptimizer(Optimizer, optimizers.Ftrl, Penalties):
    _learning_rate_power = Also("_power")
    _learning_rate_power_tensor = Also("_power_t", unset=None)
    _initial_accumulator_value = Also("_initial")
    _l2_shrinkage_regularization_strength = Also("_shrinkage")
    _l2_shrinkage_regularization_strength_tensor = Also("_shrinkage_t", unset=None)

    def __init__(
        self, learning_rate: Any, learning_rate_power: float = -0.5, initial_accumulator_value: float = 0.1,
        l1_regularization_strength: float = 0.0, l2_regularization_strength: float = 0.0, use_locking: bool = False,
        name: str = "Ftrl", accum_name: Any = None, linear_name: Any = None,
        l2_shrinkage_regularization_strength: float = 0.0, beta: Any = None,
    ):  # fmt: skip
        optimizers.Ftrl.__init__(
            self, learning_rate, learning_rate_power, initial_accumulator_value, l1_regularization_strength,
            l2_regularization_strength, use_locking, name, accum_name, linear_name,
            l2_shrinkage_regularization_strength, beta,
        )  # fmt: skip


class AdagradDAOptimizer(Optimizer, proximal.AdagradDA, Penalties):
    _initial_gradient_squared_accumulator_value = Also("_initial")

    def __init__(
        self, learning_rate: Any, global_step: Any, initial_gradient_squared_accumulator_value: float = 0.1,
        l1_regularization_strength: float = 0.0, l2_regularization_strength: float = 0.0, use_locking: bool = False,
        name: str = "AdagradDA",
    ):  # fmt: skip
        proximal.AdagradDA.__init__(
            self, learning_rate, global_step, initial_gradient_squared_accumulator_value, l1_regularization_strength,
            l2_regularization_strength, use_locking, name,
        )  # fmt: skip


class ProximalAdagradOptimizer(Optimizer, proximal.ProximalAdagrad, Penalties):
    _initial_accumulator_value = Also("_initial")

    def __init__(
        self, learning_rate: Any, initial_accumulator_value: float = 0.1, l1_regularization_strength: float = 0.0,
        l2_regularization_strength: float = 0.0, use_locking: bool = False, name: str = "ProximalAdagrad",
    ):  # fmt: skip
        proximal.ProximalAdagrad.__init__(
            self, learning_rate, initial_accumulator_value, l1_regularization_strength, l2_regularization_strength,
            use_locking, name,
        )  # fmt: skip


class ProximalGradientDescentOptimizer(Optimizer, proximal.ProximalGradientDescent, Penalties):
    def __init__(
        self, learning_rate: Any, l1_regularization_strength: float = 0.0, l2_regularization_strength: float = 0.0,
        use_locking: bool = False, name: str = "ProximalGradientDescent",
    ):  # fmt: skip
        proximal.ProximalGradientDescent.__init__(
            self, learning_rate, l1_regularization_strength, l2_regularization_strength, use_locking, name
        )


class ExponentialMovingAverage(averages.ExponentialMovingAverage):
    """Moving averages of variables and tensors."""

    _name = Also("name")

    def __init__(
        self, decay: Any, num_updates: Any = None, zero_debias: bool = False, name: str = "ExponentialMovingAverage"
    ):
        super().__init__(decay, num_updates, name, zero_debias)

    def apply(self, var_list: Any = None) -> Any:
        """The operation that updates the averages.

        Raises:
            TypeError: a value is of no floating point type.
        """
        try:
            return super().apply(var_list)
        except GraphError as error:
            raise TypeError(error.message) from None

    def variables_to_restore(self, moving_avg_variables: Any = None) -> dict[str, Any]:
        return super().variables_to_restore(moving_avg_variables)
