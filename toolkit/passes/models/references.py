"""Names of nodes and tensors outside of the graph's edges: in signatures, collections, savers, assets, object graphs.

One table says which fields of which messages hold such names; whoever asks for them or changes them walks by it.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any

from google.protobuf import any_pb2
from google.protobuf.message import DecodeError, Message

from schemas import control_flow_pb2, meta_graph_pb2, queue_runner_pb2, saver_pb2, variable_pb2
from toolkit.graph.graph import Graph
from toolkit.graph.metagraph import GraphKeys, MetaGraph, Signature, TensorInfo
from toolkit.graph.tensorref import parse_input

#: what a name becomes; None when what it named is gone
Rename = Callable[[str], str | None]

#: message to its fields with names: texts, lists or maps of them, or messages that have some
_FIELDS: dict[str, tuple[str, ...]] = {
    "VariableDef": ("variable_name", "initializer_name", "snapshot_name", "initial_value_name"),
    "QueueRunnerDef": ("queue_name", "enqueue_op_name", "close_op_name", "cancel_op_name"),
    "SaverDef": ("filename_tensor_name", "save_tensor_name", "restore_op_name"),
    "ControlFlowContextDef": ("cond_ctxt", "while_ctxt"),
    "CondContextDef": ("pred_name", "pivot_name", "values_def", "nested_contexts"),
    "WhileContextDef": (
        "pivot_name", "pivot_for_pred_name", "pivot_for_body_name", "loop_exit_names", "loop_enter_names",
        "maximum_iterations_name", "values_def", "nested_contexts",
    ),
    "ValuesDef": ("values", "external_values"),
    "AssetFileDef": ("tensor_info",),
    "TensorInfo": ("name", "coo_sparse", "composite_tensor"),
    "CooSparse": ("values_tensor_name", "indices_tensor_name", "dense_shape_tensor_name"),
    "CompositeTensor": ("components",),
    "SavedObjectGraph": ("nodes",),
    "SavedObject": ("constant",),
    "SavedConstant": ("operation",),
}  # fmt: skip
#: collection to the message that its bytes are
_MESSAGES: dict[str, type[Message]] = {
    **dict.fromkeys(
        (
            GraphKeys.GLOBAL_VARIABLES, GraphKeys.LOCAL_VARIABLES, GraphKeys.MODEL_VARIABLES,
            GraphKeys.TRAINABLE_VARIABLES, GraphKeys.MOVING_AVERAGE_VARIABLES, GraphKeys.GLOBAL_STEP,
        ),
        variable_pb2.VariableDef,
    ),
    GraphKeys.QUEUE_RUNNERS: queue_runner_pb2.QueueRunnerDef,
    GraphKeys.SAVERS: saver_pb2.SaverDef,
    GraphKeys.COND_CONTEXT: control_flow_pb2.CondContextDef,
    GraphKeys.WHILE_CONTEXT: control_flow_pb2.WhileContextDef,
}  # fmt: skip


def item_message(collection: str, item: Any) -> Message | None:
    """The message in an item of a collection that holds names, or None where it is no such."""
    if isinstance(item, any_pb2.Any):
        made: Message = meta_graph_pb2.AssetFileDef()
        data = item.value if collection == GraphKeys.SAVED_MODEL_ASSETS else None
    else:
        kind = _MESSAGES.get(collection)
        if kind is None:
            return None
        made, data = kind(), item
    if not isinstance(data, bytes):
        return None
    try:
        made.ParseFromString(data)
    except DecodeError:
        return None  # not what the collection's name says; it passes through
    return made


def names_in_message(message: Message) -> list[str]:
    """All names of tensors and operations in a message."""
    found: list[str] = []

    def note(name: str) -> str:
        found.append(name)
        return name

    rename_message(message, note)
    return found


def rename_message(message: Any, rename: Rename) -> bool:
    """Change the names in a message; False when one that it cannot do without is gone.

    Entries of lists and maps whose name is gone are taken out.
    """
    whole = True
    for key in _FIELDS.get(message.DESCRIPTOR.name, ()):
        field = message.DESCRIPTOR.fields_by_name[key]
        value = getattr(message, key)
        if field.message_type is not None and field.message_type.GetOptions().map_entry:
            _rename_map(value, rename)
        elif field.message_type is not None:
            parts = list(value) if field.is_repeated else [value] if message.HasField(key) else []
            for part in parts:
                whole = rename_message(part, rename) and whole
        elif field.is_repeated:
            kept = [new for name in value if (new := rename(name)) is not None]
            if kept != list(value):
                del value[:]
                value.extend(kept)
        elif value:
            new = rename(value)
            whole = whole and new is not None
            if new is not None and new != value:
                setattr(message, key, new)
    return whole


def _rename_map(values: Any, rename: Rename) -> None:
    kept = {new: rename(inner) for name, inner in values.items() if (new := rename(name)) is not None}
    if kept != dict(values):
        values.clear()
        for name, inner in kept.items():
            if inner is not None:
                values[name] = inner


def rename_item(collection: str, item: Any, rename: Rename) -> Any:
    """An item of a collection with other names; None when what it is about is gone."""
    if isinstance(item, str):
        return rename(item)
    message = item_message(collection, item)
    if message is None:
        return item
    before = message.SerializeToString(deterministic=True)
    if not rename_message(message, rename):
        return None
    data = message.SerializeToString(deterministic=True)
    if data == before:
        return item  # as it was written
    return any_pb2.Any(type_url=item.type_url, value=data) if isinstance(item, any_pb2.Any) else data


def rename_info(info: TensorInfo, rename: Rename) -> TensorInfo | None:
    """An entry of a signature with other names; None when what it names is gone."""
    if info.proto is None or info.name:
        name = rename(info.name) if info.name else info.name
        return None if name is None else info if name == info.name else replace(info, name=name)
    proto = meta_graph_pb2.TensorInfo()
    proto.CopyFrom(info.proto)
    if not rename_message(proto, rename):
        return None
    return info if proto == info.proto else replace(info, proto=proto)


def rename_signature(signature: Signature, rename: Rename) -> Signature:
    """A signature with other names; entries that name what is gone are left out."""
    inputs = {key: new for key, info in signature.inputs.items() if (new := rename_info(info, rename)) is not None}
    outputs = {key: new for key, info in signature.outputs.items() if (new := rename_info(info, rename)) is not None}
    if inputs == signature.inputs and outputs == signature.outputs:
        return signature
    return replace(signature, inputs=inputs, outputs=outputs)


def rename_surroundings(meta: MetaGraph, rename: Callable[[str], str]) -> MetaGraph:
    """`meta` whose signatures, collections, saver, assets and object graph use other names for nodes and tensors."""
    collections: dict[str, list[Any]] = {}
    for key, items in meta.collections.items():
        made = [rename_item(key, item, rename) for item in items]
        collections[key] = items if all(a is b for a, b in zip(made, items, strict=True)) else made
    saver = meta.saver
    if saver is not None:
        saver = _renamed(saver, rename)
    return replace(
        meta,
        signatures={key: rename_signature(signature, rename) for key, signature in meta.signatures.items()},
        collections=collections,
        saver=saver,
        shell=_renamed_shell(meta.shell, rename),
    )


def _renamed(message: Any, rename: Rename) -> Any:
    made = type(message)()
    made.CopyFrom(message)
    rename_message(made, rename)
    return message if made == message else made


def _renamed_shell(shell: meta_graph_pb2.MetaGraphDef, rename: Rename) -> meta_graph_pb2.MetaGraphDef:
    objects = shell.object_graph_def
    names = [name for asset in shell.asset_file_def for name in names_in_message(asset)]
    names += [node.constant.operation for node in objects.nodes if node.HasField("constant")]
    if all(rename(name) == name for name in names):
        return shell
    made = meta_graph_pb2.MetaGraphDef()
    made.CopyFrom(shell)
    for asset in made.asset_file_def:
        rename_message(asset, rename)
    if made.HasField("object_graph_def"):
        rename_message(made.object_graph_def, rename)
    return made


def renamer(nodes: Mapping[str, str]) -> Callable[[str], str]:
    """What changes names of tensors (`n:1`), operations (`n`) and control inputs (`^n`) by the names of their nodes."""

    def rename(text: str) -> str:
        start = "^" if text.startswith("^") else ""
        name = parse_input(text).node
        new = nodes.get(name)
        return text if new is None else start + new + text[len(start) + len(name) :]

    return rename


def is_there(graph: Graph) -> Rename:
    """The name itself where its node is in the graph, else None."""
    return lambda text: text if parse_input(text).node in graph else None
