"""What may be anywhere is brought to where it is taken, before a graph is split: constants, lists, reads of variables.

TensorFlow sends a constant, and a list of tensors, to every device that takes it, and reads a variable in a loop anew
in each iteration, which spreads the loop over the variable's device and all others. Whoever compiles what is between
transfers then knows none of these: a layer of cells cannot be told from any other loop, and a loop that is spread runs
node by node.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterable

from toolkit.errors import GraphError
from toolkit.graph.device import DeviceSpec
from toolkit.graph.frames import StaticFrame, assign_frames, is_pivot
from toolkit.graph.graph import Graph
from toolkit.graph.node import ENTER_OPS, Node, Output
from toolkit.passes.freezing.variable_writers import HANDLES, writers

Key = Callable[[Node], str]

#: ops that hand on their input as it is
_IDENTITIES = frozenset({"Identity", "Snapshot", "StopGradient", "PreventGradient"})
#: ops that make a list of tensors, which costs nothing; and those that make a tensor of one
_LISTS = frozenset({"TensorListFromTensor", "TensorListReserve", "EmptyTensorList"})
_UNLISTS = frozenset({"TensorListStack", "TensorListGather", "TensorListConcatV2", "TensorListGetItem"})
_PUSHES = frozenset({"StackPushV2", "StackPush"})
_ANONYMOUS = "cd2c89b7-88b7-44c8-ad83-06c2a9158347"


def bring_near(graph: Graph, key: Key, *, shared: bool) -> Graph:
    """The graph as it is split best; itself where nothing crosses that could be elsewhere.

    Reads of resource variables in loops of TensorFlow 1 whose value is taken elsewhere move in front of the loop, where
    nothing may have written a variable before. (They happen although the loop has no iteration then.) Constants, and
    what only hands them on, get a copy on every device that takes them. In place of lists the tensors cross that they
    are made of, or that are made of them. What only waits for nodes of another partition is there, and who waits for
    several waits for one there that waits for them: one thing crosses.

    Args:
        key: which partition a node belongs to.
        shared: the partitions have their variables in common: where nothing in the graph writes any, handles and reads
            are copied, too.
    """
    if not any(_crosses(graph, key)):
        return graph
    made = graph.copy()
    _Joining(made, key).run()
    _Hoisting(made, key).run()
    _Copying(made, key, shared=shared).run()
    return made


def _crosses(graph: Graph, key: Key) -> Iterable[bool]:
    for node in graph.nodes:
        own = key(node)
        yield any((source.op in _CANDIDATES or node.op in _UNLISTS) and key(source) != own for source, _ in node.inputs)
        yield sum(key(source) != own for source in node.control_inputs) > (node.op != "NoOp")


_CANDIDATES = _IDENTITIES | HANDLES | _LISTS | {"Const", "ReadVariableOp"}


class _Near:
    """A graph in which nodes get stand-ins elsewhere; what nobody takes any more goes."""

    def __init__(self, graph: Graph, key: Key):
        self.graph = graph
        self.key = key
        self.takers: dict[Node, list[Node]] = {}
        for node in graph.nodes:
            for source in (*(source for source, _ in node.inputs), *node.control_inputs):
                self.takers.setdefault(source, []).append(node)
        self.left: list[Node] = []

    def drop_left(self) -> None:
        """Remove what lost its takers, and what only that took."""
        counts: dict[Node, int] = {}
        for node in self.graph.nodes:
            for source in (*(source for source, _ in node.inputs), *node.control_inputs):
                counts[source] = counts.get(source, 0) + 1
        gone: dict[Node, None] = {}
        waiting = list(self.left)
        while waiting:
            node = waiting.pop()
            if counts.get(node) or node in gone:
                continue
            gone[node] = None
            for source in (*(source for source, _ in node.inputs), *node.control_inputs):
                counts[source] -= 1
                if source.op in _CANDIDATES or source.op in ENTER_OPS:
                    waiting.append(source)
        if gone:
            self.graph.remove(list(gone))

    def copy(self, node: Node, name: str, device: str) -> Node:
        made = self.graph.add_copy(node, self.graph.unique_name(name))
        made.device = device
        made.attrs.pop("_class", None)
        return made


class _Joining(_Near):
    """Nodes that do nothing but wait are where what they wait for is, and several things are waited for as one."""

    def run(self) -> None:
        if any(node.op in ENTER_OPS for node in self.graph.nodes):
            return  # in a loop a node may be what tells that an iteration has begun
        order = self.graph.topological_order()
        for node in order:
            if node.op == "NoOp" and not node.inputs:
                self._move(node)
        joined: dict[tuple[frozenset[Node], str], Node] = {}
        for node in order:
            if len(node.control_inputs) > 1 and not node.is_control_flow:
                self._join(node, joined)

    def _move(self, node: Node) -> None:
        own, places = self.key(node), {self.key(source) for source in node.control_inputs}
        if len(places) != 1 or own in places:
            return
        there = node.control_inputs[0].device
        takers = {self.key(taker) for taker in self.takers.get(node, ())}
        fewer = len(takers - places) < len(node.control_inputs) + len(takers - {own})
        if fewer and _is_on_host(node.device) and _is_on_host(there):
            node.device = there
            node.attrs.pop("_class", None)

    def _join(self, node: Node, joined: dict[tuple[frozenset[Node], str], Node]) -> None:
        """Wait for one node where several of another partition are waited for, by nobody here but who waits for all."""
        own, groups = self.key(node), dict[str, list[Node]]()
        for source in node.control_inputs:
            if _is_on_host(source.device):
                groups.setdefault(self.key(source), []).append(source)
        for place, sources in groups.items():
            if place == own or len(sources) < 2:
                continue
            if len({frozenset(self._waiters(source, own)) for source in sources}) > 1:
                continue
            key = (frozenset(sources), own)
            if key not in joined:
                joined[key] = self.graph.add(
                    "NoOp", self.graph.unique_name(f"{node.name}/after"), control_inputs=sources,
                    device=sources[0].device,
                )  # fmt: skip
            node.control_inputs = [each for each in node.control_inputs if each not in key[0]] + [joined[key]]

    def _waiters(self, source: Node, place: str) -> list[Node]:
        """Who waits for a node on a partition."""
        takers = self.takers.get(source, ())
        return [each for each in takers if source in each.control_inputs and self.key(each) == place]


class _Hoisting(_Near):
    """Reads of variables in loops move in front of them."""

    def run(self) -> None:
        reads = [
            node
            for node in self.graph.nodes
            if node.op == "ReadVariableOp" and node.inputs[0].node.op == "Enter"
            and any(self.key(taker) != self.key(node) for taker in self.takers.get(node, ()))
        ]  # fmt: skip
        if not reads:
            return
        try:
            frames, all_frames = assign_frames(self.graph, self.graph.topological_order())
        except GraphError:
            return  # the partitioner tells it
        changed = self._changed(frames, all_frames)
        ways = {read: self._way_out(read, frames, changed) for read in reads}
        ways = {read: way for read, way in ways.items() if way and all(is_pivot(each) for each in read.control_inputs)}
        self._move_stacks(ways, frames)
        for read, way in ways.items():
            self._move(read, way)
        self.drop_left()

    def _changed(self, frames: list[StaticFrame], all_frames: list[StaticFrame]) -> set[str]:
        """The loops in which, or before which, a variable may be written."""
        found: set[str] = set()
        stack = writers(self.graph)
        for node in stack:
            frame: StaticFrame | None = frames[node.id]
            while frame is not None:
                found.add(frame.name)
                frame = frame.parent
        seen = set(stack)
        while stack:
            node = stack.pop()
            if node.op in ENTER_OPS:
                found.add(node.text("frame_name"))
            for taker in self.takers.get(node, ()):
                if taker not in seen:
                    seen.add(taker)
                    stack.append(taker)
        for frame in all_frames:  # those around others come first
            if frame.parent is not None and frame.parent.name and frame.parent.name in found:
                found.add(frame.name)
        return found

    def _way_out(self, read: Node, frames: list[StaticFrame], changed: set[str]) -> list[Node]:
        """The Enters through which the handle comes, from the inside, as far as the read can be moved."""
        found: list[Node] = []
        frame, at = frames[read.id], read.inputs[0].node
        while at.op == "Enter" and at.attr("is_constant", False) and not at.control_inputs:
            name = at.text("frame_name")
            if name in changed or frame.name != name or frame.parent is None:
                break
            found.append(at)
            frame, at = frame.parent, at.inputs[0].node
        return found

    def _move_stacks(self, ways: dict[Node, list[Node]], frames: list[StaticFrame]) -> None:
        """Stacks that keep nothing but these reads for gradients, on the variable's device, go where the loop is."""
        decided = {frames[node.id].name: node.device for node in self.graph.nodes if node.op == "LoopCond"}
        for read in ways:
            device = decided.get(frames[read.id].name)
            for push in self.takers.get(read, ()):
                if device is None or push.op not in _PUSHES or push.inputs[1].node is not read:
                    continue
                stack = self._stack_of(push)
                if all(each.inputs[1].node in ways for each in stack if each.op in _PUSHES):
                    for each in stack:
                        each.device = device
                        each.attrs.pop("_class", None)

    def _stack_of(self, push: Node) -> list[Node]:
        """What makes the stack that a value is put on, and all who have its handle."""
        maker = push.inputs[0].node
        while maker.op in ENTER_OPS or maker.op in _IDENTITIES:
            maker = maker.inputs[0].node
        found, waiting = {maker: None}, [maker]
        while waiting:
            source = waiting.pop()
            if source.op not in ENTER_OPS and source.op not in _IDENTITIES and source is not maker:
                continue
            for taker in self.takers.get(source, ()):
                if taker not in found and any(each is source for each, _ in taker.inputs):
                    found[taker] = None
                    waiting.append(taker)
        return list(found)

    def _move(self, read: Node, way: list[Node]) -> None:
        before = self.copy(read, f"{read.name}/before", read.device)
        before.inputs = [way[-1].inputs[0]]
        near: dict[str, Node] = {}
        for taker in self.takers[read]:
            place = self.key(taker)
            if place not in near:
                near[place] = self._enter(read, before, way, taker.device)
            taker.inputs = [Output(near[place], 0) if source is read else Output(source, index)
                            for source, index in taker.inputs]  # fmt: skip
            taker.control_inputs = [near[place] if source is read else source for source in taker.control_inputs]
        self.left.append(read)

    def _enter(self, read: Node, before: Node, way: list[Node], device: str) -> Node:
        """What the read was, on another device: it says that an iteration has begun, as the read did."""
        last, dtype = before, before.output_types[0]
        for enter in reversed(way):
            attrs = {name: enter.attrs[name] for name in ("frame_name", "parallel_iterations") if name in enter.attrs}
            last = self.graph.add(
                "Enter", self.graph.unique_name(f"{read.name}/enter"), [last],
                attrs={"T": dtype, "is_constant": True, **attrs}, device=device,
            )  # fmt: skip
        return self.graph.add(
            "Identity", self.graph.unique_name(f"{read.name}/near"), [last],
            control_inputs=read.control_inputs,
            attrs={"T": dtype}, device=device,
        )  # fmt: skip


class _Copying(_Near):
    """Constants, and reads of variables that nobody writes, are where they are taken."""

    def __init__(self, graph: Graph, key: Key, *, shared: bool):
        super().__init__(graph, key)
        ops = {"Const", *_IDENTITIES, *_LISTS}
        if shared and not writers(graph):
            ops |= {*HANDLES, "ReadVariableOp"}
        self._ops = frozenset(ops)
        self._free: dict[Node, bool] = {}
        self._copies: dict[tuple[Node, str], Node] = {}

    def run(self) -> None:
        order = self.graph.topological_order()
        for node in order:
            self._free[node] = self._is_free(node)
        for node in order:
            if node.op in _UNLISTS and _is_on_host(node.device):
                maker = node.inputs[0].node
                if not self._free[maker] and self.key(maker) != self.key(node) and _is_on_host(maker.device):
                    node.device = maker.device
                    node.attrs.pop("_class", None)
        for node in list(self.graph.nodes):
            own = self.key(node)
            crossing = [source for source, _ in node.inputs if self._free[source] and self.key(source) != own]
            if not crossing or not _is_on_host(node.device):
                continue
            node.inputs = [
                Output(self._near(source, node.device, own), index) if source in crossing else Output(source, index)
                for source, index in node.inputs
            ]
            self.left += crossing
        self.drop_left()

    def _is_free(self, node: Node) -> bool:
        if node.op not in self._ops or node.control_inputs or not _is_on_host(node.device):
            return False
        if node.op in HANDLES:
            name = node.text("shared_name", "") or node.name
            return name != _ANONYMOUS and not name.startswith("_")
        return node.op in _LISTS or all(self._free.get(source, False) for source, _ in node.inputs)

    def _near(self, node: Node, device: str, place: str) -> Node:
        """A free node as it is on another device."""
        if self.key(node) == place or not self._free[node]:
            return node
        found = self._copies.get((node, place))
        if found is None:
            inputs = [Output(self._near(source, device, place), index) for source, index in node.inputs]
            found = self._copies[node, place] = self.copy(node, f"{node.name}/near", device)
            found.inputs = inputs
            if node.op in HANDLES and not node.text("shared_name", ""):
                found.attrs["shared_name"] = node.name.encode()
            self._free[found] = True
        return found


@functools.cache
def _is_on_host(device: str) -> bool:
    """Whether tensors are in host memory on a device."""
    return DeviceSpec.parse(device).device_type == "CPU"
