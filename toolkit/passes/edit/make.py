"""Nodes made from what an edit says of them: attributes that follow from inputs are worked out."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from toolkit.errors import GraphError, did_you_mean
from toolkit.graph import dtypes
from toolkit.graph.dtypes import DType
from toolkit.graph.graph import Graph
from toolkit.graph.node import Node, Output
from toolkit.graph.opdefs import ArgDef, OpDef
from toolkit.passes.edit.draft import Draft, require_name

#: in a list of inputs, the tensor of the edge on which a node is put
HERE = "$"


def resolve_inputs(draft: Draft, inputs: Sequence[Any], here: Output | None) -> list[Output | Any]:
    """Endpoints for names of tensors; numbers and lists of them are left, to become constants.

    Raises:
        GraphmillError: there is no such tensor; `$` where nothing is.
    """
    found: list[Output | Any] = []
    for value in inputs:
        if value == HERE:
            if here is None:
                raise GraphError(f"'{HERE}' stands for the tensor of an edge, and there is none here")
            found.append(here)
        else:
            found.append(draft.tensor(value) if isinstance(value, str) else value)
    return found


def make_node(
    draft: Draft, op: str, name: str, inputs: Sequence[Output | Any], *, attrs: Mapping[str, Any],
    controls: Sequence[str] = (), device: str = "",
) -> Node:  # fmt: skip
    """Add a node to a draft.

    Args:
        inputs: endpoints, or numbers and lists of them, of which constants `NAME/input_I` are made.
        attrs: as YAML has them; types, counts and lists of types that inputs decide need not be given.

    Raises:
        GraphmillError: there is no such op; inputs or attributes do not fit it; the name is taken.
    """
    graph = draft.graph
    require_name(name)
    if name in graph:
        raise GraphError(f"there is a node '{name}' already; give another name")
    waits = [graph.node(each.removeprefix("^")) for each in controls]
    known, values = settle(draft.graph, op, inputs, attrs)
    endpoints: list[Output] = []
    for position, value in enumerate(values):
        if not isinstance(value, Output):
            constant = graph.unique_name(f"{name}/input_{position}")
            value = draft.add("Const", constant, [], [], {"dtype": dtypes.from_enum(value.dtype), "value": value})
        endpoints.append(Output(value, 0) if isinstance(value, Node) else value)
    return draft.add(op, name, endpoints, waits, known, device)


def settle(
    graph: Graph, op: str, inputs: Sequence[Output | Any], attrs: Mapping[str, Any]
) -> tuple[dict[str, Any], list[Any]]:
    """All attributes of a new node, and its inputs: endpoints, or TensorProtos of constants.

    Raises:
        GraphmillError: they do not fit the op.
    """
    from toolkit.formats.arrays import tensor

    op_def = graph.op_def(op)
    known = {key: attribute(op_def, key, value) for key, value in attrs.items()}
    types: list[DType | None] = [each.dtype.base if isinstance(each, Output) else None for each in inputs]
    wanted: list[DType | None] = []
    start = 0
    for position, arg in enumerate(op_def.inputs):
        count = _count(op_def, arg, known, len(inputs) - start - (len(op_def.inputs) - position - 1))
        given = types[start : start + count]
        if arg.number_attr:
            known.setdefault(arg.number_attr, count)
        if arg.type_list_attr:
            listed = known.setdefault(arg.type_list_attr, [dtype or dtypes.float32 for dtype in given])
            wanted += listed
        else:
            shared = arg.type
            if shared is None:
                first = next((dtype for dtype in given if dtype is not None), None)
                if first is not None:
                    known.setdefault(arg.type_attr, first)
                shared = known.get(arg.type_attr) or op_def.attrs[arg.type_attr].default
            wanted += [shared] * count
        start += count
    if start != len(inputs):
        named = ", ".join(arg.name for arg in op_def.inputs) or "nothing"
        raise GraphError(f"{op} takes {len(op_def.inputs)} input(s) ({named}); {len(inputs)} are given")
    if op == "Const" and "value" in known:
        from toolkit.client.construction.convert import tensor_proto

        known["value"] = tensor_proto(attrs["value"], known.get("dtype"))
        known.setdefault("dtype", dtypes.from_enum(known["value"].dtype))
    for key, definition in op_def.attrs.items():
        if key not in known:
            if not definition.has_default:
                raise GraphError(f"{op} needs the attribute '{key}' ({definition.type})")
            known[key] = op_def.attr_value({}, key)
    values = [
        each if isinstance(each, Output) else tensor.from_array(each, dtype)
        for each, dtype in zip(inputs, wanted, strict=True)
    ]
    return known, values


def _count(op_def: OpDef, arg: ArgDef, known: Mapping[str, Any], left: int) -> int:
    """How many of the inputs are of one argument: as an attribute says, or all that others leave."""
    if arg.number_attr:
        return known.get(arg.number_attr, max(left, 0))
    if arg.type_list_attr:
        return len(known[arg.type_list_attr]) if arg.type_list_attr in known else max(left, 0)
    return 1


def attribute(op_def: OpDef | None, key: str, value: Any, kind: str | None = None) -> Any:
    """An attribute's value, as YAML has it, as the one that its op wants.

    What an op does not have may begin with an underscore, as remarks of TensorFlow's do; it is taken as it is.

    Args:
        kind: what it is, where the op does not say: "type", "shape", "list(int)", ...

    Raises:
        GraphError: the op has no such attribute, or one of another kind.
    """
    from toolkit.client.construction.create import convert_attr
    from toolkit.graph.opdefs import AttrDef

    definition = None if op_def is None else op_def.attrs.get(key)
    if definition is None and op_def is not None and not key.startswith("_") and kind is None:
        raise GraphError(f"{op_def.name} has no attribute '{key}'{did_you_mean(key, op_def.attrs)}")
    if definition is None:
        kind = kind or ("list(string)" if key == "_class" else _kind_of(value))
        definition = AttrDef(key, kind, None, False, None, None)
    if definition.type == "type" and isinstance(value, str):
        value = dtypes.from_name(value)
    if definition.type == "float" and isinstance(value, str):
        value = _number(value)
    return convert_attr(definition, value, op_def.name if op_def is not None else "a node", "")


def _number(text: str) -> Any:
    try:
        return float(text)  # YAML 1.1 takes 1e-3 for text
    except ValueError:
        return text


def _kind_of(value: Any) -> str:
    match value:
        case bool():
            return "bool"
        case int():
            return "int"
        case float():
            return "float"
        case list():
            return f"list({_kind_of(value[0])})" if value else "list(int)"
        case _:
            return "string"
