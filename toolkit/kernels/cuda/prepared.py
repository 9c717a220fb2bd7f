"""What is made once of tensors that stay: filters folded and turned over, kept until one of them is changed.

Variables keep their arrays when they are changed in place, so that an array alone does not say that it still holds the
same numbers. Whoever makes something of arrays puts a `Watch` on each; whoever changes an array in place tells that
(`changed`), and what was made is made again. What hangs on a watch goes with its array.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Generator, Sequence
from contextlib import contextmanager
from typing import Any

from toolkit.kernels.cuda.memory import GpuArray

#: how often one user makes something anew before it is left to each step: its arrays are changed from step to step
_MOST_TIMES = 3


class Watch:
    """Somebody made something of an array.

    Attributes:
        changed: the array was changed since.
        made: what was made of it and of others behind it, by what it is for and the watches of those. What is made of
            it and of different others is kept beside each other: recorded steps have its addresses.
    """

    __slots__ = ("changed", "made")

    def __init__(self) -> None:
        self.changed = False
        self.made: dict[tuple[Any, ...], Any] = {}


def watch(array: GpuArray) -> Watch:
    """The watch on an array, one for all who ask."""
    found = array.watch
    if found is None:
        found = array.watch = Watch()
    return found


def changed(array: Any) -> None:
    """Tell that an array is changed in place."""
    found = getattr(array, "watch", None)
    if found is not None:
        found.changed, array.watch = True, None
        _count.value += 1


class _Count:
    """How many changes were told of."""

    value = 0


_count = _Count()


class Moment:
    """The time it was made: nothing that is watched has changed since, as long as it is now."""

    __slots__ = ("_count",)

    def __init__(self) -> None:
        self._count = _count.value

    def is_now(self) -> bool:
        return self._count == _count.value


class _Noted(threading.local):
    into: list[Watch] | None = None


_noted = _Noted()


@contextmanager
def noted() -> Generator[list[Watch]]:
    """The watches of all that this thread takes within and did not make: what it launches holds while they do."""
    found: list[Watch] = []
    before, _noted.into = _noted.into, found
    try:
        yield found
    finally:
        _noted.into = before


class Prepared:
    """What one operation makes of its arrays.

    Args:
        key: what it is; two with one key make the same of the same arrays.
    """

    def __init__(self, key: Any):
        self._key = key
        self._times = 0

    def of(self, device: Any, arrays: Sequence[GpuArray], make: Callable[[], Any]) -> Any:
        """What was made of these arrays, or is made now; in a recorded step it is made in each replay."""
        first, *others = watches = [watch(array) for array in arrays]
        key = (self._key, *others)
        found = first.made.get(key)
        if found is not None:
            if _noted.into is not None:
                _noted.into += watches
            return found
        thing = make()
        if not device.is_recording:  # what is recorded has memory of its own, not ours to keep
            for each in list(first.made):
                if any(other.changed for other in each[1:]):
                    first.made.pop(each, None)
            self._times += 1
            if self._times <= _MOST_TIMES:
                first.made[key] = thing
        return thing
