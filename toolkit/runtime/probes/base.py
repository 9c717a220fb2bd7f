"""The probe interface."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Protocol

from toolkit.graph.node import Node


class Probe(Protocol):
    """Sees every kernel that runs; called from the executors' threads, one call at a time per partition."""

    def ran(
        self, node: Node, device: str, start_ns: int, end_ns: int, inputs: Sequence[Any], outputs: Sequence[Any]
    ) -> None:
        """A kernel has run.

        Args:
            device: where; "" for the only device.
            start_ns, end_ns: on the clock of `time.perf_counter_ns`.
            inputs: its input values; empty for asynchronous kernels.
            outputs: its output values. Neither may be changed or kept beyond the call without copying.
        """
        ...


class Probes:
    """Several probes at once."""

    def __init__(self, probes: Sequence[Probe]):
        self._probes = list(probes)

    def ran(
        self, node: Node, device: str, start_ns: int, end_ns: int, inputs: Sequence[Any], outputs: Sequence[Any]
    ) -> None:
        for probe in self._probes:
            probe.ran(node, device, start_ns, end_ns, inputs, outputs)
