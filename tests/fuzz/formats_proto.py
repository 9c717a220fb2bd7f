"""Mutation of protobuf messages in the wire format, whatever the message: fields swapped, doubled, nested, borders."""

from __future__ import annotations

import random
import zlib
from dataclasses import dataclass

from tests.fuzz import formats_bytes

_VARINT, _FIXED64, _LENGTH, _FIXED32 = 0, 1, 2, 5


@dataclass
class Field:
    """One field: its number, its wire type, and a number, bytes, or the fields of a message."""

    number: int
    kind: int
    value: int | bytes | list[Field]


def varint(number: int) -> bytes:
    number &= (1 << 64) - 1
    out = bytearray()
    while number > 0x7F:
        out.append(number & 0x7F | 0x80)
        number >>= 7
    out.append(number)
    return bytes(out)


def _read(data: bytes, at: int) -> tuple[int, int]:
    number = shift = 0
    while True:
        byte = data[at]
        at += 1
        number |= (byte & 0x7F) << shift
        shift += 7
        if byte < 0x80:
            return number, at
        if shift > 63:
            raise ValueError("a long varint")


def parse(data: bytes, depth: int = 0) -> list[Field]:
    """The fields; what has the form of a message is taken for one.

    Raises:
        ValueError, IndexError: the bytes are no message.
    """
    fields: list[Field] = []
    at = 0
    while at < len(data):
        tag, at = _read(data, at)
        kind = tag & 7
        if tag >> 3 == 0 or kind not in (_VARINT, _FIXED64, _LENGTH, _FIXED32):
            raise ValueError("no message")
        value: int | bytes | list[Field]
        if kind == _VARINT:
            value, at = _read(data, at)
        else:
            size = {_FIXED64: 8, _FIXED32: 4}.get(kind, 0)
            if kind == _LENGTH:
                size, at = _read(data, at)
            if at + size > len(data):
                raise ValueError("no message")
            body = data[at : at + size]
            at += size
            value = body
            if kind == _LENGTH and size > 1 and depth < 12:
                try:
                    value = parse(body, depth + 1)
                except (ValueError, IndexError):
                    value = body
        fields.append(Field(tag >> 3, kind, value))
    return fields


def render(fields: list[Field]) -> bytes:
    out = bytearray()
    for field in fields:
        out += varint(field.number << 3 | field.kind)
        if isinstance(field.value, int):
            out += varint(field.value)
            continue
        body = render(field.value) if isinstance(field.value, list) else field.value
        if field.kind == _LENGTH:
            out += varint(len(body))
        out += body
    return bytes(out)


def _lists(fields: list[Field]) -> list[list[Field]]:
    found = [fields]
    for field in fields:
        if isinstance(field.value, list):
            found += _lists(field.value)
    return found


def _change(rng: random.Random, field: Field) -> None:
    if isinstance(field.value, int):
        field.value = formats_bytes.border(rng, field.value)
    elif isinstance(field.value, bytes):
        field.value = formats_bytes.mutate(rng, field.value)
        if field.kind == _LENGTH and rng.random() < 0.1:
            field.value = rng.choice((b"", b"\xff\xfe", b"..", b"/", b"a" * 300, b"\0", "\u202e\x1b[1m".encode()))
        if field.kind in (_FIXED32, _FIXED64):
            field.value = field.value.ljust(8, b"\xff")[: 8 if field.kind == _FIXED64 else 4]
    else:
        field.value = rng.choice((b"", render(field.value)[:-1], field.value * 2))


def fields(rng: random.Random, data: bytes) -> bytes:
    """Change, double, remove, swap, renumber or nest fields anywhere in the message."""
    root = parse(data)
    for _ in range(rng.choice((1, 1, 2, 4))):
        where = rng.choice([part for part in _lists(root) if part])
        at = rng.randrange(len(where))
        match rng.randrange(9):
            case 0 | 1 | 2:
                _change(rng, where[at])
            case 3:
                del where[at]
            case 4:
                where.insert(rng.randrange(len(where) + 1), where[at])
            case 5:
                other = rng.randrange(len(where))
                where[at], where[other] = where[other], where[at]
            case 6:
                where[at].number = rng.choice((where[at].number + 1, max(1, where[at].number - 1), rng.randint(1, 40)))
            case 7:
                elsewhere = rng.choice(_lists(root))
                elsewhere.append(Field(where[at].number, where[at].kind, where[at].value))
                if elsewhere is where[at].value:  # never a message in itself
                    elsewhere.pop()
            case _:
                body = where[at].value
                inner = render(body) if isinstance(body, list) else body
                if isinstance(inner, bytes) and where[at].kind == _LENGTH:
                    for _ in range(rng.choice((3, 120, 3000))):
                        inner = varint(where[at].number << 3 | _LENGTH) + varint(len(inner)) + inner
                    where[at].value = inner
    return render(root)


def sizes(rng: random.Random, data: bytes) -> bytes:
    """Change numbers only: shapes, types, offsets, versions, enums."""
    root = parse(data)
    numbers = [field for part in _lists(root) for field in part if isinstance(field.value, int)]
    for field in rng.sample(numbers, min(len(numbers), rng.choice((1, 1, 2, 5)))):
        assert isinstance(field.value, int)
        field.value = formats_bytes.border(rng, field.value)
    return render(root)


def names(rng: random.Random, data: bytes) -> bytes:
    """Put one text of the message in the place of another: names, inputs, types, ops."""
    root = parse(data)
    texts = [f for part in _lists(root) for f in part if isinstance(f.value, bytes) and f.kind == _LENGTH]
    for field in rng.sample(texts, min(len(texts), rng.choice((1, 1, 2, 5)))):
        other = rng.choice(texts).value
        assert isinstance(other, bytes)
        field.value = rng.choice(
            (other, b"^" + other, other + b":0", other + b":99999999999", b"" if len(other) < 3 else other[1:])
        )
    return render(root)


def mutate(rng: random.Random, data: bytes) -> bytes:
    """A message, perhaps compressed with gzip, mutated."""
    if data[:2] == b"\x1f\x8b":
        inner = formats_bytes.choose(rng, zlib.decompress(data, 31), (fields, sizes, names), 0.1)
        packer = zlib.compressobj(6, zlib.DEFLATED, 31)
        return packer.compress(inner) + packer.flush()
    return formats_bytes.choose(rng, data, (fields, fields, sizes, sizes, names), 0.15)
