"""A model while it is edited: what names nodes is brought up to date when somebody looks."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from dataclasses import replace
from typing import Any

from schemas.function_pb2 import FunctionDef
from toolkit.errors import GraphError, UsageError, did_you_mean
from toolkit.graph import query
from toolkit.graph.graph import Graph
from toolkit.graph.metagraph import MetaGraph
from toolkit.graph.node import Node, Output
from toolkit.graph.tensorref import parse_input, parse_tensor
from toolkit.passes.models.references import rename_surroundings
from toolkit.passes.models.surroundings import shrink, what_was_dropped
from toolkit.passes.placement.colocation import regather

_COLOCATION = b"loc:@"
#: before the name of a node that is gone: another may have that name by now
_GONE = "\0"


class Draft:
    """A copy of a MetaGraph that edits change.

    Nodes are objects, so edges need nothing when one is renamed or removed; signatures, collections and the like name
    nodes by text, and follow all renamings since they were last looked at in one go.

    Attributes:
        graph: nodes may be changed freely; to rename, add or remove some there are methods.
        notes: what was dropped because what it named is gone, as sentences.
        bodies: names of the functions whose bodies were changed.
    """

    def __init__(self, meta: MetaGraph):
        self.graph = meta.graph.copy()
        self.notes: list[str] = []
        self.bodies: set[str] = set()
        self._meta = replace(meta, graph=self.graph)
        self._before: dict[Node, str] = {}  # nodes that were renamed, with the names that texts still have
        self._gone: dict[str, dict[int, Output]] = {}  # likewise of removed ones: what is taken instead
        self._devices: dict[str, str] = {}
        self._new: set[Node] = set()

    # -- what belongs to the graph -----------------------------------------------------------------------

    @property
    def meta(self) -> MetaGraph:
        """The MetaGraph as it is now; its lists and mappings are not to be changed, but replaced."""
        self._follow()
        return self._meta

    @meta.setter
    def meta(self, meta: MetaGraph) -> None:
        self._meta = meta

    def _follow(self) -> None:
        """Bring texts that name nodes up to date."""
        if not self._before and not self._gone:
            self._new.clear()
            return
        names = {old: node.name for node, old in self._before.items() if node.name != old}
        gone, devices = self._gone, self._devices
        self._before, self._gone, self._devices = {}, {}, {}
        self._new.clear()

        def rename(text: str) -> str:
            start = "^" if text.startswith("^") else ""
            name, index = parse_input(text)
            instead = gone.get(name)
            if instead is not None:
                other = instead.get(max(index, 0))
                if other is None:
                    return _GONE + name
                return other.name if text.endswith(f":{index}") else start + other.node.name
            new = names.get(name)
            return text if new is None else start + new + text[len(start) + len(name) :]

        self._rename_colocations({**names, **{old: _GONE + old for old in gone}})
        self._keep_shared_names(names)
        self._meta = rename_surroundings(replace(self._meta, graph=self.graph), rename)
        if gone:
            regather(self.graph, lambda name: devices.get(name.removeprefix(_GONE)))
            self._meta, report = shrink(self._meta, self.graph)
            self.notes += what_was_dropped(report)

    def _rename_colocations(self, names: Mapping[str, str]) -> None:
        new = {_COLOCATION + old.encode(): _COLOCATION + name.encode() for old, name in names.items()}
        for node in self.graph.nodes:
            if node.attr_proto("_class") is not None:
                values: list[bytes] = node.attr_or("_class", [])
                if not new.keys().isdisjoint(values):
                    node.attrs["_class"] = [new.get(value, value) for value in values]

    def _keep_shared_names(self, names: Mapping[str, str]) -> None:
        """A resource without a name of its own has its node's; who shares it by that name is to find it still."""
        shared = {node.attr_or("shared_name", b"") for node in self.graph.nodes if node.attr_proto("shared_name")}
        for old, name in names.items():
            node = self.graph.get(name)
            if node is not None and old.encode() in shared and node.attr_or("shared_name", None) == b"":
                node.attrs["shared_name"] = old

    # -- finding -----------------------------------------------------------------------------------------

    def tensor(self, text: str) -> Output:
        """The tensor that `node` or `node:index` names.

        Raises:
            UsageError, GraphError: it is no tensor's name, or there is none.
        """
        return self.graph.output(parse_tensor(text))

    def choose(self, patterns: Iterable[str], where: str = "") -> list[Node]:
        """The nodes that patterns, or a query, mean, in file order.

        Raises:
            UsageError: a pattern matches nothing; nothing is chosen; the query is none.
        """
        return choose_nodes(self.graph, patterns, where)

    def choose_functions(self, patterns: Iterable[str]) -> list[str]:
        """The functions of the library that patterns mean.

        Raises:
            UsageError: a pattern matches nothing.
        """
        names = list(self.graph.library)
        chosen: set[str] = set()
        for pattern in patterns:
            found = [pattern] if pattern in self.graph.library else matching(pattern, names)
            if not found and pattern != "*":
                raise UsageError(f"no function matches '{pattern}'{did_you_mean(pattern, names)}")
            chosen.update(found)
        return [name for name in names if name in chosen]

    def body(self, name: str) -> FunctionDef:
        """A function's definition, to be changed."""
        made = FunctionDef()
        made.CopyFrom(self.graph.library.function(name))
        self.graph.library.replace(made)
        self.bodies.add(name)
        return made

    # -- changing ----------------------------------------------------------------------------------------

    def rename(self, names: Mapping[str, str]) -> None:
        """Rename nodes, all at once: two may exchange their names.

        Raises:
            GraphError: two nodes would have one name; a name that no node may have.
        """
        graph = self.graph
        moving = {old: new for old, new in names.items() if old != new}
        taken: dict[str, str] = {}
        for old, new in moving.items():
            require_name(new, old)
            other = taken.setdefault(new, old)
            if other != old:
                raise GraphError(f"'{other}' and '{old}' would both be called '{new}'")
            if new in graph and new not in moving:
                raise GraphError(f"'{old}' cannot be called '{new}': another node is")
        nodes = {new: graph.node(old) for old, new in moving.items()}
        for node in nodes.values():
            if node not in self._new:
                self._before.setdefault(node, node.name)
            graph.rename(node, f"\0{node.name}")  # out of the way of those that take its name
        for new, node in nodes.items():
            graph.rename(node, new)

    def add(
        self, op: str, name: str, inputs: Iterable[Output], controls: Iterable[Node], attrs: Mapping[str, Any],
        device: str = "",
    ) -> Node:  # fmt: skip
        """Append a node.

        Raises:
            GraphError: the name is taken, or none.
        """
        require_name(name)
        if name in self._gone:
            self._follow()  # texts that have this name mean the node that was removed
        node = self.graph.add(op, name, inputs, control_inputs=controls, attrs=attrs, device=device)
        self._new.add(node)
        return node

    def redirect(self, instead: Mapping[tuple[int, int], Output], but: Collection[Node] = ()) -> int:
        """Let whoever takes a tensor take another one; returns how many inputs changed.

        Args:
            instead: by node id and index.
            but: nodes that are left as they are.
        """
        count = 0
        spared = {node.id for node in but}
        for node in self.graph.nodes:
            if node.id in spared:
                continue
            for position, (src, index) in enumerate(node.inputs):
                other = instead.get((src.id, index))
                if other is not None:
                    node.inputs[position] = other
                    count += 1
        return count

    def remove(self, nodes: Collection[Node], instead: Mapping[tuple[int, int], Output]) -> None:
        """Remove nodes that nothing takes any more; texts that name their tensors name those in `instead`."""
        removed = set(nodes)
        for node in removed:
            text = self._before.pop(node, node.name)
            if node in self._new:
                continue
            self._devices[text] = node.device
            self._gone[text] = {index: other for (id_, index), other in instead.items() if id_ == node.id}
        for others in self._gone.values():  # what was taken instead may be removed now
            for index, other in list(others.items()):
                if other.node in removed:
                    further = instead.get((other.node.id, other.index))
                    if further is None:
                        del others[index]
                    else:
                        others[index] = further
        self.graph.remove(removed)


def require_name(name: str, node: str | None = None) -> None:
    """Refuse what no node may be called.

    Raises:
        GraphError: it is no name.
    """
    from toolkit.graph.check import is_node_name

    if not is_node_name(name):
        about = f"'{node}' cannot be called '{name}': " if node is not None else f"'{name}' is no name of a node: "
        raise GraphError(
            f"{about}a name has letters, digits, _ . - / \\ >, and begins with a letter, a digit or a point"
        )


def choose_nodes(graph: Graph, patterns: Iterable[str], where: str = "") -> list[Node]:
    """The nodes that patterns, or a query, mean, in file order.

    Raises:
        UsageError: a pattern matches nothing; nothing is chosen; the query is none.
    """
    chosen: set[int] = set()
    for pattern in patterns:
        exact = graph.get(pattern)
        if exact is not None:
            found = [exact]
        else:
            found = [graph.node(name) for name in matching(pattern, (node.name for node in graph.nodes))]
        if not found:
            names = (node.name for node in graph.nodes)
            raise UsageError(f"no node matches '{pattern}'{did_you_mean(pattern, names)}")
        chosen.update(node.id for node in found)
    if where:
        found = query.parse(where).select(graph)
        if not found:
            raise UsageError(f"no node matches the query '{where}'")
        ids = {node.id for node in found}
        chosen = chosen & ids if chosen else ids
        if not chosen:
            raise UsageError(f"none of the nodes matches the query '{where}'")
    return [node for node in graph.nodes if node.id in chosen]


def downstream(graph: Graph, nodes: Iterable[Node]) -> list[Node]:
    """Nodes and everything that needs a value of theirs, in the order of the file."""
    takers: list[list[int]] = [[] for _ in graph.nodes]
    for node in graph.nodes:
        for src, _ in node.inputs:
            takers[src.id].append(node.id)
    found = {node.id for node in nodes}
    waiting = list(found)
    while waiting:
        for taker in takers[waiting.pop()]:
            if taker not in found:
                found.add(taker)
                waiting.append(taker)
    return [node for node in graph.nodes if node.id in found]


def matching(pattern: str, names: Iterable[str]) -> list[str]:
    """The names that a glob or an expression matches; what is neither matches none.

    Raises:
        UsageError: an expression is wrong.
    """
    from toolkit.formats.bundle.patterns import REGEX, matcher

    if not pattern.startswith(REGEX) and not any(sign in pattern for sign in "*?["):
        return []
    test = matcher([pattern])
    return [name for name in names if test(name)]
