# TensorFlow's arguments may be anything, so what they are is for tests to say, not for types.
# pyright: basic
"""tf.train's optimizers, under TensorFlow's class names and with its arguments."""

from __future__ import annotations

from typing import Any

from toolkit.client.operation import Operation
from toolkit.client.train import optimizer, optimizers


class Optimizer(optimizer.Optimizer):
    """Base of the optimizers."""

    GATE_NONE = 0
    GATE_OP = 1
    GATE_GRAPH = 2

    def __init__(self, use_locking: bool, name: str, use_own_namescope_for_non_slot_vars: bool = False):
        super().__init__(use_locking, name)

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


class GradientDescentOptimizer(Optimizer, optimizers.GradientDescent):
    def __init__(self, learning_rate: Any, use_locking: bool = False, name: str = "GradientDescent"):
        optimizers.GradientDescent.__init__(self, learning_rate, use_locking, name)


class MomentumOptimizer(Optimizer, optimizers.Momentum):
    def __init__(
        self, learning_rate: Any, momentum: Any, use_locking: bool = False, name: str = "Momentum",
        use_nesterov: bool = False,
    ):  # fmt: skip
        optimizers.Momentum.__init__(self, learning_rate, momentum, use_locking, name, use_nesterov)


class AdamOptimizer(Optimizer, optimizers.Adam):
    def __init__(
        self, learning_rate: Any = 0.001, beta1: Any = 0.9, beta2: Any = 0.999, epsilon: Any = 1e-08,
        use_locking: bool = False, name: str = "Adam", use_own_namescope_for_non_slot_vars: bool = False,
    ):  # fmt: skip
        optimizers.Adam.__init__(self, learning_rate, beta1, beta2, epsilon, use_locking, name)


class AdagradOptimizer(Optimizer, optimizers.Adagrad):
    def __init__(
        self, learning_rate: Any, initial_accumulator_value: float = 0.1, use_locking: bool = False,
        name: str = "Adagrad",
    ):  # fmt: skip
        optimizers.Adagrad.__init__(self, learning_rate, initial_accumulator_value, use_locking, name)


class AdadeltaOptimizer(Optimizer, optimizers.Adadelta):
    def __init__(
        self, learning_rate: Any = 0.001, rho: Any = 0.95, epsilon: Any = 1e-08, use_locking: bool = False,
        name: str = "Adadelta",
    ):  # fmt: skip
        optimizers.Adadelta.__init__(self, learning_rate, rho, epsilon, use_locking, name)


class RMSPropOptimizer(Optimizer, optimizers.RMSProp):
    def __init__(
        self, learning_rate: Any, decay: Any = 0.9, momentum: Any = 0.0, epsilon: Any = 1e-10,
        use_locking: bool = False, centered: bool = False, name: str = "RMSProp",
    ):  # fmt: skip
        optimizers.RMSProp.__init__(self, learning_rate, decay, momentum, epsilon, use_locking, centered, name)
