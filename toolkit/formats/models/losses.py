"""What of a model another kind of file, or another encoding, cannot hold."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, cast

from google.protobuf import unknown_fields
from google.protobuf.message import Message

from toolkit.formats.inspection.detect import Encoding, ModelKind
from toolkit.formats.models.model import Model, to_message
from toolkit.formats.models.savedmodel import tag_sets

#: places of unknown fields that are named
_SHOWN = 3


def losses(model: Model, kind: ModelKind, encoding: Encoding) -> list[str]:
    """What of the message is left out when a model is written so, a line for each kind of thing.

    Variables and assets lie in a SavedModel's folder, beside the message.
    """
    found: list[str] = []
    if kind is not ModelKind.SAVED_MODEL and len(model.meta_graphs) > 1:
        others = [tags for tags, meta in zip(tag_sets(model.meta_graphs), model.meta_graphs, strict=True)
                  if meta is not model.meta]  # fmt: skip
        found.append(f"a {_NAMES[kind]} holds one graph; left out: those tagged {'; '.join(others)}")
    if kind is ModelKind.GRAPH_DEF:
        found += _surroundings(model)
    if encoding in (Encoding.TEXT, Encoding.JSON):
        places = list(unknown_places(to_message(model, kind)))
        if places:
            more = f" and {len(places) - _SHOWN:,} more" if len(places) > _SHOWN else ""
            name = "the text format" if encoding is Encoding.TEXT else "JSON"
            found.append(f"{name} holds no fields that are not known here: {', '.join(places[:_SHOWN])}{more}")
    return found


_NAMES = {ModelKind.GRAPH_DEF: "GraphDef", ModelKind.META_GRAPH: "MetaGraphDef", ModelKind.SAVED_MODEL: "SavedModel"}


def _surroundings(model: Model) -> list[str]:
    meta = model.meta
    parts: list[str] = []
    if meta.signatures:
        parts.append(f"signatures ({', '.join(meta.signatures)})")
    if meta.collections:
        parts.append(f"collections ({', '.join(meta.collections)})")
    if meta.saver is not None:
        parts.append("the saver")
    if meta.shell.HasField("object_graph_def"):
        parts.append("the objects of 2.x")
    if meta.assets:
        parts.append(f"assets ({', '.join(asset.filename for asset in meta.assets)})")
    if meta.tags:
        parts.append(f"tags ({', '.join(meta.tags)})")
    return [f"a GraphDef holds a graph alone; left out: {'; '.join(parts)}"] if parts else []


def unknown_places(message: Message, where: str = "") -> Iterator[str]:
    """Where fields are that the schemas do not have: the way to their message, and their number."""
    for field in unknown_fields.UnknownFieldSet(message):
        yield f"{where}{'.' if where else ''}{field.field_number}"
    for descriptor, value in message.ListFields():
        if descriptor.message_type is None:
            continue
        name = f"{where}{'.' if where else ''}{descriptor.name}"
        if descriptor.message_type.GetOptions().map_entry:
            if descriptor.message_type.fields_by_name["value"].message_type is not None:
                entries = cast("dict[Any, Message]", value)
                for key in sorted(entries):
                    yield from unknown_places(entries[key], f"{name}[{key!r}]")
        elif descriptor.is_repeated:
            for position, item in enumerate(cast("list[Message]", value)):
                yield from unknown_places(item, f"{name}[{position}]")
        else:
            yield from unknown_places(cast(Message, value), name)
