"""Places for values of which there are none yet: elements of lists and arrays, as many as a number in a model says."""

from __future__ import annotations

from typing import Any

import numpy as np

_SMALL = 1 << 16


def empty_slots(count: int) -> list[Any]:
    """`[None] * count`, for a count that came from a model.

    A list takes its memory at once, and without asking whether it is within the limits; NumPy asks first, and touches
    nothing.

    Raises:
        MemoryError: there is no room.
    """
    if count > _SMALL:
        np.empty(count, np.int64)  # as large as the list's pointers
    return [None] * count


__all__ = ["empty_slots"]
