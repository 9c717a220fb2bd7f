"""Partition folders: one GraphDef per partition, and what holds them together.

    parts/
      partitions.yaml     the list below
      meta.pb             MetaGraphDef without a graph: signatures, collections, saver of the file that was split
      NAME.pb             a GraphDef per partition

`partitions.yaml`:

    version: 1
    by: device            # or task
    kind: metagraph       # of the file that was split
    partitions:
      - name: /job:worker/replica:0/task:0/device:CPU:0
        device: /job:worker/replica:0/task:0/device:CPU:0   # or the task
        file: job_worker_replica_0_task_0_device_CPU_0.pb
        nodes: 12
        sends: 1
        recvs: 0
        send_tensors: [{name: edge_4_w/read, dtype: float32, to: /job:...}]
        recv_tensors: []
    signatures:           # where the tensors of each signature are
      serving_default:
        inputs: {x: {tensor: "x:0", partition: /job:worker/replica:0/task:0/device:CPU:0}}
        outputs: {y: {tensor: "y:0", partition: /job:...}}
"""

from __future__ import annotations

import os
import re
import shutil
import tempfile
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from toolkit.errors import GraphmillError, UsageError
from toolkit.formats.detect import PARTITIONS_FILE, PARTITIONS_META_FILE
from toolkit.formats.io import write_atomic
from toolkit.formats.model import Model, ModelKind, from_graph, from_meta_graph, read_graph, read_model, write_model
from toolkit.formats.partition_listing import VERSION, read_listing
from toolkit.graph.graph import Graph
from toolkit.graph.metagraph import MetaGraph, TensorInfo
from toolkit.graph.tensorref import parse_input

_SENDS = frozenset({"_Send", "_HostSend"})
_RECVS = frozenset({"_Recv", "_HostRecv"})


@dataclass(slots=True)
class Partitions:
    """A partition folder in memory.

    Attributes:
        graphs: partition name (a device or a task) to graph.
        meta: what surrounded the graph that was split; its own graph is empty.
        by: "device" or "task".
        kind: of the file that was split.
    """

    graphs: dict[str, Graph]
    meta: MetaGraph
    by: str
    kind: ModelKind
    folder: str = ""


def write_partitions(folder: str, graphs: Mapping[str, Graph], model: Model, by: str) -> None:
    """Write a partition folder; it appears whole or not at all, replacing an older one.

    Raises:
        UsageError: the folder exists and is not a partition folder.
        GraphmillError: it cannot be written.
    """
    target = Path(folder)
    if target.is_dir() and any(target.iterdir()) and not (target / PARTITIONS_FILE).is_file():
        raise UsageError("the folder is not empty and not a partition folder; choose another -o", file=folder)
    if target.exists() and not target.is_dir():
        raise UsageError("there is a file of that name; -o must be a folder", file=folder)
    target.parent.mkdir(parents=True, exist_ok=True)
    scratch = Path(tempfile.mkdtemp(prefix=f".{target.name}.", dir=target.parent))
    try:
        scratch.chmod(0o777 & ~_umask())
        _fill(scratch, graphs, model, by)
        _replace(scratch, target)
    except OSError as error:
        raise GraphmillError(f"cannot write the folder: {error.strerror}", file=folder) from None
    finally:
        shutil.rmtree(scratch, ignore_errors=True)


def _fill(folder: Path, graphs: Mapping[str, Graph], model: Model, by: str) -> None:
    import yaml

    rows: list[dict[str, Any]] = []
    used: set[str] = set()
    for name, graph in graphs.items():
        file = _file_name(name, used)
        write_model(from_graph(graph), folder / file)
        sends, recvs = _transfers(graph, _SENDS, "recv_device"), _transfers(graph, _RECVS, "send_device")
        row: dict[str, Any] = {
            "name": name,
            "file": file,
            "nodes": len(graph),
            "sends": len(sends),
            "recvs": len(recvs),
        }
        rows.append({**row, "send_tensors": sends, "recv_tensors": recvs})
    write_model(from_meta_graph(_without_graph(model.meta)), folder / PARTITIONS_META_FILE)
    listing = {
        "version": VERSION, "by": by, "kind": model.kind.value, "partitions": rows,
        "signatures": _signatures(model.meta, graphs),
    }  # fmt: skip
    write_atomic(folder / PARTITIONS_FILE, yaml.dump(listing, Dumper=_fast_dumper(yaml), sort_keys=False).encode())


def _fast_dumper(yaml: Any) -> Any:
    """PyYAML's dumper, in C where it was built with libyaml: listings can have many thousand lines."""
    return getattr(yaml, "CSafeDumper", yaml.SafeDumper)


def _transfers(graph: Graph, ops: frozenset[str], other_end: str) -> list[dict[str, str]]:
    """What a partition sends or receives, and the device at the other end."""
    key = "to" if ops is _SENDS else "from"
    kind = "T" if ops is _SENDS else "tensor_type"
    return [
        {"name": node.text("tensor_name"), "dtype": str(node.attr(kind)), key: node.text(other_end)}
        for node in graph
        if node.op in ops
    ]


def _signatures(meta: MetaGraph, graphs: Mapping[str, Graph]) -> dict[str, Any]:
    """Where the inputs and outputs of the signatures are."""

    def place(info: TensorInfo) -> dict[str, str | None]:
        node = parse_input(info.name).node
        return {"tensor": info.name, "partition": next((name for name, g in graphs.items() if node in g), None)}

    return {
        key: {
            side: {label: place(info) for label, info in group.items() if info.name}
            for side, group in (("inputs", signature.inputs), ("outputs", signature.outputs))
        }
        for key, signature in meta.signatures.items()
    }


def _without_graph(meta: MetaGraph) -> MetaGraph:
    graph = Graph()
    graph.versions.CopyFrom(meta.graph.versions)
    return MetaGraph(graph, meta.signatures, meta.collections, meta.saver, meta.shell)


def _file_name(name: str, used: set[str]) -> str:
    base = re.sub(r"[^A-Za-z0-9]+", "_", name).strip("_") or "partition"
    candidate, count = base, 1
    while candidate in used:
        candidate, count = f"{base}_{count}", count + 1
    used.add(candidate)
    return candidate + ".pb"


def _replace(scratch: Path, target: Path) -> None:
    if target.exists():
        old = Path(tempfile.mkdtemp(prefix=f".{target.name}.old.", dir=target.parent))
        target.rename(old / "it")
        scratch.rename(target)
        shutil.rmtree(old, ignore_errors=True)
    else:
        scratch.rename(target)


def _umask() -> int:
    mask = os.umask(0)
    os.umask(mask)
    return mask


def read_partitions(folder: str) -> Partitions:
    """Read a partition folder.

    Raises:
        FormatError: the listing or a graph is damaged or missing.
    """
    path = Path(folder)
    listing = read_listing(path / PARTITIONS_FILE)
    graphs: dict[str, Graph] = {}
    for row in listing["partitions"]:
        graphs[row["name"]] = read_graph(path / row["file"])
    meta = read_model(path / PARTITIONS_META_FILE).meta
    return Partitions(graphs, meta, listing["by"], ModelKind(listing["kind"]), folder)
