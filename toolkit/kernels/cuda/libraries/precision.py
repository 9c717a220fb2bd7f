"""How exactly the libraries multiply float32 numbers, for the whole process.

TF32 keeps 10 of 23 bits of mantissa and is several times faster on tensor cores. It is off until somebody turns it on,
so that results are the CPU's within float32's rounding.
"""

from __future__ import annotations

_allowed = False


def allow_tf32(allowed: bool) -> None:
    """Whether products and convolutions of float32 numbers may be computed in TF32 from now on."""
    global _allowed
    _allowed = allowed


def is_tf32_allowed() -> bool:
    return _allowed
