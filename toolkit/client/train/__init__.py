"""Training: optimizers, learning rates, the global step, averages, savers."""

from __future__ import annotations

import importlib
from typing import Any

_EXPORTS: dict[str, tuple[str, ...]] = {
    "averages": ("ExponentialMovingAverage", "assign_moving_average"),
    "global_step": ("create_global_step", "get_global_step", "get_or_create_global_step"),
    "decoupled": (
        "LARS", "AdamW", "DecoupledWeightDecay", "LazyAdam", "MomentumW", "MovingAverage", "Nadam",
        "extend_with_decoupled_weight_decay",
    ),
    "optimizer": ("Optimizer",),
    "proximal": ("AdagradDA", "ProximalAdagrad", "ProximalGradientDescent"),
    "optimizers": ("Adadelta", "Adagrad", "Adam", "Ftrl", "GradientDescent", "Momentum", "RMSProp"),
    "saver": ("Saver",),
    "schedules": (
        "cosine_decay", "cosine_decay_restarts", "exponential_decay", "inverse_time_decay", "linear_cosine_decay",
        "natural_exp_decay", "noisy_linear_cosine_decay", "piecewise_constant", "polynomial_decay",
    ),
}  # fmt: skip
_HOMES = {name: module for module, names in _EXPORTS.items() for name in names}


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module '{__name__}' has no attribute '{name}'")
    return getattr(importlib.import_module(f"{__name__}.{_HOMES[name]}"), name)


def __dir__() -> list[str]:
    return sorted(_HOMES)
