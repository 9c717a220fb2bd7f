"""Which processor code is made for: this one, or the level that GRAPHMILL_CPU names."""

from __future__ import annotations

import os
import platform
from pathlib import Path
from typing import NamedTuple

from toolkit.errors import UsageError

VARIABLE = "GRAPHMILL_CPU"
X86, AARCH64 = "x86_64", "aarch64"
_INFORMATION = Path("/proc/cpuinfo")
#: what Linux calls the line with a processor's features, by machine
_FEATURES = {X86: "flags", AARCH64: "Features"}


class Level(NamedTuple):
    """What all processors of some generation have.

    Attributes:
        machine: whose processors.
        instructions: of the row for it (`rows`).
        llvm: LLVM's name for a processor that has that and no more.
        onednn: oneDNN's number for it (dnnl_cpu_isa_t); 0 leaves it the choice.
    """

    machine: str
    instructions: str
    llvm: str
    onednn: int


#: levels of the x86-64 ABI, each with what the one before has, and the first version of the 64-bit Arm architecture
LEVELS = {
    "x86-64-v2": Level(X86, "baseline", "x86-64-v2", 0x01),
    "x86-64-v3": Level(X86, "avx2", "x86-64-v3", 0x07),
    "x86-64-v4": Level(X86, "avx512", "x86-64-v4", 0x27),
    "armv8-a": Level(AARCH64, "neon", "generic", 0x00),
}


def machine() -> str:
    """What this machine is, as Linux calls it, whatever the system does."""
    named = platform.machine().lower()
    return {"amd64": X86, "arm64": AARCH64}.get(named, named)


def level() -> str:
    """The level; "" for this processor and all that it has.

    Raises:
        UsageError: this machine has no such level.
    """
    named = os.environ.get(VARIABLE, "")
    if named and (named not in LEVELS or LEVELS[named].machine != machine()):
        own = "".join(f"{name}, " for name, level in LEVELS.items() if level.machine == machine())
        raise UsageError(f"{VARIABLE} is '{named}'; expected {own}or nothing for this processor")
    return named


def has(flag: str) -> bool:
    """Whether Linux names something among what the processor has, and the level does not exclude it."""
    if level():
        return False
    return flag in _fields().get(_FEATURES.get(machine(), ""), "").split()


def model() -> str:
    """The processor's name, of an Arm one the numbers of its maker and of the part; "" where Linux does not say it."""
    fields = _fields()
    if machine() != AARCH64:
        return fields.get("model name", "")
    return " ".join(filter(None, (fields.get("CPU implementer"), fields.get("CPU part"))))


def _fields() -> dict[str, str]:
    """What Linux says of the first processor."""
    try:
        lines = _INFORMATION.read_text(encoding="utf8").splitlines()
    except OSError:
        return {}
    found: dict[str, str] = {}
    for line in lines:
        name, _, value = line.partition(":")
        found.setdefault(name.strip(), value.strip())
    return found
