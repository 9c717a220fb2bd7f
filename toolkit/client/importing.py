"""Graphs from files as parts of the graph that is being made."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import nullcontext
from typing import Any

from schemas import control_flow_pb2, graph_pb2, saver_pb2, variable_pb2
from toolkit.client.context import get_default_graph
from toolkit.client.control_flow_context import from_proto as context_from_proto
from toolkit.client.graph import Graph
from toolkit.client.operation import COLOCATION_PREFIX, Operation
from toolkit.client.tensor import Tensor
from toolkit.client.variables import BaseVariable, RefVariable, ResourceVariable, SliceInfo
from toolkit.errors import FormatError, GraphError, did_you_mean
from toolkit.graph.graph import Graph as CoreGraph
from toolkit.graph.metagraph import GraphKeys, MetaGraph
from toolkit.graph.node import Node, Output
from toolkit.graph.tensorref import parse_tensor

_VARIABLE_COLLECTIONS = (
    GraphKeys.GLOBAL_VARIABLES, GraphKeys.LOCAL_VARIABLES, GraphKeys.MODEL_VARIABLES, GraphKeys.TRAINABLE_VARIABLES,
    GraphKeys.MOVING_AVERAGE_VARIABLES, GraphKeys.GLOBAL_STEP,
)  # fmt: skip


def import_graph_def(
    graph_def: graph_pb2.GraphDef | CoreGraph,
    input_map: Mapping[str, Any] | None = None,
    return_elements: Sequence[str] | None = None,
    name: str | None = "import",
    clear_devices: bool = False,
) -> list[Tensor | Operation]:
    """Add the nodes of a graph to the default graph.

    Args:
        graph_def: a GraphDef message (taken over) or a core graph (copied).
        input_map: tensors of it, by name, to replace by tensors of the default graph.
        return_elements: names of tensors ("n:0") or operations ("n") to return.
        name: the scope they go to, made unique; "" or None keeps their names.

    Raises:
        GraphError: a name is taken, or one in `input_map` or `return_elements` does not exist.
    """
    source = CoreGraph.from_proto(graph_def) if isinstance(graph_def, graph_pb2.GraphDef) else graph_def
    graph = get_default_graph()
    with graph.name_scope(name) if name else nullcontext("") as scope:
        copies = _copy(graph, source, scope, clear_devices)
        _connect(graph, source, copies, input_map or {})
    found: list[Tensor | Operation] = []
    for element in return_elements or ():
        ref = parse_tensor(element)
        node = source.get(ref.node)
        if node is None:
            raise GraphError(f"the imported graph has no '{element}'{did_you_mean(ref.node, (n.name for n in source))}")
        op = graph.operation(copies[node])
        found.append(graph.tensor(op.output(ref.index)) if ":" in element else op)
    return found


def _copy(graph: Graph, source: CoreGraph, scope: str, clear_devices: bool) -> dict[Node, Node]:
    for function in source.library:
        graph.core.library.add(source.library.function(function))
    taken = [scope + node.name for node in source if scope + node.name in graph.core]
    if taken:
        raise GraphError(f"the name '{taken[0]}' of an imported node is taken; import it under another scope")
    copies: dict[Node, Node] = {}
    for node in source:
        attrs = {key: node.attrs.proto(key) for key in node.attrs}
        copy = graph.core.add(node.op, scope + node.name, attrs=attrs, device="" if clear_devices else node.device)
        if scope and "_class" in copy.attrs:
            start = COLOCATION_PREFIX
            copy.attrs["_class"] = [
                start + scope.encode() + entry[len(start) :] if entry.startswith(start) else entry
                for entry in copy.attr("_class")
            ]
        copies[node] = copy
    graph.mark_names_used(copy.name for copy in copies.values())
    return copies


def _connect(graph: Graph, source: CoreGraph, copies: Mapping[Node, Node], input_map: Mapping[str, Any]) -> None:
    replaced: dict[Output, Output] = {}
    for key, value in input_map.items():
        replaced[source.output(parse_tensor(key))] = value.output if isinstance(value, Tensor) else value.handle.output
    for node, copy in copies.items():
        copy.inputs = [replaced.get(i) or Output(copies[i.node], i.index) for i in node.inputs]
        copy.control_inputs = [copies[waited] for waited in node.control_inputs]


def import_meta_graph(
    meta: MetaGraph, import_scope: str | None = None, clear_devices: bool = False
) -> saver_pb2.SaverDef | None:
    """Add a MetaGraph to the default graph, its collections too: variables, loops and conditionals, train op, ...

    Args:
        import_scope: the scope its nodes go to.

    Returns:
        Its SaverDef, with the scope in its names; None when it has none.

    Raises:
        GraphError: a name is taken; a collection names what does not exist.
        FormatError: a message in a collection is damaged.
    """
    graph = get_default_graph()
    # entered by its full name, so that collections know which names to look for
    scope = graph.unique_name(import_scope) if import_scope else ""
    with graph.name_scope(None):
        import_graph_def(meta.graph, name=scope + "/" if scope else None, clear_devices=clear_devices)
    prefix = scope + "/" if scope else ""
    made: dict[str, BaseVariable] = {}
    for key, items in meta.collections.items():
        for item in items:
            graph.add_to_collection(key, _restored(graph, key, item, prefix, made))
    if meta.saver is None:
        return None
    saver = saver_pb2.SaverDef()
    saver.CopyFrom(meta.saver)
    for field in ("filename_tensor_name", "save_tensor_name", "restore_op_name"):
        setattr(saver, field, prefix + getattr(saver, field))
    return saver


def _restored(graph: Graph, key: str, item: Any, prefix: str, made: dict[str, BaseVariable]) -> Any:
    if key in _VARIABLE_COLLECTIONS and isinstance(item, bytes):
        proto = _parse(variable_pb2.VariableDef, item, key)
        if proto.variable_name not in made:
            made[proto.variable_name] = variable_from_proto(proto, prefix)
        return made[proto.variable_name]
    if key == GraphKeys.COND_CONTEXT:
        return context_from_proto(_parse(control_flow_pb2.CondContextDef, item, key), prefix)
    if key == GraphKeys.WHILE_CONTEXT:
        return context_from_proto(_parse(control_flow_pb2.WhileContextDef, item, key), prefix)
    if isinstance(item, str):
        return graph.as_graph_element(prefix + item)
    return item


def _parse(kind: Any, data: bytes, key: str) -> Any:
    try:
        return kind.FromString(data)
    except Exception:
        raise FormatError(f"the collection '{key}' holds bytes that are no {kind.DESCRIPTOR.name}") from None


def variable_from_proto(proto: variable_pb2.VariableDef, prefix: str = "") -> BaseVariable:
    """The variable of a VariableDef whose nodes are in the default graph.

    Raises:
        GraphError: one of its nodes does not exist.
    """
    graph = get_default_graph()
    handle = graph.get_tensor_by_name(prefix + proto.variable_name)
    snapshot = graph.get_tensor_by_name(prefix + proto.snapshot_name)
    initial = graph.get_tensor_by_name(prefix + proto.initial_value_name) if proto.initial_value_name else None
    initializer = graph.get_operation_by_name(prefix + proto.initializer_name) if proto.initializer_name else None
    info = proto.save_slice_info_def
    slice_info = None
    if info.full_name:
        slice_info = SliceInfo(info.full_name, tuple(info.full_shape), tuple(info.var_offset), tuple(info.var_shape))
    kind = ResourceVariable if proto.is_resource else RefVariable
    dtype = snapshot.dtype if proto.is_resource else handle.dtype
    return kind(handle, dtype, snapshot.static_shape, initial, initializer, snapshot, proto.trainable, None, slice_info)
