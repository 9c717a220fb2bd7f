"""MetaGraphs of a graph, or of one scope of it, and MetaGraphs that come into a scope.

Names in a MetaGraph stand in nodes, in their attributes (`_class`, `frame_name`) and in the messages of collections.
What is written for a scope has them without it; what comes in has another one before them.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from typing import Any

from schemas import attr_value_pb2, graph_pb2, meta_graph_pb2, node_def_pb2, saver_pb2
from toolkit.client.construction.context import get_default_graph
from toolkit.client.construction.graph import Graph
from toolkit.client.metagraphs import importing
from toolkit.client.metagraphs.export import to_meta_graph
from toolkit.client.metagraphs.messages import MESSAGES, rename_all, stripped
from toolkit.errors import SaverError
from toolkit.formats.models.metagraph import complete_info, from_proto, used_ops_of
from toolkit.formats.models.model import ModelKind, from_meta_graph, to_message
from toolkit.graph.metagraph import GraphKeys

#: before the name of an input that is not in the scope that was written
UNBOUND = "$unbound_inputs_"

_SAVES = frozenset({
    "SaveV2", "Save", "SaveSlice", "LegacySave", "LegacySaveSlice", "RestoreV2", "Restore", "RestoreSlice",
    "LegacyRestore", "LegacyRestoreSlice",
})  # fmt: skip
_SAVER_NAMES = ("filename_tensor_name", "save_tensor_name", "restore_op_name")


def saver_in_scope(saver: saver_pb2.SaverDef, scope: str) -> saver_pb2.SaverDef | None:
    """A SaverDef as the scope's own graph has it; None where its nodes are not in the scope."""
    if not all(getattr(saver, field).startswith(scope) for field in _SAVER_NAMES):
        return None
    found = saver_pb2.SaverDef.FromString(saver.SerializeToString())
    for field in _SAVER_NAMES:
        setattr(found, field, stripped(getattr(saver, field), scope))
    return found


# -- writing -------------------------------------------------------------------------------------------------------


def export_scoped(
    graph: Graph,
    scope: str | None = None,
    graph_def: graph_pb2.GraphDef | None = None,
    saver_def: saver_pb2.SaverDef | None = None,
    collection_list: Collection[str] | None = None,
    meta_info_def: Any = None,
    *,
    clear_devices: bool = False,
    clear_extraneous_savers: bool = False,
    unbound_inputs: str | None = "unbound_inputs",
    left_out: Callable[[str], None] | None = None,
) -> meta_graph_pb2.MetaGraphDef:
    """The MetaGraphDef of a graph, its shapes in `_output_shapes`.

    Args:
        scope: only what is in this scope, under names without it. What nodes take in from elsewhere is then called
            `$unbound_inputs_NAME`, and listed in the collection `unbound_inputs`.
        graph_def: nodes to write instead of the graph's.
        collection_list: the collections to write; default: all.
        meta_info_def: what is to be said of the model besides.
        clear_extraneous_savers: without savers other than that of `saver_def`, their nodes included.
        left_out: told of collections that cannot be written.
    """
    meta = to_meta_graph(graph, saver_def=saver_def, left_out=left_out)
    if collection_list:
        meta.collections = {key: value for key, value in meta.collections.items() if key in collection_list}
    message: meta_graph_pb2.MetaGraphDef = to_message(from_meta_graph(meta), ModelKind.META_GRAPH)
    nodes = graph.as_graph_def(add_shapes=True) if graph_def is None else graph_def
    message.graph_def.CopyFrom(nodes)
    if meta_info_def is not None:
        message.meta_info_def.MergeFrom(type(message.meta_info_def).FromString(meta_info_def.SerializeToString()))
    dropped = _other_savers(message.graph_def, saver_def) if clear_extraneous_savers else frozenset[str]()
    if clear_extraneous_savers and GraphKeys.SAVERS in message.collection_def:
        del message.collection_def[GraphKeys.SAVERS]
        if saver_def is not None:
            message.collection_def[GraphKeys.SAVERS].bytes_list.value.append(saver_def.SerializeToString())
    if scope or dropped or clear_devices:
        unbound = _narrow(message.graph_def, scope, dropped, clear_devices)
        del message.meta_info_def.stripped_op_list.op[:]
        complete_info(message, used_ops_of(message.graph_def))
        if scope or dropped:
            _narrow_collections(message, scope, dropped)
        if unbound and unbound_inputs:
            message.collection_def[unbound_inputs].bytes_list.value.extend(name.encode() for name in unbound)
    return message


def _other_savers(graph_def: graph_pb2.GraphDef, saver_def: saver_pb2.SaverDef | None) -> frozenset[str]:
    """The nodes in scopes of nodes that save or restore, but the given saver's."""
    named = {node.name for node in graph_def.node if node.op in _SAVES}
    scopes = {name.rpartition("/")[0] for name in named} - named
    if saver_def is not None:
        scopes -= {
            n.partition(":")[0].rpartition("/")[0] for n in (saver_def.save_tensor_name, saver_def.restore_op_name)
        }
    starts = tuple(f"{scope}/" for scope in scopes)
    return frozenset(node.name for node in graph_def.node if starts and node.name.startswith(starts))


def _narrow(
    graph_def: graph_pb2.GraphDef, scope: str | None, dropped: Collection[str], clear_devices: bool
) -> list[str]:
    """Leave only what is in the scope; returns the inputs that are not."""
    kept = [node for node in graph_def.node if node.name not in dropped and node.name.startswith(scope or "")]
    unbound: list[str] = []
    for node in kept:
        if clear_devices:
            node.device = ""
        for at, name in enumerate(node.input if scope else ()):
            if scope is not None and name.lstrip("^").startswith(scope):
                node.input[at] = stripped(name, scope)
            else:
                mark = "^" if name.startswith("^") else ""
                node.input[at] = f"{mark}{UNBOUND}{name.removeprefix('^')}"
                unbound.append(node.input[at])
        node.name = stripped(node.name, scope)
        if scope:
            _narrow_attrs(node, scope)
    copies = [type(node).FromString(node.SerializeToString()) for node in kept]
    del graph_def.node[:]
    graph_def.node.extend(copies)
    return unbound


def _narrow_attrs(node: Any, scope: str) -> None:
    if "_class" in node.attr:
        inside = [
            stripped(each.decode(), scope).encode()
            for each in node.attr["_class"].list.s
            if each.decode().partition("@")[2].startswith(scope)
        ]
        del node.attr["_class"].list.s[:]
        node.attr["_class"].list.s.extend(inside)
        node.attr["_class"].list.SetInParent()
    if node.op in ("Enter", "RefEnter"):
        node.attr["frame_name"].s = stripped(node.attr["frame_name"].s.decode(), scope).encode()


def _narrow_collections(message: meta_graph_pb2.MetaGraphDef, scope: str | None, dropped: Collection[str]) -> None:
    for key in list(message.collection_def):
        held = message.collection_def[key]
        kind = held.WhichOneof("kind")
        found: list[Any] = []
        if kind == "node_list":
            names = [each for each in held.node_list.value if each.partition(":")[0] not in dropped]
            found = [stripped(each, scope) for each in names if each.startswith(scope or "")]
        elif kind == "bytes_list" and key in MESSAGES:
            found = [each for data in held.bytes_list.value for each in _narrowed(key, data, scope, dropped)]
        elif kind == "bytes_list":
            found = [data for data in held.bytes_list.value if data.startswith((scope or "").encode())]
        else:
            continue
        values = held.node_list.value if kind == "node_list" else held.bytes_list.value
        del values[:]
        values.extend(found)
        if not found:
            del message.collection_def[key]


def _narrowed(key: str, data: bytes, scope: str | None, dropped: Collection[str]) -> list[bytes]:
    """A message of a collection in the scope's names; nothing where it is not in the scope."""
    kind, field = MESSAGES[key]
    message = kind.FromString(data)
    name: str = getattr(message, field)
    if name.partition(":")[0] in dropped or not name.startswith(scope or ""):
        return []
    if scope:
        rename_all(message, lambda text: stripped(text, scope))
    return [message.SerializeToString(deterministic=True)]


# -- reading -------------------------------------------------------------------------------------------------------


def import_scoped(
    message: meta_graph_pb2.MetaGraphDef,
    import_scope: str | None = None,
    *,
    clear_devices: bool = False,
    input_map: Mapping[str, Any] | None = None,
    unbound_inputs_col_name: str | None = "unbound_inputs",
    restore_collections_predicate: Callable[[str], bool] = lambda key: True,
) -> str:
    """Add a MetaGraph's nodes and collections to the default graph; returns the scope they went to, "" for none.

    Args:
        message: is left as it is.
        input_map: tensors of the default graph, by the name of the input they take the place of.
        unbound_inputs_col_name: the collection that lists the inputs that have to be given.
        restore_collections_predicate: whether a collection comes in, by its key.

    Raises:
        SaverError: inputs are unbound, and the map is not of just these.
        GraphError: a name is taken, or does not exist.
    """
    if unbound_inputs_col_name and unbound_inputs_col_name in message.collection_def:
        unbound = [each.decode() for each in message.collection_def[unbound_inputs_col_name].bytes_list.value]
        if unbound and sorted(set(unbound)) != sorted(input_map or {}):
            lacking = [name for name in dict.fromkeys(unbound) if name not in (input_map or {})]
            raise SaverError(f"the graph takes inputs that are given by input_map: {', '.join(lacking or unbound)}")
    copy = meta_graph_pb2.MetaGraphDef.FromString(message.SerializeToString())
    absent = _stand_ins(copy.graph_def, input_map or {})
    meta = from_proto(copy)
    meta.collections = {
        key: items
        for key, items in meta.collections.items()
        if key != unbound_inputs_col_name and restore_collections_predicate(key)
    }
    scope = get_default_graph().unique_name(import_scope, mark_as_used=False) if import_scope else ""
    importing.import_meta_graph(meta, import_scope, clear_devices, input_map, absent)
    return scope


def _stand_ins(graph_def: graph_pb2.GraphDef, input_map: Mapping[str, Any]) -> list[str]:
    """Add nodes for the inputs of a map that the graph does not have; returns their names."""
    there = {node.name for node in graph_def.node}
    given = {name.partition(":")[0]: value for name, value in input_map.items()}
    absent = [name for name in given if name not in there]
    for name in absent:
        dtype = given[name].dtype.base
        attrs = {"dtype": attr_value_pb2.AttrValue(type=dtype.enum)}
        graph_def.node.append(node_def_pb2.NodeDef(name=name, op="Placeholder", attr=attrs))
    return absent
