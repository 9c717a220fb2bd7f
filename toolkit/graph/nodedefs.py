"""Nodes from NodeDef messages and back."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from schemas import node_def_pb2
from toolkit.errors import GraphError, did_you_mean
from toolkit.graph import opdefs
from toolkit.graph.node import Node, Output
from toolkit.graph.tensorref import parse_input


def link(nodes: Iterable[Node], by_name: Mapping[str, Node]) -> None:
    """Resolve NodeDef.input of freshly made nodes into object references.

    Raises:
        GraphError: an input does not exist, or a data input follows a control input.
    """
    for node in nodes:
        assert node.base is not None
        for text in node.base.input:
            src = by_name.get(text)  # the common spelling: output 0
            if src is not None:
                index = 0
            else:
                name, index = parse_input(text)
                src = by_name.get(name)
                if src is None:
                    raise GraphError(
                        f"its input '{text}' does not exist in the graph{did_you_mean(name, by_name)}",
                        node=node.name,
                    )
                if index < 0:
                    node.control_inputs.append(src)
                    continue
            if node.control_inputs:
                raise GraphError(f"its data input '{text}' comes after a control input", node=node.name)
            node.inputs.append(Output(src, index))


def node_to_proto(node: Node) -> node_def_pb2.NodeDef:
    """The NodeDef of a node; the message it was read from when nothing changed."""
    plugin = opdefs.OF_PLUGINS.get(node.op) if opdefs.OF_PLUGINS else None
    if plugin is not None and node.attrs.get(opdefs.PLUGIN) != plugin:
        node.attrs[opdefs.PLUGIN] = plugin
    base = node.base
    inputs = node.input_refs()
    if base is not None:
        if (
            not node.changed_attrs
            and base.name == node.name
            and base.op == node.op
            and base.device == node.device
            and list(base.input) == inputs
        ):
            return base
        out = node_def_pb2.NodeDef()
        out.CopyFrom(base)
        out.name, out.op, out.device = node.name, node.op, node.device
        del out.input[:]
    else:
        out = node_def_pb2.NodeDef(name=node.name, op=node.op, device=node.device)
    out.input.extend(inputs)
    for key, value in (node.changed_attrs or {}).items():
        if value is None:
            out.attr.pop(key, None)
        else:
            out.attr[key].CopyFrom(value)
    return out
