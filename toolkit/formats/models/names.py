"""The names in a model file, for completing them on a command line: quick, and silent about what is wrong."""

from __future__ import annotations

import mmap
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from toolkit.errors import GraphmillError
from toolkit.formats.inspection.detect import Detected, Encoding, FileKind, ModelKind, detect
from toolkit.formats.models.message import read_message
from toolkit.formats.models.protoscan import LENGTH, Field, WireError, fields

#: text and JSON are parsed slowly; nobody waits for larger ones at a prompt
_LARGEST_TEXT = 4_000_000
#: larger ones are mostly weights, which a walk over the wire format leaves on the disk
_LARGE = 16_000_000


@dataclass(slots=True)
class Names:
    """What can be named in a file.

    Attributes:
        nodes: node to op, of all graphs of the file.
        signatures: keys.
        tags: tag sets, comma-separated.
    """

    nodes: dict[str, str] = field(default_factory=dict[str, str])
    signatures: list[str] = field(default_factory=list[str])
    tags: list[str] = field(default_factory=list[str])


def names_in(source: str) -> Names:
    """The names in a file; none where it cannot be read, or in a pipe, which nobody waits for at a prompt."""
    try:
        if not Path(source).is_file() and not Path(source).is_dir():
            return Names()
        found = detect(source, unpacks=False)
        if found.kind.model is None:
            return Names()
        size = Path(found.path).stat().st_size
        if found.encoding is not Encoding.BINARY and size > _LARGEST_TEXT:
            return Names()
        if found.encoding is Encoding.BINARY and size > _LARGE:
            return _walk(found)
        kind, message = read_message(found, source)
    except (GraphmillError, OSError, WireError):
        return Names()
    out = Names()
    for graph in _graphs(kind, message, out):
        for node in graph.node:
            out.nodes[node.name] = node.op
    return out


def _graphs(kind: ModelKind, message: Any, out: Names) -> Iterator[Any]:
    if kind is ModelKind.GRAPH_DEF:
        yield message
        return
    for meta in message.meta_graphs if kind is ModelKind.SAVED_MODEL else [message]:
        out.signatures += sorted(meta.signature_def)
        out.tags.append(",".join(meta.meta_info_def.tags))
        yield meta.graph_def


# -- large files -----------------------------------------------------------------------------------------

# field numbers: SavedModel.meta_graphs; MetaGraphDef.meta_info_def, .graph_def, .signature_def; MetaInfoDef.tags;
# GraphDef.node; NodeDef.name and the key of a map's entry; NodeDef.op
_META_GRAPHS, _INFO, _GRAPH, _SIGNATURES, _TAGS, _NODE, _NAME, _OP = 2, 1, 2, 5, 4, 1, 1, 2


def _walk(found: Detected) -> Names:
    out = Names()
    with Path(found.path).open("rb") as file, mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as data:
        whole = Field(0, LENGTH, 0, 0, len(data))
        graphs: list[Field] = [whole]
        if found.kind is not FileKind.GRAPH_DEF:
            metas = [whole] if found.kind is FileKind.META_GRAPH else list(_parts(data, whole, _META_GRAPHS))
            graphs = list[Field]()
            for meta in metas:
                infos = _parts(data, meta, _INFO)
                out.tags.append(",".join(_text(data, tag) for info in infos for tag in _parts(data, info, _TAGS)))
                out.signatures += sorted(_first(data, entry, _NAME) for entry in _parts(data, meta, _SIGNATURES))
                graphs += _parts(data, meta, _GRAPH)
        for graph in graphs:
            for node in _parts(data, graph, _NODE):
                out.nodes[_first(data, node, _NAME)] = _first(data, node, _OP)
    return out


def _parts(data: mmap.mmap, message: Field, number: int) -> Iterator[Field]:
    """The fields of a message with a number."""
    # a memory map is indexed and sliced as bytes are
    inner = fields(data, message.value, message.end)  # type: ignore[arg-type]
    return (field for field in inner if field.number == number and field.wire_type == LENGTH)


def _first(data: mmap.mmap, message: Field, number: int) -> str:
    return next((_text(data, field) for field in _parts(data, message, number)), "")


def _text(data: mmap.mmap, field: Field) -> str:
    return data[field.value : field.end].decode(errors="replace")
