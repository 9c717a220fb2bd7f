"""Which processor code is made for: this one, or the level that GRAPHMILL_CPU names."""

from __future__ import annotations

import os
from pathlib import Path

from toolkit.errors import UsageError

VARIABLE = "GRAPHMILL_CPU"
#: levels of the x86-64 ABI, each with what the one before has, and oneDNN's names for them (dnnl_cpu_isa_t)
LEVELS = {"x86-64-v2": 0x01, "x86-64-v3": 0x07, "x86-64-v4": 0x27}


def level() -> str:
    """The level; "" for this processor and all that it has.

    Raises:
        UsageError: there is no such level.
    """
    named = os.environ.get(VARIABLE, "")
    if named and named not in LEVELS:
        raise UsageError(f"{VARIABLE} is '{named}'; expected {', '.join(LEVELS)}, or nothing for this processor")
    return named


def has(flag: str) -> bool:
    """Whether Linux names something among what the processor has, and the level does not exclude it."""
    if level():
        return False
    try:
        return flag in Path("/proc/cpuinfo").read_text(encoding="utf8")
    except OSError:
        return False


def model() -> str:
    """The processor's name; "" where Linux does not say it."""
    try:
        lines = Path("/proc/cpuinfo").read_text(encoding="utf8").splitlines()
    except OSError:
        return ""
    return next((line.partition(":")[2].strip() for line in lines if line.startswith("model name")), "")
