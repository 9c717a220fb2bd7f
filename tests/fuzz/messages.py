"""Mutation of protobuf messages by their descriptors: whatever the format has, a mutation finds."""

from __future__ import annotations

import random
from typing import Any

from google.protobuf.descriptor import FieldDescriptor as Field
from google.protobuf.message import DecodeError, Message

from tests.fuzz import hostile

_INTS = {
    Field.TYPE_INT32: 31, Field.TYPE_SINT32: 31, Field.TYPE_SFIXED32: 31, Field.TYPE_UINT32: 32, Field.TYPE_FIXED32: 32,
    Field.TYPE_INT64: 63, Field.TYPE_SINT64: 63, Field.TYPE_SFIXED64: 63, Field.TYPE_UINT64: 64, Field.TYPE_FIXED64: 64,
}  # fmt: skip
#: how often something is repeated where repeating is the attack
_MANY = (2, 3, 50, 1500)
#: how deep new messages are nested: some hold their own kind, several at a time
_DEEPEST = 12
#: how many of a kind are in one of them, by how deep it is: 40 at each depth were files of 100 MB
_WIDEST = (40, 40, 2, 2)


def mutate(rng: random.Random, message: Message, times: int | None = None) -> None:
    """Change a message in place, in one to a few places."""
    for _ in range(times or rng.choice((1, 1, 1, 2, 3, 6))):
        _descend(rng, message)


def mutate_serialized(rng: random.Random, data: bytes, cls: type[Message]) -> bytes:
    """Change a serialized message: mostly its fields, at times its bytes."""
    if rng.random() < 0.15:
        return hostile.mutate_bytes(rng, data)
    message = cls()
    try:
        message.ParseFromString(data)
    except DecodeError:  # of another type
        return hostile.mutate_bytes(rng, data)
    mutate(rng, message)
    out = message.SerializeToString()
    return hostile.mutate_bytes(rng, out) if rng.random() < 0.05 else out


def is_map(field: Any) -> bool:
    return field.message_type is not None and field.message_type.GetOptions().map_entry


def is_repeated(field: Any) -> bool:
    return bool(field.is_repeated)


def _descend(rng: random.Random, message: Any) -> None:
    present = message.ListFields()
    if not present or rng.random() < 0.06:
        _set_any(rng, message)
        return
    field, value = rng.choice(present)
    if is_map(field):
        _map(rng, message, field, value)
    elif is_repeated(field):
        _repeated(rng, field, value)
    elif field.message_type is not None:
        if rng.random() < 0.08:
            message.ClearField(field.name)
        else:
            _descend(rng, value)
    else:
        _assign(message, field, scalar(rng, field, value))


def _map(rng: random.Random, message: Any, field: Any, entries: Any) -> None:
    keys = sorted(entries)
    key = rng.choice(keys)
    is_message = field.message_type.fields_by_name["value"].message_type is not None
    what = rng.random()
    if what < 0.1:
        del entries[key]
    elif what < 0.2 and is_message:  # under another name, that of another entry at times
        other = rng.choice((hostile.name(rng), rng.choice(keys)))
        if isinstance(key, str) and other != key:
            entries[other].CopyFrom(entries[key])
            if rng.random() < 0.5:
                del entries[key]
    elif is_message:
        _descend(rng, entries[key])
    else:
        entries[key] = scalar(rng, field.message_type.fields_by_name["value"], entries[key])


def _repeated(rng: random.Random, field: Any, values: Any) -> None:
    at = rng.randrange(len(values))
    what = rng.random()
    if what < 0.08:
        del values[at]
    elif what < 0.14:
        copies = rng.choice(_MANY) if len(values) < 50 else 2
        values.extend([values[at]] * copies)
    elif what < 0.18:
        kept = list(values)
        rng.shuffle(kept)
        del values[:]
        values.extend(kept)
    elif what < 0.2:
        del values[rng.randrange(len(values)) :]
    elif field.message_type is not None:
        if what < 0.26:
            values[at].CopyFrom(rng.choice(values))
        else:
            _descend(rng, values[at])
    else:
        values[at] = scalar(rng, field, rng.choice(values) if rng.random() < 0.2 else values[at])


def _set_any(rng: random.Random, message: Any, depth: int = 0) -> None:
    """Set a field, one that is not there at times; members of a oneof replace each other."""
    fields = message.DESCRIPTOR.fields
    if not fields or depth > _DEEPEST:
        return
    field = rng.choice(fields)
    if is_map(field):
        inner = field.message_type.fields_by_name["value"]
        entries = getattr(message, field.name)
        if inner.message_type is None and field.message_type.fields_by_name["key"].type == Field.TYPE_STRING:
            entries[hostile.name(rng)] = scalar(rng, inner, None)
    elif is_repeated(field):
        values = getattr(message, field.name)
        most = _WIDEST[depth] if depth < len(_WIDEST) else 1
        for _ in range(min(most, rng.choice((1, 2, 40)))):
            if field.message_type is None:
                values.append(scalar(rng, field, None))
            else:
                _set_any(rng, values.add(), depth + 1)
    elif field.message_type is not None:
        inner = getattr(message, field.name)
        inner.SetInParent()
        if rng.random() < 0.8:
            _set_any(rng, inner, depth + 1)
    else:
        _assign(message, field, scalar(rng, field, None))


def _assign(message: Any, field: Any, value: Any) -> None:
    try:
        setattr(message, field.name, value)
    except ValueError:  # a closed enum, text that is not UTF-8
        return


def scalar(rng: random.Random, field: Any, value: Any) -> Any:
    """Another value of a field."""
    if field.type in _INTS:
        bits = _INTS[field.type]
        chosen = hostile.integer(rng)
        if isinstance(value, int) and rng.random() < 0.3:
            chosen = value + rng.choice((-1, 1, -value - 1, value))
        return chosen % 2**bits if bits % 2 == 0 else (chosen + 2**bits) % 2 ** (bits + 1) - 2**bits
    if field.type in (Field.TYPE_FLOAT, Field.TYPE_DOUBLE):
        return hostile.number(rng)
    if field.type == Field.TYPE_BOOL:
        return not value
    if field.type == Field.TYPE_ENUM:
        known = [entry.number for entry in field.enum_type.values]
        return rng.choice(known) if rng.random() < 0.8 else rng.choice(hostile.TYPES)
    if field.type == Field.TYPE_STRING:
        text = hostile.name(rng)
        if value and rng.random() < 0.3:
            text = rng.choice((value + text, text + value, value[: len(value) // 2], value + ":1", "^" + value))
        return text.encode("utf-8", "replace").decode()
    data = value or b""
    if rng.random() < 0.3:
        return hostile.name(rng).encode("utf-8", "replace")
    return rng.choice((hostile.mutate_bytes(rng, data), b"", data * 2, data[: len(data) // 2], b"\xff" * 9))
