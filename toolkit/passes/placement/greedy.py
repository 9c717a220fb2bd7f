"""The greedy strategy of the white paper (section 3.2.1), and the choice between it and simpler ones.

Nodes are taken as they become ready, or those first that the longest way to the end leads through; each goes to the
device where it would end first, transfers included, among those whose memory holds it. Both orders are tried, beside
what simpler strategies give, and a simulation of the whole step says which is best: so the result is never slower on
paper than one device or round robin. Where memory is bounded and nothing fits, pipelines of more and more devices are
tried.
"""

from __future__ import annotations

import heapq
from collections.abc import Callable

from toolkit.errors import GraphmillError
from toolkit.graph.node import Node, Output
from toolkit.passes.placement.colocation import ColocationGroup
from toolkit.passes.placement.constraints import Choice
from toolkit.passes.placement.default import default_choices
from toolkit.passes.placement.floating import attach, place_group
from toolkit.passes.placement.simple import round_robin, single
from toolkit.passes.placement.simulation import processors
from toolkit.passes.placement.stages import pipeline
from toolkit.passes.placement.strategies import PlacementTask, strategy

#: of so many devices each node looks at all; of more, at those that its inputs come from and so many others
_MANY = 32


@strategy("greedy", "where each node would end first; never slower than the above")
def greedy(task: PlacementTask) -> list[Choice]:
    """The best of several placements, by simulation; `facts` gets the seconds of each and which was taken."""
    candidates: list[tuple[str, Callable[[], list[Choice]]]] = [
        ("default", lambda: default_choices(task.constraints)),
        ("single", lambda: single(task)),
    ]
    if len(task.constraints.set.devices) > 1:
        candidates += [
            ("round-robin", lambda: round_robin(task)),
            ("greedy", lambda: _Greedy(task, by_length=False).run()),
            ("longest way first", lambda: _Greedy(task, by_length=True).run()),
        ]
    seconds: dict[str, float | None] = {}
    best: tuple[float, str, list[Choice]] | None = None

    def look(name: str, choices: list[Choice]) -> None:
        nonlocal best
        step = task.simulate(choices, details=False)
        found = seconds[name] = None if task.overfull(step) else step.seconds
        if found is not None and (best is None or found < best[0]):
            best = (found, name, choices)

    last: list[Choice] = []
    for name, make in candidates:
        last = make()
        look(name, last)
    if best is None:
        for count in range(2, len(task.constraints.set.devices) + 1):
            try:
                look(f"{count} stages", pipeline(task, count))
            except GraphmillError:
                continue
            if best is not None:
                break
    task.facts["simulated_seconds"] = seconds
    if best is None:
        task.facts["chosen"] = "none fits"
        return last
    task.facts["chosen"] = best[1]
    return best[2]


def only_waits(node: Node) -> bool:
    """Whether a node does nothing but wait for others."""
    return node.op == "NoOp" and bool(node.control_inputs)


class _Greedy:
    def __init__(self, task: PlacementTask, *, by_length: bool):
        self.task = task
        self.constraints = task.constraints
        self.graph = task.constraints.graph
        self.costs = task.costs
        self.floating = task.floating
        self.devices = self.constraints.set.devices
        self.number = {device: number for number, device in enumerate(self.devices)}
        self.times = [self.costs.times(device) for device in self.devices]
        self.links: list[list[tuple[float, float]]] = [[] for _ in self.devices]  # filled where something is sent from
        self.processors = processors(self.costs, self.devices)
        self.sources = task.simulator.sources
        self.options: dict[int, list[int]] = {}  # by id of a list of devices, their numbers
        self.choices: list[Choice | None] = [None] * len(self.graph)
        self.where = [-1] * len(self.graph)
        self.ends = [0.0] * len(self.graph)
        self.free = [0.0] * len(self.devices)
        self.sent: dict[tuple[int, int, int], float] = {}
        self.is_bounded = task.speeds.bounds_memory
        self.room = [task.speeds.of(device).memory for device in self.devices]
        self.uses = [len(edges) for edges in task.simulator.edges]  # how many consumers have not run
        self.copies: dict[int, list[tuple[int, int]]] = {}  # node to where its outputs take memory
        self.rank = task.simulator.rank
        self.lengths = self._lengths() if by_length else None

    def _link(self, source: int, target: int) -> tuple[float, float]:
        row = self.links[source]
        if not row:
            here = self.devices[source]
            row += [self.costs.link(here, there) for there in self.devices]
        return row[target]

    def _lengths(self) -> list[float]:
        """By node id, the longest way to the end: its own time, and half of what would be transfers."""
        found = list(self.times[0])
        latency, bandwidth = self._link(0, len(self.devices) - 1)
        for node in reversed(self.constraints.order):
            rest = 0.0
            for index, consumer in self.task.simulator.edges[node.id]:
                seconds = self.costs.bytes_of(Output(node, index)) / bandwidth
                rest = max(rest, found[consumer] + (latency + seconds) / 2)
            found[node.id] += rest
        return found

    def run(self) -> list[Choice]:
        pending = list(self.task.simulator.pending)
        edges = self.task.simulator.edges
        ready: list[tuple[float, int, int]] = []

        def offer(number: int) -> None:
            if self.lengths is not None:
                heapq.heappush(ready, (-self.lengths[number], self.rank[number], number))
                return
            since = 0.0
            for source, index in self.sources[number]:
                if index >= 0 and self.ends[source] > since:
                    since = self.ends[source]
            heapq.heappush(ready, (since, self.rank[number], number))

        takes_part = self.task.simulator.takes_part
        for number, count in enumerate(pending):
            if not count and takes_part[number]:
                offer(number)
        while ready:
            _, _, number = heapq.heappop(ready)
            if not self.floating[number]:
                self._place(self.graph.nodes[number])
            for _, consumer in edges[number]:
                pending[consumer] -= 1
                if not pending[consumer]:
                    offer(consumer)
        for node in self.constraints.order:  # what does not run in the step goes where what it is bound to is
            if not takes_part[node.id] and not self.floating[node.id]:
                self._place(node)
        return attach(self.constraints, self.choices)

    def _put(self, group: ColocationGroup, node: Node, device: int, why: str) -> None:
        place_group(self.constraints, self.choices, node, self.devices[device], why)
        for member in group.members:
            self.where[member.id] = device
        self.room[device] -= self._weight(group)

    def _allowed(self, group: ColocationGroup) -> tuple[list[int], str]:
        allowed, why = self.constraints.allowed(group)
        found = self.options.get(id(allowed))
        if found is None:
            found = self.options[id(allowed)] = [self.number[device] for device in allowed]
        return found, why

    def _place(self, node: Node) -> None:
        group = self.constraints.groups[node.id]
        weights = self._weights(node)
        device = self.where[node.id]
        if device >= 0:
            end = self._end(node.id, device)
        else:
            allowed, why = self._allowed(group)
            if len(allowed) == 1:
                device = allowed[0]
                end, reason = self._end(node.id, device), self.constraints.reason(node, group, why)
            else:
                end, device = self._choose(node, group, allowed, weights)
                reason = f"simulated to end first here, after {end * 1e6:,.0f} us"
            self._put(group, node, device, reason)
        for weight in weights:
            if self.where[weight.id] < 0:
                own = self.constraints.groups[weight.id]
                place, _ = self._allowed(own)
                there = device if device in place else place[0]
                self._put(own, weight, there, f"next to its consumer '{node.name}'")
        processor = self.processors[device]
        if processor is not None:
            overhead = self.costs.overhead_of(node.id)
            end = processor.end(self._begin(node.id, device), overhead, self.times[device][node.id] - overhead)
        self.free[device] = self.ends[node.id] = end
        self._account(node, device)

    def _choose(self, node: Node, group: ColocationGroup, allowed: list[int], weights: list[Node]) -> tuple[float, int]:
        votes: dict[int, int] = {}
        for source in node.control_inputs if only_waits(node) else [source for source, _ in node.inputs]:
            where = self.where[source.id]
            if where >= 0:
                votes[where] = votes.get(where, 0) + 1
        devices = self._worth_a_look(allowed, votes)
        if self.is_bounded:
            needed = sum(self.costs.held[node.id]) + self._weight(group)
            others = {id(each): each for weight in weights if (each := self.constraints.groups[weight.id]) is not group}
            needed += sum(map(self._weight, others.values()))
            fitting = [device for device in devices if self.room[device] >= needed]
            devices = fitting or [max(devices, key=lambda device: self.room[device])]
        home = max(devices, key=lambda device: votes.get(device, 0)) if votes else devices[0]
        if only_waits(node) and votes:  # whatever it gained elsewhere, each of its edges would be a transfer
            return self._end(node.id, home), home
        is_alone = len(group.members) == 1
        rest = 0.0 if is_alone else self._rest(node, group, home)
        best, device = self._end(node.id, home) + rest, home
        end = best - rest
        for other in devices:
            if other == home:
                continue
            alone = self._end(node.id, other)
            sooner = alone if is_alone else alone + self._rest(node, group, other)
            # hopping away must pay for more than the hop itself
            if sooner < best - (self._link(home, other)[0] if device == home else 0.0):
                best, device, end = sooner, other, alone
        return end, device

    def _worth_a_look(self, allowed: list[int], votes: dict[int, int]) -> list[int]:
        if len(allowed) <= _MANY:
            return allowed
        some = heapq.nsmallest(_MANY, allowed, key=lambda device: self.free[device])
        return [*some, *(device for device in votes if device not in some and device in allowed)]

    def _rest(self, node: Node, group: ColocationGroup, device: int) -> float:
        """What the other nodes of a group take that come with this one: a loop's."""
        times = self.times[device]
        return sum(times[member.id] for member in group.members if not self.floating[member.id] and member is not node)

    def _weights(self, node: Node) -> list[Node]:
        """The floating nodes without a device that a node needs."""
        found: list[Node] = []
        waiting, seen = [node], {node.id}
        while waiting:
            for source, _ in waiting.pop().inputs:
                if self.floating[source.id] and self.where[source.id] < 0 and source.id not in seen:
                    seen.add(source.id)
                    found.append(source)
                    waiting.append(source)
        return found

    def _weight(self, group: ColocationGroup) -> int:
        return sum(self.costs.resident[member.id] for member in group.members)

    def _begin(self, number: int, device: int) -> float:
        """When a node could begin on a device."""
        start = self.free[device]
        ends, places = self.ends, self.where
        for source, index in self.sources[number]:
            end = ends[source]
            if end > start or (end and places[source] != device):
                if places[source] not in (-1, device):
                    end = self._arrival(source, index, device)
                if end > start:
                    start = end
        return start

    def _end(self, number: int, device: int) -> float:
        """When a node would end on a device."""
        seconds = self.times[device][number]
        processor = self.processors[device]
        if processor is None:
            return self._begin(number, device) + seconds
        overhead = self.costs.overhead_of(number)
        return processor.would_end(self._begin(number, device), overhead, seconds - overhead)

    def _arrival(self, source: int, index: int, device: int) -> float:
        """When a tensor that was made on another device would be here."""
        known = self.sent.get((source, index, device))
        if known is not None:
            return known
        latency, bandwidth = self._link(self.where[source], device)
        sizes = self.costs.sizes[source]
        return self.ends[source] + latency + (sizes[index] if 0 <= index < len(sizes) else 0) / bandwidth

    def _account(self, node: Node, device: int) -> None:
        """Note what was sent, and what memory is taken and free again."""
        own = sum(self.costs.held[node.id]) if self.is_bounded else 0
        if own and self.uses[node.id]:
            self.room[device] -= own
            self.copies[node.id] = [(device, own)]
        for source, index in self.sources[node.id]:
            where = self.where[source]
            if where not in (-1, device) and self.ends[source] and (source, index, device) not in self.sent:
                self.sent[source, index, device] = self._arrival(source, index, device)
                if index >= 0 and self.is_bounded:
                    size = self.costs.sizes[source][index]
                    self.room[device] -= size
                    self.copies.setdefault(source, []).append((device, size))
            self.uses[source] -= 1
            if not self.uses[source]:
                for there, size in self.copies.pop(source, ()):
                    self.room[there] += size
