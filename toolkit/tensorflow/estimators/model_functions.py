# TensorFlow's arguments may be anything, so what they are is for tests to say, not for types.
# pyright: basic
"""What the functions take that an estimator calls."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Any

_ARGUMENTS = frozenset({"features", "labels", "mode", "params", "self", "config"})


def arguments_of(function: Callable[..., Any]) -> tuple[str, ...]:
    """The names of a function's arguments; of a partial function those that are left or named."""
    return tuple(
        name
        for name, each in inspect.signature(function).parameters.items()
        if each.kind not in (each.VAR_POSITIONAL, each.VAR_KEYWORD)
    )


def check_arguments(model_fn: Any, params: Any) -> None:
    """Raises ValueError where a model function takes other arguments than an estimator has."""
    takes = set(arguments_of(model_fn))
    if "features" not in takes:
        raise ValueError(f"model_fn must take features; it takes: {', '.join(sorted(takes)) or 'nothing'}")
    if params is not None and "params" not in takes:
        raise ValueError("params are given, and model_fn takes none")
    strange = sorted(takes - _ARGUMENTS)
    if strange:
        raise ValueError(f"model_fn takes {', '.join(strange)}, which nothing is passed for")
