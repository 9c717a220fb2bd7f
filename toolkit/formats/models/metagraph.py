"""MetaGraphDef messages to MetaGraphs and back.

What the domain object does not spell out stays in the messages it came from: a signature keeps its SignatureDef,
a tensor info its TensorInfo, a collection its CollectionDef, the rest is `MetaGraph.shell`. Unchanged parts are
written back from those messages, unknown fields included.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

from google.protobuf.message import Message

from schemas.graph_pb2 import GraphDef
from schemas.meta_graph_pb2 import CollectionDef, MetaGraphDef, SignatureDef
from schemas.meta_graph_pb2 import TensorInfo as TensorInfoProto
from schemas.node_def_pb2 import NodeDef
from toolkit.errors import GraphError
from toolkit.formats.models import graphdef
from toolkit.graph import attrs, dtypes, opdefs
from toolkit.graph.attrs import AttrValue, shape_from_proto, shape_to_proto
from toolkit.graph.graph import Graph
from toolkit.graph.metagraph import MetaGraph, Signature, TensorInfo

#: the release whose op registry and producer version we carry (Graph.PRODUCER)
TENSORFLOW_VERSION = "2.21.0"


class _ReadCollection(list[Any]):
    """A collection as it was read, with the message it came from."""

    def __init__(self, values: Iterable[Any], proto: CollectionDef):
        super().__init__(values)
        self.proto = proto


def from_proto(proto: MetaGraphDef) -> MetaGraph:
    """Take over a MetaGraphDef (do not use it afterwards).

    Raises:
        GraphError: the graph in it is malformed; see `graphdef.from_proto`.
    """
    graph = graphdef.from_proto(proto.graph_def)
    proto.ClearField("graph_def")
    signatures = {key: _signature(proto.signature_def[key]) for key in sorted(proto.signature_def)}
    collections: dict[str, list[Any]] = {
        key: _ReadCollection(_collection(proto.collection_def[key]), proto.collection_def[key])
        for key in sorted(proto.collection_def)
    }
    saver = proto.saver_def if proto.HasField("saver_def") else None
    for field in ("signature_def", "collection_def", "saver_def"):
        proto.ClearField(field)
    return MetaGraph(graph, signatures, collections, saver, proto)


def to_proto(meta: MetaGraph, into: MetaGraphDef | None = None, used: set[str] | None = None) -> MetaGraphDef:
    """The MetaGraphDef of a MetaGraph.

    Args:
        into: an empty message to fill, instead of a new one.
        used: the ops to list, of a graph whose nodes are written elsewhere; by default those of this one.

    Raises:
        GraphError: a collection holds values of different or unknown kinds.
    """
    out = MetaGraphDef() if into is None else into
    out.CopyFrom(meta.shell)
    out.graph_def.CopyFrom(graphdef.to_proto(meta.graph))
    for key, signature in meta.signatures.items():
        out.signature_def[key].CopyFrom(_signature_proto(signature))
    for key, values in meta.collections.items():
        out.collection_def[key].CopyFrom(_collection_proto(key, values))
    if meta.saver is not None:
        out.saver_def.CopyFrom(meta.saver)
    complete_info(out, used_ops(meta.graph) if used is None else used)
    return out


def complete_info(proto: MetaGraphDef, used: set[str]) -> None:
    """Fill in what TensorFlow's importer looks for in meta_info_def and what is missing: the version, and the
    OpDefs of the ops that the graph and its functions use, in name order.

    Ops that are not in the registry are left out, as TensorFlow does with ops it does not know. A message that
    was read without a list of ops stays without.
    """
    is_new = not proto.HasField("meta_info_def")
    info = proto.meta_info_def
    if not is_new and not info.HasField("stripped_op_list"):
        return
    listed = {op.name for op in info.stripped_op_list.op}
    missing = sorted(op for op in used - listed if opdefs.find(op) is not None) if used - listed else []
    if missing:
        merged = sorted([*info.stripped_op_list.op, *map(opdefs.proto, missing)], key=lambda op: op.name)
        kept = [_copy(op) for op in merged]
        del info.stripped_op_list.op[:]
        info.stripped_op_list.op.extend(kept)
    if is_new:
        info.stripped_op_list.SetInParent()
        info.tensorflow_version = TENSORFLOW_VERSION


def strip_defaults(proto: MetaGraphDef) -> None:
    """Take the attributes away that have their ops' defaults, so that older releases read the graph; its nodes' and
    its functions' nodes'."""
    for node in (*proto.graph_def.node, *(n for f in proto.graph_def.library.function for n in f.node_def)):
        definition = opdefs.find(node.op)
        for key in list(node.attr) if definition is not None else ():
            known = definition.attrs.get(key) if definition is not None else None
            if known is not None and known.has_default and known.default == attrs.decode(node.attr[key]):
                del node.attr[key]
    proto.meta_info_def.stripped_default_attrs = True


def _copy(message: Any) -> Any:
    copy = type(message)()
    copy.CopyFrom(message)
    return copy


#: functions that these call count as used; those of While, If and Case do not (TensorFlow's own rule)
_CALLS = frozenset({"PartitionedCall", "StatefulPartitionedCall"})


def used_ops(graph: Graph) -> set[str]:
    """The ops that TensorFlow lists for a graph: those of its nodes, and of the functions that nodes call by their
    name or through a PartitionedCall. Names of functions are not among them."""
    library = graph.library
    calls = ((node.op, node.attr_proto("f") if node.op in _CALLS else None) for node in graph.nodes)
    return _used(calls, lambda name: library.function(name).node_def if name in library else None)


def used_ops_of(graph_def: GraphDef) -> set[str]:
    """`used_ops` of a message, whose nodes may have inputs that are not there."""
    functions = {function.signature.name: function.node_def for function in graph_def.library.function}
    return _used(_calls(graph_def.node), functions.get)


def _calls(nodes: Iterable[NodeDef]) -> Iterable[tuple[str, AttrValue | None]]:
    return ((node.op, node.attr.get("f") if node.op in _CALLS else None) for node in nodes)


def _used(calls: Iterable[tuple[str, AttrValue | None]], body: Callable[[str], Iterable[NodeDef] | None]) -> set[str]:
    used: set[str] = set()
    functions = {""}
    todo = [calls]
    while todo:
        for op, function in todo.pop():
            called = function.func.name if function is not None else op
            for name in (op, called):
                nodes = None if name in used else body(name)
                if nodes is not None:
                    functions.add(name)
                    todo.append(_calls(nodes))
                used.add(name)
    return used - functions


# -- signatures ------------------------------------------------------------------------------------------


def _signature(proto: SignatureDef) -> Signature:
    return Signature(
        {key: tensor_info(proto.inputs[key]) for key in sorted(proto.inputs)},
        {key: tensor_info(proto.outputs[key]) for key in sorted(proto.outputs)},
        proto.method_name,
        proto,
    )


def tensor_info(proto: TensorInfoProto) -> TensorInfo:
    """The domain object of a TensorInfo message."""
    dtype = dtypes.from_enum(proto.dtype) if proto.dtype else dtypes.variant
    return TensorInfo(proto.name, dtype, shape_from_proto(proto.tensor_shape), proto)


def _signature_proto(signature: Signature) -> SignatureDef:
    out = SignatureDef()
    if signature.proto is not None:
        out.CopyFrom(signature.proto)
        out.ClearField("inputs")
        out.ClearField("outputs")
    out.method_name = signature.method_name
    for key, info in signature.inputs.items():
        out.inputs[key].CopyFrom(tensor_info_proto(info))
    for key, info in signature.outputs.items():
        out.outputs[key].CopyFrom(tensor_info_proto(info))
    return out


def tensor_info_proto(info: TensorInfo) -> TensorInfoProto:
    """The TensorInfo message: the one it was read from when nothing changed, else that one changed."""
    if info.proto is not None and tensor_info(info.proto) == info:
        return info.proto
    out = TensorInfoProto()
    if info.proto is not None:
        out.CopyFrom(info.proto)
    if info.name or info.proto is None:
        out.name = info.name
    out.dtype = info.dtype.enum  # type: ignore[assignment]
    out.ClearField("tensor_shape")
    shape_to_proto(info.shape, out.tensor_shape)
    return out


# -- collections -----------------------------------------------------------------------------------------


def _collection(proto: CollectionDef) -> list[Any]:
    kind = proto.WhichOneof("kind")
    return [] if kind is None else list(getattr(proto, kind).value)


def _collection_proto(key: str, values: list[Any]) -> CollectionDef:
    if isinstance(values, _ReadCollection) and _collection(values.proto) == values:
        return values.proto
    out = CollectionDef()
    kinds = {_kind(value) for value in values}
    if len(kinds) > 1 or None in kinds:
        found = " and ".join(sorted({type(value).__name__ for value in values}))
        raise GraphError(f"collection '{key}' holds {found}; a collection holds str, bytes, int, float or Any messages")
    kind = kinds.pop() if kinds else "node_list"
    target = getattr(out, str(kind))
    target.SetInParent()
    target.value.extend(values)
    return out


def _kind(value: Any) -> str | None:
    match value:
        case str():
            return "node_list"
        case bytes():
            return "bytes_list"
        case int():
            return "int64_list"
        case float():
            return "float_list"
        case Message():
            return "any_list"
        case _:
            return None
