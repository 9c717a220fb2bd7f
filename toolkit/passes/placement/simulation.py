"""Running a placed graph on paper (white paper, section 3.2.1): when nodes and transfers run, and in what memory.

A device runs one node at a time, of those that are ready the one that has been so for longest. A tensor is sent once to
each device that needs it, as `partition` does, one tensor after another on each way between two devices. A tensor takes
memory where it is made until the last node there has used it and it has been sent on; a received one from its arrival
on. Constants and variables take memory all the time. Bodies of loops run once, both branches of a condition run.
"""

from __future__ import annotations

import heapq
from collections.abc import Sequence
from dataclasses import dataclass, field

from toolkit.graph.device import DeviceSpec
from toolkit.graph.graph import Graph
from toolkit.graph.node import MERGE_OPS, NEXT_ITERATION_OPS, Node, Output
from toolkit.passes.costs import NodeCosts
from toolkit.passes.operations import VIEWS


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


class Simulator:
    """Simulates placements of one graph."""

    def __init__(self, graph: Graph, order: Sequence[Node], costs: NodeCosts):
        self.graph = graph
        self.costs = costs
        self.rank = [0] * len(graph)
        for position, node in enumerate(order):
            self.rank[node.id] = position
        count = len(graph)
        self.pending = [0] * count
        #: (output index, consumer), without the back edges of loops
        self.edges: list[list[tuple[int, int]]] = [[] for _ in range(count)]
        for node in graph.nodes:
            merges = node.op in MERGE_OPS
            for src, index in node.inputs:
                if not merges or src.op not in NEXT_ITERATION_OPS:
                    self.pending[node.id] += 1
                    self.edges[src.id].append((index, node.id))
            for src in node.control_inputs:
                self.pending[node.id] += 1
                self.edges[src.id].append((-1, node.id))
        #: consumers of the same output stand together
        for edges in self.edges:
            edges.sort()

    def run(self, devices: Sequence[DeviceSpec]) -> SimulatedStep:
        """Simulate one step.

        Args:
            devices: by node id.
        """
        return _Step(self, devices).run()


class _Step:
    def __init__(self, simulator: Simulator, devices: Sequence[DeviceSpec]):
        self.simulator = simulator
        self.costs = simulator.costs
        self.used = list(dict.fromkeys(devices))
        number = {device: i for i, device in enumerate(self.used)}
        self.where = [number[device] for device in devices]
        self.times = [self.costs.times(device) for device in self.used]
        self.busy = [0.0] * len(self.used)
        #: by pair of devices, what a transfer takes: its latency and bytes per second
        self.links = [[self.costs.link(here, there) for there in self.used] for here in self.used]
        self.ready: list[list[tuple[float, int, int]]] = [[] for _ in self.used]
        self.is_busy = [False] * len(self.used)
        self.events: list[tuple[float, int, int, int, int]] = []
        self.pending = list(simulator.pending)
        self.ways: dict[tuple[int, int], float] = {}  # when the way between two devices is free
        self.alive = [0] * len(self.used)
        self.peak = [0] * len(self.used)
        #: (node, output, device) to a tensor there; tensors are [bytes, uses, device]
        self.tensors: dict[tuple[int, int, int], list[int]] = {}
        self.out = SimulatedStep()

    def run(self) -> SimulatedStep:
        nodes = self.simulator.graph.nodes
        for node, device in zip(nodes, self.where, strict=True):
            self.alive[device] += self.costs.resident[node.id]
            if not self.pending[node.id]:
                self._enqueue(node.id, 0.0)
        self.peak = list(self.alive)
        for device in range(len(self.used)):
            self._start_next(device, 0.0)
        end = 0.0
        while self.events:
            now, _, node, index, target = heapq.heappop(self.events)
            end = max(end, now)
            if target < 0:
                self._finished(node, now)
            else:
                self._arrived(node, index, target, now)
        out = self.out
        starts = [self.costs.speeds.of(device).startup for device in self.used]
        out.seconds = end + sum(starts) - max(starts, default=0.0)
        out.busy = dict(zip(self.used, self.busy, strict=True))
        out.peak = dict(zip(self.used, self.peak, strict=True))
        out.transfers.sort(key=lambda each: each.start)
        return out

    def _enqueue(self, node: int, now: float) -> None:
        heapq.heappush(self.ready[self.where[node]], (now, self.simulator.rank[node], node))

    def _start_next(self, device: int, now: float) -> None:
        if self.is_busy[device] or not self.ready[device]:
            return
        _, _, number = heapq.heappop(self.ready[device])
        self.is_busy[device] = True
        end = now + self.times[device][number]
        node = self.simulator.graph.nodes[number]
        spec = self.used[device]
        self.out.runs.append(SimulatedRun(node, spec, now, end))
        self.busy[device] += end - now
        self._allocate(node, device)
        heapq.heappush(self.events, (end, self.simulator.rank[number], number, 0, -1))

    def _allocate(self, node: Node, device: int) -> None:
        """Memory for a node's outputs, or its share in that of its input."""
        uses: dict[int, int] = {}
        sent: set[tuple[int, int]] = set()
        for index, consumer in self.simulator.edges[node.id]:
            there = self.where[consumer]
            if index >= 0 and (there == device or (index, there) not in sent):
                uses[index] = uses.get(index, 0) + 1
                sent.add((index, there))
        shared = None
        if node.op in VIEWS and node.inputs:
            source, position = node.inputs[0]
            shared = self.tensors.get((source.id, position, device))
        sizes = self.costs.held[node.id]
        for index, size in enumerate(sizes):
            count = uses.get(index, 0)
            if shared is not None:
                shared[1] += count
            else:
                self.alive[device] += size
            if count:
                self.tensors[node.id, index, device] = [size, count, device] if shared is None else shared
        self.peak[device] = max(self.peak[device], self.alive[device])
        if shared is None:  # what nobody uses goes at once
            self.alive[device] -= sum(size for index, size in enumerate(sizes) if not uses.get(index))

    def _release(self, node: int, index: int, device: int) -> None:
        tensor = self.tensors.get((node, index, device))
        if tensor is not None:
            tensor[1] -= 1
            if not tensor[1]:
                self.alive[tensor[2]] -= tensor[0]

    def _finished(self, number: int, now: float) -> None:
        device = self.where[number]
        node = self.simulator.graph.nodes[number]
        for source, index in node.inputs:
            self._release(source.id, index, device)
        sent: set[tuple[int, int]] = set()
        for index, consumer in self.simulator.edges[number]:
            target = self.where[consumer]
            if target == device:
                self._deliver(consumer, now)
            elif (index, target) not in sent:
                sent.add((index, target))
                self._send(node, index, device, target, now)
        self.is_busy[device] = False
        self._start_next(device, now)

    def _send(self, node: Node, index: int, source: int, target: int, now: float) -> None:
        output = Output(node, index)
        size = self.costs.bytes_of(output)
        here, there = self.used[source], self.used[target]
        latency, bandwidth = self.links[source][target]
        seconds = size / bandwidth
        start = max(now, self.ways.get((source, target), 0.0))
        self.ways[source, target] = start + seconds
        end = start + latency + seconds
        self.out.transfers.append(SimulatedTransfer(output, here, there, start, end, size))
        heapq.heappush(self.events, (end, self.simulator.rank[node.id], node.id, index, target))

    def _arrived(self, number: int, index: int, target: int, now: float) -> None:
        consumers = [c for i, c in self.simulator.edges[number] if i == index and self.where[c] == target]
        if index >= 0:
            self._release(number, index, self.where[number])
            size = self.costs.sizes[number][index] if index < len(self.costs.sizes[number]) else 0
            self.tensors[number, index, target] = [size, len(consumers), target]
            self.alive[target] += size
            self.peak[target] = max(self.peak[target], self.alive[target])
        for consumer in consumers:
            self._deliver(consumer, now)
        self._start_next(target, now)

    def _deliver(self, node: int, now: float) -> None:
        self.pending[node] -= 1
        if not self.pending[node]:
            self._enqueue(node, now)
            if not self.is_busy[self.where[node]]:
                self._start_next(self.where[node], now)
