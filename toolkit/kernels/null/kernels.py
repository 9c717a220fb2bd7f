"""Kernels of NULL devices: all that the CPU has, which are given copies and whose results are copied."""

from __future__ import annotations

import dataclasses

from toolkit.kernels import registry
from toolkit.kernels.boundary import through_copies

NAME = "NULL"


def _register() -> None:
    """All that the CPU has, by the same types."""
    for entry in registry.all_kernels("CPU"):
        if entry.priority == 0:
            registry.add(dataclasses.replace(entry, device_type=NAME, factory=through_copies(entry)))


_register()
