"""Placement: every node gets a full device name.

White paper, sections 3.2.1 and 4.3. Constraints first: nodes that must share a device (colocation attributes, edges
that carry references or resource handles, the parts of a loop variable) form groups; each group may run on the
devices that fit the partial names its members ask for and that have kernels for all their ops. Then a choice:

- `default`: the best device of the default task, as TensorFlow's own placer does; nodes that only pass on what one
  other node makes or uses follow it.
- `greedy`: a simulation in topological order that puts each group where it would finish first, counting a static
  estimate of its work and of the transfers it causes.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Literal

from toolkit.errors import GraphError, UsageError
from toolkit.graph import dtypes
from toolkit.graph.device import DeviceSpec
from toolkit.graph.graph import Graph
from toolkit.graph.node import ENTER_OPS, MERGE_OPS, NEXT_ITERATION_OPS, Node
from toolkit.passes.cost import StaticCost
from toolkit.passes.groups import Groups, colocation_targets

Strategy = Literal["default", "greedy"]
#: can a device of this type run this node?
Supports = Callable[[Node, str], bool]


@dataclass(frozen=True, slots=True)
class Decision:
    """Where a node went and why.

    Attributes:
        group: the first node of its colocation group, "" when it is alone.
    """

    node: str
    device: str
    reason: str
    group: str = ""


@dataclass(slots=True)
class Placement:
    """A placed graph and the decisions behind it."""

    graph: Graph
    decisions: list[Decision]

    def report(self) -> dict[str, Any]:
        """JSON: {"devices": {device: number of nodes}, "nodes": [{"node", "device", "reason", "group"}]}."""
        counts: dict[str, int] = {}
        for decision in self.decisions:
            counts[decision.device] = counts.get(decision.device, 0) + 1
        rows = [
            {"node": d.node, "device": d.device, "reason": d.reason, **({"group": d.group} if d.group else {})}
            for d in self.decisions
        ]
        return {"devices": dict(sorted(counts.items())), "nodes": rows}


@dataclass(frozen=True)
class Place:
    """The placement pass.

    Attributes:
        devices: full names of the devices there are, the default one first.
        allow_soft_placement: a node that asks for a device that is not there, or has no kernel for it, goes
            elsewhere in its task instead of being an error.
        supports: which device types can run a node.
    """

    devices: Sequence[DeviceSpec]
    allow_soft_placement: bool = False
    strategy: Strategy = "default"
    supports: Supports | None = None

    def apply(self, graph: Graph) -> Placement:
        """A copy of the graph with every device filled in.

        Raises:
            GraphError: constraints contradict each other, or no device fits; the node and both sides are named.
            UsageError: there are no devices.
        """
        if not self.devices:
            raise UsageError("there are no devices to place on")
        return _Placer(self, graph.copy()).run()


class _Placer:
    def __init__(self, settings: Place, graph: Graph):
        self.settings = settings
        self.graph = graph
        self.supports = settings.supports or _any_device
        self.groups = make_groups(graph)
        self.order = graph.topological_order()
        self.allowed: dict[int, list[DeviceSpec]] = {}
        self.wanted: dict[int, DeviceSpec] = {}

    def run(self) -> Placement:
        for root, members in self._members().items():
            self.wanted[root] = self._wanted(members)
            self.allowed[root] = self._allowed(root, members)
        chosen = self._greedy() if self.settings.strategy == "greedy" else self._default()
        decisions: list[Decision] = []
        for node in self.graph:
            root = self.groups.find(node.id)
            device, reason = chosen[root]
            node.device = str(device)
            leader = self.graph.nodes[root].name if self.groups.size(root) > 1 else ""
            decisions.append(Decision(node.name, node.device, reason, leader))
        return Placement(self.graph, decisions)

    def _members(self) -> dict[int, list[Node]]:
        members: dict[int, list[Node]] = {}
        for node in self.graph:
            members.setdefault(self.groups.find(node.id), []).append(node)
        return members

    # -- constraints -------------------------------------------------------------------------------------

    def _wanted(self, members: list[Node]) -> DeviceSpec:
        """What the members ask for together."""
        spec, asker = DeviceSpec(), members[0]
        for node in members:
            if not node.device:
                continue
            mine = _parse(node)
            both = spec.intersect(mine, soft=self.settings.allow_soft_placement)
            if both is None:
                raise GraphError(
                    f"it asks for {node.device}, but must share a device with '{asker.name}', which asks for "
                    f"{asker.device}",
                    node=node.name,
                )
            if both != spec:
                spec, asker = both, node
        return spec

    def _allowed(self, root: int, members: list[Node]) -> list[DeviceSpec]:
        spec = self.wanted[root]
        fitting = [device for device in self.settings.devices if spec.matches(device)]
        usable = self._with_kernels(fitting, members)
        if not usable and self.settings.allow_soft_placement:
            # Another type or number in the same task; failing that, anywhere: files carry names of other clusters.
            loose = spec.without_type_and_index()
            fitting = [device for device in self.settings.devices if loose.matches(device)]
            usable = self._with_kernels(fitting, members) or self._with_kernels(list(self.settings.devices), members)
        if not usable:
            self._refuse(spec, fitting, members)
        return usable

    def _with_kernels(self, devices: list[DeviceSpec], members: list[Node]) -> list[DeviceSpec]:
        kinds = {device.device_type or "" for device in devices}
        able = {kind for kind in kinds if all(self.supports(node, kind) for node in members)}
        return [device for device in devices if device.device_type in able]

    def _refuse(self, spec: DeviceSpec, fitting: list[DeviceSpec], members: list[Node]) -> None:
        asker = next((node for node in members if node.device), members[0])
        known = ", ".join(str(device) for device in self.settings.devices[:8])
        if not fitting:
            raise GraphError(
                f"it asks for {spec}, which is not among the devices: {known} (soft placement would use another)",
                node=asker.name,
            )
        kinds = sorted({device.device_type or "" for device in fitting})
        lacking = next(n for n in members if not any(self.supports(n, kind) for kind in kinds))
        raise GraphError(f"there is no {' or '.join(kinds)} kernel for {lacking.op}", node=lacking.name)

    # -- choices -----------------------------------------------------------------------------------------

    def _reason(self, root: int, usual: str) -> str:
        if str(self.wanted[root]):
            return f"asked for {self.wanted[root]}"
        return usual if self.groups.size(root) == 1 else f"{usual}, with its group"

    def _default(self) -> dict[int, tuple[DeviceSpec, str]]:
        """Deterministic: a GPU before a CPU, the default task first, then the lowest index."""
        default_task = self.settings.devices[0].task_name
        rank = {device: position for position, device in enumerate(self.settings.devices)}

        def best(devices: list[DeviceSpec]) -> DeviceSpec:
            return min(
                devices,
                key=lambda d: (d.task_name != default_task, d.device_type == "CPU", rank[d]),
            )

        chosen: dict[int, tuple[DeviceSpec, str]] = {}
        consumers = self.graph.consumers()
        for node in self.order:
            root = self.groups.find(node.id)
            if root in chosen:
                continue
            allowed = self.allowed[root]
            if self.groups.size(root) == 1 and not node.device and _is_metadata(node) and node.inputs:
                source = chosen.get(self.groups.find(node.inputs[0].node.id))
                if source is not None and source[0] in allowed:
                    chosen[root] = (source[0], f"only passes on '{node.inputs[0].node.name}'")
                    continue
            chosen[root] = (best(allowed), self._reason(root, "default device"))
        # What only one node uses and takes nothing itself goes where it is used.
        for node in self.order:
            root = self.groups.find(node.id)
            users = {edge.dst for edge in consumers[node.id] if not edge.is_control}
            if self.groups.size(root) == 1 and not node.device and not node.inputs and len(users) == 1:
                user = users.pop()
                device = chosen[self.groups.find(user.id)][0]
                if device in self.allowed[root]:
                    chosen[root] = (device, f"only used by '{user.name}'")
        return chosen

    def _greedy(self) -> dict[int, tuple[DeviceSpec, str]]:
        """Earliest finish time over a simulated execution; see the module's docstring."""
        cost = StaticCost(self.graph)
        free: dict[DeviceSpec, float] = dict.fromkeys(self.settings.devices, 0.0)
        done: list[float] = [0.0] * len(self.graph)
        chosen: dict[int, tuple[DeviceSpec, str]] = {}
        for node in self.order:
            root = self.groups.find(node.id)
            options = [chosen[root][0]] if root in chosen else self.allowed[root]
            best, best_finish = options[0], float("inf")
            for device in options:
                start = free[device]
                for src, index in node.inputs:
                    entry = chosen.get(self.groups.find(src.id))
                    if entry is None:  # a back edge
                        continue
                    start = max(start, done[src.id] + cost.transfer(src, index, entry[0], device))
                finish = start + cost.compute(node, device)
                if finish < best_finish:
                    best, best_finish = device, finish
            done[node.id] = free[best] = best_finish
            if root not in chosen:
                usual = "only device that fits" if len(options) == 1 else "earliest estimated finish"
                chosen[root] = (best, self._reason(root, usual))
        return chosen


def make_groups(graph: Graph) -> Groups:
    """Which nodes must share a device.

    Raises:
        GraphError: a colocation attribute names a node that does not exist.
    """
    groups = Groups(len(graph))
    for node in graph:
        for name in colocation_targets(node):
            target = graph.get(name)
            if target is None:
                raise GraphError(f"it must share a device with '{name}', which does not exist", node=node.name)
            groups.union(node.id, target.id)
        if graph.find_op_def(node.op) is None:
            continue
        wanted = node.input_types
        for position, (src, index) in enumerate(node.inputs):
            dtype = src.output_types[index]
            is_loop_variable = node.op in MERGE_OPS and src.op in ENTER_OPS | NEXT_ITERATION_OPS
            takes_reference = dtype.is_ref and wanted[position].is_ref
            if is_loop_variable or takes_reference or dtype.base is dtypes.resource:
                groups.union(node.id, src.id)
    return groups


def _parse(node: Node) -> DeviceSpec:
    try:
        return DeviceSpec.parse(node.device)
    except UsageError as error:
        raise GraphError(error.message, node=node.name) from None


def _is_metadata(node: Node) -> bool:
    """Ops that only look at their input or pass it on (IsMetadata in TensorFlow's placer, and identities)."""
    return node.op in ("Shape", "Size", "Rank", "Identity", "StopGradient")


def _any_device(node: Node, device_type: str) -> bool:
    return True
