"""The messages that models are: parsed from a detected file, and serialized."""

from __future__ import annotations

from typing import Any

from google.protobuf.message import DecodeError, EncodeError, Message

from toolkit.errors import FormatError
from toolkit.formats import io
from toolkit.formats.detect import MESSAGES, Detected, Encoding, Kind, explain


def read_message(found: Detected, shown: str) -> tuple[Kind, Any]:
    """Parse the message of a detected file.

    Args:
        shown: the name of the file for errors.

    Raises:
        FormatError: it is no model, damaged, truncated, or over 2 GiB.
    """
    kind = found.kind.model
    if kind is None:
        raise explain(found, shown)
    data = found.data if found.data is not None else io.read_bytes(found.path, is_message=True)
    io.check_size(len(data), shown)
    message = MESSAGES[kind]()
    if found.encoding is Encoding.TEXT:
        from toolkit.formats import text

        return kind, text.parse(data, message, shown)
    if found.encoding is Encoding.JSON:
        from toolkit.formats import json

        return kind, json.parse(data, message, shown)
    try:
        message.ParseFromString(data)
    except DecodeError:
        raise _damage(data, message, shown) from None
    return kind, message


def _damage(data: bytes, message: Message, shown: str) -> FormatError:
    """Say where a message that does not parse goes wrong."""
    from toolkit.formats import protoscan

    name = message.DESCRIPTOR.name
    count = 0
    try:
        for _ in protoscan.fields(data, 0, len(data)):
            count += 1
    except protoscan.WireError as error:
        return FormatError(
            f"the {name} is truncated or damaged: {error} at byte {error.position:,} of {len(data):,}", file=shown
        )
    return FormatError(f"the {name} is damaged: one of its {count} parts does not parse", file=shown)


def serialize(message: Message, encoding: Encoding, shown: str = "") -> bytes:
    """A message as bytes: always the same bytes for the same message, maps in key order.

    Raises:
        FormatError: it is over 2 GiB.
        GraphmillError: it has no JSON form.
    """
    if encoding is Encoding.TEXT:
        from toolkit.formats import text

        return text.render(message).encode()
    if encoding is Encoding.JSON:
        from toolkit.formats import json

        return json.render(message).encode()
    try:
        data = message.SerializeToString(deterministic=True)
    except (EncodeError, ValueError, MemoryError):
        raise FormatError(
            "the graph is over the protobuf limit of 2 GiB; keep the weights in a checkpoint instead of freezing "
            "them into the graph",
            file=shown or None,
        ) from None
    io.check_size(len(data), shown)
    return data
