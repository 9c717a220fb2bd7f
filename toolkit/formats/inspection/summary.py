"""What is in a file, of any kind that `detect` knows: the report behind `graphmill inspect`.

`inspect(source)` gives plain dictionaries and lists, ready for JSON; the schema is in `commands/inspect.py`.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import Any

from schemas.graph_pb2 import GraphDef
from schemas.meta_graph_pb2 import CollectionDef, MetaGraphDef, SignatureDef, TensorInfo
from toolkit.errors import FormatError, GraphmillError, OpError, source_name
from toolkit.formats import io
from toolkit.formats.inspection import summary_files
from toolkit.formats.inspection.detect import Detected, Encoding, FileKind, ModelKind, detect, explain
from toolkit.formats.models import graphdef, savedmodel
from toolkit.formats.models.message import read_message
from toolkit.graph import releases
from toolkit.graph.attrs import known_shape
from toolkit.graph.graph import Graph
from toolkit.graph.shape import Shape
from toolkit.graph.summary import (
    VARIABLES,
    GraphSummary,
    TensorSummary,
    VariableSummary,
    bookkeeping,
    summarize,
    type_name,
)

Report = dict[str, Any]
_SAVER_VERSIONS = {0: "legacy", 1: "V1", 2: "V2"}


#: adds to the report of a graph what this layer cannot find out, from its GraphDef or MetaGraphDef; from a Graph where
#: that is how a large one was read
Extend = Callable[[Any, Report], None]


def inspect(source: str | Path, extend: Extend | None = None) -> Report:
    """Summarize a file, a folder, a checkpoint prefix or standard input ("-").

    Args:
        extend: called with every graph's message, which it may take apart, and its report.

    Raises:
        GraphmillError: it cannot be read, is damaged, or is of no kind that is known (the message says what it
            looks like).
    """
    name = os.fspath(source)
    found = detect(name)
    shown = source_name(name)
    kind = found.kind.model
    if kind is not None:
        return _model(found, shown, kind, extend)
    describe: dict[FileKind, Callable[[Detected], Report]] = {
        FileKind.CHECKPOINT: summary_files.checkpoint,
        FileKind.CHECKPOINT_STATE: summary_files.state,
        FileKind.PARTITIONS: lambda found: summary_files.partitions(found, _part),
        FileKind.TFRECORD: summary_files.tfrecord,
        FileKind.EVENTS: summary_files.events,
    }
    if found.kind not in describe:
        raise explain(found, shown)
    try:
        details = describe[found.kind](found)
    except OpError as error:
        # nothing is running here: what these readers call data loss is a damaged file
        raise FormatError(error.message, file=shown) from None
    return {"file": shown, "kind": found.kind.value, "encoding": None} | details


# -- graphs ----------------------------------------------------------------------------------------------


def _model(found: Detected, shown: str, kind: ModelKind, extend: Extend | None = None) -> Report:
    size = len(found.data) if found.data is not None else Path(found.path).stat().st_size
    message, found = _large_graph(found, shown)
    if message is None:
        _, message = read_message(found, shown)
    report: Report = {
        "file": shown,
        "kind": kind.value,
        "encoding": found.encoding.value if found.encoding else None,
        "bytes": size,
    }
    graphs = list(message.meta_graphs) if kind is ModelKind.SAVED_MODEL else [message]
    describe = _unmade if isinstance(message, Graph) else _graph if kind is ModelKind.GRAPH_DEF else _meta_graph
    report["graphs"] = [describe(graph) for graph in graphs]
    if kind is ModelKind.SAVED_MODEL and found.folder is not None:
        report["files"] = summary_files.files_of(found.folder)
        report["missing"] = _missing(found.folder, message)
    if extend is not None:
        for graph, entry in zip(graphs, report["graphs"], strict=True):
            extend(graph, entry)
    return report


def _large_graph(found: Detected, shown: str) -> tuple[Any, Detected]:
    """The graph of a binary GraphDef of very many nodes, none of which has been made, and the file as it is known then;
    None for all else, which is looked at as a message."""
    if found.kind is not FileKind.GRAPH_DEF or found.encoding is not Encoding.BINARY:
        return None, found
    data = found.data if found.data is not None else io.read_owned(found.path, is_message=True)
    io.check_size(len(data), shown)
    with suppress(GraphmillError):  # a summary says what there is of a broken graph, too
        graph = graphdef.unmade_from_bytes(data)
        if graph is not None:
            return graph, found
    return None, replace(found, data=data if isinstance(data, bytes) else data[:])


def _part(found: Detected, shown: str) -> Report:
    return _model(found, shown, found.kind.model or ModelKind.GRAPH_DEF)


def _missing(folder: Path, message: Any) -> list[str]:
    """Files that the graphs of a SavedModel read when it is loaded, and that are not there."""
    wanted: dict[str, None] = {}
    for meta in message.meta_graphs:
        if meta.HasField("saver_def") and any(node.op in VARIABLES for node in meta.graph_def.node):
            wanted.setdefault(f"{savedmodel.VARIABLES}.index")
        for asset in meta.asset_file_def:
            wanted.setdefault(f"assets/{asset.filename}")
    return [name for name in wanted if not _is_there(folder / name)]


def _is_there(path: Path) -> bool:
    try:
        return path.exists()
    except OSError:  # its name is too long, it leads around in links, ...
        return False


def _meta_graph(meta: MetaGraphDef) -> Report:
    saver = meta.saver_def if meta.HasField("saver_def") else None
    info = meta.meta_info_def
    trainable = _trainable(meta)
    report = _graph(
        meta.graph_def, bookkeeping(saver), trainable, object_variables(meta), meta.HasField("object_graph_def")
    )
    assets = {asset.tensor_info.name.partition(":")[0] for asset in meta.asset_file_def}
    report["inputs"] = [entry for entry in report["inputs"] if entry["name"] not in assets]  # the loader feeds those
    return {
        "tags": sorted(info.tags),
        "tensorflow_version": info.tensorflow_version or None,
        "signatures": {key: _signature(meta.signature_def[key]) for key in sorted(meta.signature_def)},
        **report,
        "collections": {key: _collection(meta.collection_def[key]) for key in sorted(meta.collection_def)},
        "saver": None
        if saver is None
        else {
            "filename": saver.filename_tensor_name,
            "save": saver.save_tensor_name,
            "restore": saver.restore_op_name,
            "sharded": saver.sharded,
            "version": _SAVER_VERSIONS.get(saver.version, str(saver.version)),
        },
        "assets": [asset.filename for asset in meta.asset_file_def],
    }


def _graph(
    proto: GraphDef,
    hidden: Iterable[str] = (),
    trainable: set[str] | None = None,
    variables: list[VariableSummary] | None = None,
    is_object_based: bool = False,
) -> Report:
    wants = releases.needs(proto, is_object_based=is_object_based)
    return _told(summarize(proto, hidden), wants, trainable, variables)


def _unmade(graph: Graph) -> Report:
    """The report of a graph whose nodes are a table."""
    from toolkit.formats.node_tables import summary as table_summary
    from toolkit.formats.node_tables.columns import NodeColumns

    table = graph.unmade
    assert isinstance(table, NodeColumns)
    return _told(table_summary.summarize(graph, table), releases.needs(table_summary.sample(graph, table)))


def _told(
    summary: GraphSummary,
    wants: releases.ReaderRequirements,
    trainable: set[str] | None = None,
    variables: list[VariableSummary] | None = None,
) -> Report:
    known = variables or [_with_trainable(variable, trainable) for variable in summary.variables]
    return {
        "written_by": releases.written_by(summary.producer) or None,
        "needs": {"tensorflow": wants.release, "reasons": list(wants.reasons), "custom_ops": list(wants.custom)},
        "versions": {
            "producer": summary.producer,
            "min_consumer": summary.min_consumer,
            "bad_consumers": summary.bad_consumers,
        },
        "inputs": [_tensor(tensor) for tensor in summary.inputs],
        "outputs": [{"name": t.name, "op": t.op, "dtype": t.dtype or None} for t in summary.outputs],
        "targets": summary.targets,
        "nodes": summary.nodes,
        "ops": summary.ops,
        "function_ops": summary.function_ops,
        "functions": [
            {"name": f.name, "nodes": f.nodes, "inputs": f.inputs, "outputs": f.outputs} for f in summary.functions
        ],
        "parameters": _parameters(known, summary),
        "variables": [
            {"name": v.name, "dtype": v.dtype, "shape": _dims(v.shape), "trainable": v.trainable, "used": v.used}
            for v in known
        ],
        "constants": {
            "nodes": summary.constants,
            "elements": summary.constant_elements,
            "bytes": summary.constant_bytes,
        },
        "devices": summary.devices,
        "frames": summary.frames,
    }


def _parameters(variables: list[VariableSummary], summary: GraphSummary) -> Report:
    """How many numbers the model has learned: in variables, or in the constants of a frozen graph."""
    if not variables:
        return {"total": summary.float_elements, "trainable": None, "unused": None, "in": "constants"}
    used = [v for v in variables if v.used is not False]
    known = any(v.trainable is not None for v in used)
    return {
        "total": sum(v.elements or 0 for v in used),
        "trainable": sum(v.elements or 0 for v in used if v.trainable) if known else None,
        "unused": sum(v.elements or 0 for v in variables if v.used is False),
        "in": "variables",
    }


def _trainable(meta: MetaGraphDef) -> set[str] | None:
    """The names of trainable variables' nodes as the collections tell them; None when they do not."""
    if "variables" not in meta.collection_def and "trainable_variables" not in meta.collection_def:
        return None
    from google.protobuf.message import DecodeError

    from schemas.variable_pb2 import VariableDef

    names: set[str] = set()
    if "trainable_variables" in meta.collection_def:
        for data in meta.collection_def["trainable_variables"].bytes_list.value:
            try:
                names.add(VariableDef.FromString(data).variable_name.partition(":")[0])
            except DecodeError:
                continue
    return names


def _with_trainable(variable: VariableSummary, trainable: set[str] | None) -> VariableSummary:
    if trainable is None:
        return variable
    return VariableSummary(variable.name, variable.dtype, variable.shape, variable.name in trainable)


def object_variables(meta: MetaGraphDef) -> list[VariableSummary]:
    """The variables of a TensorFlow 2 SavedModel, as its object graph lists them.

    Keras stores its variables twice; the copies are those that no function reads.
    """
    objects = meta.object_graph_def
    read = {node for function in objects.concrete_functions.values() for node in function.bound_inputs}
    found: list[VariableSummary] = []
    is_known = any(node.HasField("variable") and position in read for position, node in enumerate(objects.nodes))
    for position, node in enumerate(objects.nodes):
        if node.HasField("variable"):
            variable = node.variable
            shape, dtype = known_shape(variable.shape), type_name(variable.dtype)
            used = position in read if is_known else None
            found.append(VariableSummary(variable.name, dtype, shape, variable.trainable, used))
    return found


def _tensor(tensor: TensorSummary) -> Report:
    return {"name": tensor.name, "op": tensor.op, "dtype": tensor.dtype or None, "shape": _dims(tensor.shape)}


def _signature(signature: SignatureDef) -> Report:
    return {
        "method": signature.method_name,
        "inputs": {key: _info(signature.inputs[key]) for key in sorted(signature.inputs)},
        "outputs": {key: _info(signature.outputs[key]) for key in sorted(signature.outputs)},
    }


def _info(info: TensorInfo) -> Report:
    kind = info.WhichOneof("encoding") or "name"
    name = info.name if kind == "name" else kind.replace("_", " ")
    return {
        "name": name,
        "dtype": type_name(info.dtype) or None,
        "shape": _dims(known_shape(info.tensor_shape)) if info.HasField("tensor_shape") else None,
    }


def _collection(collection: CollectionDef) -> Report:
    kind = collection.WhichOneof("kind")
    return {"kind": kind, "items": 0 if kind is None else len(getattr(collection, kind).value)}


def _dims(shape: Shape) -> list[int | None] | None:
    return None if shape.dims is None else list(shape.dims)
