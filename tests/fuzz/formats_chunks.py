"""Mutation of split models (.cpb): records behind hashes that are right, and the list of them that comes last."""

from __future__ import annotations

import io
import random
from typing import Any

from schemas import chunk_pb2
from tests.fuzz import formats_bytes, formats_proto, messages
from toolkit.errors import FormatError
from toolkit.formats.records.riegeli import RecordReader, RecordWriter


def _records(data: bytes) -> tuple[list[bytes], chunk_pb2.ChunkMetadata]:
    """The records that the last one lists, and that."""
    reader = RecordReader(lambda offset, size: data[offset : offset + size], len(data), "seed")
    try:
        metadata = chunk_pb2.ChunkMetadata.FromString(bytes(reader.last()))
        found = [bytes(reader.record(info.offset)) for info in metadata.chunks]
    except FormatError as error:
        raise ValueError("damaged already") from error
    if not found:
        raise ValueError("no records")
    return found, metadata


def _pack(records: list[bytes], metadata: Any, last: bytes | None = None) -> bytes:
    """A file of the records with their places in the list; entries without a record keep what they say.

    Args:
        last: what there is in place of the list.
    """
    file = io.BytesIO()
    writer = RecordWriter(file)
    for number, record in enumerate(records):
        position = writer.add(record)
        if number < len(metadata.chunks):
            metadata.chunks[number].offset, metadata.chunks[number].size = position, len(record)
    writer.flush()
    writer.add(metadata.SerializeToString() if last is None else last)
    writer.flush()
    return file.getvalue()


def records(rng: random.Random, data: bytes) -> bytes:
    """A record is another."""
    found, metadata = _records(data)
    at = rng.randrange(len(found))
    match rng.randrange(5):
        case 0 | 1:
            found[at] = formats_proto.mutate(rng, found[at])
        case 2:
            found[at] = rng.choice((b"", found[rng.randrange(len(found))], b"\0" * 70000))
        case 3:
            del found[at]
            found = found or [b""]
        case _:
            found[at] = formats_bytes.mutate(rng, found[at])
    return _pack(found, metadata)


def listing(rng: random.Random, data: bytes) -> bytes:
    """The list says something else: other fields, ways into the message, sizes, kinds and versions."""
    found, metadata = _records(data)
    _pack(found, metadata)  # the places are right to begin with
    changed = messages.mutate_serialized(rng, metadata.SerializeToString(), chunk_pb2.ChunkMetadata)
    return _pack(found, metadata, changed)


def nested(rng: random.Random, data: bytes) -> bytes:
    """A part of the message is put together from other chunks, or from itself."""
    found, metadata = _records(data)
    if not metadata.message.chunked_fields:
        raise ValueError("nothing is put together")
    field = metadata.message.chunked_fields.add()
    field.CopyFrom(rng.choice(list(metadata.message.chunked_fields)))
    for _ in range(rng.choice((1, 1, 50))):
        inner = field.message.chunked_fields.add()
        inner.message.chunk_index = rng.choice((0, len(found) - 1, len(found), 2**31, 2**63))
        inner.field_tag.add().field = rng.choice((1, 2, 3, 99, 2**29))
        if rng.random() < 0.5:
            inner.field_tag.add().index = rng.choice((0, 1, 10**6, 2**40))
    return _pack(found, metadata)
