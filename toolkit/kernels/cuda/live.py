"""The tensors in a device's memory, for the message when there is no room for another one."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from typing import Any, NamedTuple

_LISTED = 5  # tensors in a message, which is one line


class LiveTensor(NamedTuple):
    """Attributes:
    nbytes: of the tensor.
    shape, dtype: what it is; dtype is None for memory that is no tensor.
    node: the node that made it, "" where that is not known.
    """

    nbytes: int
    shape: tuple[int, ...]
    dtype: Any
    node: str

    @staticmethod
    def largest(tensors: Iterable[LiveTensor]) -> str:
        """The largest of them as a part of a message, "" when there are none."""
        found = Counter(tensors).most_common()
        found.sort(key=lambda one: -one[0].nbytes * one[1])
        if not found:
            return ""
        return "; the largest tensors: " + ", ".join(_line(tensor, count) for tensor, count in found[:_LISTED])


def _line(tensor: LiveTensor, count: int) -> str:
    what = "memory" if tensor.dtype is None else described(tensor.shape, tensor.dtype)
    return (
        f"{f'{count} times ' if count > 1 else ''}{tensor.nbytes} bytes, {what}"
        f"{f' of node {tensor.node!r}' if tensor.node else ''}"
    )


def described(shape: tuple[int, ...], dtype: Any) -> str:
    """A tensor's type and shape: "float32[2, 3]"."""
    return f"{dtype}{list(shape)}"
