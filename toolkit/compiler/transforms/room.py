"""Memory for many arrays at once, since memory that is touched for the first time is what small copies mostly cost."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

#: bytes from which on NumPy asks for large pages (and no smaller ones are shared out here): on the processor of
#: `toolkit.target.rows`' Cascade Lake 100 MB are there in 30 ms instead of 85
_LARGE = 4 << 20
#: bytes of a piece at most: it lives as long as any array in it
_PIECE = 32 << 20
#: as tensors begin
_ALIGNMENT = 64


class Room:
    """Gives out float32 arrays that lie one behind the other.

    Args:
        expected: bytes that all of them may take.
    """

    def __init__(self, expected: int):
        self._expected = expected
        self._piece: Any = np.empty(0, np.uint8)
        self._at = 0

    def take(self, shape: Sequence[int]) -> Any:
        """An array with anything in it."""
        size = 4 * math.prod(shape)
        if size >= _LARGE or self._expected < _LARGE:
            return np.empty(shape, np.float32)
        if self._at + size > self._piece.nbytes:
            raw = np.empty(max(size, min(self._expected, _PIECE)) + _ALIGNMENT, np.uint8)
            self._piece, self._at = raw[-raw.__array_interface__["data"][0] % _ALIGNMENT :], 0
        made = self._piece[self._at : self._at + size]
        self._at += -(-size // _ALIGNMENT) * _ALIGNMENT
        self._expected -= size
        return made.view(np.float32).reshape(shape)
