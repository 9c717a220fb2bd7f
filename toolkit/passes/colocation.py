"""Groups of nodes that must share a device, and what their members ask for."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field

from toolkit.errors import GraphError, UsageError
from toolkit.graph import dtypes
from toolkit.graph.check import colocations
from toolkit.graph.device import DeviceSpec
from toolkit.graph.graph import Graph
from toolkit.graph.node import Node

#: calls run their body wherever it is placed, so a resource argument does not bind them
_CALLS = frozenset({"PartitionedCall", "StatefulPartitionedCall", "RemoteCall", "_Retval", "_Arg"})


@dataclass(slots=True)
class Group:
    """Nodes on one device.

    Attributes:
        leader: the member with the lowest id; its name is the group's.
        spec: what all members' device names ask for together.
        softened: type and index were dropped because members contradict each other there.
        bonds: for each member but the leader, why it is in the group.
    """

    leader: Node
    members: list[Node] = field(default_factory=list[Node])
    spec: DeviceSpec = field(default_factory=DeviceSpec)
    softened: bool = False
    bonds: dict[int, str] = field(default_factory=dict[int, str])


def group_nodes(graph: Graph, *, soft: bool, also: Iterable[tuple[Node, Node, str]] = ()) -> list[Group]:
    """The groups of a graph, by node id; each node's group object is shared by its members.

    Nodes are joined by `_class` (loc:@name), by edges into reference inputs, and by edges that carry resource
    handles.

    Args:
        soft: members that contradict each other in device type or index lose those instead of failing.
        also: further pairs to join, with the reason; a pair whose device names contradict each other is skipped.

    Raises:
        GraphError: members of a group ask for devices that exclude each other; a colocation target is missing.
        UsageError: a device name is malformed (with the node).
    """
    return _Grouper(graph, soft).run(also)


class _Grouper:
    def __init__(self, graph: Graph, soft: bool):
        self.graph = graph
        self.soft = soft
        self.parent = list(range(len(graph)))
        self.bonds: dict[int, str] = {}

    def find(self, i: int) -> int:
        parent = self.parent
        while parent[i] != i:
            parent[i] = parent[parent[i]]
            i = parent[i]
        return i

    def join(self, a: int, b: int, node: int, why: str) -> None:
        ra, rb = self.find(a), self.find(b)
        if ra != rb:
            self.parent[max(ra, rb)] = min(ra, rb)
            self.bonds.setdefault(node, why)

    def run(self, also: Iterable[tuple[Node, Node, str]]) -> list[Group]:
        specs = [self._spec(node) for node in self.graph.nodes]
        for node in self.graph.nodes:
            self._join_node(node)
        groups: dict[int, Group] = {}
        by_id: list[Group] = []
        for node in self.graph.nodes:
            root = self.find(node.id)
            group = groups.get(root)
            if group is None:
                group = groups[root] = Group(self.graph.nodes[root])
            self._add(group, node, specs)
            by_id.append(group)
        for a, b, why in also:
            self._merge(by_id, a, b, why)
        return by_id

    def _spec(self, node: Node) -> DeviceSpec:
        if not node.device:
            return _ANY
        found = _parsed.get(node.device)
        if found is None:
            try:
                found = _parsed[node.device] = DeviceSpec.parse(node.device)
            except UsageError as error:
                raise error.at(node=node.name) from None
        return found

    def _join_node(self, node: Node) -> None:
        if "_class" in node.attrs:
            for name in colocations(node):
                target = self.graph.get(name)
                if target is None:
                    raise GraphError(f"it is to be placed with '{name}', which does not exist", node=node.name)
                self.join(node.id, target.id, node.id, f"colocated with '{name}'")
        if node.op in _CALLS or node.op in self.graph.library:
            return
        for src, index in node.inputs:
            given = src.output_types[index]
            if given is dtypes.resource:
                self.join(node.id, src.id, node.id, f"uses the resource of '{src.name}'")
            elif given.is_ref and any(t.is_ref for t in node.input_types):
                position = next(i for i, (s, o) in enumerate(node.inputs) if s is src and o == index)
                if node.input_types[position].is_ref:
                    self.join(node.id, src.id, node.id, f"takes a reference to '{src.name}'")

    def _add(self, group: Group, node: Node, specs: list[DeviceSpec]) -> None:
        spec = specs[node.id]
        group.members.append(node)
        if node.id in self.bonds:
            group.bonds[node.id] = self.bonds[node.id]
        if spec is _ANY or spec == group.spec:
            return
        together = group.spec.intersect(spec)
        if together is None and self.soft:
            together = group.spec.intersect(spec, soft=True)
            group.softened = True
        if together is None:
            other = next(m for m in group.members if specs[m.id].intersect(spec) is None)
            raise GraphError(
                f"it must be on one device with '{other.name}' ({self._why(group, node)}), but asks for {spec} while "
                f"'{other.name}' asks for {specs[other.id]}",
                node=node.name,
            )
        group.spec = together

    def _why(self, group: Group, node: Node) -> str:
        return self.bonds.get(node.id) or next(iter(group.bonds.values()), "colocated")

    def _merge(self, by_id: list[Group], a: Node, b: Node, why: str) -> None:
        """Join two groups if their device names allow it."""
        into, gone = by_id[a.id], by_id[b.id]
        if into is gone:
            return
        spec = into.spec.intersect(gone.spec)
        if spec is None:
            return
        if len(into.members) < len(gone.members):
            into, gone = gone, into
        into.spec = spec
        into.softened = into.softened or gone.softened
        into.bonds |= gone.bonds
        into.bonds.setdefault(gone.leader.id, why)
        into.members += gone.members
        for member in gone.members:
            by_id[member.id] = into


_ANY = DeviceSpec()
_parsed: dict[str, DeviceSpec] = {}
