"""Groups of nodes that must share a device, and what their members ask for."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from typing import overload

from toolkit.errors import GraphError, UsageError
from toolkit.graph import dtypes
from toolkit.graph.bodies import CALLS
from toolkit.graph.check import colocations
from toolkit.graph.device import DeviceSpec
from toolkit.graph.graph import Graph
from toolkit.graph.kinds import NodeKind
from toolkit.graph.node import Node

#: calls run their body wherever it is placed, so a resource argument does not bind them
UNBOUND_CALLS = CALLS | {"RemoteCall", "_Retval", "_Arg"}


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


class ColocationGroups(Sequence[ColocationGroup]):
    """The groups of a graph by node id. That of a node that is alone, as most are, is made when it is asked for."""

    def __init__(self, nodes: Sequence[Node], joined: list[ColocationGroup | None], specs: Sequence[DeviceSpec]):
        """Args:
        joined: by node id; None for nodes that are alone.
        specs: what each node asks for.
        """
        self._nodes = nodes
        self._specs = specs
        self._found = joined
        self.lone = bytearray(group is None for group in joined)

    def __len__(self) -> int:
        return len(self._found)

    @overload
    def __getitem__(self, index: int) -> ColocationGroup: ...
    @overload
    def __getitem__(self, index: slice) -> list[ColocationGroup]: ...
    def __getitem__(self, index: int | slice) -> ColocationGroup | list[ColocationGroup]:
        if isinstance(index, slice):
            return [self[number] for number in range(len(self))[index]]
        group = self._found[index]
        if group is None:
            node, spec = self._nodes[index], self._specs[index]
            resource = spec if _makes_resource(node) else _ANY
            group = self._found[index] = ColocationGroup(node, [node], spec, resource, False, {}, [])
        return group

    def several(self) -> list[ColocationGroup]:
        """The groups of more than one node, each once."""
        return list({id(group): group for group in self._found if group is not None}.values())

    def merge(self, a: Node, b: Node, why: str) -> None:
        """Join two groups if their device names allow it."""
        into, gone = self[a.id], self[b.id]
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
        self.lone[into.leader.id] = 0
        into.members += gone.members
        for member in gone.members:
            self._found[member.id] = into
            self.lone[member.id] = 0


def group_nodes(graph: Graph, *, soft: bool, also: Iterable[tuple[Node, Node, str]] = ()) -> ColocationGroups:
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


def regather(graph: Graph, device: Callable[[str], str | None]) -> list[Node]:
    """Let groups whose first member is gone gather around the first that is left; returns the nodes that changed.

    Args:
        device: what a node that is gone asked for, by its name; the new first member asks for that.
    """
    leaders: dict[str, Node] = {}
    changed: list[Node] = []
    for node in graph.nodes:
        kind = node.kind
        if kind is not None and kind.companions == ():
            continue
        gone = [name for name in colocations(node) if name not in graph]
        if not gone:
            continue
        changed.append(node)
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
        self.parent = [node.id for node in graph.nodes]
        self.own = [_parsed.get(node.device) or self._spec(node) for node in graph.nodes]
        self.together = list(self.own)
        self.resource = [
            spec if node.device and not node.inputs and _makes_resource(node) else _ANY
            for node, spec in zip(graph.nodes, self.own, strict=True)
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

    def join(self, node: Node, other: Node, why: str, *, is_wish: bool = False) -> None:
        """Join the groups of two nodes.

        Args:
            is_wish: soft placement leaves them apart where they cannot be joined.

        Raises:
            GraphError: they ask for devices that exclude each other; with soft placement, for different tasks, or
                they hold resources on different devices.
        """
        a, b = self.find(node.id), self.find(other.id)
        if a == b:
            return
        if a > b:
            a, b = b, a
        mine, theirs = self.resource[a], self.resource[b]
        resource = mine if mine is theirs else mine.intersect(theirs)
        mine, theirs = self.together[a], self.together[b]
        spec = mine if mine is theirs else mine.intersect(theirs)
        softened = spec is None
        if spec is None and self.soft:
            # As TensorFlow does, pair by pair: what the two disagree on is forgotten.
            spec = self.together[a].intersect(self.together[b], soft=True)
        if spec is None or resource is None:
            # what soft placement would have left open: the wish itself, or a type or a number
            found = None if resource is None else self.together[a].intersect(self.together[b], soft=True)
            bends = not self.soft and (is_wish or found is not None)
            raise self._conflict(node, other, why, _SOFT if bends else "")
        if softened or b in self.softened:
            self.softened.add(a)
        self.together[a] = spec if resource is _ANY else resource.override(spec)
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

    def _conflict(self, node: Node, other: Node, why: str, advice: str = "") -> GraphError:
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
                        f"while '{b.name}' asks for {self.own[b.id]}{advice}",
                        node=a.name,
                    )
        return GraphError(
            f"it must be on one device with '{other.name}' ({why}), but their groups ask for {self.together[mine]} "
            f"and {self.together[root]}{advice}",
            node=node.name,
        )

    def run(self, also: Iterable[tuple[Node, Node, str]]) -> ColocationGroups:
        nodes = self.graph.nodes
        takes: dict[NodeKind, bool] = {}
        for node in nodes:
            if not node.inputs:
                continue
            kind = node.kind
            if kind is not None and kind.is_sound:
                kind = kind.like or kind
                known = takes.get(kind)
                if known is None:
                    known = takes[kind] = any(t.is_ref or t is dtypes.resource for t in node.input_types)
                if not known:
                    continue
            self._join_values(node)
        for node in nodes:
            kind = node.kind
            if kind is None or kind.companions != () or node.name in self.named:
                self._join_classes(node)
        parent = self.parent
        joined: list[ColocationGroup | None] = [None] * len(nodes)
        groups: dict[int, ColocationGroup] = {}
        for node in nodes:
            number = node.id
            root = number if parent[number] == number else self.find(number)
            if root != number:
                group = groups.get(root)
                if group is None:
                    # its first member has the lowest id
                    group = groups[root] = joined[root] = ColocationGroup(
                        nodes[root], [nodes[root]], self.together[root], self.resource[root], root in self.softened
                    )
                    self._note(group, nodes[root])
                group.members.append(node)
                self._note(group, node)
                joined[number] = group
        found = ColocationGroups(nodes, joined, self.together)
        for a, b, why in also:
            found.merge(a, b, why)
        return found

    def _note(self, group: ColocationGroup, node: Node) -> None:
        """Have a group know why a node is in it."""
        if node.id in self.bonds:
            group.bonds[node.id] = self.bonds[node.id]
        if node.id in self.overruled:
            group.overruled.append(node)

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
            first = self.named.get(name)
            if first is None:
                # nodes that stand before it and name nobody have not been noted
                other = self.graph.node(name)
                first = self.named[name] = other if other.id < node.id else node
            self._join_class(node, first, f"colocated with '{name}'")
        first = self.named.setdefault(node.name, node)
        self._join_class(node, first, f"colocated with '{first.name}'")

    def _join_class(self, node: Node, first: Node, why: str) -> None:
        try:
            self.join(node, first, why, is_wish=True)
        except GraphError:
            if not self.soft:
                raise

    def _join_values(self, node: Node) -> None:
        """Stay with references and resources that come in."""
        if node.op in UNBOUND_CALLS or node.op in self.graph.library:
            return
        wanted = node.input_types
        for position, (src, index) in enumerate(node.inputs):
            types = src.output_types
            if index >= len(types) or position >= len(wanted):
                continue  # told to whoever runs it
            given = types[index]
            if given is dtypes.resource:
                self._follow(node, src, f"uses the resource of '{src.name}'")
            elif given.is_ref and wanted[position].is_ref:
                self._follow(node, src, f"takes a reference to '{src.name}'")


def _makes_resource(node: Node) -> bool:
    """Whether a node is nothing but the source of a reference or a resource."""
    if node.inputs or not node.device:
        return False
    kinds = node.output_types
    return len(kinds) == 1 and (kinds[0].is_ref or kinds[0] is dtypes.resource)


#: what to do where members differ in type and number alone, or wish to be with a node
_SOFT = "; soft placement (place --soft-placement) leaves open what they disagree on"
_ANY = DeviceSpec()
_parsed: dict[str, DeviceSpec] = {"": _ANY}
