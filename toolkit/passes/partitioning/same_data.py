"""Of edges that take the same data to one partition, one crosses.

The partitioner sends a tensor once to each partition that takes it, but other tensors are that one under another name:
a variable is read anew wherever a program uses it, Identities hand on what they are given, and what is taken in host
and in device memory crosses for each of them. Merged before the split, all of these cost nothing in a step, and whoever
sends and receives needs to know nothing of it.

Two reads of one variable that wait for the same nodes are the same data, whoever writes the variable meanwhile: nothing
that comes after one of them comes before the other, so in every order of a step they may be next to each other. An
assignment that must be between the two makes them wait for different nodes.
"""

from __future__ import annotations

import dataclasses
import functools
from collections.abc import Callable

from toolkit.graph.device import DeviceSpec
from toolkit.graph.graph import Graph
from toolkit.graph.node import Node, Output
from toolkit.kernels.facts import input_in_host_memory

Key = Callable[[Node], str]

#: ops that hand on their input as it is
_IDENTITIES = frozenset({"Identity", "Snapshot", "StopGradient", "PreventGradient"})
_READS = _IDENTITIES | {"ReadVariableOp"}


def merge_same_data(graph: Graph, key: Key) -> Graph:
    """The graph with one crossing edge for the same data; itself where none can be spared.

    Nodes that nobody takes any more are gone then.

    Args:
        key: which partition a node belongs to.
    """
    crossings = _Crossings(graph, key)
    changes = crossings.changes()
    changed = _change(graph, changes, crossings.places) if changes else graph
    mixed = _Crossings(changed, key).mixed()
    if not mixed:
        return changed
    if changed is graph:
        changed = graph.copy()
    for source, takers in mixed:
        _receive_on_host(changed, source, takers)
    return changed


class _Crossings:
    """What crosses, by data and partition."""

    def __init__(self, graph: Graph, key: Key):
        self.graph = graph
        self.places = [key(node) for node in graph.nodes]
        self._same: dict[Output, Output] = {}
        self._first: dict[tuple[object, ...], Node] = {}
        #: data and partition to who takes it: numbers of nodes and inputs
        self._taken: dict[tuple[Output, str], list[tuple[int, int]]] = {}
        for node in graph.nodes:
            place = self.places[node.id]
            for position, source in enumerate(node.inputs):
                if self.places[source.node.id] != place and not source.node.output_types[source.index].is_ref:
                    self._taken.setdefault((self._data(source), place), []).append((node.id, position))

    def changes(self) -> list[tuple[int, int, Output]]:
        """Inputs and what they are to be instead."""
        found: list[tuple[int, int, Output]] = []
        for (data, _), takers in self._taken.items():
            sources = {self.graph.nodes[number].inputs[position] for number, position in takers}
            if len(sources) > 1:
                found += [(number, position, data) for number, position in takers]
        return found

    def mixed(self) -> list[tuple[Output, list[tuple[int, int]]]]:
        """What is taken both in host memory and in a device's by one partition, and who takes it."""
        found: list[tuple[Output, list[tuple[int, int]]]] = []
        for takers in self._taken.values():
            nodes = [(self.graph.nodes[number], position) for number, position in takers]
            if len({_on_host(node, position) for node, position in nodes}) > 1:
                found.append((nodes[0][0].inputs[nodes[0][1]], takers))
        return found

    def _data(self, output: Output) -> Output:
        """The first output of the same partition and device that has the same data."""
        trail: list[Output] = []
        at = output
        while (known := self._same.get(at)) is None:
            trail.append(at)
            before = self._before(at.node)
            if before is None:
                known = Output(self._like(at.node), at.index)
                break
            at = before
        self._same.update(dict.fromkeys(trail, known))
        return known

    def _before(self, node: Node) -> Output | None:
        """What a node hands on without waiting for anything else."""
        if node.op not in _IDENTITIES or node.control_inputs or len(node.inputs) != 1:
            return None
        source = node.inputs[0]
        if source.node.is_control_flow or source.node.output_types[source.index].is_ref:
            return None
        return source if source.node.device == node.device else None

    def _like(self, node: Node) -> Node:
        """The first node that reads the same when the same has happened."""
        if node.op not in _READS:
            return node
        waits = frozenset(each.id for each in node.control_inputs)
        inputs = tuple((source.id, index) for source, index in node.inputs)
        return self._first.setdefault((node.op, node.device, node.output_types[0], inputs, waits), node)


def _change(graph: Graph, changes: list[tuple[int, int, Output]], places: list[str]) -> Graph:
    made = graph.copy()
    left: dict[Node, None] = {}
    for number, position, data in changes:
        node = made.nodes[number]
        before = node.inputs[position]
        after = Output(made.nodes[data.node.id], data.index)
        if before != after:
            node.inputs[position] = after
            left[before.node] = None
    _drop(made, list(left))
    return made


def _drop(graph: Graph, left: list[Node]) -> None:
    """Remove what lost its takers, and the reads that only it took."""
    counts = [0] * len(graph)
    for node in graph.nodes:
        for source in (*(source for source, _ in node.inputs), *node.control_inputs):
            counts[source.id] += 1
    gone: dict[Node, None] = {}
    while left:
        node = left.pop()
        if counts[node.id] or node in gone or node.op not in _READS:
            continue
        gone[node] = None
        for source in (*(source for source, _ in node.inputs), *node.control_inputs):
            counts[source.id] -= 1
            left.append(source)
    if gone:
        graph.remove(list(gone))


def _receive_on_host(graph: Graph, source: Output, takers: list[tuple[int, int]]) -> None:
    """Have data cross once, to host memory; the task's devices get it from there."""
    source = Output(graph.nodes[source.node.id], source.index)
    first = graph.nodes[takers[0][0]]
    host = _host(first.device)
    near = graph.add(
        "Identity", graph.unique_name(f"{source.node.name}/near"), [source],
        attrs={"T": source.node.output_types[source.index].base}, device=host,
    )  # fmt: skip
    for number, position in takers:
        graph.nodes[number].inputs[position] = near.output()


@functools.cache
def _host(device: str) -> str:
    """The first CPU of a device's task."""
    return str(dataclasses.replace(DeviceSpec.parse(device), device_type="CPU", device_index=0))


@functools.cache
def _kind(device: str) -> str:
    return DeviceSpec.parse(device).device_type or ""


def _on_host(node: Node, position: int) -> bool:
    kind = _kind(node.device)
    return kind == "CPU" or input_in_host_memory(node, kind, position)
