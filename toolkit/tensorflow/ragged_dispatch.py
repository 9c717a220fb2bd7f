# TensorFlow's arguments may be anything, so what they are is for tests to say, not for types.
# pyright: basic
"""Functions of dense tensors that are given ragged ones.

A function of the table is wrapped once, when it is first asked for. The wrapper looks at the types of the arguments
only after a module of ragged tensors has been loaded: before, there can be none.
"""

from __future__ import annotations

import functools
import importlib
import inspect
import sys
from collections.abc import Callable
from typing import Any

from toolkit.tensorflow.ragged_functions import BINARY, OTHERS, RENAMED, SUBJECTS, UNARY

_CLASSES = "toolkit.client.ragged.tensor"


def _holds_ragged(value: Any, is_ragged: Callable[[Any], bool]) -> bool:
    if isinstance(value, list | tuple):
        return any(_holds_ragged(item, is_ragged) for item in value)
    return is_ragged(value)


def dispatched(name: str, function: Any) -> Any:
    """The function, or one that takes ragged tensors as well."""
    if name not in UNARY and name not in BINARY and name not in OTHERS:
        return function

    @functools.wraps(function)
    def call(*args: Any, **kwargs: Any) -> Any:
        loaded = sys.modules.get(_CLASSES)
        if loaded is None or not any(_holds_ragged(each, loaded.is_ragged) for each in (*args, *kwargs.values())):
            return function(*args, **kwargs)
        return _ragged(name, function, args, kwargs)

    return call


def _ragged(name: str, function: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    bound = inspect.signature(function).bind(*args, **kwargs)
    given = dict(bound.arguments)
    if name in OTHERS:
        place, known = OTHERS[name]
        module, _, attribute = place.partition(":")
        own = {key: known[0] if key in SUBJECTS else RENAMED.get(key, key) for key in given}
        renamed = {key if key in known else own[key]: value for key, value in given.items() if value is not None}
        unknown = sorted(renamed.keys() - set(known) - {"name", "validate_indices"})
        if unknown:
            raise ValueError(f"tf.{name} of ragged tensors does not take {', '.join(unknown)}")
        wanted = {key: value for key, value in renamed.items() if key in known}
        return getattr(importlib.import_module(module), attribute)(**wanted)
    operands = list(given)[: 2 if name in BINARY else 1]
    rest = {key: value for key, value in given.items() if key not in operands}

    def computed(*values: Any) -> Any:
        return function(**dict(zip(operands, values, strict=True)), **rest)

    elementwise = importlib.import_module("toolkit.client.ragged.elementwise").elementwise
    return elementwise(computed, [given[each] for each in operands])
