"""Mutation of tables, a checkpoint's index or a V1 checkpoint, with checksums that are right: what lies behind them."""

from __future__ import annotations

import random

from tests.fuzz import formats_bytes, formats_proto
from tests.fuzz.formats_proto import varint
from toolkit.formats.records import crc

_MAGIC = 0xDB4775248B80FB57
_FOOTER = 48

Block = list[tuple[bytes, bytes]]


def _varint(data: bytes, at: int) -> tuple[int, int]:
    number = shift = 0
    while True:
        number |= (data[at] & 0x7F) << shift
        at, shift = at + 1, shift + 7
        if data[at - 1] < 0x80:
            return number, at


def _block(data: bytes, offset: int, size: int) -> Block:
    block = data[offset : offset + size]
    end = len(block) - 4 - 4 * int.from_bytes(block[-4:], "little")
    entries: Block = []
    key, at = b"", 0
    left = 1 << 20
    while at < end:
        shared, at = _varint(block, at)
        unshared, at = _varint(block, at)
        length, at = _varint(block, at)
        key = key[:shared] + block[at : at + unshared]
        entries.append((key, block[at + unshared : at + unshared + length]))
        left -= len(key) + 100
        if left < 0:
            raise ValueError("a bomb already")
        at += unshared + length
    return entries


def read(data: bytes) -> Block:
    """All entries of a table.

    Raises:
        IndexError: it is none.
    """
    at = len(data) - _FOOTER
    numbers: list[int] = []
    for _ in range(4):
        value, at = _varint(data, at)
        numbers.append(value)
    entries: Block = []
    for _, handle in _block(data, numbers[2], numbers[3]):
        offset, at = _varint(handle, 0)
        size, _ = _varint(handle, at)
        entries += _block(data, offset, size)
        if len(entries) > 5000:
            raise ValueError("a bomb already")
    return entries


def pack(entries: Block, restarts: bytes = b"\0\0\0\0\1\0\0\0", shares: bool = True) -> bytes:
    out = bytearray()
    last = b""
    for key, value in entries:
        shared = 0
        while shares and shared < min(len(last), len(key)) and last[shared] == key[shared]:
            shared += 1
        out += varint(shared) + varint(len(key) - shared) + varint(len(value)) + key[shared:] + value
        last = key
    return bytes(out) + restarts


def seal(block: bytes, kind: int = 0) -> bytes:
    """A block with its trailer."""
    body = block + bytes((kind,))
    return body + crc.masked(body).to_bytes(4, "little")


def write(blocks: list[bytes], handles: list[tuple[int, int]] | None = None, kind: int = 0) -> bytes:
    """A table of packed blocks; `handles` in place of where they are."""
    out = b""
    places: list[tuple[int, int]] = []
    for block in blocks:
        places.append((len(out), len(block)))
        out += seal(block, kind)
    meta = (len(out), 8)
    out += seal(b"\0\0\0\0\1\0\0\0")
    pairs = [(b"\xff" * 8, varint(offset) + varint(size)) for offset, size in (handles or places)]
    index = pack(pairs, shares=False)
    place = (len(out), len(index))
    out += seal(index)
    footer = b"".join(varint(number) for number in (*meta, *place)).ljust(40, b"\0")
    return out + footer + _MAGIC.to_bytes(8, "little")


def entries(rng: random.Random, data: bytes) -> bytes:
    """Mutate the messages, keys and order of the entries."""
    found = read(data)
    for _ in range(rng.choice((1, 1, 2, 3))):
        at = rng.randrange(len(found))
        key, value = found[at]
        match rng.randrange(9):
            case 0 | 1 | 2 | 3:
                found[at] = (key, formats_proto.mutate(rng, value))
            case 4:
                found[at] = (formats_bytes.mutate(rng, key), value)
            case 5:
                del found[at]
            case 6:
                found.insert(at, found[at])
            case 7:
                other = rng.randrange(len(found))
                found[at], found[other] = (key, found[other][1]), (found[other][0], value)
            case _:
                rng.shuffle(found)
    return write([pack(found)])


def layout(rng: random.Random, data: bytes) -> bytes:
    """Handles, prefixes, restarts and compression that are not as they should be."""
    found = read(data)
    packed = pack(found)
    match rng.randrange(6):
        case 0:
            return write([packed], [(0, len(packed))] * rng.choice((2, 20000)))
        case 1:
            return write([packed], [(formats_bytes.border(rng), formats_bytes.border(rng, len(packed)))])
        case 2:
            long = b"k" * 4096
            body = varint(0) + varint(len(long)) + varint(0) + long
            body += (varint(len(long)) + varint(1) + varint(0) + b"x") * rng.choice((2, 50000))
            return write([body + b"\0\0\0\0\1\0\0\0"])
        case 3:
            return write([pack(found, formats_bytes.border(rng).to_bytes(16, "little")[:8])])
        case 4:
            return write([varint(formats_bytes.border(rng)) + formats_bytes.mutate(rng, packed)], kind=1)
        case _:
            return write([formats_bytes.mutate(rng, packed)], kind=rng.choice((0, 1, 2, 255)))


def mutate(rng: random.Random, data: bytes) -> bytes:
    return formats_bytes.choose(rng, data, (entries, entries, entries, layout), 0.15)
