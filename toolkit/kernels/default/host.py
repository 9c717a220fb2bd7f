"""Nodes on a device whose tensors all stay in host memory: the CPU's kernels run them there.

TensorFlow's registrations for accelerators keep 32-bit integers of small ops, shapes, handles and texts in host memory
(`facts`). Such a node has nothing that could be on the device; it is there so that nothing crosses to another one.
"""

from __future__ import annotations

import dataclasses
import functools
from collections.abc import Mapping

from toolkit.graph import opdefs
from toolkit.graph.dtypes import DType
from toolkit.graph.opdefs import ArgDef
from toolkit.kernels import device_types, registry
from toolkit.kernels.facts import host_registrations
from toolkit.kernels.registry import DEFAULT, Kernel

#: behind whatever a device has of its own
_PRIORITY = -1


@functools.cache
def on_host(op: str, device_type: str) -> tuple[Kernel, ...]:
    """The CPU's kernels of an op, for the types of which everything stays in host memory on a type of device."""
    if device_types.is_foreign(device_type):  # of which TensorFlow's registrations say nothing
        return ()
    definition = opdefs.find(op)
    if definition is None:
        return ()
    found: list[Kernel] = []
    for allowed, names in host_registrations(op, device_type):
        if not all(arg.name in names or _is_always_host(arg) for arg in (*definition.inputs, *definition.outputs)):
            continue
        for entry in registry.candidates(op, "CPU"):
            types = _both(allowed, entry.types)
            if entry.priority == 0 and all(types.values()):
                made = dataclasses.replace(entry, device_type=DEFAULT, types=types, priority=_PRIORITY)
                if not any(made.types == other.types for other in found):
                    found.append(made)
    return tuple(found)


def _is_always_host(arg: ArgDef) -> bool:
    return arg.type is not None and arg.type.base.kind in "sr"


def _both(a: Mapping[str, frozenset[DType]], b: Mapping[str, frozenset[DType]]) -> dict[str, frozenset[DType]]:
    """The types that both allow, by attribute."""
    return {name: a.get(name, b.get(name, frozenset())) & b.get(name, a.get(name, frozenset())) for name in {**a, **b}}


registry.further.append(on_host)
