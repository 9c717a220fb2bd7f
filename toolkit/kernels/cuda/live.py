"""The tensors in a device's memory, for the message when there is no room for another one."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from typing import Any, TypeAlias

#: bytes, shape and type of a tensor (None for memory that is none), and the node that made it ("" if not known)
LiveTensor: TypeAlias = tuple[int, tuple[int, ...], Any, str]
_LISTED = 5  # tensors in a message, which is one line


def largest(tensors: Iterable[LiveTensor]) -> str:
    """The largest of them as the end of a message, equal ones together; "" when there are none."""
    found = sorted(Counter(tensors).items(), key=lambda one: -one[0][0] * one[1])
    if not found:
        return ""
    return "; the largest tensors: " + ", ".join(_line(tensor, count) for tensor, count in found[:_LISTED])


def _line(tensor: LiveTensor, count: int) -> str:
    nbytes, shape, dtype, node = tensor
    what = "memory" if dtype is None else described(shape, dtype)
    times, by = f"{count} times " if count > 1 else "", f" of node '{node}'" if node else ""
    return f"{times}{nbytes} bytes, {what}{by}"


def described(shape: tuple[int, ...], dtype: Any) -> str:
    """A tensor's type and shape: "float32[2, 3]"."""
    return f"{dtype}{list(shape)}"
