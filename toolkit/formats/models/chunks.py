"""Split messages (.cpb) read: what is in the records of a file, and how they make one message.

The last record (ChunkMetadata) says how the others do: the first is most of the message, others are merged into it, or
into a field that is found by a way of field numbers, indexes and keys. `models.split` writes such files.
"""

from __future__ import annotations

import functools
import os
from collections.abc import Generator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, BinaryIO, TypeVar

from google.protobuf.message import DecodeError, Message

from schemas import chunk_pb2
from toolkit.errors import FormatError
from toolkit.formats import io
from toolkit.formats.models import protoscan
from toolkit.formats.records.riegeli import RecordReader

#: the version of the rules by which chunks are merged here
_JOIN_VERSION = 0

K = TypeVar("K")


def read_split(source: Path | bytes, kind: K, messages: Mapping[K, type[Any]], shown: str) -> Message:
    """The message of a split file of a kind that is known.

    Raises:
        FormatError: it is damaged, or says what cannot be.
    """
    with _records(source, shown) as reader:
        metadata = _metadata(reader, shown)
        message = messages[kind]()
        _Merge(reader, metadata, shown).fill(message, metadata.message)
        return message


def kind_of(source: Path | bytes, messages: Mapping[K, type[Any]], shown: str) -> K:
    """Which of some messages a split file is; only its first chunk is read.

    Raises:
        FormatError: none of them, or it is damaged.
    """
    with _records(source, shown) as reader:
        return _kind(reader, _metadata(reader, shown), messages, shown)


@contextmanager
def _records(source: Path | bytes, shown: str) -> Generator[RecordReader]:
    """The records of a file or of its content, for a time."""
    if isinstance(source, bytes):
        yield RecordReader(lambda offset, size: source[offset : offset + size], len(source), shown)
        return
    with io.open_input(str(source)) as file:
        yield RecordReader(functools.partial(_read_at, file), os.fstat(file.fileno()).st_size, shown)


def _read_at(file: BinaryIO, offset: int, size: int) -> bytes:
    file.seek(offset)
    return file.read(size)


def _metadata(reader: RecordReader, shown: str) -> chunk_pb2.ChunkMetadata:
    try:
        metadata = chunk_pb2.ChunkMetadata.FromString(bytes(reader.last()))
    except DecodeError:
        metadata = chunk_pb2.ChunkMetadata()
    if not metadata.HasField("message"):
        raise FormatError(
            "a file of records in Riegeli's format, and no split model: its last record says so", file=shown
        )
    if metadata.version.join_version > _JOIN_VERSION or _JOIN_VERSION in metadata.version.bad_consumers:
        raise FormatError(
            f"it is split by rules of version {metadata.version.join_version}; version {_JOIN_VERSION} is known",
            file=shown,
        )
    return metadata


def _kind(reader: RecordReader, metadata: chunk_pb2.ChunkMetadata, messages: Mapping[K, type[Any]], shown: str) -> K:
    """The kind of message that the first chunk begins, and that has the fields which chunks go to."""
    first = b""
    if metadata.message.HasField("chunk_index"):
        info = _info(metadata, metadata.message.chunk_index, shown)
        first = bytes(reader.record(info.offset)[: 1 << 16])
        size = info.size
    else:
        size = 0
    best: tuple[int, K] | None = None
    for kind, message in messages.items():
        descriptor = message.DESCRIPTOR
        fit = protoscan.fit(first, descriptor, size)
        if fit.broken or not all(_has_way(descriptor, field.field_tag) for field in metadata.message.chunked_fields):
            continue
        score = fit.known - 4 * fit.unknown
        if best is None or score > best[0]:
            best = score, kind
    if best is None:
        raise FormatError("a split message that is no GraphDef, MetaGraphDef or SavedModel", file=shown)
    return best[1]


def _has_way(descriptor: Any, way: Sequence[chunk_pb2.FieldIndex]) -> bool:
    for step in way:
        if step.WhichOneof("kind") != "field":
            continue
        field = None if descriptor is None else descriptor.fields_by_number.get(step.field)
        if field is None:
            return False
        descriptor = field.message_type
        if descriptor is not None and descriptor.GetOptions().map_entry:
            descriptor = descriptor.fields_by_name["value"].message_type
    return True


def _info(metadata: chunk_pb2.ChunkMetadata, index: int, shown: str) -> chunk_pb2.ChunkInfo:
    if index >= len(metadata.chunks):
        raise FormatError(f"it wants chunk {index:,}, of {len(metadata.chunks):,}", file=shown)
    return metadata.chunks[index]


class _Merge:
    def __init__(self, reader: RecordReader, metadata: chunk_pb2.ChunkMetadata, shown: str):
        self._reader = reader
        self._metadata = metadata
        self._shown = shown
        self._used: set[int] = set()

    def fill(self, message: Any, plan: chunk_pb2.ChunkedMessage) -> None:
        """Merge chunks into a message, shorter ways first, as TensorFlow's merger does."""
        if plan.HasField("chunk_index"):
            self._add(message, plan.chunk_index)
        for field in sorted(plan.chunked_fields, key=_order):
            self._place(message, field)

    def _chunk(self, index: int) -> memoryview:
        if index in self._used:  # no writer does that; a small file could become a large message
            raise FormatError(f"it has a place for chunk {index:,} twice", file=self._shown)
        self._used.add(index)
        info = _info(self._metadata, index, self._shown)
        record = self._reader.record(info.offset)
        if len(record) != info.size:
            raise FormatError(f"chunk {index:,} is {len(record):,} bytes, and not {info.size:,}", file=self._shown)
        return record

    def _add(self, message: Any, index: int) -> None:
        try:
            message.MergeFromString(self._chunk(index))
        except DecodeError:
            what = f"chunk {index:,} is no {message.DESCRIPTOR.name}"
            raise FormatError(f"the split file is damaged: {what}", file=self._shown) from None

    def _place(self, message: Any, field: chunk_pb2.ChunkedField) -> None:
        way = list(field.field_tag)
        while way:
            step = way.pop(0)
            known = message.DESCRIPTOR.fields_by_number.get(step.field) if step.WhichOneof("kind") == "field" else None
            if known is None:
                raise self._lost(message)
            if way and way[0].WhichOneof("kind") != "field":
                message = self._entry(message, known, way.pop(0))
            elif known.message_type is not None and not known.is_repeated:
                message = getattr(message, known.name)
                message.SetInParent()
            elif way or known.is_repeated or known.type not in (known.TYPE_BYTES, known.TYPE_STRING):
                raise self._lost(message)
            else:
                value = bytes(self._chunk(field.message.chunk_index))
                try:
                    setattr(message, known.name, value if known.type == known.TYPE_BYTES else value.decode())
                except ValueError:
                    raise self._lost(message) from None
                return
        self.fill(message, field.message)

    def _entry(self, message: Any, field: Any, step: chunk_pb2.FieldIndex) -> Any:
        """An element of a repeated field or of a map, made when it is the next one."""
        values = getattr(message, field.name)
        is_map = field.message_type is not None and field.message_type.GetOptions().map_entry
        if step.WhichOneof("kind") == "map_key" and is_map:
            key = step.map_key.WhichOneof("type")
            item = field.message_type.fields_by_name["value"] if field.message_type is not None else None
            if key is None or item is None or item.message_type is None:
                raise self._lost(message)
            try:
                return values[getattr(step.map_key, key)]
            except TypeError:
                raise self._lost(message) from None
        if field.message_type is None or is_map or not field.is_repeated or step.index > len(values):
            raise self._lost(message)
        return values.add() if step.index == len(values) else values[step.index]

    def _lost(self, message: Any) -> FormatError:
        what = f"a chunk goes to a field that a {message.DESCRIPTOR.name} does not have there"
        return FormatError(f"the split file is damaged: {what}", file=self._shown)


def _order(field: chunk_pb2.ChunkedField) -> tuple[Any, ...]:
    """Where TensorFlow's merger has its turn: a field before what is in it, indexes as they are, then chunks."""
    steps = [(step.field, step.index) for step in field.field_tag]
    return (steps, field.message.chunk_index)
