"""Pipeline stages: a graph cut into N parts that follow each other, balanced by time, where little is transferred.

Groups stand in a line: forward computation in topological order; what leads only to updates of variables (gradients)
beside the layer whose variables it updates, so that a layer's weights, values and gradients are in one stage. A cut
costs the bytes that are alive across it. The least time that the longest stage can have is found first; of all cuts
that keep within a tenth of that, and within each device's memory, the one over which least goes is taken.
"""

from __future__ import annotations

from bisect import bisect_right
from collections import deque
from collections.abc import Sequence
from itertools import accumulate, pairwise

from toolkit.errors import UsageError
from toolkit.graph.device import DeviceSpec
from toolkit.graph.node import Node
from toolkit.passes.placement.colocation import ColocationGroup
from toolkit.passes.placement.constraints import Choice, Constraints
from toolkit.passes.placement.costs import VARIABLE_OPS
from toolkit.passes.placement.floating import attach, place_group
from toolkit.passes.placement.strategies import PlacementTask, strategy

#: how much longer than the least the longest stage may be
_SLACK = 1.1
_ROUNDS = 40


@strategy("stages", "a pipeline of --stages N devices, balanced")
def stages(task: PlacementTask) -> list[Choice]:
    """See `pipeline`.

    Raises:
        UsageError: nobody says how many; see `pipeline`.
    """
    if not task.stages:
        raise UsageError("say how many stages there are with --stages N")
    return pipeline(task, task.stages)


def pipeline(task: PlacementTask, count: int) -> list[Choice]:
    """The nodes on the first `count` devices, in stages; `facts` gets what each stage is.

    Raises:
        UsageError: there are fewer devices, or fewer parts to cut between; no cut keeps within the memory.
    """
    constraints = task.constraints
    devices = constraints.set.devices[:count]
    if len(devices) < count:
        raise UsageError(f"{count} stages need {count} devices; there are {constraints.set.listed()}")
    line = _Line(task, devices)
    if len(line.groups) < count:
        raise UsageError(f"the graph cannot be cut into {count} stages: it has {len(line.groups)} parts that may move")
    cuts = line.cut()
    choices: list[Choice | None] = [None] * len(constraints.graph)
    for number, (start, end) in enumerate(pairwise(cuts)):
        for group in line.groups[start:end]:
            allowed, why = constraints.allowed(group)
            device = devices[number]
            reason = f"stage {number + 1} of {count}"
            if device not in allowed:
                near = (each for each in allowed if each.task_name == device.task_name)
                device, reason = next(near, allowed[0]), f"{reason}; {why or 'its device has no kernel for it'}"
            place_group(constraints, choices, group.leader, device, reason)
    for node in constraints.order:
        if choices[node.id] is None and not line.floating[node.id]:
            group = constraints.groups[node.id]
            allowed, why = constraints.allowed(group)
            place_group(constraints, choices, node, allowed[0], constraints.reason(node, group, why))
    task.facts["stages"] = line.report(cuts)
    return attach(constraints, choices)


class _Line:
    """The groups that may move, one after another.

    Attributes:
        crossing: by gap, the bytes alive across the cut before that position.
    """

    def __init__(self, task: PlacementTask, devices: Sequence[DeviceSpec]):
        self.task = task
        self.constraints = task.constraints
        self.devices = devices
        self.floating = task.floating
        keys = _keys(self.constraints, task.simulator.rank)
        found: dict[int, tuple[int, ColocationGroup]] = {}
        for node in self.constraints.order:
            group = self.constraints.groups[node.id]
            if self.floating[node.id] or (len(self.constraints.allowed(group)[0]) < 2 and len(devices) > 1):
                continue
            known = found.get(id(group))
            if known is None or keys[node.id] < known[0]:
                found[id(group)] = (keys[node.id], group)
        self.groups = [group for _, group in sorted(found.values(), key=lambda each: (each[0], each[1].leader.id))]
        self.position = {id(group): i for i, group in enumerate(self.groups)}
        self._attach_weights()
        self._measure()

    def _place_of(self, node: Node) -> int | None:
        """The position of a node, or of what first uses a weight."""
        found = self.position.get(id(self.constraints.groups[node.id]))
        return self.used_at[node.id] if found is None else found

    def _attach_weights(self) -> None:
        self.used_at: list[int | None] = [None] * len(self.constraints.graph)
        for node in reversed(self.constraints.order):
            if self.floating[node.id]:
                places = [self._place_of(edge.dst) for edge in self.constraints.consumers[node.id]]
                known = [place for place in places if place is not None]
                self.used_at[node.id] = min(known) if known else None

    def _measure(self) -> None:
        count = len(self.groups)
        costs = self.task.costs
        weights = [0] * count
        times = {id(costs.times(device)): costs.times(device) for device in self.devices}
        spent = {key: [0.0] * count for key in times}
        alive = [0] * (count + 1)
        for node in self.constraints.graph.nodes:
            place = self._place_of(node)
            if place is None:
                continue
            weights[place] += costs.resident[node.id]
            for key, each in times.items():
                spent[key][place] += each[node.id]
            if self.floating[node.id]:
                continue
            reach: dict[int, list[int]] = {}
            for index, consumer in self.task.simulator.edges[node.id]:
                there = self._place_of(self.constraints.graph.nodes[consumer])
                if there is not None:
                    reach.setdefault(index, [place]).append(there)
            for index, places in reach.items():
                size = costs.sizes[node.id][index] if 0 <= index < len(costs.sizes[node.id]) else 0
                alive[min(places)] += size + 1  # a control edge is something too
                alive[max(places)] -= size + 1
        #: bytes alive across the gap behind each position
        self.crossing = [0, *accumulate(alive[:-1])]
        self.weights = [0, *accumulate(weights)]
        self.times = [[0.0, *accumulate(spent[id(costs.times(device))])] for device in self.devices]

    def cut(self) -> list[int]:
        """Where the stages begin, and the end.

        Raises:
            UsageError: no cut keeps within the memory.
        """
        ends = [self._memory_ends(self.task.speeds.of(device).memory) for device in self.devices]
        low, high = 0.0, max(times[-1] for times in self.times)
        if not self._reaches(high, ends):
            from toolkit.formats.inspection.report import bytes_text

            held = ", ".join(
                f"{device} {bytes_text(int(self.task.speeds.of(device).memory))}" for device in self.devices
            )
            raise UsageError(
                f"no cut into {len(self.devices)} stages keeps within the memory: constants and variables alone take "
                f"{bytes_text(self.weights[-1])}; the devices have: {held}"
            )
        for _ in range(_ROUNDS):
            middle = (low + high) / 2
            low, high = (low, middle) if self._reaches(middle, ends) else (middle, high)
        found = self._cheapest(high * _SLACK, ends)
        return found or self._cheapest(high * 2 * _SLACK, ends) or self._even()

    def _memory_ends(self, memory: float) -> list[int]:
        """By position, how far a stage that begins there can go."""
        count = len(self.groups)
        if memory == float("inf"):
            return [count] * (count + 1)
        ends: list[int] = []
        largest: deque[int] = deque()  # positions of gaps with falling sizes
        end = 0
        for start in range(count + 1):
            while largest and largest[0] <= start:
                largest.popleft()
            end = max(end, start)
            while end < count:
                size = self.crossing[end + 1]
                most = max(size, self.crossing[largest[0]] if largest else 0, self.crossing[start])
                if self.weights[end + 1] - self.weights[start] + most > memory:
                    break
                end += 1
                while largest and self.crossing[largest[-1]] <= size:
                    largest.pop()
                largest.append(end)
            ends.append(end)
        return ends

    def _reaches(self, limit: float, ends: list[list[int]]) -> bool:
        """Whether stages of at most so many seconds reach the end."""
        at = 0
        for times, far in zip(self.times, ends, strict=True):
            at = min(far[at], bisect_right(times, times[at] + limit * (1 + 1e-9)) - 1)
        return at >= len(self.groups)

    def _cheapest(self, limit: float, ends: list[list[int]]) -> list[int]:
        """The cuts over which least goes with stages of at most so many seconds; empty where there are none."""
        count = len(self.groups)
        infinite = float("inf")
        best = [0.0] + [infinite] * count  # of all cuts up to a position, the last one there
        before: list[list[int]] = []
        for number, (times, far) in enumerate(zip(self.times, ends, strict=True)):
            following = [infinite] * (count + 1)
            came = [-1] * (count + 1)
            window: deque[int] = deque()
            start = 0
            for end in range(1, count + 1):
                if best[end - 1] < infinite:
                    while window and best[window[-1]] >= best[end - 1]:
                        window.pop()
                    window.append(end - 1)
                while start < end and (far[start] < end or times[end] - times[start] > limit):
                    start += 1
                while window and window[0] < start:
                    window.popleft()
                if window:
                    cost = self.crossing[end] if number < len(self.times) - 1 else 0
                    following[end] = best[window[0]] + cost
                    came[end] = window[0]
            best = following
            before.append(came)
        if best[count] == infinite:
            return []
        cuts = [count]
        for came in reversed(before):
            cuts.append(came[cuts[-1]])
        return cuts[::-1]

    def _even(self) -> list[int]:
        """Groups too large to be balanced: as many in each stage."""
        count, parts = len(self.groups), len(self.devices)
        return [count * i // parts for i in range(parts + 1)]

    def report(self, cuts: list[int]) -> list[dict[str, object]]:
        return [
            {
                "device": str(self.devices[number]),
                "groups": end - start,
                "seconds": self.times[number][end] - self.times[number][start],
                "weight_bytes": self.weights[end] - self.weights[start],
                "bytes_in": self.crossing[start],
            }
            for number, (start, end) in enumerate(pairwise(cuts))
        ]


def _keys(constraints: Constraints, rank: Sequence[int]) -> list[int]:
    """By node id, where it stands in the line.

    A variable stands where it is first used. What leads to updates of variables and comes after all of them in the
    forward direction is a gradient: it stands at the last of those variables.
    """
    consumers = constraints.consumers
    used: dict[int, int] = {}  # variable's group to the position of its first use
    for node in constraints.graph.nodes:
        if node.op in VARIABLE_OPS:
            group = constraints.groups[node.id]
            for member in group.members:
                for edge in consumers[member.id]:
                    if not edge.is_control and constraints.groups[edge.dst.id] is not group:
                        used[id(group)] = min(used.get(id(group), rank[edge.dst.id]), rank[edge.dst.id])
    updates = [-1] * len(rank)  # the last position of a variable that a node leads to
    for node in reversed(constraints.order):
        group = constraints.groups[node.id]
        for edge in consumers[node.id]:
            if not edge.is_control:
                updates[node.id] = max(updates[node.id], updates[edge.dst.id])
        if node.inputs and node.op not in VARIABLE_OPS and id(group) in used and _changes(node):
            updates[node.id] = max(updates[node.id], used[id(group)])
    return [updates[number] if 0 <= updates[number] < position else position for number, position in enumerate(rank)]


def _changes(node: Node) -> bool:
    return node.op.startswith(("Assign", "Apply", "ResourceApply", "SparseApply", "ResourceSparseApply", "Scatter",
                               "ResourceScatter"))  # fmt: skip
