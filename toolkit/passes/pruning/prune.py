"""Keep only what some fetches and targets need (white paper, section 4.2, "Partial Execution").

The file form of the runtime's RewriteGraphForExecution: the result is an ordinary graph in which fed tensors are
placeholders. `toolkit.passes.pruning.client_graph` makes the form that an executor runs.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from collections.abc import Set as AbstractSet
from dataclasses import dataclass
from typing import Any, ClassVar

from toolkit.errors import UsageError
from toolkit.graph.graph import Graph
from toolkit.graph.infer import ShapeMap
from toolkit.graph.node import Node, Output
from toolkit.graph.tensorref import parse_tensor
from toolkit.passes.base import PassResult
from toolkit.passes.placement.colocation import regather

_PLACEHOLDERS = ("Placeholder", "PlaceholderV2")


@dataclass(frozen=True)
class Prune:
    """Remove what is not needed.

    Attributes:
        feeds: tensors (`node` or `node:index`) that become inputs.
        fetches: tensors that must be computable.
        targets: operations that must be runnable.
        keep_functions: keep functions that nothing calls.
    """

    name: ClassVar[str] = "prune"

    feeds: tuple[str, ...] = ()
    fetches: tuple[str, ...] = ()
    targets: tuple[str, ...] = ()
    keep_functions: bool = False

    def apply(self, graph: Graph) -> PassResult:
        """The pruned graph.

        The report has `nodes_before`, `nodes_after`, `feeds` and `fetches` (as given -> tensor in the result),
        `unused_feeds`, `functions_removed`, `colocations_changed`.

        Raises:
            UsageError: nothing is fetched or targeted, a tensor is fed twice, a fetched node has no output.
            GraphError: a name does not exist.
        """
        needed = need(graph, self.feeds, self.fetches, self.targets)
        return _Rewriter(graph, needed, self).run()

    def change(self, graph: Graph) -> PassResult:
        """The same of a graph that is needed no more.

        Raises:
            UsageError, GraphError: as `apply`.
        """
        if graph.unmade is not None and not self.feeds:
            result = self._change_unmade(graph)
            if result is not None:
                return result
        needed = need(graph, self.feeds, self.fetches, self.targets)
        if needed.used:  # placeholders come, in the place of nodes
            return _Rewriter(graph, needed, self).run()
        return _cut(graph, needed, self)

    def _change_unmade(self, graph: Graph) -> PassResult | None:
        """The same of a graph whose nodes have not been made, when nothing is fed; None where they have to be."""
        from toolkit.passes.pruning.prune_table import cut_table

        before = len(graph)
        fetches = {text: parse_tensor(text) for text in self.fetches}
        targets = [name.removeprefix("^") for name in self.targets]
        if not cut_table(graph, fetches, targets):
            return None
        removed = 0 if self.keep_functions else prune_library(graph)
        report = {
            "nodes_before": before, "nodes_after": len(graph), "feeds": {},
            "fetches": {text: f"{ref.node}:{ref.index}" for text, ref in fetches.items()}, "targets": targets,
            "unused_feeds": [], "functions_removed": removed, "colocations_changed": 0,
        }  # fmt: skip
        return PassResult(graph, removed > 0 or len(graph) != before, report, ())


@dataclass(slots=True)
class Needed:
    """Which nodes are needed, and why.

    Attributes:
        feeds: as given -> output.
        fetches: as given -> output.
        targets: operations.
        ids: ids of the nodes that run.
        needed_by: for each of them, the id of the node that asked for it first; -1 for fetches and targets.
        used: the fed tensors that something reads, by position (node id, output), with the id of the node that did so
            first; -1 for fetches and targets.
    """

    graph: Graph
    feeds: dict[str, Output]
    fetches: dict[str, Output]
    targets: list[Node]
    ids: AbstractSet[int]
    needed_by: dict[int, int]
    used: dict[tuple[int, int], int]

    def why_kept(self, node: Node) -> list[str]:
        """The chain of names from `node`, or from an input in its place, to the fetch or target that needs it; empty
        when nothing does."""
        chain: list[str] = []
        at = node.id
        if at not in self.ids:  # perhaps one of its outputs is fed and read
            readers = [self.used[node.id, i] for i in range(node.num_outputs) if (node.id, i) in self.used]
            if not readers:
                return []
            chain, at = [node.name], readers[0]
        while at >= 0:
            chain.append(self.graph.nodes[at].name)
            at = self.needed_by[at]
        return chain


def need(graph: Graph, feeds: Iterable[str], fetches: Iterable[str], targets: Iterable[str]) -> Needed:
    """Find what fetches and targets need when some tensors are fed: reverse reachability over all edges.

    Raises:
        UsageError, GraphError: as `Prune.apply`.
    """
    fed = {text: graph.output(parse_tensor(text)) for text in feeds}
    fetched = {text: graph.output(parse_tensor(text)) for text in fetches}
    wanted = [graph.node(name.removeprefix("^")) for name in targets]
    if not fetched and not wanted:
        raise UsageError("nothing is fetched and no operation is targeted; there would be no graph left")
    positions: dict[tuple[int, int], str] = {}
    for text, (node, index) in fed.items():
        if positions.setdefault((node.id, index), text) != text:
            raise UsageError(f"the tensor '{node.name}:{index}' is fed twice")
    used: dict[tuple[int, int], int] = {}
    needed_by: dict[int, int] = {}
    stack: list[int] = []

    def want(node: Node, by: int) -> None:
        if node.id not in needed_by:
            needed_by[node.id] = by
            stack.append(node.id)

    for node, index in fetched.values():
        if (node.id, index) in positions:
            used[node.id, index] = -1
        else:
            want(node, -1)
    for node in wanted:
        if _is_fed_placeholder(node, positions):
            used[node.id, 0] = -1
        else:
            want(node, -1)
    nodes = graph.nodes
    while stack:
        at = stack.pop()
        node = nodes[at]
        for src, index in node.inputs:
            source = src.id
            if positions and (source, index) in positions:
                used.setdefault((source, index), at)
            elif source not in needed_by:
                needed_by[source] = at
                stack.append(source)
        for src in node.control_inputs:
            if _is_fed_placeholder(src, positions):
                used.setdefault((src.id, 0), at)
            elif src.id not in needed_by:
                needed_by[src.id] = at
                stack.append(src.id)
    return Needed(graph, fed, fetched, wanted, needed_by.keys(), needed_by, used)


def _is_fed_placeholder(node: Node, fed: dict[tuple[int, int], str]) -> bool:
    # A placeholder does nothing but give its value; any other node runs when a control edge asks for it.
    return node.op in _PLACEHOLDERS and (node.id, 0) in fed


class _Rewriter:
    def __init__(self, graph: Graph, needed: Needed, options: Prune):
        self.graph = graph
        self.needed = needed
        self.options = options
        self.out = graph.subgraph(())  # versions and functions without nodes
        self.copies: dict[int, Node] = {}
        self.inputs: dict[tuple[int, int], Node] = {}  # fed tensor -> its placeholder

    def run(self) -> PassResult:
        graph, out, needed = self.graph, self.out, self.needed
        fed_nodes: dict[int, list[int]] = {}
        for node, index in needed.feeds.values():
            if (node.id, index) in needed.used:
                fed_nodes.setdefault(node.id, []).append(index)
        shapes = ShapeMap()
        if not fed_nodes:
            ids = sorted(needed.ids)
            copies = out.add_copies([graph.nodes[position] for position in ids], len(graph))
            self.copies = {position: copy for position in ids if (copy := copies[position]) is not None}
        for position in sorted(needed.ids | fed_nodes.keys()) if fed_nodes else ():
            node = graph.nodes[position]
            if position in needed.ids:
                self.copies[position] = out.add_copy(node)
            for index in fed_nodes.get(position, ()):
                self._add_placeholder(node, index, shapes)
        self._connect()
        gathered = regather(out, self._device)
        removed = 0 if self.options.keep_functions else prune_library(out)
        new = self._changed_inputs()
        modified = removed > 0 or bool(gathered) or len(out) != len(graph) or bool(new)
        inputs = {node.id for node in new}
        changed = [*new, *gathered]
        if inputs:
            changed += (node for node in out.nodes if any(src.id in inputs for src, _ in node.inputs))
        facts = _report(needed, len(graph), len(out), removed, len(gathered), self._name)
        return PassResult(out, modified, facts, changed)

    def _add_placeholder(self, node: Node, index: int, shapes: ShapeMap) -> None:
        """An input in the place of a fed tensor: of the node's own name where that is possible."""
        if node.op in _PLACEHOLDERS:
            self.inputs[node.id, index] = self.out.add_copy(node)
            return
        free = node.id not in self.needed.ids and node.num_outputs == 1
        name = node.name if free else self._unused(f"{node.name}_{index}_fed" if index else f"{node.name}_fed")
        attrs = {"dtype": node.output_types[index].base, "shape": shapes[Output(node, index)]}
        self.inputs[node.id, index] = self.out.add("Placeholder", name, attrs=attrs, device=node.device)

    def _unused(self, name: str) -> str:
        """A name that neither graph has."""
        count = 0
        unique = name
        while unique in self.graph or unique in self.out:
            count += 1
            unique = f"{name}_{count}"
        return unique

    def _connect(self) -> None:
        nodes, copies, fed = self.graph.nodes, self.copies, self.inputs
        first = {position: Output(copy, 0) for position, copy in copies.items()}  # one for all who read it
        for position, copy in copies.items():
            node = nodes[position]
            inputs = copy.inputs
            for src, index in node.inputs:
                new = fed.get((src.id, index)) if fed else None
                if new is not None:
                    inputs.append(Output(new, 0))
                else:
                    inputs.append(first[src.id] if index == 0 else Output(copies[src.id], index))
            if node.control_inputs:
                copy.control_inputs = [
                    copies[src.id] if src.id in copies else fed[src.id, 0] for src in node.control_inputs
                ]

    def _changed_inputs(self) -> list[Node]:
        return [new for (position, _), new in self.inputs.items() if self.graph.nodes[position].op not in _PLACEHOLDERS]

    def _device(self, name: str) -> str | None:
        old = self.graph.get(name)
        return None if old is None else old.device

    def _name(self, output: Output) -> str | None:
        node, index = output
        fed = self.inputs.get((node.id, index))
        if fed is not None:
            return f"{fed.name}:0"
        return f"{node.name}:{index}" if node.id in self.copies else None


def _cut(graph: Graph, needed: Needed, options: Prune) -> PassResult:
    """Take out of a graph what is not needed, where no input takes its place."""
    before = len(graph)
    devices = {node.name: node.device for node in graph.nodes if node.device and node.id not in needed.ids}
    facts = _report(needed, before, len(needed.ids), 0, 0, lambda output: output.name)
    graph.keep([node for node in graph.nodes if node.id in needed.ids])
    gathered = regather(graph, devices.get)
    removed = 0 if options.keep_functions else prune_library(graph)
    facts |= {"functions_removed": removed, "colocations_changed": len(gathered)}
    modified = removed > 0 or bool(gathered) or len(graph) != before
    return PassResult(graph, modified, facts, gathered)


def _report(
    needed: Needed, before: int, after: int, functions: int, colocations: int, name: Callable[[Output], str | None]
) -> dict[str, Any]:
    """What was done.

    Args:
        name: of a tensor in the result.
    """
    return {
        "nodes_before": before,
        "nodes_after": after,
        "feeds": {text: name(o) for text, o in needed.feeds.items() if (o.node.id, o.index) in needed.used},
        "fetches": {text: name(o) for text, o in needed.fetches.items()},
        "targets": [node.name for node in needed.targets],
        "unused_feeds": [text for text, o in needed.feeds.items() if (o.node.id, o.index) not in needed.used],
        "functions_removed": functions,
        "colocations_changed": colocations,
    }


def prune_library(graph: Graph) -> int:
    """Remove the functions that neither the nodes nor other kept functions call; returns how many."""
    library = graph.library
    if not len(library):
        return 0
    kept = reachable_functions(graph)
    gone = [name for name in library if name not in kept]
    for name in gone:
        library.remove(name)
    return len(gone)


def reachable_functions(graph: Graph, roots: Iterable[str] = ()) -> set[str]:
    """The functions that a graph's nodes can call, directly, through other functions or as their gradients.

    Args:
        roots: functions that are called from elsewhere.
    """
    library = graph.library
    found: set[str] = set()
    stack: list[str] = []

    def add(names: Iterable[str]) -> None:
        for name in names:
            if name in library and name not in found:
                found.add(name)
                stack.append(name)

    add(roots)
    ops: set[str] = set()
    for node in graph.examples():
        if node.op not in ops:
            ops.add(node.op)
            add([node.op])
        kind = node.kind
        if kind is not None and not kind.names_functions:
            continue
        op_def = graph.find_op_def(node.op)
        for key in node.attrs if op_def is None or node.op in library else op_def.attrs:
            if (op_def is None or key not in op_def.attrs or "func" in op_def.attrs[key].type) and key in node.attrs:
                add(called_functions(node.attrs.proto(key)))
    while stack:
        name = stack.pop()
        add([library.gradients.get(name, "")])
        for definition in library.function(name).node_def:
            add([definition.op])
            for value in definition.attr.values():
                if value.WhichOneof("value") in ("func", "list"):
                    add(called_functions(value))
    return found


def called_functions(value: Any) -> list[str]:
    """The functions that an attribute names."""
    kind = value.WhichOneof("value")
    refs = [value.func] if kind == "func" else list(value.list.func) if kind == "list" else []
    names: list[str] = []
    for ref in refs:
        names.append(ref.name)
        for inner in ref.attr.values():
            names += called_functions(inner)
    return names
