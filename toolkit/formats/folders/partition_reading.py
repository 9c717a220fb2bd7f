"""Reading what `formats.folders.partitions` writes: a folder, or one MetaGraph with all partitions side by side."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, TypeVar, cast

from toolkit.errors import FormatError, GraphmillError
from toolkit.formats.folders.partition_listing import VERSION, read_listing
from toolkit.formats.inspection.detect import (
    PARTITIONS_FILE,
    PARTITIONS_META_FILE,
    STREAM_KEY,
    ModelKind,
    detect,
    explain,
)
from toolkit.formats.models import graphdef, metagraph
from toolkit.formats.models.message import read_message
from toolkit.formats.settings.documents import load_yaml
from toolkit.graph.graph import Graph
from toolkit.graph.metagraph import MetaGraph
from toolkit.graph.partitioned import join

_T = TypeVar("_T")


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

    def joined(self) -> MetaGraph:
        """The graph that was split, with its surroundings.

        Raises:
            GraphError: the partitions do not fit together.
        """
        graph = join(self.graphs)
        for name in self.meta.graph.library:
            if name not in graph.library:
                graph.library.add(self.meta.graph.library.function(name))
        return replace(self.meta, graph=graph)


def read_partitions(folder: str) -> Partitions:
    """Read a partition folder.

    Raises:
        FormatError: the listing or a graph is damaged or missing.
    """
    path = Path(folder)
    listing = read_listing(path / PARTITIONS_FILE)
    graphs: dict[str, Graph] = {}
    for row in listing["partitions"]:
        graphs[row["name"]] = _read(path / row["file"], ModelKind.GRAPH_DEF, graphdef.from_proto)
    meta = _read(path / PARTITIONS_META_FILE, ModelKind.META_GRAPH, metagraph.from_proto)
    return Partitions(graphs, meta, listing["by"], ModelKind(listing["kind"]), folder)


def _read(file: Path, wanted: ModelKind, take: Callable[[Any], _T]) -> _T:
    found = detect(file)
    if found.kind.model is not wanted:
        if found.kind.model is None:
            raise explain(found, str(file))
        raise FormatError(f"is a {found.kind.value} where a {wanted.value} is expected", file=str(file))
    try:
        return take(read_message(found, str(file))[1])
    except GraphmillError as error:
        raise error.at(file=str(file)) from None


def from_stream(meta: MetaGraph) -> tuple[MetaGraph, str, ModelKind]:
    """The MetaGraph whose partitions another with the collection `STREAM_KEY` holds, how it was split, and its kind.

    Raises:
        FormatError, GraphError: the collection that says so is damaged, or the partitions do not fit together.
    """
    by, kind = _read_manifest(next(iter(meta.collections[STREAM_KEY]), None))
    rest = {key: values for key, values in meta.collections.items() if key != STREAM_KEY}
    return replace(meta, graph=join({"": meta.graph}), collections=rest), by, kind


def _read_manifest(data: Any) -> tuple[str, ModelKind]:
    manifest = load_yaml(data, STREAM_KEY) if isinstance(data, bytes) else None
    fields: dict[str, Any] = cast("dict[str, Any]", manifest) if isinstance(manifest, dict) else {}
    by, kinds = fields.get("by"), [kind for kind in ModelKind if kind.value == fields.get("kind")]
    if fields.get("version") != VERSION or by not in ("device", "task") or not kinds:
        raise FormatError(f"the collection '{STREAM_KEY}' is damaged; graphmill partition -o - writes it")
    return str(by), kinds[0]
