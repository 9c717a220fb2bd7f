"""The messages that models are: parsed from a detected file, and serialized."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import Any

from google.protobuf.message import DecodeError, EncodeError, Message

from toolkit.errors import FormatError
from toolkit.formats import io
from toolkit.formats.inspection.detect import MESSAGES, Detected, Encoding, ModelKind, explain


def read_message(found: Detected, shown: str) -> tuple[ModelKind, Any]:
    """Parse the message of a detected file.

    Args:
        shown: the name of the file for errors.

    Raises:
        FormatError: it is no model, damaged, truncated, or over 2 GiB.
    """
    kind = found.kind.model
    if kind is None:
        raise explain(found, shown)
    if found.encoding is Encoding.SPLIT:
        from toolkit.formats.models import chunks

        source = Path(found.path) if found.data is None else found.data
        return kind, chunks.read_split(source, kind, MESSAGES, shown)
    data = found.data if found.data is not None else io.read_bytes(found.path, is_message=True)
    io.check_size(len(data), shown)
    message = MESSAGES[kind]()
    if found.encoding is Encoding.TEXT:
        from toolkit.formats.models import text

        return kind, text.parse(data, message, shown)
    if found.encoding is Encoding.JSON:
        from toolkit.formats.models import json

        return kind, json.parse(data, message, shown)
    try:
        message.ParseFromString(data)
    except DecodeError:
        raise _damage(data, message, shown) from None
    return kind, message


def _damage(data: bytes, message: Message, shown: str) -> FormatError:
    """Say where a message that does not parse goes wrong."""
    from toolkit.formats.models import protoscan

    name = message.DESCRIPTOR.name
    seen: Counter[int] = Counter()
    try:
        for field in protoscan.fields(data, 0, len(data)):
            try:
                type(message)().MergeFromString(data[field.start : field.end])
            except DecodeError:
                part = message.DESCRIPTOR.fields_by_number.get(field.number)
                what = f"'{part.name}' number {seen[field.number]}" if part else f"field {field.number}"
                return FormatError(
                    f"the {name} is damaged: {what}, at byte {field.start:,}, does not parse", file=shown
                )
            seen[field.number] += 1
    except protoscan.WireError as error:
        return FormatError(
            f"the {name} is truncated or damaged: {error} at byte {error.position:,} of {len(data):,}", file=shown
        )
    return FormatError(f"the {name} is damaged", file=shown)


def serialize(message: Message, encoding: Encoding, shown: str = "") -> bytes:
    """A message as bytes: always the same bytes for the same message, maps in key order.

    Raises:
        FormatError: it is over 2 GiB.
        GraphmillError: it has no JSON form.
    """
    if encoding is Encoding.TEXT:
        from toolkit.formats.models import text

        return text.render(message).encode()
    if encoding is Encoding.JSON:
        from toolkit.formats.models import json

        return json.render(message).encode()
    try:
        data = message.SerializeToString(deterministic=True)
    except (EncodeError, ValueError, MemoryError):
        raise FormatError(
            "the graph is over the protobuf limit of 2 GiB; a name that ends in .cpb, or a SavedModel's folder, splits "
            "it, and a checkpoint can hold the weights",
            file=shown or None,
        ) from None
    io.check_size(len(data), shown)
    return data
