"""What the simulation of a step (`placement/simulation`) tells."""

from __future__ import annotations

from dataclasses import dataclass, field

from toolkit.graph.device import DeviceSpec
from toolkit.graph.node import Node, Output


@dataclass(frozen=True, slots=True)
class SimulatedRun:
    """One node's run; times in seconds from the step's begin."""

    node: Node
    device: DeviceSpec
    start: float
    end: float


@dataclass(frozen=True, slots=True)
class SimulatedTransfer:
    """One tensor's way; `output.index` is -1 for a control edge."""

    output: Output
    source: DeviceSpec
    target: DeviceSpec
    start: float
    end: float
    bytes: int


@dataclass(slots=True)
class SimulatedStep:
    """A step on paper.

    Attributes:
        seconds: until the last node has ended, with what it costs that several devices take part.
        busy: by device, the seconds that it works.
        peak: by device, the most bytes at once.
        runs, transfers: in the order in which they begin.
    """

    seconds: float = 0.0
    busy: dict[DeviceSpec, float] = field(default_factory=dict[DeviceSpec, float])
    peak: dict[DeviceSpec, int] = field(default_factory=dict[DeviceSpec, int])
    runs: list[SimulatedRun] = field(default_factory=list[SimulatedRun])
    transfers: list[SimulatedTransfer] = field(default_factory=list[SimulatedTransfer])


#: a tensor on its way: node, output (-1: a control edge), the device that it goes to
Way = tuple[int, int, DeviceSpec]
