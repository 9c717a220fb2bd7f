"""Constants, copies and what hands its input on, for devices with a memory of their own."""

from __future__ import annotations

import dataclasses
from typing import Any

from toolkit.kernels import registry
from toolkit.kernels.boundary import memory_of, through_copies
from toolkit.kernels.facts import COPY_IN, COPY_OUT
from toolkit.kernels.registry import DEFAULT, Compute, KernelNode

#: what makes a tensor in host memory or takes one there: a constant is copied in once, when its program is made
_COPIED = ("Const",)
#: what looks at no number; the CPU's kernels do for any array
_HANDED_ON = (
    "Identity", "StopGradient", "PreventGradient", "Snapshot", "IdentityN", "NoOp", "ControlTrigger",
    "Placeholder", "PlaceholderV2", "PlaceholderWithDefault", "_Arg", "_DeviceArg", "_Retval", "_DeviceRetval",
    "HostConst", "_HostSend",
)  # fmt: skip


@registry.kernel(COPY_OUT, COPY_IN, device=DEFAULT)
def copy(op: KernelNode) -> Compute:
    """Between the device's memory and its host's."""
    memory, out = memory_of(op.node), op.op == COPY_OUT

    def compute(value: Any) -> Any:
        if memory.owns(value):
            return memory.copy_out(value) if out else value
        return value if out else memory.copy_in(value)  # what is read of a reference variable is on the host already

    return compute


def _register() -> None:
    for op in (*_COPIED, *_HANDED_ON):
        for entry in registry.candidates(op, "CPU"):
            factory = through_copies(entry) if op in _COPIED else entry.factory
            registry.add(dataclasses.replace(entry, device_type=DEFAULT, factory=factory))


_register()
