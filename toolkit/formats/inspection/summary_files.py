"""What is in files that are no models: checkpoints, lists of them, partition folders, records, events.

Part of the report behind `graphmill inspect`; see `toolkit.formats.inspection.summary`.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from toolkit.errors import FormatError
from toolkit.formats import io
from toolkit.formats.folders.partition_listing import read_listing
from toolkit.formats.inspection.detect import PARTITIONS_FILE, PARTITIONS_META_FILE, Detected, detect, is_event_file
from toolkit.graph.shape import Shape

Report = dict[str, Any]
#: so many records are parsed to find out what features they have
_EXAMPLES = 1000


def checkpoint(found: Detected) -> Report:
    """Tensors and files of a checkpoint."""
    from toolkit.formats.bundle import open_checkpoint

    reader = open_checkpoint(found.path)
    prefix = Path(found.path)
    shards = [p for p in prefix.parent.iterdir() if p.name.startswith(prefix.name + ".data-")]
    index = prefix.with_name(prefix.name + ".index")
    entries = list(reader.entries.values())
    return {
        "prefix": found.path,
        "bytes": sum(p.stat().st_size for p in [*shards, index if index.exists() else prefix]),
        "shards": reader.num_shards,
        "missing": reader.missing_files(),
        "parameters": sum(entry.count for entry in entries if entry.dtype.is_floating),
        "tensors": [
            {"name": e.name, "dtype": e.dtype.name, "shape": _dims(e.shape), "bytes": e.bytes, "slices": len(e.slices)}
            for e in entries
        ],
    }


def state(found: Detected) -> Report:
    """The checkpoints that a state file lists."""
    from schemas.checkpoint_state_pb2 import CheckpointState
    from toolkit.formats.models import text

    state = text.parse(io.read_bytes(found.path), CheckpointState(), found.path)
    return {
        "latest": state.model_checkpoint_path,
        "checkpoints": list(state.all_model_checkpoint_paths),
    }


def partitions(found: Detected, summarize: Callable[[Detected, str], Report]) -> Report:
    """The graphs of a partition folder (`toolkit.formats.folders.partitions`).

    Args:
        summarize: gives the report of a graph file.
    """
    folder = Path(found.path)
    listing = read_listing(folder / PARTITIONS_FILE)
    names = {row["file"]: row["name"] for row in listing["partitions"]}
    graphs: list[Report] = []
    for path in sorted(folder.iterdir()):
        if path.suffix != ".pb" or path.name == PARTITIONS_META_FILE:
            continue
        io.check_member(path)
        inner = detect(path)
        if inner.kind.model is None:
            continue
        report = summarize(inner, str(path))
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
        "by": listing["by"],
        "signatures": sorted(listing.get("signatures") or {}),
        "partitions": graphs,
        "files": {name: size for name, size in files_of(folder).items() if "/" in name},
    }


def files_of(folder: Path) -> dict[str, int]:
    """Every file of a folder, and of those in it, with its bytes."""
    files = (path for path in folder.rglob("*") if path.is_file())
    return {path.relative_to(folder).as_posix(): path.stat().st_size for path in sorted(files)}


def tfrecord(found: Detected) -> Report:
    """Records, and the features of those that are examples."""
    sizes: list[int] = []
    features: dict[str, Report] | None = {}
    for record in _records(found):
        sizes.append(len(record))
        if features is not None and len(sizes) <= _EXAMPLES:
            features = _add_features(features, record)
    return {
        "bytes": _size(found),
        "compression": found.compression or None,
        "records": len(sizes),
        "record_bytes": {
            "total": sum(sizes),
            "smallest": min(sizes, default=0),
            "largest": max(sizes, default=0),
        },
        "features": features or None,
    }


def _add_features(features: dict[str, Report], record: bytes) -> dict[str, Report] | None:
    """Count a record's features; None where it is no example."""
    from google.protobuf.message import DecodeError

    from schemas.example_pb2 import Example

    try:
        example = Example.FromString(record)
    except DecodeError:
        return None
    if not len(example.features.feature):
        return None
    for name, feature in example.features.feature.items():
        kind = feature.WhichOneof("kind")
        length = 0 if kind is None else len(getattr(feature, kind).value)
        entry = features.setdefault(
            name, {"type": (kind or "empty").removesuffix("_list"), "records": 0, "least": length, "most": length}
        )
        entry["records"] += 1
        entry["least"] = min(entry["least"], length)
        entry["most"] = max(entry["most"], length)
    return features


def events(found: Detected) -> Report:
    """Kinds, steps and tags of the events of a file or folder."""
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
    if found.data is not None:
        return len(found.data)
    return sum(path.stat().st_size for path in _files(found))


def _files(found: Detected) -> list[Path]:
    """The file, or the event files of a folder."""
    path = Path(found.path)
    return sorted(file for file in path.iterdir() if is_event_file(file.name)) if path.is_dir() else [path]


def _records(found: Detected) -> Iterator[bytes]:
    """The payloads of a TFRecord file."""
    from toolkit.formats.records.tfrecord import read_records

    if found.data is None:
        for file in _files(found):
            yield from read_records(file, found.compression)
        return
    import tempfile

    with tempfile.NamedTemporaryFile() as copy:  # what came through a pipe
        copy.write(found.data)
        copy.flush()
        yield from read_records(copy.name, found.compression)


def _dims(shape: Shape) -> list[int | None] | None:
    return None if shape.dims is None else list(shape.dims)
