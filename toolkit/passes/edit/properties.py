"""Edits of what nodes are: their ops, attributes and devices, in the graph and in bodies of functions."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

from schemas.node_def_pb2 import NodeDef
from toolkit.errors import GraphError, UsageError, did_you_mean
from toolkit.formats.inspection.report import plural
from toolkit.graph.attrs import encode
from toolkit.graph.device import DeviceSpec
from toolkit.graph.graph import Graph
from toolkit.graph.metagraph import MetaGraph
from toolkit.graph.node import Node
from toolkit.passes.edit.base import PATTERNS, TEXT, VALUE, argument
from toolkit.passes.edit.draft import Draft, matching
from toolkit.passes.edit.make import attribute

_NODES = "nodes by name (default: all, those in functions too)"
_WHERE = "or a query, such as 'op = Conv2D and under tower': see graphmill help queries"
_FUNCTIONS = "functions in whose bodies nodes are chosen too (default: all when neither nodes nor a query are given)"


def _chosen(draft: Draft, nodes: tuple[str, ...], where: str) -> list[Node]:
    return draft.choose(nodes, where) if nodes or where else list(draft.graph.nodes)


def _chosen_bodies(
    draft: Draft, nodes: tuple[str, ...], where: str, functions: tuple[str, ...]
) -> Iterator[tuple[str, list[int]]]:
    """Functions with the positions of the nodes of their bodies that are meant."""
    if functions and where:
        raise UsageError("a query chooses among the nodes of the graph; give 'nodes' for those of functions")
    patterns = functions or (() if nodes or where else ("*",))
    for name in draft.choose_functions(patterns):
        definitions = draft.graph.library.function(name).node_def
        names = [definition.name for definition in definitions]
        wanted = set[str]().union(*([each] if each in names else matching(each, names) for each in nodes))
        yield name, [i for i, text in enumerate(names) if not nodes or text in wanted]


def _change_bodies(
    draft: Draft, nodes: tuple[str, ...], where: str, functions: tuple[str, ...],
    is_meant: Callable[[NodeDef], bool], change: Callable[[NodeDef], None],
) -> int:  # fmt: skip
    count = 0
    for name, positions in list(_chosen_bodies(draft, nodes, where, functions)):
        found = draft.graph.library.function(name).node_def
        meant = [position for position in positions if is_meant(found[position])]
        if meant:
            body = draft.body(name)
            for position in meant:
                change(body.node_def[position])
            count += len(meant)
    return count


@dataclass(frozen=True)
class RenameOp:
    """Let nodes of one op be of another; inputs and attributes stay."""

    name: ClassVar[str] = "rename_op"

    op: str = argument(TEXT, "the op")
    to: str = argument(TEXT, "the new one")
    nodes: tuple[str, ...] = argument(PATTERNS, _NODES, ())
    where: str = argument(TEXT, _WHERE, "")
    functions: tuple[str, ...] = argument(PATTERNS, _FUNCTIONS, ())

    def apply(self, draft: Draft) -> str:
        chosen = [node for node in _chosen(draft, self.nodes, self.where) if node.op == self.op]

        def change(definition: NodeDef) -> None:
            definition.op = self.to

        inside = _change_bodies(
            draft, self.nodes, self.where, self.functions, lambda definition: definition.op == self.op, change
        )
        if not chosen and not inside:
            ops = {node.op for node in draft.graph.nodes}
            raise UsageError(f"no node meant is of the op '{self.op}'{did_you_mean(self.op, ops - {self.op})}")
        for node in chosen:
            node.op = self.to
            node.invalidate_types()
        return _said(f"{self.op} is now {self.to} in", len(chosen), inside)


@dataclass(frozen=True)
class SetAttr:
    """Set an attribute of nodes."""

    name: ClassVar[str] = "set_attr"

    attr: str = argument(TEXT, "the attribute")
    value: Any = argument(VALUE, "as in a spec: a number, text, a type's name, a shape as a list, ...")
    nodes: tuple[str, ...] = argument(PATTERNS, "nodes by name", ())
    where: str = argument(TEXT, _WHERE, "")
    functions: tuple[str, ...] = argument(PATTERNS, "functions in whose bodies nodes are chosen too", ())
    type: str = argument(TEXT, "what it is, where the op does not have it: int, string, type, list(shape), ...", "")

    def apply(self, draft: Draft) -> str:
        if not self.nodes and not self.where:
            raise UsageError("which nodes? give 'nodes' or 'where'")
        if self.value is None:
            raise UsageError("to what? give 'value' (remove_attr takes an attribute away)")
        if self.attr == "_class":
            _ = draft.meta  # names in it are those of now
        chosen = (
            _chosen(draft, self.nodes, self.where) if self.where or not self.functions else _some(draft, self.nodes)
        )
        values = [self._value(draft, node.op, node.name) for node in chosen]

        def change(definition: NodeDef) -> None:
            encoded = encode(self._value(draft, definition.op, definition.name))
            definition.attr[self.attr].CopyFrom(encoded)

        inside = 0
        if self.functions:
            inside = _change_bodies(draft, self.nodes, self.where, self.functions, lambda definition: True, change)
        if not chosen and not inside:
            raise UsageError(f"no node matches {_listed(self.nodes)}")
        for node, value in zip(chosen, values, strict=True):
            node.attrs[self.attr] = value
        return _said(f"set {self.attr} of", len(chosen), inside)

    def _value(self, draft: Draft, op: str, node: str) -> Any:
        try:
            return attribute(draft.graph.find_op_def(op), self.attr, self.value, self.type or None)
        except GraphError as error:
            raise error.at(node=node) from None


def _some(draft: Draft, patterns: Sequence[str]) -> list[Node]:
    """The nodes that patterns mean, perhaps none: they may mean nodes of functions alone."""
    names = [node.name for node in draft.graph.nodes]
    wanted = set[str]().union(*([each] if each in draft.graph else matching(each, names) for each in patterns))
    return [node for node in draft.graph.nodes if node.name in wanted]


def _listed(patterns: Sequence[str]) -> str:
    return " or ".join(f"'{pattern}'" for pattern in patterns)


@dataclass(frozen=True)
class RemoveAttr:
    """Take an attribute away from nodes."""

    name: ClassVar[str] = "remove_attr"

    attr: str = argument(TEXT, "the attribute")
    nodes: tuple[str, ...] = argument(PATTERNS, _NODES, ())
    where: str = argument(TEXT, _WHERE, "")
    functions: tuple[str, ...] = argument(PATTERNS, _FUNCTIONS, ())

    def apply(self, draft: Draft) -> str:
        chosen = [node for node in _chosen(draft, self.nodes, self.where) if self.attr in node.attrs]

        def change(definition: NodeDef) -> None:
            del definition.attr[self.attr]

        inside = _change_bodies(
            draft, self.nodes, self.where, self.functions, lambda definition: self.attr in definition.attr, change
        )
        if not chosen and not inside:
            raise _no_such_attr(draft, self.attr)
        for node in chosen:
            del node.attrs[self.attr]
        return _said(f"removed {self.attr} of", len(chosen), inside)


@dataclass(frozen=True)
class RenameAttr:
    """Give an attribute of nodes another name; its value stays."""

    name: ClassVar[str] = "rename_attr"

    attr: str = argument(TEXT, "the attribute")
    to: str = argument(TEXT, "its new name")
    nodes: tuple[str, ...] = argument(PATTERNS, _NODES, ())
    where: str = argument(TEXT, _WHERE, "")
    functions: tuple[str, ...] = argument(PATTERNS, _FUNCTIONS, ())

    def apply(self, draft: Draft) -> str:
        chosen = [node for node in _chosen(draft, self.nodes, self.where) if self.attr in node.attrs]
        for node in chosen:
            if self.to in node.attrs:
                raise GraphError(f"it has an attribute '{self.to}' already", node=node.name)

        def change(definition: NodeDef) -> None:
            if self.to in definition.attr:
                raise GraphError(f"it has an attribute '{self.to}' already", node=definition.name)
            definition.attr[self.to].CopyFrom(definition.attr[self.attr])
            del definition.attr[self.attr]

        inside = _change_bodies(
            draft, self.nodes, self.where, self.functions, lambda definition: self.attr in definition.attr, change
        )
        if not chosen and not inside:
            raise _no_such_attr(draft, self.attr)
        for node in chosen:
            node.attrs[self.to] = node.attrs.proto(self.attr)
            del node.attrs[self.attr]
        return _said(f"{self.attr} is now {self.to} in", len(chosen), inside)


def _no_such_attr(draft: Draft, attr: str) -> UsageError:
    known = {key for node in draft.graph.nodes for key in node.attrs}
    return UsageError(f"no node meant has an attribute '{attr}'{did_you_mean(attr, known - {attr})}")


@dataclass(frozen=True)
class SetDevice:
    """Let nodes ask for a device."""

    name: ClassVar[str] = "set_device"

    device: str = argument(TEXT, "its name, such as /job:ps/task:0/device:CPU:0")
    nodes: tuple[str, ...] = argument(PATTERNS, _NODES, ())
    where: str = argument(TEXT, _WHERE, "")
    functions: tuple[str, ...] = argument(PATTERNS, _FUNCTIONS, ())

    def apply(self, draft: Draft) -> str:
        DeviceSpec.parse(self.device)
        count, inside = _set_devices(draft, self.device, self.nodes, self.where, self.functions)
        return _said(f"{self.device} is the device of", count, inside)


@dataclass(frozen=True)
class ClearDevices:
    """Let nodes ask for no device."""

    name: ClassVar[str] = "clear_devices"

    nodes: tuple[str, ...] = argument(PATTERNS, _NODES, ())
    where: str = argument(TEXT, _WHERE, "")
    functions: tuple[str, ...] = argument(PATTERNS, _FUNCTIONS, ())

    def apply(self, draft: Draft) -> str:
        count, inside = _set_devices(draft, "", self.nodes, self.where, self.functions)
        return _said("cleared the device of", count, inside)


def _set_devices(
    draft: Draft, device: str, nodes: tuple[str, ...], where: str, functions: tuple[str, ...]
) -> tuple[int, int]:
    """How many devices of nodes changed, in the graph and in functions."""
    count = 0
    for node in _chosen(draft, nodes, where):
        count += node.device != device
        node.device = device

    def change(definition: NodeDef) -> None:
        definition.device = device

    inside = _change_bodies(draft, nodes, where, functions, lambda definition: definition.device != device, change)
    return count, inside


def clear_all_devices(graph: Graph) -> int:
    """Let no node ask for a device, in the graph and in functions; returns how many did."""
    draft = Draft(MetaGraph(graph))
    count, inside = _set_devices(draft, "", (), "", ())
    for node, edited in zip(graph.nodes, draft.graph.nodes, strict=True):
        node.device = edited.device
    graph.library = draft.graph.library
    return count + inside


def _said(what: str, count: int, inside: int) -> str:
    text = f"{what} {plural(count, 'node')}"
    return f"{text} and {plural(inside, 'node')} in functions" if inside else text
