"""Graphs from files as parts of the graph that is being made."""

from __future__ import annotations

import heapq
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from contextlib import nullcontext
from typing import Any

from schemas import attr_value_pb2, control_flow_pb2, graph_pb2, saver_pb2, variable_pb2
from toolkit.client.construction.context import get_default_graph
from toolkit.client.construction.graph import Graph
from toolkit.client.construction.operation import COLOCATION_PREFIX, Operation
from toolkit.client.construction.tensor import Tensor
from toolkit.client.flow.contexts import from_proto as context_from_proto
from toolkit.client.metagraphs.messages import MESSAGES, VARIABLE_COLLECTIONS, prepended, rename_all
from toolkit.client.variables.base import BaseVariable, SliceInfo
from toolkit.client.variables.kinds import RefVariable, ResourceVariable
from toolkit.errors import FormatError, GraphError, did_you_mean
from toolkit.graph.graph import Graph as CoreGraph
from toolkit.graph.metagraph import GraphKeys, MetaGraph
from toolkit.graph.node import Node, Output
from toolkit.graph.tensorref import parse_tensor

#: what makes the objects of collections out of their messages, which otherwise stay messages
READERS: dict[str, Callable[[Any], Any]] = {}

_ENTERS = frozenset({"Enter", "RefEnter"})
_MERGES = frozenset({"Merge", "RefMerge"})
_NEXT_ITERATIONS = frozenset({"NextIteration", "RefNextIteration"})


def import_graph_def(
    graph_def: graph_pb2.GraphDef | CoreGraph,
    input_map: Mapping[str, Any] | None = None,
    return_elements: Sequence[str] | None = None,
    name: str | None = "import",
    clear_devices: bool = False,
    absent: Collection[str] = (),
) -> list[Tensor | Operation]:
    """Add the nodes of a graph to the default graph.

    They come in an order in which they can be made, with the device scopes around; what is placed with another
    operation gets that one's device.

    Args:
        graph_def: a GraphDef message (taken over) or a core graph (copied).
        input_map: tensors of it, by name, to replace by tensors of the default graph.
        return_elements: names of tensors ("n:0") or operations ("n") to return.
        name: the scope they go to, made unique; "" or None keeps their names.
        absent: nodes of it that only stand for what `input_map` gives, and stay out.

    Raises:
        GraphError: a name is taken, or one in `input_map` or `return_elements` does not exist.
    """
    source = CoreGraph.from_proto(graph_def) if isinstance(graph_def, graph_pb2.GraphDef) else graph_def
    graph = get_default_graph()
    with graph.name_scope(name) if name else nullcontext("") as scope:
        copies = _copy(graph, source, scope, clear_devices, frozenset(absent))
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


def _copy(graph: Graph, source: CoreGraph, scope: str, clear_devices: bool, absent: frozenset[str]) -> dict[Node, Node]:
    for function in source.library:
        graph.core.library.add(source.library.function(function))
    taken = [scope + node.name for node in source if scope + node.name in graph.core]
    if taken:
        raise GraphError(f"the name '{taken[0]}' of an imported node is taken; import it under another scope")
    copies: dict[Node, Node] = {}
    for node in _in_order(source):
        if node.name in absent:
            continue
        attrs = {key: node.attrs.proto(key) for key in node.attrs if key != "_output_shapes"}
        if node.op in _ENTERS and scope:
            attrs["frame_name"] = attr_value_pb2.AttrValue(s=scope.encode() + node.attr("frame_name"))
        copy = graph.core.add(node.op, scope + node.name, attrs=attrs, device="" if clear_devices else node.device)
        if scope and "_class" in copy.attrs:
            start = COLOCATION_PREFIX
            copy.attrs["_class"] = [
                start + scope.encode() + entry[len(start) :] if entry.startswith(start) else entry
                for entry in copy.attr("_class")
            ]
        copies[node] = copy
    _place(graph, copies.values())
    graph.mark_names_used(copy.name for copy in copies.values())
    return copies


def _in_order(source: CoreGraph) -> list[Node]:
    """The nodes, each behind its inputs, but for a Merge that begins a loop; those that stand first first."""
    nodes = list(source)
    position = {node: at for at, node in enumerate(nodes)}
    users: dict[Node, list[Node]] = {node: [] for node in nodes}
    pending: dict[Node, int] = {}
    for node in nodes:
        data = [endpoint.node for endpoint in node.inputs]
        begins_loop = node.op in _MERGES and any(each.op in _NEXT_ITERATIONS for each in data)
        pending[node] = len(node.control_inputs) + (1 if begins_loop else len(data))
        for each in (*data, *node.control_inputs):
            users[each].append(node)
    ready = [position[node] for node in nodes if not pending[node]]
    heapq.heapify(ready)
    found: list[Node] = []
    while ready:
        node = nodes[heapq.heappop(ready)]
        found.append(node)
        for user in users[node]:
            pending[user] -= 1
            if pending[user] == 0:
                heapq.heappush(ready, position[user])
    # what is in a cycle that is no loop is for the graph's checks to tell
    return found if len(found) == len(nodes) else nodes


def _place(graph: Graph, nodes: Iterable[Node]) -> None:
    """Devices as scopes around and the operations that nodes are placed with say."""
    colocated: list[Node] = []
    for node in nodes:
        if any(each != COLOCATION_PREFIX + node.name.encode() for each in _groups(node)):
            colocated.append(node)
        elif graph.innermost_device is not None:
            device, node.device = node.device, ""
            with graph.device(device) if device else nullcontext():
                graph.apply_devices(graph.operation(node))
    for node in colocated:
        node.device = ""
    for node in colocated:
        targets = [graph.core.get(each[len(COLOCATION_PREFIX) :].decode()) for each in _groups(node)]
        node.device = next((target.device for target in targets if target is not None and target.device), "")


def _groups(node: Node) -> list[bytes]:
    if "_class" not in node.attrs:
        return []
    return [each for each in node.attr("_class") if each.startswith(COLOCATION_PREFIX)]


def _connect(graph: Graph, source: CoreGraph, copies: Mapping[Node, Node], input_map: Mapping[str, Any]) -> None:
    replaced: dict[Output, Output] = {}
    for key, value in input_map.items():
        replaced[source.output(parse_tensor(key))] = value.output if isinstance(value, Tensor) else value.handle.output
    for node, copy in copies.items():
        copy.inputs = [replaced.get(i) or Output(copies[i.node], i.index) for i in node.inputs]
        copy.control_inputs = [copies[waited] for waited in node.control_inputs]


def import_meta_graph(
    meta: MetaGraph,
    import_scope: str | None = None,
    clear_devices: bool = False,
    input_map: Mapping[str, Any] | None = None,
    absent: Collection[str] = (),
) -> saver_pb2.SaverDef | None:
    """Add a MetaGraph to the default graph, its collections too: variables, loops and conditionals, train op, ...

    Args:
        import_scope: the scope its nodes go to.
        input_map, absent: see `import_graph_def`.

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
        name = scope + "/" if scope else None
        import_graph_def(meta.graph, input_map, name=name, clear_devices=clear_devices, absent=absent)
    prefix = scope + "/" if scope else ""
    made: dict[str, BaseVariable] = {}
    # as TensorFlow does: first what says which variables are trained
    for key in sorted(meta.collections, key=lambda key: (key != GraphKeys.TRAINABLE_VARIABLES, key)):
        for item in meta.collections[key]:
            graph.add_to_collection(key, _restored(graph, key, item, prefix, made))
    if meta.saver is None:
        return None
    saver = saver_pb2.SaverDef()
    saver.CopyFrom(meta.saver)
    rename_all(saver, lambda name: prepended(name, scope))
    return saver


def _restored(graph: Graph, key: str, item: Any, prefix: str, made: dict[str, BaseVariable]) -> Any:
    if key in VARIABLE_COLLECTIONS and isinstance(item, bytes):
        proto = _parse(variable_pb2.VariableDef, item, key)
        if proto.variable_name not in made:
            made[proto.variable_name] = variable_from_proto(proto, prefix)
        return made[proto.variable_name]
    if key == GraphKeys.COND_CONTEXT:
        return context_from_proto(_parse(control_flow_pb2.CondContextDef, item, key), prefix)
    if key == GraphKeys.WHILE_CONTEXT:
        return context_from_proto(_parse(control_flow_pb2.WhileContextDef, item, key), prefix)
    if key in (GraphKeys.QUEUE_RUNNERS, GraphKeys.SAVERS) and isinstance(item, bytes):
        message = _parse(MESSAGES[key][0], item, key)
        rename_all(message, lambda name: prepended(name, prefix))
        return READERS[key](message) if key in READERS else message.SerializeToString(deterministic=True)
    if isinstance(item, bytes) and prefix:
        return prefix + item.decode(errors="replace")
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
