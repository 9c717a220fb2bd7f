"""Devices of variables and operations in a job of workers and parameter servers (tf.train.replica_device_setter)."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Collection
from dataclasses import replace
from typing import Any

from toolkit.graph.device import DeviceSpec

#: ops whose state the parameter servers keep
PARAMETER_OPS = frozenset({
    "Variable", "VariableV2", "AutoReloadVariable", "MutableHashTable", "MutableHashTableV2",
    "MutableHashTableOfTensors", "MutableHashTableOfTensorsV2", "MutableDenseHashTable", "MutableDenseHashTableV2",
    "VarHandleOp", "BoostedTreesEnsembleResourceHandleOp", "BoostedTreesQuantileStreamResourceHandleOp",
    "ResourceConditionalAccumulator", "DecisionTreeResource",
})  # fmt: skip


def replica_device_setter(
    servers: int, server_device: str, worker_device: str, merge_devices: bool = True,
    ops: Collection[str] | None = None, strategy: Callable[[Any], int] | None = None,
) -> Callable[[Any], str]:  # fmt: skip
    """A function for `device`: what has state goes to the parameter servers, all else to the worker.

    Args:
        servers: how many there are.
        merge_devices: what an operation says of its device itself is kept, and only completed.
        ops: those that go to the servers; default: variables and tables.
        strategy: from an operation to the number of its server; default: one after the other.
    """
    chosen = PARAMETER_OPS if ops is None else frozenset(ops)
    numbers = itertools.cycle(range(servers))

    def in_turn(op: Any) -> int:
        return next(numbers)

    pick = strategy or in_turn
    server, worker = DeviceSpec.parse(server_device or ""), DeviceSpec.parse(worker_device or "")

    def device(op: Any) -> str:
        if not merge_devices and op.device:
            return op.device
        own = DeviceSpec.parse(op.device or "")
        kind = getattr(op, "type", None) or op.op
        if not (server_device and kind in chosen):
            return str(own.override(worker))
        if server.job and own.job in (None, server.job):
            return str(own.override(replace(server, task=pick(op))))
        return str(own.override(server))

    return device
