"""CRC-32C as TensorFlow's files store it: masked, so that the sum of data that holds sums stays useful.

The masking (rotate right by 15, add a constant) is LevelDB's; TFRecord files, tables and checkpoints share it.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, cast

import google_crc32c

_MASK_DELTA = 0xA282EAD8
_WORD = 0xFFFFFFFF
_extend: Callable[[int, Any], int] = cast(Any, google_crc32c).extend


def extend(crc: int, data: Any) -> int:
    """The CRC-32C of what `crc` covers followed by `data`.

    Args:
        crc: the sum so far, 0 at the start.
        data: bytes, or a contiguous numpy array (its bytes are summed in place, without a copy).
    """
    if isinstance(data, bytearray | memoryview):
        data = bytes(cast(Any, data))
    return _extend(crc, data)


def value(data: Any) -> int:
    """The plain CRC-32C of bytes or of a contiguous array."""
    return extend(0, data)


def mask(crc: int) -> int:
    """A plain sum as it is stored."""
    return (((crc >> 15) | (crc << 17)) + _MASK_DELTA) & _WORD


def unmask(masked: int) -> int:
    """A stored sum as a plain one."""
    rotated = (masked - _MASK_DELTA) & _WORD
    return ((rotated >> 17) | (rotated << 15)) & _WORD


def masked(data: Any) -> int:
    """The sum of `data` as it is stored."""
    return mask(extend(0, data))
