"""Running a placed graph on paper (white paper, section 3.2.1): when nodes and transfers run, and in what memory.

A device runs one node at a time, of those that are ready the one that has been so for longest. Devices of one task have
one processor: no more kernels run at once than it has cores for, and what nodes take besides their kernels is taken by
one after another where one interpreter does it, and is more while another device is at work (`NodeCosts.host`). A
tensor is sent once to each device that needs it, as `partition` does, one tensor after another on each way between two
devices; one that is held back, when the node that it waits for has run too. A tensor takes memory where it is made
until the last node there has used it and it has been sent on; a received one from its arrival on. Constants and
variables take memory all the time. Bodies of loops run once, both branches of a condition run.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from heapq import heappop, heappush, heapreplace

from toolkit.graph.device import DeviceSpec
from toolkit.graph.frames import assign_frames
from toolkit.graph.graph import Graph
from toolkit.graph.node import ENTER_OPS, MERGE_OPS, NEXT_ITERATION_OPS, Node, Output
from toolkit.passes.measuring.operations import VIEWS
from toolkit.passes.placement.costs import Host, NodeCosts
from toolkit.passes.placement.simulated_step import SimulatedRun, SimulatedStep, SimulatedTransfer, Way


class Simulator:
    """Simulates placements of one graph.

    Attributes:
        rank: by node id, its position in the order.
        pending: by node id, how many edges lead to it; none are those that go around loops, or to what does not run.
        sources: by node id, where these edges come from: (node, output).
        edges: by node id, where its own lead: (output, consumer), those of one output together.
        takes_part: by node id, whether the node runs in the step (`NodeCosts.takes_part`).
        loops: the nodes of each loop, those of loops inside it included; empty where nothing takes less time compiled.
    """

    def __init__(self, graph: Graph, order: Sequence[Node], costs: NodeCosts):
        self.graph = graph
        self.costs = costs
        self.takes_part = costs.takes_part
        self.rank = [0] * len(graph)
        for position, node in enumerate(order):
            self.rank[node.id] = position
        self.loops = loop_nodes(graph, order) if costs.compiled_share < 1 else []
        count = len(graph)
        self.pending = [0] * count
        self.sources: list[list[tuple[int, int]]] = [[] for _ in range(count)]
        self.edges: list[list[tuple[int, int]]] = [[] for _ in range(count)]
        for node in graph.nodes:
            if not self.takes_part[node.id]:
                continue
            merges = node.op in MERGE_OPS
            sources = self.sources[node.id]
            for src, index in node.inputs:
                if self.takes_part[src.id] and (not merges or src.op not in NEXT_ITERATION_OPS):
                    sources.append((src.id, index))
                    self.edges[src.id].append((index, node.id))
            for src in node.control_inputs:
                if self.takes_part[src.id]:
                    sources.append((src.id, -1))
                    self.edges[src.id].append((-1, node.id))
            self.pending[node.id] = len(sources)
        for edges in self.edges:
            edges.sort()

    def run(
        self,
        devices: Sequence[DeviceSpec],
        *,
        held_back: Mapping[Way, int] | None = None,
        details: bool = True,
        memory: bool = True,
    ) -> SimulatedStep:
        """Simulate one step.

        Args:
            devices: by node id.
            held_back: the node that a transfer waits for besides its own.
            details: list runs and transfers.
            memory: follow how much of it is taken.
        """
        return _Step(self, devices, held_back or {}, details=details, memory=memory).run()


def loop_nodes(graph: Graph, order: Sequence[Node]) -> list[list[int]]:
    """The ids of the nodes of each outermost loop: those that lead into it, and those of loops inside it, included."""
    frames, every = assign_frames(graph, list(order))
    by_name = {frame.name: frame for frame in every}
    found: dict[int, list[int]] = {}
    for node, frame in zip(graph.nodes, frames, strict=True):
        if node.op in ENTER_OPS:
            frame = by_name[node.text("frame_name")]
        while frame.parent is not None and frame.parent.parent is not None:
            frame = frame.parent
        if frame.parent is not None:
            found.setdefault(id(frame), []).append(node.id)
    return list(found.values())


class Processor:
    """What the devices of one task share.

    Attributes:
        interpreter: when the interpreter is free next; None where devices have no need of it.
        cores: when each core is free next, a heap; empty where there are as many as are wanted.
        slowdown: how much longer kernels take while all cores are busy.
        contention: what a node takes longer, besides its kernel, while another device is at work.
        last: when what has begun until now ends.
    """

    __slots__ = ("contention", "cores", "interpreter", "last", "slowdown")

    def __init__(self, host: Host):
        self.cores = [] if host.cores == float("inf") else [0.0] * int(host.cores)
        self.slowdown = host.slowdown
        self.contention = host.contention
        self.interpreter = 0.0 if host.is_serial else None
        self.last = 0.0

    def end(self, now: float, overhead: float, seconds: float) -> float:
        """When a node that begins now ends."""
        if self.contention and self.last > now:
            overhead += self.contention
        end = self._end(now, overhead, seconds)
        self.last = max(self.last, end)
        return end

    def _end(self, now: float, overhead: float, seconds: float) -> float:
        if self.interpreter is not None:
            now = self.interpreter = max(now, self.interpreter) + overhead
        else:
            now += overhead
        cores = self.cores
        if not cores or not seconds:
            return now + seconds
        start = max(now, cores[0])
        if len(cores) > 1 and self.slowdown > 1:
            busy = sum(free > start for free in cores)
            seconds *= 1 + (self.slowdown - 1) * min(1.0, busy / (len(cores) - 1))
        heapreplace(cores, start + seconds)
        return start + seconds

    def would_end(self, now: float, overhead: float, seconds: float) -> float:
        """When a node would end that began now."""
        if self.contention and self.last > now:
            overhead += self.contention
        now = max(now, self.interpreter or 0.0) + overhead
        return max(now, self.cores[0]) + seconds if self.cores and seconds else now + seconds


def processors(costs: NodeCosts, devices: Sequence[DeviceSpec]) -> list[Processor | None]:
    """What each device has in common with others of its task; None for one that shares nothing."""
    shared: dict[str, Processor | None] = {}
    found: list[Processor | None] = []
    tasks = [device.task_name if device.device_type == "CPU" else "" for device in devices]
    counts = Counter(tasks)
    for device, task in zip(devices, tasks, strict=True):
        if task not in shared:
            host = costs.host(device)
            is_shared = bool(task) and counts[task] > 1 and (host.is_serial or host.cores < float("inf"))
            shared[task] = Processor(host) if is_shared else None
        found.append(shared[task])
    return found


class _Step:
    def __init__(
        self,
        simulator: Simulator,
        devices: Sequence[DeviceSpec],
        held_back: Mapping[Way, int],
        *,
        details: bool,
        memory: bool,
    ):
        self.simulator = simulator
        self.costs = simulator.costs
        self.details, self.memory = details, memory
        self.used = list(dict.fromkeys(devices))
        number = {device: i for i, device in enumerate(self.used)}
        self.where = [number[device] for device in devices]
        self.times = [self.costs.times(device) for device in self.used]
        #: the nodes that run one by one, of loops that are spread over devices
        self.one_by_one = frozenset(
            node
            for loop in simulator.loops
            if len({self.where[each] for each in loop if self.simulator.takes_part[each]}) > 1
            for node in loop
        )
        self.processors = processors(self.costs, self.used)
        self.busy = [0.0] * len(self.used)
        #: by pair of devices, what a transfer takes: its latency and bytes per second
        self.links = [[self.costs.link(here, there) for there in self.used] for here in self.used]
        self.ready: list[list[tuple[float, int, int]]] = [[] for _ in self.used]
        self.is_busy = [False] * len(self.used)
        self.events: list[tuple[float, int, int, int, int]] = []
        self.pending = list(simulator.pending)
        self.ways: dict[tuple[int, int], float] = {}  # when the way between two devices is free
        self.held_back = {
            (node, index, number[device]): other
            for (node, index, device), other in held_back.items()
            if device in number
        }
        self.has_run: set[int] = set()  # of the nodes that transfers wait for
        self.waiting: dict[int, list[tuple[int, int, int]]] = {node: [] for node in self.held_back.values()}
        self.alive = [0] * len(self.used)
        self.peak = [0] * len(self.used)
        #: (node, output, device) to a tensor there; tensors are [bytes, uses, device]
        self.tensors: dict[tuple[int, int, int], list[int]] = {}
        self.out = SimulatedStep()

    def run(self) -> SimulatedStep:
        where, takes_part = self.where, self.simulator.takes_part
        if self.memory:
            for device, resident in zip(where, self.costs.resident, strict=True):
                self.alive[device] += resident
            self.peak = list(self.alive)
        for node, count in enumerate(self.pending):
            if not count and takes_part[node]:
                heappush(self.ready[where[node]], (0.0, self.simulator.rank[node], node))
        for device in range(len(self.used)):
            self._start_next(device, 0.0)
        end = 0.0
        events = self.events
        while events:
            end, _, node, index, target = heappop(events)
            if target < 0:
                self._finished(node, end)
            else:
                self._arrived(node, index, target, end)
        out = self.out
        taking_part = {device for device, part in zip(where, takes_part, strict=True) if part}
        starts = [self.costs.startup(self.used[device]) for device in sorted(taking_part)]
        out.seconds = end + sum(starts) - max(starts, default=0.0)
        out.busy = dict(zip(self.used, self.busy, strict=True))
        if self.memory:
            out.peak = dict(zip(self.used, self.peak, strict=True))
        out.transfers.sort(key=lambda each: each.start)
        return out

    def _start_next(self, device: int, now: float) -> None:
        if self.is_busy[device] or not self.ready[device]:
            return
        _, rank, number = heappop(self.ready[device])
        self.is_busy[device] = True
        seconds = self.times[device][number]
        if number in self.one_by_one:
            seconds /= self.costs.compiled_share
        processor = self.processors[device]
        if processor is None:
            end = now + seconds
        else:
            overhead = self.costs.overhead_of(number)
            if number in self.one_by_one:
                overhead /= self.costs.compiled_share
            end = processor.end(now, overhead, seconds - overhead) if seconds else now
        self.busy[device] += end - now
        if self.details:
            self.out.runs.append(SimulatedRun(self.simulator.graph.nodes[number], self.used[device], now, end))
        if self.memory:
            self._allocate(number, device)
        heappush(self.events, (end, rank, number, 0, -1))

    def _allocate(self, number: int, device: int) -> None:
        """Memory for a node's outputs, or its share in that of its input."""
        where, alive = self.where, self.alive
        node = self.simulator.graph.nodes[number]
        uses: dict[int, int] = {}
        sent: set[tuple[int, int]] = set()
        for index, consumer in self.simulator.edges[number]:
            if index >= 0:
                there = where[consumer]
                if there == device:
                    uses[index] = uses.get(index, 0) + 1
                elif (index, there) not in sent:
                    uses[index] = uses.get(index, 0) + 1
                    sent.add((index, there))
        shared = None
        if node.op in VIEWS and node.inputs:
            source, position = node.inputs[0]
            shared = self.tensors.get((source.id, position, device))
        lost = 0  # what nobody uses goes at once
        for index, size in enumerate(self.costs.held[number]):
            count = uses.get(index, 0)
            if shared is not None:
                shared[1] += count
            else:
                alive[device] += size
                if not count:
                    lost += size
            if count:
                self.tensors[number, index, device] = [size, count, device] if shared is None else shared
        if alive[device] > self.peak[device]:
            self.peak[device] = alive[device]
        alive[device] -= lost

    def _release(self, node: int, index: int, device: int) -> None:
        tensor = self.tensors.get((node, index, device))
        if tensor is not None:
            tensor[1] -= 1
            if not tensor[1]:
                self.alive[tensor[2]] -= tensor[0]

    def _finished(self, number: int, now: float) -> None:
        where = self.where
        device = where[number]
        if self.memory:
            for source, index in self.simulator.graph.nodes[number].inputs:
                self._release(source.id, index, device)
        sent: set[tuple[int, int]] = set()
        for index, consumer in self.simulator.edges[number]:
            target = where[consumer]
            if target == device:
                self._deliver(consumer, now)
            elif (index, target) not in sent:
                sent.add((index, target))
                other = self.held_back.get((number, index, target)) if self.held_back else None
                if other is None or other in self.has_run:
                    self._send(number, index, target, now)
                else:
                    self.waiting[other].append((number, index, target))
        if number in self.waiting:
            self.has_run.add(number)
            for waiting in self.waiting[number]:
                self._send(*waiting, now)
        self.is_busy[device] = False
        self._start_next(device, now)

    def _send(self, number: int, index: int, target: int, now: float) -> None:
        source = self.where[number]
        sizes = self.costs.sizes[number]
        size = sizes[index] if 0 <= index < len(sizes) else 0
        latency, bandwidth = self.links[source][target]
        seconds = size / bandwidth
        start = max(now, self.ways.get((source, target), 0.0))
        self.ways[source, target] = start + seconds
        end = start + latency + seconds
        if self.details:
            output = Output(self.simulator.graph.nodes[number], index)
            self.out.transfers.append(SimulatedTransfer(output, self.used[source], self.used[target], start, end, size))
        heappush(self.events, (end, self.simulator.rank[number], number, index, target))

    def _arrived(self, number: int, index: int, target: int, now: float) -> None:
        where = self.where
        consumers = [c for i, c in self.simulator.edges[number] if i == index and where[c] == target]
        if index >= 0 and self.memory:
            self._release(number, index, where[number])
            sizes = self.costs.sizes[number]
            size = sizes[index] if index < len(sizes) else 0
            self.tensors[number, index, target] = [size, len(consumers), target]
            self.alive[target] += size
            self.peak[target] = max(self.peak[target], self.alive[target])
        for consumer in consumers:
            self._deliver(consumer, now)
        self._start_next(target, now)

    def _deliver(self, node: int, now: float) -> None:
        self.pending[node] -= 1
        if not self.pending[node]:
            device = self.where[node]
            heappush(self.ready[device], (now, self.simulator.rank[node], node))
            if not self.is_busy[device]:
                self._start_next(device, now)
