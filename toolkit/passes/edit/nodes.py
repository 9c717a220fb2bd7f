"""Edits that add, replace and remove nodes."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

from toolkit.errors import GraphError, GraphmillError, UsageError
from toolkit.formats.inspection.report import plural
from toolkit.graph.node import CONTROL_FLOW_OPS, Node, Output
from toolkit.passes.edit.base import ATTRIBUTES, FLAG, INDEX, PATTERNS, TEXT, VALUES, argument
from toolkit.passes.edit.draft import Draft, downstream
from toolkit.passes.edit.make import HERE, make_node, resolve_inputs, settle

_OP = "the op"
_ATTRS = "attributes; those that follow from the inputs need not be given"
_INPUTS = f"tensors; {HERE} is the edge's; numbers become constants (default: {HERE})"

#: how what takes a node's outputs is removed with it
_CASCADE = "--remove-cascade (in a list of edits, cascade: true)"


@dataclass(frozen=True)
class AddNode:
    """Add a node."""

    name: ClassVar[str] = "add_node"

    op: str = argument(TEXT, _OP)
    called: str = argument(TEXT, "its name")
    inputs: tuple[Any, ...] = argument(VALUES, "tensors; numbers become constants", ())
    attrs: dict[str, Any] = argument(ATTRIBUTES, _ATTRS, {})
    control_inputs: tuple[str, ...] = argument(PATTERNS, "nodes that it waits for", ())
    device: str = argument(TEXT, "its device", "")

    def apply(self, draft: Draft) -> str:
        inputs = resolve_inputs(draft, self.inputs, None)
        node = make_node(
            draft, self.op, self.called, inputs, attrs=self.attrs, controls=self.control_inputs, device=self.device
        )
        return f"added {node.op} '{node.name}'"


@dataclass(frozen=True)
class InsertAfter:
    """Put a node behind a tensor: whoever takes the tensor takes the new node's first output."""

    name: ClassVar[str] = "insert_after"

    tensor: str = argument(TEXT, "NODE or NODE:INDEX")
    op: str = argument(TEXT, _OP)
    called: str = argument(TEXT, "its name (default: that of the node, a slash and the op)", "")
    inputs: tuple[Any, ...] = argument(VALUES, _INPUTS, (HERE,))
    attrs: dict[str, Any] = argument(ATTRIBUTES, _ATTRS, {})
    outputs: bool = argument(FLAG, "outputs of signatures take the new node's, too", False)

    def apply(self, draft: Draft) -> str:
        here = draft.tensor(self.tensor)
        node = _insert(draft, here, self.op, self.called, self.inputs, self.attrs)
        count = draft.redirect({(here.node.id, here.index): node.output()}, but=[node])
        said = f"inserted {node.op} '{node.name}' after '{here.name}', before {plural(count, 'input')}"
        if self.outputs:
            from toolkit.passes.edit.signatures import redirect_outputs

            said += f" and {plural(redirect_outputs(draft, here, node.output()), 'output')} of signatures"
        return said


@dataclass(frozen=True)
class InsertBefore:
    """Put a node on an edge: before one input of a node."""

    name: ClassVar[str] = "insert_before"

    node: str = argument(TEXT, "the node that takes the edge's tensor")
    op: str = argument(TEXT, _OP)
    input: int = argument(INDEX, "which of its inputs", 0)
    called: str = argument(TEXT, "its name (default: that of the node, a slash and the op)", "")
    inputs: tuple[Any, ...] = argument(VALUES, _INPUTS, (HERE,))
    attrs: dict[str, Any] = argument(ATTRIBUTES, _ATTRS, {})

    def apply(self, draft: Draft) -> str:
        taker = draft.graph.node(self.node)
        here = input_of(taker, self.input)
        called = self.called or draft.graph.unique_name(f"{taker.name}/{self.op}")
        node = _insert(draft, here, self.op, called, self.inputs, self.attrs)
        taker.inputs[self.input] = node.output()
        return f"inserted {node.op} '{node.name}' before input {self.input} of '{taker.name}'"


def _insert(draft: Draft, here: Output, op: str, called: str, inputs: Sequence[Any], attrs: dict[str, Any]) -> Node:
    name = called or draft.graph.unique_name(f"{here.node.name}/{op}")
    node = make_node(draft, op, name, resolve_inputs(draft, inputs, here), attrs=attrs, device=here.node.device)
    if not node.num_outputs:
        draft.graph.remove([node])
        raise GraphError(f"{op} has no output that could be taken instead of '{here.name}'")
    return node


def input_of(node: Node, position: int) -> Output:
    """A data input of a node.

    Raises:
        GraphError: it has fewer.
    """
    if position >= len(node.inputs):
        raise GraphError(f"{node.op} '{node.name}' has {plural(len(node.inputs), 'input')}; there is no {position}")
    return node.inputs[position]


@dataclass(frozen=True)
class ReplaceNode:
    """Let a node be of another op; its name, and whoever takes its outputs, stay."""

    name: ClassVar[str] = "replace_node"

    node: str = argument(TEXT, "the node")
    op: str = argument(TEXT, _OP)
    inputs: tuple[Any, ...] | None = argument(VALUES, "tensors; numbers become constants (default: as before)", None)
    attrs: dict[str, Any] = argument(ATTRIBUTES, f"{_ATTRS}; those that both ops have stay", {})

    def apply(self, draft: Draft) -> str:
        graph = draft.graph
        node = graph.node(self.node)
        before = node.op
        inputs = list(node.inputs) if self.inputs is None else resolve_inputs(draft, self.inputs, None)
        op_def = graph.op_def(self.op)
        old = {key: node.attrs[key] for key in node.attrs}
        decided = op_def.inferred_attrs
        kept = {key: value for key, value in old.items() if key in op_def.attrs and key not in decided}
        attrs, values = settle(draft.graph, self.op, inputs, {**kept, **self.attrs})
        made = [
            each
            if isinstance(each, Output)
            else draft.add(
                "Const", graph.unique_name(f"{node.name}/input_{position}"), [], [],
                {"dtype": attribute_type(each), "value": each},
            ).output()
            for position, each in enumerate(values)
        ]  # fmt: skip
        for key in old:
            if key in attrs or not key.startswith("_") or key == "_output_shapes":
                del node.attrs[key]
        node.op = self.op
        node.attrs.update(attrs)
        node.inputs[:] = made
        node.invalidate_types()
        return f"replaced {before} '{node.name}' by {self.op}"


def attribute_type(proto: Any) -> Any:
    """The data type of a TensorProto."""
    from toolkit.graph import dtypes

    return dtypes.from_enum(proto.dtype)


@dataclass(frozen=True)
class RemoveNodes:
    """Remove nodes; whoever took their outputs takes their inputs, or is removed too."""

    name: ClassVar[str] = "remove_nodes"

    nodes: tuple[str, ...] = argument(PATTERNS, "the nodes", ())
    where: str = argument(TEXT, "or a query: see graphmill help queries", "")
    cascade: bool = argument(FLAG, "remove what takes their outputs as well", False)

    def apply(self, draft: Draft) -> str:
        if not self.nodes and not self.where:
            raise UsageError("which nodes? give 'nodes' or 'where'")
        nodes = draft.choose(self.nodes, self.where)
        if self.cascade:
            everything = downstream(draft.graph, nodes)
            draft.remove(everything, {})
            more = f", and {len(everything) - len(nodes)} that needed them" if len(everything) > len(nodes) else ""
            return f"removed {plural(len(nodes), 'node')}{more}"
        instead = _passed_on(draft, nodes)
        _hand_on_controls(draft, nodes, instead)
        draft.redirect(instead)
        draft.remove(nodes, instead)
        return f"removed {plural(len(nodes), 'node')}"


def _passed_on(draft: Draft, nodes: Sequence[Node]) -> dict[tuple[int, int], Output]:
    """What is taken instead of each output of nodes that go; where nobody takes it, there need be nothing.

    Raises:
        GraphError: somebody takes an output that no input could replace.
    """
    going = {node.id for node in nodes}
    taken: dict[tuple[int, int], Node] = {}
    for node in draft.graph.nodes:
        if node.id not in going:
            for src, index in node.inputs:
                if src.id in going:
                    taken.setdefault((src.id, index), node)
    direct: dict[tuple[int, int], Output] = {}
    for node in nodes:
        for index in range(_outputs(node)):
            if node.op not in CONTROL_FLOW_OPS and (source := _same_kind(node, index)) is not None:
                direct[node.id, index] = source
    instead: dict[tuple[int, int], Output] = {}
    for key, source in direct.items():
        seen = 0
        found: Output | None = source
        while found is not None and found.node.id in going and seen <= len(going):
            found, seen = direct.get((found.node.id, found.index)), seen + 1
        if found is not None and found.node.id not in going:
            instead[key] = found
    for (id_, index), taker in taken.items():
        if (id_, index) not in instead:
            node = draft.graph.nodes[id_]
            why = "is control flow" if node.op in CONTROL_FLOW_OPS else "has no input of that type"
            raise GraphError(
                f"'{taker.name}' takes '{node.name}:{index}', and {node.op} {why} that it could take instead; "
                f"{_CASCADE} removes what needs it as well"
                if why.startswith("has")
                else f"'{node.name}' {why} ({node.op}), which '{taker.name}' needs; {_CASCADE} removes that as well"
            )
    return instead


def _outputs(node: Node) -> int:
    try:
        return node.num_outputs
    except GraphmillError:
        return 1  # of an op that is not known


def _same_kind(node: Node, index: int) -> Output | None:
    """The input that goes where an output goes when the node is taken out: of its own number, or the first."""
    for position in dict.fromkeys((index, 0)):
        if position < len(node.inputs):
            source = node.inputs[position]
            try:
                if source.dtype.base is node.output_types[index].base:
                    return source
            except (GraphmillError, IndexError):
                return source  # types are not known; the check of the result says what is wrong
    return None


def _hand_on_controls(draft: Draft, nodes: Sequence[Node], instead: dict[tuple[int, int], Output]) -> None:
    """Whoever waited for a node that goes waits for what it waited for."""
    going = {node.id: node for node in nodes}
    before: dict[int, list[Node]] = {}

    def waited_for(node: Node, *, data: bool) -> list[Node]:
        found: dict[Node, None] = {}
        stack, seen = [node], {node.id}
        while stack:
            at = stack.pop()
            sources = [*(src for src, _ in at.inputs), *at.control_inputs] if data else at.control_inputs
            for src in sources:
                if src.id not in going:
                    found[src] = None
                elif src.id not in seen:
                    seen.add(src.id)
                    stack.append(src)
        return list(found)

    for taker in draft.graph.nodes:
        if taker.id in going:
            continue
        controls: dict[Node, None] = {}
        changed = False
        for src, _ in taker.inputs:
            if src.id in going and going[src.id].control_inputs:
                controls.update(dict.fromkeys(before.setdefault(src.id, waited_for(src, data=False))))
                changed = True
        own: dict[Node, None] = {}
        for src in taker.control_inputs:
            if src.id in going:
                own.update(dict.fromkeys(waited_for(src, data=True)))
                changed = True
            else:
                own[src] = None
        if changed:
            takes = {(instead.get((src.id, index)) or Output(src, index)).node for src, index in taker.inputs}
            taker.control_inputs = [src for src in {**own, **controls} if src not in takes or src in own]
