"""Groups of nodes that must share a device, and what their members ask for."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field

from toolkit.errors import GraphError, UsageError
from toolkit.graph import dtypes
from toolkit.graph.bodies import CALLS
from toolkit.graph.check import colocations
from toolkit.graph.device import DeviceSpec
from toolkit.graph.graph import Graph
from toolkit.graph.node import Node

#: calls run their body wherever it is placed, so a resource argument does not bind them
_CALLS = CALLS | {"RemoteCall", "_Retval", "_Arg"}


@dataclass(slots=True)
class ColocationGroup:
    """Nodes on one device.

    Attributes:
        leader: the member with the lowest id; its name is the group's.
        spec: what all members' device names ask for together.
        resource: what those of them ask for that make references and resources.
        softened: type and index were dropped because members contradict each other there.
        bonds: for each member but the leader, why it is in the group.
        overruled: members that ask for another device than the reference or resource that they take is on.
    """

    leader: Node
    members: list[Node] = field(default_factory=list[Node])
    spec: DeviceSpec = field(default_factory=DeviceSpec)
    resource: DeviceSpec = field(default_factory=DeviceSpec)
    softened: bool = False
    bonds: dict[int, str] = field(default_factory=dict[int, str])
    overruled: list[Node] = field(default_factory=list[Node])


def group_nodes(graph: Graph, *, soft: bool, also: Iterable[tuple[Node, Node, str]] = ()) -> list[ColocationGroup]:
    """The groups of a graph, by node id; each node's group object is shared by its members.

    Nodes are joined by `_class` (loc:@name), by edges into reference inputs, and by edges that carry resource
    handles. What makes a reference or a resource decides where it is: a node that takes it and asks for another device
    is overruled, unless it makes one itself.

    Args:
        soft: members that contradict each other in device type or index lose those instead of failing; a wish to be
            with a node that cannot be met is dropped.
        also: further pairs to join, with the reason; a pair whose device names contradict each other is skipped.

    Raises:
        GraphError: members of a group ask for devices that exclude each other; a colocation target is missing.
        UsageError: a device name is malformed (with the node).
    """
    return _Grouper(graph, soft).run(also)


def regather(graph: Graph, device: Callable[[str], str | None]) -> int:
    """Let groups whose first member is gone gather around the first that is left; returns how many nodes changed.

    Args:
        device: what a node that is gone asked for, by its name; the new first member asks for that.
    """
    leaders: dict[str, Node] = {}
    changed = 0
    for node in graph.nodes:
        gone = [name for name in colocations(node) if name not in graph]
        if not gone:
            continue
        changed += 1
        dropped = {b"loc:@" + name.encode() for name in gone} | {name.encode() for name in gone}
        kept = [value for value in node.attr_or("_class", []) if value not in dropped]
        for name in gone:
            leader = leaders.setdefault(name, node)
            if leader is not node:
                kept.append(b"loc:@" + leader.name.encode())
            elif not node.device:
                node.device = device(name) or ""
        if kept:
            node.attrs["_class"] = list(dict.fromkeys(kept))
        else:
            del node.attrs["_class"]
    return changed


class _Grouper:
    """Union-find over node ids; each root carries what its members ask for together (TensorFlow's ColocationGraph)."""

    def __init__(self, graph: Graph, soft: bool):
        self.graph = graph
        self.soft = soft
        self.parent = list(range(len(graph)))
        self.own = [self._spec(node) for node in graph.nodes]
        self.together = list(self.own)
        self.resource = [
            spec if _makes_resource(node) else _ANY for node, spec in zip(graph.nodes, self.own, strict=True)
        ]
        self.softened: set[int] = set()
        self.overruled: set[int] = set()
        self.bonds: dict[int, str] = {}
        self.named: dict[str, Node] = {}

    def find(self, i: int) -> int:
        parent = self.parent
        while parent[i] != i:
            parent[i] = parent[parent[i]]
            i = parent[i]
        return i

    def join(self, node: Node, other: Node, why: str) -> None:
        """Join the groups of two nodes.

        Raises:
            GraphError: they ask for devices that exclude each other; with soft placement, for different tasks, or
                they hold resources on different devices.
        """
        a, b = self.find(node.id), self.find(other.id)
        if a == b:
            return
        if a > b:
            a, b = b, a
        resource = self.resource[a].intersect(self.resource[b])
        spec = self.together[a].intersect(self.together[b])
        softened = spec is None
        if spec is None and self.soft:
            # As TensorFlow does, pair by pair: what the two disagree on is forgotten.
            spec = self.together[a].intersect(self.together[b], soft=True)
        if spec is None or resource is None:
            raise self._conflict(node, other, why)
        if softened or b in self.softened:
            self.softened.add(a)
        self.together[a] = resource.override(spec)
        self.resource[a] = resource
        self.parent[b] = a
        self.bonds.setdefault(node.id, why)

    def _follow(self, node: Node, source: Node, why: str) -> None:
        """Join a node with what made the reference or resource that it takes, whose device wins."""
        mine, theirs = self.find(node.id), self.find(source.id)
        both = self.resource[mine].intersect(self.resource[theirs])
        if both is None:
            raise self._conflict(node, source, why)
        if self.together[mine].intersect(self.together[theirs]) is None:
            self.together[mine] = self.resource[mine].override(self.together[theirs])
            self.overruled.add(node.id)
        self.join(node, source, why)

    def _conflict(self, node: Node, other: Node, why: str) -> GraphError:
        """Which two members ask for different devices."""
        root = self.find(other.id)
        mine = self.find(node.id)
        here = [n for n in self.graph.nodes if self.find(n.id) == mine]
        there = [n for n in self.graph.nodes if self.find(n.id) == root]
        for a in here:
            for b in there:
                if a.id in self.overruled or b.id in self.overruled:
                    continue
                if self.own[a.id].intersect(self.own[b.id]) is None:
                    through = "" if a is node and b is other else f" through '{node.name}'"
                    return GraphError(
                        f"it must be on one device with '{b.name}'{through} ({why}), but asks for {self.own[a.id]} "
                        f"while '{b.name}' asks for {self.own[b.id]}",
                        node=a.name,
                    )
        return GraphError(
            f"it must be on one device with '{other.name}' ({why}), but their groups ask for {self.together[mine]} "
            f"and {self.together[root]}",
            node=node.name,
        )

    def run(self, also: Iterable[tuple[Node, Node, str]]) -> list[ColocationGroup]:
        for node in self.graph.nodes:
            self._join_values(node)
        for node in self.graph.nodes:
            self._join_classes(node)
        groups: dict[int, ColocationGroup] = {}
        nothing: dict[int, str] = {}  # shared by the many groups of one node, and left empty
        nobody: list[Node] = []
        by_id: list[ColocationGroup] = []
        for node in self.graph.nodes:
            root = self.find(node.id)
            group = groups.get(root)
            if group is None:
                group = groups[root] = ColocationGroup(
                    self.graph.nodes[root],
                    spec=self.together[root],
                    resource=self.resource[root],
                    softened=root in self.softened,
                    bonds=nothing,
                    overruled=nobody,
                )
            group.members.append(node)
            if node.id in self.bonds:
                if group.bonds is nothing:
                    group.bonds = {}
                group.bonds[node.id] = self.bonds[node.id]
            if node.id in self.overruled:
                if group.overruled is nobody:
                    group.overruled = []
                group.overruled.append(node)
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

    def _join_classes(self, node: Node) -> None:
        """Join the groups that `_class` names, and the one of the node's own name.

        A group is opened by whoever names it first. The order matters only for soft placement, and is
        TensorFlow's.
        """
        for name in colocations(node):
            if name not in self.graph:
                raise GraphError(f"it is to be placed with '{name}', which does not exist", node=node.name)
            self._join_class(node, self.named.setdefault(name, node), f"colocated with '{name}'")
        first = self.named.setdefault(node.name, node)
        self._join_class(node, first, f"colocated with '{first.name}'")

    def _join_class(self, node: Node, first: Node, why: str) -> None:
        try:
            self.join(node, first, why)
        except GraphError:
            if not self.soft:
                raise

    def _join_values(self, node: Node) -> None:
        """Stay with references and resources that come in."""
        if node.op in _CALLS or node.op in self.graph.library:
            return
        for position, (src, index) in enumerate(node.inputs):
            given = src.output_types[index]
            if given is dtypes.resource:
                self._follow(node, src, f"uses the resource of '{src.name}'")
            elif given.is_ref and node.input_types[position].is_ref:
                self._follow(node, src, f"takes a reference to '{src.name}'")

    def _merge(self, by_id: list[ColocationGroup], a: Node, b: Node, why: str) -> None:
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
        into.resource = into.resource.intersect(gone.resource) or into.resource
        into.softened = into.softened or gone.softened
        into.bonds = {gone.leader.id: why} | into.bonds | gone.bonds
        into.members += gone.members
        for member in gone.members:
            by_id[member.id] = into


def _makes_resource(node: Node) -> bool:
    """Whether a node is nothing but the source of a reference or a resource."""
    if node.inputs or not node.device:
        return False
    kinds = node.output_types
    return len(kinds) == 1 and (kinds[0].is_ref or kinds[0] is dtypes.resource)


_ANY = DeviceSpec()
_parsed: dict[str, DeviceSpec] = {}
