"""The probe interface."""

from __future__ import annotations

from collections.abc import Sequence
from enum import Enum
from typing import Any, Protocol, cast

from schemas import step_stats_pb2
from toolkit.compiler.context import Watcher
from toolkit.graph.node import Node


class Manner(Enum):
    """How a step runs that a probe is given to, which the probe's attribute `manner` may say."""

    NODE_BY_NODE = "every kernel is looked at, in whatever executor does so"  # what a probe wants that says nothing
    LOOKED_AT = "every kernel is looked at, in the dataflow executor, but none inside of functions"
    BY_TOKENS = "in the dataflow executor, and nothing is looked at"
    PLANNED = "compiled, and what compiled functions do is told (`Watcher`); kernels outside of them are looked at"
    CHECKED = "compiled, and nodes run one by one where a value of a compiled function is not finite"
    COMPILED = "as if there were no probe"


def manner_of(probe: Probe | None) -> Manner:
    """How a step with this probe runs."""
    if probe is None:
        return Manner.COMPILED
    return getattr(probe, "manner", Manner.NODE_BY_NODE)


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


def tell_duration(probe: Probe, seconds: float) -> None:
    """Tell a probe what the execution of a step took, without what is around it; those hear it that have `executed`."""
    told = getattr(probe, "executed", None)
    if told is not None:
        told(seconds)


def looks(probe: Probe | None) -> bool:
    """Whether a probe wants to see the kernels of the step that it was given to."""
    return manner_of(probe) in (Manner.NODE_BY_NODE, Manner.LOOKED_AT, Manner.PLANNED, Manner.CHECKED)


class HearsOfTasks(Protocol):
    """A probe that wants to know what tasks of other processes do, which tell it in statistics."""

    def told(self, stats: step_stats_pb2.StepStats) -> None:
        """A task's part of the step is over."""
        ...


def hearer(probe: Probe | None) -> HearsOfTasks | None:
    """Who is told what another process writes down of a step with this probe; None: nobody, it need not."""
    probes = probe.probes if isinstance(probe, Probes) else [probe]
    found = [cast("HearsOfTasks", each) for each in probes if hasattr(each, "told")]
    return found[0] if found else None


class Probes:
    """Several probes at once.

    Attributes:
        probes: they.
    """

    def __init__(self, probes: Sequence[Probe]):
        self.probes = list(probes)

    @property
    def manner(self) -> Manner:
        """What all of them want; where they differ, every kernel is looked at."""
        wanted = {manner_of(probe) for probe in self.probes}
        return wanted.pop() if len(wanted) == 1 else Manner.NODE_BY_NODE

    def ran(
        self, node: Node, device: str, start_ns: int, end_ns: int, inputs: Sequence[Any], outputs: Sequence[Any]
    ) -> None:
        for probe in self.probes:
            probe.ran(node, device, start_ns, end_ns, inputs, outputs)

    def ran_plan(self, entries: Sequence[Any], device: str, marks: list[int]) -> None:
        """See `Watcher`; only where all of them want to be told."""
        for probe in self.probes:
            cast("Watcher", probe).ran_plan(entries, device, marks)

    def compiled(self, what: str, start_ns: int, end_ns: int) -> None:
        for probe in self.probes:
            cast("Watcher", probe).compiled(what, start_ns, end_ns)

    def executed(self, seconds: float) -> None:
        """A step has been executed; see `tell_duration`."""
        for probe in self.probes:
            tell_duration(probe, seconds)
