"""Ops that call functions, on devices with a memory of their own: functions run there, and tensors stay there."""

from __future__ import annotations

import dataclasses

from toolkit.kernels import registry
from toolkit.kernels.registry import DEFAULT

#: what decides (predicates, indices, limits) is in host memory; other arguments are only handed on
CALLS = (
    "PartitionedCall", "StatefulPartitionedCall", "RemoteCall", "If", "StatelessIf", "Case", "StatelessCase", "While",
    "StatelessWhile", "For", "SymbolicGradient",
)  # fmt: skip


def _register() -> None:
    for op in CALLS:
        for entry in registry.candidates(op, "CPU"):
            registry.add(dataclasses.replace(entry, device_type=DEFAULT))


_register()
