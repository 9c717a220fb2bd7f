# TensorFlow's arguments may be anything, so what they are is for tests to say, not for types.
# pyright: basic
"""tf.graph_util: parts of GraphDefs, and variables made constants."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, cast

from schemas import graph_pb2
from toolkit.client.construction.convert import tensor_proto
from toolkit.graph import dtypes

_COLOCATED = b"loc:@"
_VARIABLES = frozenset({"Variable", "VariableV2", "VarHandleOp"})
_ALL_VARIABLES = _VARIABLES | {"Assign", "AssignAdd", "AssignSub", "ScatterUpdate", "ScatterAdd", "ScatterSub"}
#: int32 and strings stay in the memory of the host: op to the attribute with the type
_HOST = {"DynamicStitch": "T", "ParallelDynamicStitch": "T", "Cast": "SrcT"}


def _node_of(name: str) -> str:
    return name.removeprefix("^").split(":")[0]


def _colocated(node: Any) -> list[str]:
    entries = node.attr["_class"].list.s if "_class" in node.attr else []
    return [entry.removeprefix(_COLOCATED).decode() for entry in entries if entry.startswith(_COLOCATED)]


def extract_sub_graph(graph_def: Any, dest_nodes: Any) -> Any:
    """The nodes that some nodes need, themselves included, in their order."""
    if not isinstance(graph_def, graph_pb2.GraphDef):
        raise TypeError(f"graph_def: expected a GraphDef, not {type(graph_def).__name__}")
    if isinstance(dest_nodes, str):
        raise TypeError(f"dest_nodes: expected a list of names, as [{dest_nodes!r}]")
    nodes = {node.name: node for node in graph_def.node}
    for name in dest_nodes:
        if name not in nodes:
            from toolkit.errors import did_you_mean

            raise AssertionError(f"the graph has no node '{name}'{did_you_mean(name, list(nodes))}")
    kept: set[str] = set()
    waiting = list(dest_nodes)
    while waiting:
        name = waiting.pop()
        if name in kept or name not in nodes:
            continue
        kept.add(name)
        waiting += [_node_of(entry) for entry in nodes[name].input] + _colocated(nodes[name])
    out = graph_pb2.GraphDef()
    out.node.extend(node for node in graph_def.node if node.name in kept)
    out.library.CopyFrom(graph_def.library)
    out.versions.CopyFrom(graph_def.versions)
    return out


def must_run_on_cpu(node: Any, pin_variables_on_cpu: bool = False) -> bool:
    """Whether a node's values are kept in the memory of the host on every device."""
    message = getattr(node, "node_def", node)
    if pin_variables_on_cpu and message.op in _ALL_VARIABLES:
        return True
    if message.op == "Const":
        return message.attr["dtype"].type in (dtypes.string.enum, dtypes.int32.enum)
    return message.op in _HOST and message.attr[_HOST[message.op]].type == dtypes.int32.enum


def tensor_shape_from_node_def_name(graph: Any, input_name: Any) -> Any:
    return graph.get_tensor_by_name(input_name if ":" in input_name else f"{input_name}:0").get_shape()


def remove_training_nodes(input_graph: Any, protected_nodes: Any = None) -> Any:
    """Without CheckNumerics, and without Identity and StopGradient nodes that only pass a value on."""
    protected = set(protected_nodes or ())
    checks = {node.name for node in input_graph.node if node.op == "CheckNumerics"} - protected
    left: list[Any] = []
    for node in input_graph.node:
        if node.name not in checks:
            copy = type(node)()
            copy.CopyFrom(node)
            copy.input[:] = [entry for entry in node.input if entry.removeprefix("^") not in checks]
            left.append(copy)
    waited = {_node_of(entry) for node in left for entry in node.input if entry.startswith("^")}
    fixed = protected | waited | {name for node in left for name in _colocated(node)}
    passed = {
        node.name: node.input[0]
        for node in left
        if node.op in ("Identity", "StopGradient")
        and node.name not in fixed
        and not any(entry.startswith("^") for entry in node.input)
    }
    out = graph_pb2.GraphDef()
    for node in left:
        if node.name not in passed:
            node.input[:] = [_source(entry, passed) for entry in node.input]
            out.node.append(node)
    return out


def _source(entry: str, passed: dict[str, str]) -> str:
    while (name := entry.removeprefix("^")) in passed:
        entry = passed[name]
    return entry


def convert_variables_to_constants(
    sess: Any, input_graph_def: Any, output_node_names: Any, variable_names_whitelist: Any = None,
    variable_names_blacklist: Any = None,
) -> Any:  # fmt: skip
    """The part of a graph that outputs need, with the session's values in the place of variables."""
    part = extract_sub_graph(input_graph_def, list(output_node_names))
    chosen = [node for node in part.node if node.op in _VARIABLES]
    if variable_names_whitelist is not None:
        chosen = [node for node in chosen if node.name in variable_names_whitelist]
    chosen = [node for node in chosen if node.name not in set(variable_names_blacklist or ())]
    reads = [f"{node.name}/Read/ReadVariableOp:0" if node.op == "VarHandleOp" else f"{node.name}:0" for node in chosen]
    values = dict(zip((node.name for node in chosen), sess.run(reads) if reads else [], strict=True))
    handles = _behind_handles(part.node, {node.name for node in chosen if node.op == "VarHandleOp"})
    out = graph_pb2.GraphDef()
    for node in part.node:
        if node.name in values:
            _as_constant(out.node.add(), node, values[node.name])
        elif node.op == "ReadVariableOp" and _node_of(node.input[0]) in handles:
            read = out.node.add(name=node.name, op="Identity", device=node.device, input=node.input)
            read.attr["T"].type = node.attr["dtype"].type
            _keep_class(read, node)
        elif node.op == "ResourceGather" and _node_of(node.input[0]) in handles:
            _as_gather(out, node)
        else:
            copy = out.node.add()
            copy.CopyFrom(node)
            if node.name in handles and "T" in node.attr:  # it passed the handle on
                copy.attr["T"].type = cast("Any", _type_behind(node, part.node, values))
    out.library.CopyFrom(part.library)
    out.versions.CopyFrom(part.versions)
    return out


def _behind_handles(nodes: Iterable[Any], handles: set[str]) -> set[str]:
    """The handles, and what only passes them on."""
    found = set(handles)
    for node in nodes:  # each comes behind its inputs, but in loops, whose handles come from outside
        if node.op in ("Identity", "Enter", "Switch", "Merge") and node.input and _node_of(node.input[0]) in found:
            found.add(node.name)
    return found


def _type_behind(node: Any, nodes: Iterable[Any], values: dict[str, Any]) -> Any:
    """The type of the variable whose handle a node passes on."""
    by_name = {each.name: each for each in nodes}
    while node.name not in values:
        node = by_name[_node_of(node.input[0])]
    return node.attr["dtype"].type


def _as_constant(out: Any, node: Any, value: Any) -> None:
    out.name, out.op, out.device = node.name, "Const", node.device
    out.attr["dtype"].type = node.attr["dtype"].type
    out.attr["value"].tensor.CopyFrom(tensor_proto(value, dtypes.from_enum(node.attr["dtype"].type)))
    _keep_class(out, node)


def _as_gather(out: Any, node: Any) -> None:
    axis = out.node.add(name=f"{node.name}/axis", op="Const", device=node.device)
    axis.attr["dtype"].type = dtypes.int32.enum
    axis.attr["value"].tensor.CopyFrom(tensor_proto(0, dtypes.int32))
    rows = out.node.add(name=node.name, op="GatherV2", device=node.device, input=[*node.input[:2], axis.name])
    rows.attr["Tparams"].type = node.attr["dtype"].type
    rows.attr["Tindices"].type = node.attr["Tindices"].type
    rows.attr["Taxis"].type = dtypes.int32.enum
    rows.attr["batch_dims"].i = node.attr["batch_dims"].i
    _keep_class(rows, node)


def _keep_class(out: Any, node: Any) -> None:
    if "_class" in node.attr:
        out.attr["_class"].CopyFrom(node.attr["_class"])
