"""Kernels of NULL devices: all that the CPU has, which are given copies and whose results are copied."""

from __future__ import annotations

import dataclasses

from toolkit.kernels import registry
from toolkit.kernels.boundary import through_copies
from toolkit.kernels.default.calls import CALLS
from toolkit.kernels.default.transfers import TRANSFERS

NAME = "NULL"


def _register() -> None:
    """All that the CPU has, by the same types, but for what every device has in its own way: functions run on the
    device, and tensors leave it as from any other."""
    for entry in registry.all_kernels("CPU"):
        if entry.priority == 0 and entry.op not in (*CALLS, *TRANSFERS):
            registry.add(dataclasses.replace(entry, device_type=NAME, factory=through_copies(entry)))


_register()
