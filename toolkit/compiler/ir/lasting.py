"""Constants that are there as long as the program or the variable that has them: what is made of them for one plan may
serve the next.

Other constants of a plan are made while it is compiled, as filters with scales multiplied in are, and go when what they
are for is packed: who kept one for the next plan would take its memory.
"""

# numpy's overloads answer arrays typed Any with Unknown
# pyright: reportUnknownVariableType=false, reportUnknownMemberType=false, reportUnknownArgumentType=false

from __future__ import annotations

import weakref
from typing import Any

import numpy as np

#: bytes from which on it is worth knowing
_LEAST = 1 << 12
_LASTING: weakref.WeakValueDictionary[int, Any] = weakref.WeakValueDictionary()


def note_lasting(constant: Any) -> None:
    """Know that somebody keeps a constant who outlives the plan."""
    if isinstance(constant, np.ndarray) and constant.nbytes >= _LEAST:
        owner = owner_of(constant)
        _LASTING[id(owner)] = owner


def is_lasting(array: Any) -> bool:
    """Whether an array, or what it is a view of, is kept whatever becomes of the plan."""
    owner = owner_of(array)
    return _LASTING.get(id(owner)) is owner


def owner_of(array: Any) -> Any:
    """The array whose memory an array is a view of; itself where it is none."""
    while isinstance(array.base, np.ndarray):
        array = array.base
    return array
