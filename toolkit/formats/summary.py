"""What is in a file, of any kind that `detect` knows: the report behind `graphmill inspect`.

`inspect(source)` gives plain dictionaries and lists, ready for JSON; the schema is in `commands/inspect.py`.
"""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

from schemas.graph_pb2 import GraphDef
from schemas.meta_graph_pb2 import CollectionDef, MetaGraphDef, SignatureDef, TensorInfo
from toolkit.errors import FormatError, OpError
from toolkit.formats import io
from toolkit.formats.detect import (
    PARTITIONS_FILE,
    PARTITIONS_META_FILE,
    STDIN_NAME,
    Detected,
    FileKind,
    Kind,
    detect,
    explain,
)
from toolkit.formats.message import read_message
from toolkit.graph.attrs import shape_from_proto
from toolkit.graph.shape import Shape
from toolkit.graph.summary import GraphSummary, TensorSummary, VariableSummary, summarize, type_name

Report = dict[str, Any]
_SAVER_VERSIONS = {0: "legacy", 1: "V1", 2: "V2"}


def inspect(source: str | Path) -> Report:
    """Summarize a file, a folder, a checkpoint prefix or standard input ("-").

    Raises:
        GraphmillError: it cannot be read, is damaged, or is of no kind that is known (the message says what it
            looks like).
    """
    name = os.fspath(source)
    found = detect(name)
    shown = STDIN_NAME if name == io.STDIO else name
    kind = found.kind.model
    if kind is not None:
        return _model(found, shown, kind)
    describe = {
        FileKind.CHECKPOINT: _checkpoint,
        FileKind.CHECKPOINT_STATE: _state,
        FileKind.PARTITIONS: _partitions,
        FileKind.TFRECORD: _tfrecord,
        FileKind.EVENTS: _events,
    }.get(found.kind)
    if describe is None:
        raise explain(found, shown)
    try:
        details = describe(found)
    except OpError as error:
        # nothing is running here: what these readers call data loss is a damaged file
        raise FormatError(error.message, file=shown) from None
    return {"file": shown, "kind": found.kind.value, "encoding": None} | details


# -- graphs ----------------------------------------------------------------------------------------------


def _model(found: Detected, shown: str, kind: Kind) -> Report:
    _, message = read_message(found, shown)
    size = len(found.data) if found.data is not None else Path(found.path).stat().st_size
    report: Report = {
        "file": shown,
        "kind": kind.value,
        "encoding": found.encoding.value if found.encoding else None,
        "bytes": size,
    }
    if kind is Kind.GRAPH_DEF:
        report["graphs"] = [_graph(message)]
    elif kind is Kind.META_GRAPH:
        report["graphs"] = [_meta_graph(message)]
    else:
        report["graphs"] = [_meta_graph(meta) for meta in message.meta_graphs]
        if found.folder is not None:
            report["files"] = _files(found.folder)
    return report


def _files(folder: Path) -> dict[str, int]:
    """Every file of a SavedModel folder with its bytes."""
    files = (path for path in folder.rglob("*") if path.is_file())
    return {path.relative_to(folder).as_posix(): path.stat().st_size for path in sorted(files)}


def _meta_graph(meta: MetaGraphDef) -> Report:
    saver = meta.saver_def if meta.HasField("saver_def") else None
    hidden = [] if saver is None else [saver.filename_tensor_name, saver.save_tensor_name, saver.restore_op_name]
    info = meta.meta_info_def
    trainable = _trainable(meta)
    report = _graph(meta.graph_def, hidden, trainable, _object_variables(meta))
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
) -> Report:
    summary = summarize(proto, hidden)
    known = variables or [_with_trainable(variable, trainable) for variable in summary.variables]
    return {
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
            {"name": v.name, "dtype": v.dtype, "shape": _dims(v.shape), "trainable": v.trainable} for v in known
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
        return {"total": summary.float_elements, "trainable": None, "in": "constants"}
    known = any(v.trainable is not None for v in variables)
    return {
        "total": sum(v.elements or 0 for v in variables),
        "trainable": sum(v.elements or 0 for v in variables if v.trainable) if known else None,
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


def _object_variables(meta: MetaGraphDef) -> list[VariableSummary]:
    """The variables of a TensorFlow 2 SavedModel, as its object graph lists them."""
    found: list[VariableSummary] = []
    for node in meta.object_graph_def.nodes:
        if node.HasField("variable"):
            variable = node.variable
            shape = shape_from_proto(variable.shape)
            found.append(VariableSummary(variable.name, type_name(variable.dtype), shape, variable.trainable))
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
        "shape": _dims(shape_from_proto(info.tensor_shape)) if info.HasField("tensor_shape") else None,
    }


def _collection(collection: CollectionDef) -> Report:
    kind = collection.WhichOneof("kind")
    return {"kind": kind, "items": 0 if kind is None else len(getattr(collection, kind).value)}


def _dims(shape: Shape) -> list[int | None] | None:
    return None if shape.dims is None else list(shape.dims)


# -- other files -----------------------------------------------------------------------------------------


def _checkpoint(found: Detected) -> Report:
    from toolkit.formats.bundle import open_checkpoint

    reader = open_checkpoint(found.path)
    prefix = Path(found.path)
    shards = [p for p in prefix.parent.iterdir() if p.name.startswith(prefix.name + ".data-")]
    index = prefix.with_name(prefix.name + ".index")
    entries = list(reader.entries.values())
    return {
        "prefix": found.path,
        "bytes": sum(p.stat().st_size for p in [*shards, index if index.exists() else prefix]),
        "shards": len(shards),
        "parameters": sum(entry.count for entry in entries if entry.dtype.is_floating),
        "tensors": [
            {"name": e.name, "dtype": e.dtype.name, "shape": _dims(e.shape), "bytes": e.bytes, "slices": len(e.slices)}
            for e in entries
        ],
    }


def _state(found: Detected) -> Report:
    from schemas.checkpoint_state_pb2 import CheckpointState
    from toolkit.formats import text

    state = text.parse(io.read_bytes(found.path), CheckpointState(), found.path)
    return {
        "latest": state.model_checkpoint_path,
        "checkpoints": list(state.all_model_checkpoint_paths),
    }


def _partitions(found: Detected) -> Report:
    """The graphs of a partition folder (`toolkit.formats.partitions`), each summarized."""
    folder = Path(found.path)
    listing = _listing(folder / PARTITIONS_FILE)
    names = {row["file"]: row["name"] for row in listing["partitions"]}
    graphs: list[Report] = []
    for path in sorted(folder.iterdir()):
        inner = detect(path) if path.suffix == ".pb" and path.name != PARTITIONS_META_FILE else None
        if inner is None or inner.kind.model is None:
            continue
        report = _model(inner, str(path), inner.kind.model)
        graph = report["graphs"][0]
        graphs.append(
            {
                "name": names.get(path.name, path.stem),
                "file": path.name,
                "bytes": report["bytes"],
                "nodes": graph["nodes"],
                "sends": sum(graph["ops"].get(op, 0) for op in ("_Send", "_HostSend")),
                "receives": sum(graph["ops"].get(op, 0) for op in ("_Recv", "_HostRecv")),
            }
        )
    return {
        "bytes": sum(graph["bytes"] for graph in graphs),
        "by": listing.get("by"),
        "signatures": sorted(listing.get("signatures") or {}),
        "partitions": graphs,
    }


def _listing(path: Path) -> Report:
    """The content of partitions.yaml.

    Raises:
        FormatError: it is no such list.
    """
    import yaml

    try:
        listing = yaml.safe_load(io.read_bytes(path))
        if all(isinstance(row["name"], str) and isinstance(row["file"], str) for row in listing["partitions"]):
            return listing
    except yaml.YAMLError as error:
        raise FormatError(f"not YAML: {' '.join(str(error).split())}", file=str(path)) from None
    except (TypeError, KeyError):
        pass
    raise FormatError("not a list of partitions; graphmill partition writes one", file=str(path))


def _tfrecord(found: Detected) -> Report:
    sizes = [len(record) for record in _records(found)]
    return {
        "bytes": _size(found),
        "records": len(sizes),
        "record_bytes": {
            "total": sum(sizes),
            "smallest": min(sizes, default=0),
            "largest": max(sizes, default=0),
        },
    }


def _events(found: Detected) -> Report:
    from google.protobuf.message import DecodeError

    from schemas.event_pb2 import Event

    kinds: Counter[str] = Counter()
    tags: dict[str, Report] = {}
    steps: list[int] = []
    times: list[float] = []
    version = ""
    for position, record in enumerate(_records(found)):
        try:
            event = Event.FromString(record)
        except DecodeError:
            raise FormatError(f"record {position} is not an event", file=found.path) from None
        what = event.WhichOneof("what") or "empty"
        kinds[what] += 1
        times.append(event.wall_time)
        if what == "file_version":
            version = event.file_version
            continue
        steps.append(event.step)
        for value in event.summary.value if what == "summary" else ():
            entry = tags.setdefault(value.tag, {"values": 0, "first_step": event.step, "last_step": event.step})
            entry["values"] += 1
            entry["first_step"] = min(entry["first_step"], event.step)
            entry["last_step"] = max(entry["last_step"], event.step)
    return {
        "bytes": _size(found),
        "version": version,
        "events": dict(sorted(kinds.items())),
        "steps": [min(steps), max(steps)] if steps else None,
        "wall_time": [min(times), max(times)] if times else None,
        "tags": dict(sorted(tags.items())),
    }


def _size(found: Detected) -> int:
    return len(found.data) if found.data is not None else Path(found.path).stat().st_size


def _records(found: Detected) -> Iterator[bytes]:
    """The payloads of a TFRecord file."""
    from toolkit.formats.tfrecord import read_records

    if found.data is None:
        yield from read_records(found.path)
        return
    import tempfile

    with tempfile.NamedTemporaryFile() as copy:  # what came through a pipe
        copy.write(found.data)
        copy.flush()
        yield from read_records(copy.name)
