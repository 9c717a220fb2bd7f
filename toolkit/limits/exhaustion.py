"""What a step says that needs more memory than it may have, or than there is."""

# numpy's arrays of any type have unknown members
# pyright: reportUnknownMemberType=false, reportUnknownArgumentType=false

from __future__ import annotations

import math
from collections.abc import Iterable
from typing import Any

import numpy as np

from toolkit.errors import OpError, ResourceExhaustedError
from toolkit.limits.account import current
from toolkit.limits.limits import size_text

_SHOWN = 3  # tensors that are alive, the largest first

Alive = Iterable[tuple[str, Any]]


def exhaustion(error: BaseException, what: str, node: str | None = None, alive: Alive = ()) -> OpError | None:
    """The step's error for a failed allocation; None where it was something else that failed.

    Args:
        error: MemoryError, from NumPy with the shape and dtype of what was wanted.
        what: the op, or what else wanted memory.
        alive: names and values that are there.
    """
    if not isinstance(error, MemoryError):
        return None
    shape: tuple[int, ...] | None = getattr(error, "shape", None)
    dtype: Any = getattr(error, "dtype", None)
    account = current()
    if shape is not None and dtype is not None:
        size = math.prod(shape) * int(dtype.itemsize)
        wanted = f"{_kind(dtype)}{list(shape)}, {size_text(size)}"
    else:
        size, wanted = 0, "more memory"

    def told_beside(count: float) -> str:
        """A size; to the byte where it would read as that which is wanted."""
        return f"{int(count):,} bytes" if size_text(count) == size_text(size) else size_text(count)

    if account is None:
        why = "and this machine has not so much left"
    elif account.limits.tensor is not None and size > account.limits.tensor:
        why = f"and the limit of a tensor is {told_beside(account.limits.tensor)}"
    elif account.limits.memory is not None:
        why = f"and {told_beside(account.left)} are left of the limit of memory, {size_text(account.limits.memory)}"
    else:
        why = "and this machine has not so much left"
    largest = _largest(alive)
    told = f"; the largest tensors alive: {', '.join(largest)}" if largest else ""
    return ResourceExhaustedError(f"{what} wants {wanted}, {why}{told}", node=node)


def _largest(alive: Alive) -> list[str]:
    found: dict[int, tuple[int, str]] = {}  # by where their data are: several names may be of one array
    for name, value in alive:
        if isinstance(value, np.ndarray):
            where = int(value.__array_interface__["data"][0])
            held = _held(value)
            text = f"'{name}' {_kind(value.dtype)}{list(value.shape)} ({size_text(held)})"
            if held and found.get(where, (0, ""))[0] < held:
                found[where] = (held, text)
    return [text for _, text in sorted(found.values(), reverse=True)[:_SHOWN]]


def _held(value: np.ndarray[Any, Any]) -> int:
    """The bytes that an array's elements lie in: what is broadcast lies there once."""
    if not value.size:
        return 0
    return math.prod(n for n, step in zip(value.shape, value.strides, strict=True) if step) * value.itemsize


def _kind(dtype: Any) -> str:
    return "string" if dtype.kind == "O" else str(dtype)
