"""Collective ops of GPUs: the CPU's, whose arithmetic is done in the memory of each device.

Tensors of other GPUs are copied from memory to memory, by each device that wants them.
"""

from __future__ import annotations

import dataclasses

from toolkit.graph import dtypes
from toolkit.kernels import registry
from toolkit.kernels.registry import NUMBER

_OPS = (
    "CollectiveAllToAllV2", "CollectiveBcastRecv", "CollectiveBcastRecvV2", "CollectiveBcastSend",
    "CollectiveBcastSendV2", "CollectiveGather", "CollectiveGatherV2", "CollectiveReduce", "CollectiveReduceV2",
    "CollectiveReduceScatterV2", "NcclAllReduce", "NcclBroadcast", "NcclReduce",
)  # fmt: skip


def _register() -> None:
    for op in _OPS:
        for entry in registry.candidates(op, "CPU"):
            registry.add(dataclasses.replace(entry, device_type="GPU", types={"T": NUMBER | {dtypes.bool_}}))


_register()
