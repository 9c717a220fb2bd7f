"""Receives as late as the critical path allows (white paper, section 5.2), so that tensors lie about for less time.

The step is simulated (`placement/simulation`). In the graph of what follows what in it (edges, transfers, and the order
in which each device runs its nodes) every node has a time by which it must have ended if the step is to take no longer
(ALAP). A receive waits for the node of its device that must have ended latest among those that must have ended when it
has to begin at the latest: an edge from the one to the other joins times that are in this order anyway, so no cycle and
no longer way to the end can come of it. A node that may be dead, behind a branch, is waited for through a
ControlTrigger, which passes no deadness on.

The step is then simulated again. What makes a device's peak larger, for a tensor that is sent later is held longer
where it was made, is taken back, and so is all that makes the step longer.
"""

from __future__ import annotations

import math
from bisect import bisect_left
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from itertools import pairwise

from toolkit.formats.settings.cluster_speeds import Speeds
from toolkit.formats.settings.cost_file import MeasuredCosts
from toolkit.graph.device import DeviceSpec
from toolkit.graph.graph import Graph
from toolkit.graph.node import MERGE_OPS, NEXT_ITERATION_OPS, SWITCH_OPS, Node
from toolkit.graph.partitioned import MARK, RECV_OPS, SEND_OPS
from toolkit.passes.partitioning.partition import Partitioned, value_frames
from toolkit.passes.partitioning.receive_schedule import ReceiveSchedule
from toolkit.passes.placement.costs import BATCH, NodeCosts
from toolkit.passes.placement.simulated_step import SimulatedStep, Way
from toolkit.passes.placement.simulation import Simulator

#: times that a schedule is made milder before it is given up
_ROUNDS = 12
IN_LOOP = "in a loop, whose iterations start their receives themselves"
BY_REFERENCE = "values of variables that are read when all else has happened"
FOR_ORDER = "control edges, which take no memory"
SOON = "needed as soon as they are sent"
NO_GAIN = "would cost time, or memory where they are sent"


@dataclass(frozen=True, slots=True)
class ScheduleReceives:
    """For `PartitionGraph`; what it knows the step's times by is that of `NodeCosts`."""

    speeds: Speeds = field(default_factory=Speeds)
    measured: MeasuredCosts | None = None
    batch: int = BATCH

    def __call__(self, graph: Graph, parts: Partitioned) -> ReceiveSchedule:
        """Add the control edges to the partitions of a placed graph.

        Raises:
            GraphmillError: see `NodeCosts`.
        """
        costs = NodeCosts(graph, self.speeds, self.measured, self.batch)
        return _Scheduler(graph, parts, costs).run()


@dataclass(slots=True)
class _Receive:
    """A receive that may wait.

    Attributes:
        way: what the simulation calls the transfer.
        sent: when the simulated step has the tensor ready.
        size, seconds: its bytes, and what its way takes.
        latest: when it must begin, and its place in the order.
    """

    node: Node
    way: Way
    sent: float
    size: int
    seconds: float
    latest: tuple[float, int] = (0.0, 0)


class _Scheduler:
    def __init__(self, graph: Graph, parts: Partitioned, costs: NodeCosts):
        self.graph = graph
        self.parts = parts
        self.costs = costs
        self.devices = [DeviceSpec.parse(node.device) for node in graph.nodes]
        self.simulator = Simulator(graph, graph.topological_order(), self.costs)
        self.before = self.simulator.run(self.devices)
        self.ends = {run.node.id: run.end for run in self.before.runs}
        self.left: Counter[str] = Counter()

    def run(self) -> ReceiveSchedule:
        receives = self._receives()
        durations = self._durations() | {each.node.name: each.seconds for each in receives}
        times = _LatestTimes(self.parts, durations, self._lines())
        for receive in receives:
            receive.latest = times.latest_start(receive.node)
        self.candidates = self._candidates(times)
        waits, after = self._mildest(receives)
        for receive in receives:
            if receive.way not in waits:
                self.left[SOON if self._is_soon(receive, waits) else NO_GAIN] += 1
        self._add_edges(receives, waits)
        return ReceiveSchedule(
            len(waits),
            dict(sorted(self.left.items())),
            (self.before.seconds, after.seconds),
            {str(device): (peak, after.peak[device]) for device, peak in self.before.peak.items()},
            {each.node.name: self.graph.nodes[waits[each.way]].name for each in receives if each.way in waits},
        )

    # -- times -------------------------------------------------------------------------------------------

    def _durations(self) -> dict[str, float]:
        """What each node takes, by name."""
        times = {device: self.costs.times(device) for device in set(self.devices)}
        return {node.name: times[device][node.id] for node, device in zip(self.graph.nodes, self.devices, strict=True)}

    def _lines(self) -> list[list[str]]:
        """By device, its nodes in the order in which the simulated step runs them."""
        lines: dict[DeviceSpec, list[str]] = {}
        for run in self.before.runs:
            lines.setdefault(run.device, []).append(run.node.name)
        return list(lines.values())

    def _receives(self) -> list[_Receive]:
        """The receives that may wait."""
        found: list[_Receive] = []
        by_key = {_key(node): node for part in self.parts.graphs.values() for node in part if node.op in RECV_OPS}
        for transfer in self.parts.transfers:
            recv = by_key[transfer.send_device, transfer.recv_device, transfer.tensor_name]
            reason = self._why_left(recv, transfer.tensor)
            if reason:
                self.left[reason] += 1
                continue
            output = self.graph.output(transfer.tensor)
            way = (output.node.id, output.index, DeviceSpec.parse(transfer.recv_device))
            size = self.costs.bytes_of(output)
            sent = self.ends.get(output.node.id, float("inf"))
            latency, bandwidth = self.costs.link(self.devices[output.node.id], way[2])
            found.append(_Receive(recv, way, sent, size, latency + size / bandwidth))
        return found

    @staticmethod
    def _why_left(recv: Node, tensor: str) -> str:
        if tensor.startswith("^"):
            return FOR_ORDER
        if any(node.attr(MARK, b"") == b"loop" for node in recv.control_inputs):
            return IN_LOOP
        return BY_REFERENCE if recv.control_inputs else ""

    def _candidates(self, times: _LatestTimes) -> dict[DeviceSpec, list[tuple[tuple[float, int], int]]]:
        """By device, the nodes that a receive may wait for, by when they must have ended."""
        found: dict[DeviceSpec, list[tuple[tuple[float, int], int]]] = {}
        for node, frame, device in zip(self.graph.nodes, value_frames(self.graph), self.devices, strict=True):
            if frame is None and node.id in self.ends:
                found.setdefault(device, []).append((times.latest_end(node), node.id))
        for nodes in found.values():
            nodes.sort()
        return found

    # -- choosing ----------------------------------------------------------------------------------------

    def _mildest(self, receives: Sequence[_Receive]) -> tuple[dict[Way, int], SimulatedStep]:
        """What each tensor waits for, so that neither the step nor a device's peak grows; and the step then."""
        margin = 0.0
        kept = list(receives)
        for _ in range(_ROUNDS):
            waits = self._waits(kept, margin)
            if not waits:
                break
            step = self.simulator.run(self.devices, held_back=waits)
            grown = {device for device, peak in step.peak.items() if peak > self.before.peak[device]}
            if grown:
                kept = self._without_largest(kept, waits, grown)
            elif step.seconds > self.before.seconds and not math.isclose(step.seconds, self.before.seconds):
                longest = max(each.end - each.start for each in self.before.transfers)
                margin = 2 * margin if margin else longest
            else:
                return waits, step
        return {}, self.before

    def _waits(self, receives: Sequence[_Receive], margin: float) -> dict[Way, int]:
        """What each tensor waits for, where it is later than the tensor.

        Args:
            margin: seconds that receives begin before they must.
        """
        found: dict[Way, int] = {}
        for receive in receives:
            nodes = self.candidates.get(receive.way[2], [])
            latest, position = receive.latest
            place = bisect_left(nodes, ((latest - margin, position), -1)) - 1
            if place >= 0 and self.ends[nodes[place][1]] > receive.sent:
                found[receive.way] = nodes[place][1]
        return found

    def _without_largest(
        self, receives: Sequence[_Receive], waits: Mapping[Way, int], devices: set[DeviceSpec]
    ) -> list[_Receive]:
        """Without the larger half of what such devices send and is held back."""
        held = [each for each in receives if each.way in waits and self.devices[each.way[0]] in devices]
        if not held:  # the peaks come of another order of nodes
            held = [each for each in receives if each.way in waits]
        held.sort(key=lambda each: (-each.size, each.node.name))
        gone = {each.way for each in held[: (len(held) + 1) // 2]}
        return [each for each in receives if each.way not in gone]

    def _is_soon(self, receive: _Receive, waits: Mapping[Way, int]) -> bool:
        return receive.way not in waits and not self._waits([receive], 0.0)

    # -- edges -------------------------------------------------------------------------------------------

    def _add_edges(self, receives: Sequence[_Receive], waits: Mapping[Way, int]) -> None:
        dead = _may_be_dead(self.graph)
        copies = {node.name: (node, part) for part in self.parts.graphs.values() for node in part}
        triggers: dict[int, Node] = {}
        for receive in receives:
            number = waits.get(receive.way)
            if number is None:
                continue
            node, part = copies[self.graph.nodes[number].name]
            if dead[number]:
                if number not in triggers:
                    triggers[number] = part.add(
                        "ControlTrigger", part.unique_name(f"{node.name}/scheduled"), control_inputs=[node],
                        attrs={MARK: "schedule"}, device=node.device,
                    )  # fmt: skip
                node = triggers[number]
            receive.node.control_inputs.append(node)


class _LatestTimes:
    """When nodes of the partitions must have ended, if the step is to take as long as it does (ALAP).

    Args:
        durations: by name; what is not named takes no time.
        lines: nodes that run one after another, by name.
    """

    def __init__(self, parts: Partitioned, durations: Mapping[str, float], lines: Sequence[Sequence[str]]):
        self._nodes = [node for part in parts.graphs.values() for node in part.nodes]
        self._number = {node.name: number for number, node in enumerate(self._nodes)}
        self._durations = [durations.get(node.name, 0.0) for node in self._nodes]
        edges = self._edges()
        in_line: list[list[int]] = [[self._number[name] for name in line] for line in lines]
        order = _sorted(edges, in_line)
        if order is None:  # what transfers of references wait for contradicts the order of the simulation
            in_line = []
            order = _sorted(edges, in_line)
        following = [*map(list, edges)]
        for line in in_line:
            for before, after in pairwise(line):
                following[before].append(after)
        self._position = [0] * len(self._nodes)
        self._ends = [0.0] * len(self._nodes)
        for position, number in enumerate(order or ()):
            self._position[number] = position
        # counted backwards from the end of the step, which is 0
        for number in reversed(order or ()):
            self._ends[number] = min(
                (self._ends[after] - self._durations[after] for after in following[number]), default=0.0
            )

    def _edges(self) -> list[list[int]]:
        """By number, who comes after; not around loops."""
        following: list[list[int]] = [[] for _ in self._nodes]
        sends = {_key(node): number for number, node in enumerate(self._nodes) if node.op in SEND_OPS}
        for number, node in enumerate(self._nodes):
            for source, _ in node.inputs:
                if node.op not in MERGE_OPS or source.op not in NEXT_ITERATION_OPS:
                    following[self._number[source.name]].append(number)
            for source in node.control_inputs:
                following[self._number[source.name]].append(number)
            if node.op in RECV_OPS and _key(node) in sends:
                following[sends[_key(node)]].append(number)
        return following

    def latest_end(self, node: Node) -> tuple[float, int]:
        """When a node must have ended, and its place in the order."""
        number = self._number[node.name]
        return self._ends[number], self._position[number]

    def latest_start(self, node: Node) -> tuple[float, int]:
        """When a node must begin, and its place in the order."""
        number = self._number[node.name]
        return self._ends[number] - self._durations[number], self._position[number]


def _sorted(edges: Sequence[Sequence[int]], lines: Sequence[Sequence[int]]) -> list[int] | None:
    """The numbers in an order in which all edges, and the lines, lead forward; None where there is none."""
    count = len(edges)
    after_in_line = [-1] * count
    pending = [0] * count
    for following in edges:
        for number in following:
            pending[number] += 1
    for line in lines:
        for before, after in pairwise(line):
            after_in_line[before] = after
            pending[after] += 1
    ready = [number for number in range(count) if not pending[number]]
    order: list[int] = []
    while ready:
        number = ready.pop()
        order.append(number)
        for after in (*edges[number], after_in_line[number]):
            if after >= 0:
                pending[after] -= 1
                if not pending[after]:
                    ready.append(after)
    return order if len(order) == count else None


def _key(node: Node) -> tuple[str, str, str]:
    return node.text("send_device"), node.text("recv_device"), node.text("tensor_name")


def _may_be_dead(graph: Graph) -> list[bool]:
    """By node id, whether a branch that is not taken may reach it."""
    found = [False] * len(graph)
    for node in graph.topological_order():
        sources = (*(src for src, _ in node.inputs), *node.control_inputs)
        found[node.id] = node.op in SWITCH_OPS or any(found[src.id] for src in sources)
    return found
