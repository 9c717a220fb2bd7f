"""Which devices a node may have: device names, colocation, references, resources, kernels (as TensorFlow's placer)."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property

from toolkit.errors import GraphError, did_you_mean
from toolkit.graph.device import DeviceSpec
from toolkit.graph.graph import Graph
from toolkit.graph.kinds import NodeKind
from toolkit.graph.node import Edge, Node
from toolkit.kernels.facts import Availability
from toolkit.passes.partitioning.partition import value_frames
from toolkit.passes.placement.bodies import used_together
from toolkit.passes.placement.candidates import Candidates
from toolkit.passes.placement.colocation import ColocationGroup, group_nodes
from toolkit.passes.placement.devices import DeviceSet


@dataclass(slots=True)
class Choice:
    """Where a node goes, and why."""

    device: DeviceSpec
    reason: str


class Constraints(Candidates):
    """What binds the nodes of a graph.

    Attributes:
        graph: its nodes, in `order` (topological).
        groups: by node id, the nodes that share a device with it.
    """

    def __init__(
        self, graph: Graph, devices: DeviceSet, *, soft: bool, supports: Availability, keep: bool, leaves: bool = True
    ):  # fmt: skip
        """Args:
        soft: take other devices where those asked for cannot be had.
        leaves: of other tasks, too.
        supports: which device types can run a node.
        keep: loops stay together, and resources that one node in the body of a function takes, where they do not
            ask for something else.
        """
        super().__init__(devices, soft=soft, supports=supports, leaves=leaves)
        self.graph = graph
        self.order = graph.topological_order()
        self._candidates: dict[int, tuple[list[DeviceSpec], str]] = {}  # by id(group), of several nodes
        #: the same for groups of one node that ask for the same and can run on the same types
        self._alike: dict[tuple[DeviceSpec, bool, tuple[str, ...]], tuple[list[DeviceSpec], str]] = {}
        #: the same for nodes that are alone, by their kind and the device that they ask for
        self._lone: dict[tuple[NodeKind, str], tuple[list[DeviceSpec], str]] = {}
        bound = list(_beside(graph))
        also = [*bound, *((*used_together(graph), *_loops(graph)) if keep else ())]
        self.groups = group_nodes(graph, soft=soft, also=also)
        for node, other, why in bound:
            if self.groups[node.id] is not self.groups[other.id]:
                raise GraphError(f"{why}, but the two ask for different devices", node=node.name)

    @cached_property
    def consumers(self) -> list[list[Edge]]:
        """The edges out of each node, by its id."""
        return self.graph.consumers()

    def allowed(self, group: ColocationGroup) -> tuple[list[DeviceSpec], str]:
        """The devices of a group, best first, and why they are so few."""
        if len(group.members) > 1:
            found = self._candidates.get(id(group))
            if found is None:
                found = self._candidates[id(group)] = self.find(group)
            return found
        alike = (group.spec, group.softened, self.types_of(group.leader))
        found = self._alike.get(alike)
        if found is None:
            found = self._alike[alike] = self.find(group)
        return found

    def allowed_alone(self, node: Node) -> tuple[list[DeviceSpec], str]:
        """The same for a node that is alone in its group (`ColocationGroups.lone`)."""
        kind = node.kind
        if kind is None:
            return self.allowed(self.groups[node.id])
        key = (kind.like or kind, node.device)
        found = self._lone.get(key)
        if found is None:
            found = self._lone[key] = self.allowed(self.groups[node.id])
        return found

    @staticmethod
    def bond(node: Node, group: ColocationGroup) -> str:
        """Why a node is in its group; "" for the first one."""
        bond = group.bonds.get(node.id)
        if bond is None and len(group.members) > 1 and node is not group.leader:
            bond = f"colocated with '{group.leader.name}'"
        return bond or ""

    def reason(self, node: Node, group: ColocationGroup, why: str) -> str:
        parts = [part for part in (why, self.bond(node, group)) if part]
        return "; ".join(parts) if parts else f"default device of {self.set.default.task_name}"


def _beside(graph: Graph) -> Iterator[tuple[Node, Node, str]]:
    """Nodes whose device is "@other": with that node, as early versions of TensorFlow wrote it. Their names go."""
    for node in graph.nodes:
        if node.device.startswith("@"):
            name = node.device[1:]
            other = graph.get(name)
            if other is None:
                hint = did_you_mean(name, (each.name for each in graph.nodes))
                raise GraphError(f"its device '@{name}' is that of a node that does not exist{hint}", node=node.name)
            node.device = ""
            yield other, node, f"it asks for the device of '{name}'"


def _loops(graph: Graph) -> Iterator[tuple[Node, Node, str]]:
    """Loops stay together unless their nodes say otherwise: each crossing would cost a transfer per iteration."""
    first: dict[str, Node] = {}
    for node, frame in zip(graph.nodes, value_frames(graph), strict=True):
        if frame is not None:
            while frame.parent is not None and frame.parent.parent is not None:
                frame = frame.parent
            leader = first.setdefault(frame.name, node)
            if leader is not node:
                yield leader, node, f"in the loop '{frame.name}'"
