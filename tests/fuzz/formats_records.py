"""Mutation of TFRecord and event files: lengths and records with checksums that are right, plain and compressed."""

from __future__ import annotations

import random
import zlib

from tests.fuzz import formats_bytes, formats_proto
from toolkit.formats.records import crc


def _records(data: bytes) -> list[bytes]:
    found: list[bytes] = []
    at = 0
    while at + 12 <= len(data):
        size = int.from_bytes(data[at : at + 8], "little")
        found.append(data[at + 12 : at + 12 + size])
        at += 16 + size
    if not found:
        raise ValueError("no records")
    return found


def _record(body: bytes, size: int | None = None) -> bytes:
    length = (len(body) if size is None else size).to_bytes(8, "little")
    return length + crc.masked(length).to_bytes(4, "little") + body + crc.masked(body).to_bytes(4, "little")


def records(rng: random.Random, data: bytes) -> bytes:
    found = _records(data)
    for _ in range(rng.choice((1, 1, 2))):
        at = rng.randrange(len(found))
        match rng.randrange(5):
            case 0 | 1:
                found[at] = formats_proto.mutate(rng, found[at])
            case 2:
                found.insert(at, rng.choice((b"", found[at], b"\0" * 70000)))
            case 3:
                del found[at]
                found = found or [b""]
            case _:
                found[at] = formats_bytes.mutate(rng, found[at])
    return b"".join(map(_record, found))


def lengths(rng: random.Random, data: bytes) -> bytes:
    """A length that is not the record's, with a checksum of its own that is right."""
    found = _records(data)
    at = rng.randrange(len(found))
    packed = [_record(body) for body in found]
    packed[at] = _record(found[at], formats_bytes.border(rng, len(found[at])) & (2**64 - 1))
    return b"".join(packed)


def _pack(data: bytes, form: int) -> bytes:
    packer = zlib.compressobj(6, zlib.DEFLATED, form)
    return packer.compress(data) + packer.flush()


def bomb(rng: random.Random, data: bytes) -> bytes:
    """A record of many zeros, which compresses to a thousandth."""
    size = rng.choice((1 << 20, 1 << 24))
    length = (size * rng.choice((1, 1 << 10))).to_bytes(8, "little")
    return _pack(length + crc.masked(length).to_bytes(4, "little") + bytes(size), rng.choice((15, 31)))


def mutate(rng: random.Random, data: bytes) -> bytes:
    form = 31 if data[:2] == b"\x1f\x8b" else 15 if data[:1] == b"\x78" else 0
    if form:
        if rng.random() < 0.2:
            return formats_bytes.mutate(rng, data)
        return _pack(formats_bytes.choose(rng, zlib.decompress(data, form), (records, lengths)), form)
    return formats_bytes.choose(rng, data, (records, records, lengths, bomb))
