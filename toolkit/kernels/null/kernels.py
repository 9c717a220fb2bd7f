"""Kernels of NULL devices: all that the CPU has, which are given copies and whose results are copied."""

from __future__ import annotations

import dataclasses

from toolkit.kernels import registry
from toolkit.kernels.boundary import through_copies
from toolkit.kernels.default.calls import CALLS

NAME = "NULL"


def _register() -> None:
    """All that the CPU has, by the same types, but for what calls functions: these run on the device."""
    for entry in registry.all_kernels("CPU"):
        if entry.priority == 0 and entry.op not in CALLS:
            registry.add(dataclasses.replace(entry, device_type=NAME, factory=through_copies(entry)))


_register()
