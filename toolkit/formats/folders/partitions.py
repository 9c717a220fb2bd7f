"""Partition folders: one GraphDef per partition, and what holds them together.

    parts/
      partitions.yaml     the list below
      meta.pb             MetaGraphDef without nodes: signatures, collections, saver of the file that was split, and
                          the functions that no partition calls, which a SavedModel's objects may
      NAME.pb             a GraphDef per partition
      variables/, assets/ what a SavedModel has beside its graph, copied

One stream of all (`partition -o -`) is a MetaGraph with their nodes side by side, or, where there are variables or
assets, a tar archive of the folder.

`partitions.yaml`:

    version: 1
    by: device            # or task
    kind: savedmodel      # of the file that was split
    companions: [variables, assets]                         # of a SavedModel: what lies beside the graphs
    partitions:
      - name: /job:worker/replica:0/task:0/device:CPU:0
        devices: [/job:worker/replica:0/task:0/device:CPU:0]
        file: job_worker_replica_0_task_0_device_CPU_0.pb
        nodes: 12
        sends: 1
        recvs: 0
        send_tensors: [{name: edge_4_w/read, dtype: float32, to: /job:...}]
        recv_tensors: []
        feeds: ["x:0"]                                      # placeholders that are here
        fetches: ["y:0"]                                    # outputs of signatures that are here
    crossings:            # what is sent, as it is called in the graph; bytes where they were estimated
      - {tensor: "w/read:0", name: edge_4_w/read, dtype: float32, from: /job:..., to: /job:..., bytes: 4096}
    schedule:             # with --schedule-recvs: receives that wait for a node, and what that is estimated to change
      scheduled: 12
      left: {"needed as soon as they are sent": 3}
      seconds: {before: 0.0012, after: 0.0012}
      peak_bytes: {/job:...: {before: 8192, after: 4096}}
    signatures:           # where the tensors of each signature are
      serving_default:
        inputs: {x: {tensor: "x:0", partition: /job:worker/replica:0/task:0/device:CPU:0}}
        outputs: {y: {tensor: "y:0", partition: /job:...}}

Every command takes the folder, and works on the graph that its partitions add up to.
"""

from __future__ import annotations

import os
import re
import shutil
import tempfile
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from toolkit.errors import GraphmillError, UsageError
from toolkit.formats import io
from toolkit.formats.folders import archive
from toolkit.formats.folders.partition_listing import VERSION
from toolkit.formats.folders.partition_reading import Partitions, read_partitions
from toolkit.formats.inspection.detect import PARTITIONS_FILE, PARTITIONS_META_FILE, STREAM_KEY
from toolkit.formats.models.model import Model, ModelKind, companions, from_graph, from_meta_graph, write_model
from toolkit.formats.models.savedmodel import COMPANIONS, copy_companions
from toolkit.graph.graph import Graph
from toolkit.graph.metagraph import MetaGraph, TensorInfo
from toolkit.graph.node import Node, Output
from toolkit.graph.partitioned import RECV_OPS, SEND_OPS
from toolkit.graph.tensorref import parse_input

_PLACEHOLDERS = ("Placeholder", "PlaceholderV2", "PlaceholderWithDefault")


def write_partitions(
    folder: str,
    graphs: Mapping[str, Graph],
    model: Model,
    by: str,
    *,
    crossings: Sequence[Mapping[str, Any]] = (),
    schedule: Mapping[str, Any] | None = None,
    check_links: Callable[[list[Path]], None] | None = None,
) -> None:
    """Write a partition folder; it appears whole or not at all, replacing an older one.

    Args:
        crossings, schedule: what is sent, and when it is received, for the listing.
        check_links: of a SavedModel's variables and assets, which come along (`savedmodel.write_folder`).

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
        if model.folder is not None and model.kind is ModelKind.SAVED_MODEL:
            copy_companions(model.folder, scratch, check_links=check_links)
        _fill(scratch, graphs, model, by, crossings, schedule)
        _replace(scratch, target)
    except OSError as error:
        raise GraphmillError(f"cannot write the folder: {error.strerror}", file=folder) from None
    finally:
        shutil.rmtree(scratch, ignore_errors=True)


def _fill(
    folder: Path,
    graphs: Mapping[str, Graph],
    model: Model,
    by: str,
    crossings: Sequence[Mapping[str, Any]],
    schedule: Mapping[str, Any] | None,
) -> None:
    import yaml

    results = {info.name for each in model.meta.signatures.values() for info in each.outputs.values()}

    rows: list[dict[str, Any]] = []
    used: set[str] = set()
    for name, graph in graphs.items():
        file = _file_name(name, used)
        write_model(from_graph(graph), folder / file)
        sends, recvs = _transfers(graph, SEND_OPS, "recv_device"), _transfers(graph, RECV_OPS, "send_device")
        row: dict[str, Any] = {
            "name": name,
            "file": file,
            "nodes": len(graph),
            "sends": len(sends),
            "recvs": len(recvs),
        }
        rows.append(
            {
                **row,
                "devices": sorted(graph.device_names()),
                "send_tensors": sends,
                "recv_tensors": recvs,
                "feeds": [f"{node.name}:0" for node in graph.nodes_of(_PLACEHOLDERS)],
                "fetches": sorted(name for name in results if name and parse_input(name).node in graph),
            }
        )
    write_model(from_meta_graph(_without_nodes(model.meta, graphs)), folder / PARTITIONS_META_FILE)
    listing = {
        "version": VERSION, "by": by, "kind": model.kind.value,
        "companions": [each for each in COMPANIONS if (folder / each).exists()], "partitions": rows,
        "crossings": list(map(dict, crossings)),
        **({} if schedule is None else {"schedule": dict(schedule)}),
        "signatures": _signatures(model.meta, graphs),
    }  # fmt: skip
    io.write_atomic(folder / PARTITIONS_FILE, yaml.dump(listing, Dumper=_fast_dumper(yaml), sort_keys=False).encode())


def _fast_dumper(yaml: Any) -> Any:
    """PyYAML's dumper, in C where it was built with libyaml: listings can have many thousand lines."""
    return getattr(yaml, "CSafeDumper", yaml.SafeDumper)


def _transfers(graph: Graph, ops: frozenset[str], other_end: str) -> list[dict[str, str]]:
    """What a partition sends or receives, and the device at the other end."""
    key = "to" if ops is SEND_OPS else "from"
    kind = "T" if ops is SEND_OPS else "tensor_type"
    return [
        {"name": node.text("tensor_name"), "dtype": str(node.attr(kind)), key: node.text(other_end)}
        for node in graph.nodes_of(ops)
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


def _without_nodes(meta: MetaGraph, graphs: Mapping[str, Graph]) -> MetaGraph:
    """What belongs to no partition."""
    graph = meta.graph.subgraph(())
    for name in list(graph.library):
        if any(name in part.library for part in graphs.values()):
            graph.library.remove(name)
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


def write_partition_stream(
    dest: str,
    graphs: Mapping[str, Graph],
    model: Model,
    by: str,
    *,
    crossings: Sequence[Mapping[str, Any]] = (),
    schedule: Mapping[str, Any] | None = None,
    check_links: Callable[[list[Path]], None] | None = None,
) -> None:
    """Write all partitions into one file, or to standard output: as one MetaGraph, or, where the name ends in .tar or
    variables or assets belong to the model, as a tar archive of the folder.

    Args, Raises:
        as `write_partitions`.
    """
    if dest == io.STDIO and not (model.kind is ModelKind.SAVED_MODEL and companions(model)):
        write_model(as_stream(graphs, model, by), dest)
        return
    with tempfile.TemporaryDirectory(prefix="graphmill-") as scratch:
        folder = Path(scratch) / "parts"
        write_partitions(
            str(folder), graphs, model, by, crossings=crossings, schedule=schedule, check_links=check_links
        )
        io.write_streamed(dest, lambda file: archive.write_archive(folder, file, PARTITIONS_FILE))


def as_stream(graphs: Mapping[str, Graph], model: Model, by: str) -> Model:
    """All partitions as one MetaGraph, for a pipe: their nodes side by side, with their devices, sends and receives.

    A collection tells readers that it is made of partitions; they join them.
    """
    whole = model.graph.subgraph(())
    copies: dict[Node, Node] = {}
    for graph in graphs.values():
        for node in graph:
            copies[node] = whole.add_copy(node)
    for node, copy in copies.items():
        copy.inputs = [Output(copies[src], index) for src, index in node.inputs]
        copy.control_inputs = [copies[src] for src in node.control_inputs]
    manifest = f"version: {VERSION}\nby: {by}\nkind: {model.kind.value}\n".encode()
    collections = {**model.meta.collections, STREAM_KEY: [manifest]}
    return replace(from_meta_graph(replace(model.meta, graph=whole, collections=collections), model.source))


__all__ = ["Partitions", "as_stream", "read_partitions", "write_partition_stream", "write_partitions"]
