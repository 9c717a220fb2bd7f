"""Dense optimizer updates: Apply* on ref variables and ResourceApply* on resource variables.

Each rule is a function of the cells' arrays (changed in place), the scalars and the gradient; the formulas are those
of the OpDefs' documentation and TensorFlow's training_ops.cc.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from toolkit.errors import InvalidArgumentError
from toolkit.graph import opdefs
from toolkit.kernels.context import StepContext
from toolkit.kernels.registry import COMPLEX, FLOATING, Compute, KernelNode, Kind, kernel
from toolkit.kernels.resources import variables
from toolkit.kernels.types import Array

Rule = Callable[..., None]


@dataclass(frozen=True, slots=True)
class OptimizerRule:
    """One rule: how many variables come first among the inputs, which input is the gradient, which attributes."""

    slots: int
    gradient: int
    rule: Rule
    attributes: tuple[str, ...] = ()


def _gradient_descent(var: Array, alpha: Array, delta: Array) -> None:
    var -= alpha * delta


def _momentum(var: Array, accum: Array, lr: Array, grad: Array, momentum: Array, use_nesterov: bool) -> None:
    accum *= momentum
    accum += grad
    if use_nesterov:
        var -= grad * lr + accum * momentum * lr
    else:
        var -= accum * lr


def _keras_momentum(var: Array, accum: Array, lr: Array, grad: Array, momentum: Array, use_nesterov: bool) -> None:
    accum *= momentum
    accum -= grad * lr
    if use_nesterov:
        var += accum * momentum - grad * lr
    else:
        var += accum


def _adam(
    var: Array, m: Array, v: Array, beta1_power: Array, beta2_power: Array, lr: Array, beta1: Array, beta2: Array,
    epsilon: Array, grad: Array, use_nesterov: bool,
) -> None:  # fmt: skip
    one = var.dtype.type(1)
    alpha = lr * np.sqrt(one - beta2_power) / (one - beta1_power)
    m += (grad - m) * (one - beta1)
    v += (np.square(grad) - v) * (one - beta2)
    if use_nesterov:
        var -= (m * beta1 + (one - beta1) * grad) * alpha / (np.sqrt(v) + epsilon)
    else:
        var -= (m * alpha) / (np.sqrt(v) + epsilon)


def _adam_with_amsgrad(
    var: Array, m: Array, v: Array, vhat: Array, beta1_power: Array, beta2_power: Array, lr: Array, beta1: Array,
    beta2: Array, epsilon: Array, grad: Array,
) -> None:  # fmt: skip
    """Reddi et al., On the Convergence of Adam and Beyond (2018)."""
    one = var.dtype.type(1)
    alpha = lr * np.sqrt(one - beta2_power) / (one - beta1_power)
    m += (grad - m) * (one - beta1)
    v += (np.square(grad) - v) * (one - beta2)
    np.maximum(vhat, v, out=vhat)
    var -= (m * alpha) / (np.sqrt(vhat) + epsilon)


def _ada_max(
    var: Array, m: Array, v: Array, beta1_power: Array, lr: Array, beta1: Array, beta2: Array, epsilon: Array,
    grad: Array,
) -> None:  # fmt: skip
    one = var.dtype.type(1)
    m += (grad - m) * (one - beta1)
    np.maximum(beta2 * v, np.abs(grad), out=v)
    var -= lr / (one - beta1_power) * (m / (v + epsilon))


def _adagrad(var: Array, accum: Array, lr: Array, grad: Array, update_slots: bool) -> None:
    if update_slots:
        accum += np.square(grad)
    var -= grad * lr / np.sqrt(accum)


def _adagrad_v2(var: Array, accum: Array, lr: Array, epsilon: Array, grad: Array, update_slots: bool) -> None:
    if update_slots:
        accum += np.square(grad)
    var -= grad * lr / (np.sqrt(accum) + epsilon)


def _adagrad_da(
    var: Array, accum: Array, squared: Array, grad: Array, lr: Array, l1: Array, l2: Array, step: Array
) -> None:
    accum += grad
    squared += np.square(grad)
    time = var.dtype.type(step)
    shrunk = np.sign(accum) * np.maximum(np.abs(accum) - l1 * time, 0) if l1 > 0 else accum
    var[...] = -lr * shrunk / (l2 * time * lr + np.sqrt(squared))


def _adadelta(
    var: Array, accum: Array, accum_update: Array, lr: Array, rho: Array, epsilon: Array, grad: Array
) -> None:
    one = var.dtype.type(1)
    accum *= rho
    accum += np.square(grad) * (one - rho)
    update = np.sqrt(accum_update + epsilon) / np.sqrt(accum + epsilon) * grad
    var -= update * lr
    accum_update *= rho
    accum_update += np.square(update) * (one - rho)


def _rms_prop(
    var: Array, ms: Array, mom: Array, lr: Array, rho: Array, momentum: Array, epsilon: Array, grad: Array
) -> None:
    ms += (np.square(grad) - ms) * (var.dtype.type(1) - rho)
    mom *= momentum
    mom += grad * lr / np.sqrt(ms + epsilon)
    var -= mom


def _centered_rms_prop(
    var: Array, mg: Array, ms: Array, mom: Array, lr: Array, rho: Array, momentum: Array, epsilon: Array, grad: Array
) -> None:
    one = var.dtype.type(1)
    ms += (np.square(grad) - ms) * (one - rho)
    mg += (grad - mg) * (one - rho)
    mom *= momentum
    mom += grad * lr / np.sqrt(ms - np.square(mg) + epsilon)
    var -= mom


def _ftrl(
    var: Array, accum: Array, linear: Array, grad: Array, lr: Array, l1: Array, l2: Array, lr_power: Array,
    multiply_linear_by_lr: bool,
) -> None:  # fmt: skip
    _ftrl_update(var, accum, linear, grad, grad, lr, l1, l2, lr_power, multiply_linear_by_lr)


def _ftrl_v2(
    var: Array, accum: Array, linear: Array, grad: Array, lr: Array, l1: Array, l2: Array, l2_shrinkage: Array,
    lr_power: Array, multiply_linear_by_lr: bool,
) -> None:  # fmt: skip
    with_shrinkage = grad + 2 * l2_shrinkage * var
    _ftrl_update(var, accum, linear, grad, with_shrinkage, lr, l1, l2, lr_power, multiply_linear_by_lr)


def _ftrl_update(
    var: Array, accum: Array, linear: Array, grad: Array, shrunk: Array, lr: Array, l1: Array, l2: Array,
    lr_power: Array, multiply_linear_by_lr: bool,
) -> None:  # fmt: skip
    """McMahan et al., Ad Click Prediction (2013), with the accumulator's power as a parameter."""
    fresh = accum + np.square(grad)
    grown, before = np.power(fresh, -lr_power), np.power(accum, -lr_power)
    if multiply_linear_by_lr:
        linear += shrunk * lr - (grown - before) * var
        quadratic = grown + 2 * l2 * lr
        threshold = l1 * lr
    else:
        linear += shrunk - (grown - before) / lr * var
        quadratic = grown / lr + 2 * l2
        threshold = l1
    clipped = np.clip(linear, -threshold, threshold)
    var[...] = (clipped - linear) / quadratic
    accum[...] = fresh


def _proximal(var: Array, step: Array, lr: Array, l1: Array, l2: Array) -> None:
    if l1 > 0:
        var[...] = np.sign(step) * np.maximum(np.abs(step) - lr * l1, 0) / (1 + l2 * lr)
    else:
        var[...] = step / (1 + l2 * lr)


def _proximal_gradient_descent(var: Array, alpha: Array, l1: Array, l2: Array, delta: Array) -> None:
    _proximal(var, var - delta * alpha, alpha, l1, l2)


def _proximal_adagrad(var: Array, accum: Array, lr: Array, l1: Array, l2: Array, grad: Array) -> None:
    accum += np.square(grad)
    rates = lr / np.sqrt(accum)
    _proximal(var, var - grad * rates, rates, l1, l2)


def _add_sign(var: Array, m: Array, lr: Array, alpha: Array, sign_decay: Array, beta: Array, grad: Array) -> None:
    m *= beta
    m += grad * (var.dtype.type(1) - beta)
    var -= lr * (alpha + sign_decay * np.sign(grad) * np.sign(m)) * grad


def _power_sign(var: Array, m: Array, lr: Array, logbase: Array, sign_decay: Array, beta: Array, grad: Array) -> None:
    m *= beta
    m += grad * (var.dtype.type(1) - beta)
    var -= lr * np.exp(logbase * sign_decay * np.sign(grad) * np.sign(m)) * grad


OPTIMIZERS: dict[str, OptimizerRule] = {
    "GradientDescent": OptimizerRule(1, 2, _gradient_descent),
    "Momentum": OptimizerRule(2, 3, _momentum, ("use_nesterov",)),
    "KerasMomentum": OptimizerRule(2, 3, _keras_momentum, ("use_nesterov",)),
    "Adam": OptimizerRule(3, 9, _adam, ("use_nesterov",)),
    "AdamWithAmsgrad": OptimizerRule(4, 10, _adam_with_amsgrad),
    "AdaMax": OptimizerRule(3, 8, _ada_max),
    "Adagrad": OptimizerRule(2, 3, _adagrad, ("update_slots",)),
    "AdagradV2": OptimizerRule(2, 4, _adagrad_v2, ("update_slots",)),
    "AdagradDA": OptimizerRule(3, 3, _adagrad_da),
    "Adadelta": OptimizerRule(3, 6, _adadelta),
    "RMSProp": OptimizerRule(3, 7, _rms_prop),
    "CenteredRMSProp": OptimizerRule(4, 8, _centered_rms_prop),
    "Ftrl": OptimizerRule(3, 3, _ftrl, ("multiply_linear_by_lr",)),
    "FtrlV2": OptimizerRule(3, 3, _ftrl_v2, ("multiply_linear_by_lr",)),
    "ProximalGradientDescent": OptimizerRule(1, 4, _proximal_gradient_descent),
    "ProximalAdagrad": OptimizerRule(2, 5, _proximal_adagrad),
    "AddSign": OptimizerRule(2, 6, _add_sign),
    "PowerSign": OptimizerRule(2, 6, _power_sign),
}


def _apply(op: KernelNode, optimizer: OptimizerRule) -> Compute:
    attributes = {name: op.attr(name) for name in optimizer.attributes}
    rule, slots, gradient = optimizer.rule, optimizer.slots, optimizer.gradient
    returns_reference = not op.op.startswith("Resource")

    kind = op.attr("T")

    def compute(step: StepContext, *inputs: Any) -> Any:
        cells = [variables.cell_of(step, target, kind) for target in inputs[:slots]]
        grad = inputs[gradient]
        for position in range(slots, len(inputs)):
            if position != gradient and np.ndim(inputs[position]) != 0:
                name = op.node.op_def.inputs[position].name
                raise InvalidArgumentError(f"{name} is not a scalar: {list(np.shape(inputs[position]))}")
        with variables.held(cells):
            arrays = [variables.writable(cell) for cell in cells]
            for array in (*arrays[1:], grad):
                if np.shape(array) != arrays[0].shape:
                    raise InvalidArgumentError(
                        "the variable, its slots and the gradient must have one shape: "
                        f"{list(arrays[0].shape)} against {list(np.shape(array))}"
                    )
            rule(*arrays, *inputs[slots:], **attributes)
        return inputs[0] if returns_reference else None

    return compute


def _register(name: str, optimizer: OptimizerRule) -> None:
    known = [op for op in (f"Apply{name}", f"ResourceApply{name}") if opdefs.is_known(op)]
    kernel(*known, types={"T": FLOATING | COMPLEX}, kind=Kind.STATEFUL)(lambda op: _apply(op, optimizer))


for _name, _optimizer in OPTIMIZERS.items():
    _register(_name, _optimizer)
