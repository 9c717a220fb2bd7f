"""A probe that looks at every step of every session of the process: what a program runs that makes its own sessions."""

from __future__ import annotations

import threading
from collections.abc import Generator, Sequence
from contextlib import contextmanager
from typing import Any, cast

from toolkit.compiler.context import Watcher
from toolkit.graph.node import Node
from toolkit.runtime.probes.base import Manner, Probe, Probes, manner_of


class _OneAtATime:
    """A probe that sessions of several threads share."""

    def __init__(self, probe: Probe):
        self._probe = probe
        self._lock = threading.Lock()

    @property
    def manner(self) -> Manner:
        return manner_of(self._probe)

    def ran(
        self, node: Node, device: str, start_ns: int, end_ns: int, inputs: Sequence[Any], outputs: Sequence[Any]
    ) -> None:
        with self._lock:
            self._probe.ran(node, device, start_ns, end_ns, inputs, outputs)

    def ran_plan(self, entries: Sequence[Any], device: str, marks: list[int]) -> None:
        with self._lock:
            cast("Watcher", self._probe).ran_plan(entries, device, marks)

    def compiled(self, what: str, start_ns: int, end_ns: int) -> None:
        with self._lock:
            cast("Watcher", self._probe).compiled(what, start_ns, end_ns)


_probes: list[Probe] = []


@contextmanager
def looking(probe: Probe) -> Generator[None]:
    """Within this, `probe` sees every kernel that any session runs, one call at a time."""
    shared = _OneAtATime(probe)
    _probes.append(shared)
    try:
        yield
    finally:
        _probes.remove(shared)


def joined(probe: Probe | None) -> Probe | None:
    """The probe of one step together with those that look everywhere."""
    if not _probes:
        return probe
    return Probes([*_probes, *([] if probe is None else [probe])])
