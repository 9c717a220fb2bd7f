"""Arguments that TensorFlow 1 renamed and still takes by their old name."""

from __future__ import annotations

from typing import Any


def renamed(new_name: str, new: Any, old_name: str, old: Any) -> Any:
    """The value of an argument that has two names.

    Raises:
        ValueError: both are given.
    """
    if old is None:
        return new
    if new is not None:
        raise ValueError(f"Cannot specify both '{old_name}' and '{new_name}'")
    return old


def needed(name: str, value: Any) -> Any:
    """An argument that has a default only because its old name may be given instead.

    Raises:
        TypeError: neither is.
    """
    if value is None:
        raise TypeError(f"missing the argument '{name}'")
    return value
