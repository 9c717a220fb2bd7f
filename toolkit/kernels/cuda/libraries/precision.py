"""How exactly the libraries multiply float32 numbers, for what this thread launches.

TF32 keeps 10 of 23 bits of mantissa and is several times faster on tensor cores. It is off until somebody turns it on,
so that results are the CPU's within float32's rounding. Each step says for itself what it wants, whichever session's
step this thread ran before.
"""

from __future__ import annotations

import threading


class _Precision(threading.local):
    allowed = False


_precision = _Precision()


def allow_tf32(allowed: bool) -> bool:
    """Whether products and convolutions of float32 numbers may be computed in TF32 from now on, by this thread.

    Returns:
        whether they were before, for who puts that back.
    """
    before, _precision.allowed = _precision.allowed, allowed
    return before


def is_tf32_allowed() -> bool:
    return _precision.allowed
