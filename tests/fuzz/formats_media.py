"""Mutation of PNG, JPEG, GIF, BMP and WAV files: geometry that the data do not have, checksums that are right."""

from __future__ import annotations

import random
import struct
import zlib

from tests.fuzz import formats_bytes

_PNG = b"\x89PNG\r\n\x1a\n"


def png(rng: random.Random, data: bytes) -> bytes:
    if not data.startswith(_PNG):
        raise ValueError("no PNG")
    found: list[tuple[bytes, bytes]] = []
    at = 8
    while at + 12 <= len(data):
        (size,) = struct.unpack_from(">I", data, at)
        found.append((data[at + 4 : at + 8], data[at + 8 : at + 8 + size]))
        at += 12 + size
    at = rng.randrange(len(found))
    match rng.randrange(6):
        case 0 | 1:
            width, height, *rest = struct.unpack(">IIBBBBB", found[0][1])
            big = formats_bytes.border(rng, width) & 0xFFFFFFFF
            width, height = rng.choice(((big, height), (width, big), (big, big)))
            found[0] = (b"IHDR", struct.pack(">IIBBBBB", width, height, *rest))
        case 2:
            header = bytearray(found[0][1])
            header[rng.randrange(8, 13)] = rng.choice((0, 1, 2, 3, 4, 6, 8, 16, 255))
            found[0] = (b"IHDR", bytes(header))
        case 3:
            found.insert(
                at,
                (rng.choice((b"IDAT", b"PLTE", b"tRNS", b"IHDR", b"IEND", b"zzzz")), rng.randbytes(rng.randint(0, 20))),
            )
        case 4:
            found[at] = (found[at][0], formats_bytes.mutate(rng, found[at][1]))
        case _:
            zeros = zlib.compress(bytes(rng.choice((1 << 10, 1 << 24))))
            found = [(kind, zeros if kind == b"IDAT" else body) for kind, body in found]
    out = _PNG
    for kind, body in found:
        out += struct.pack(">I", len(body)) + kind + body + struct.pack(">I", zlib.crc32(kind + body))
    return out


def jpeg(rng: random.Random, data: bytes) -> bytes:
    """The sizes in the frame header, and lengths of segments."""
    at = 2
    places: list[int] = []
    frame = 0
    while at + 4 < len(data) and data[at] == 0xFF and data[at + 1] != 0xDA:
        places.append(at + 2)
        if 0xC0 <= data[at + 1] <= 0xC2:
            frame = at + 5
        at += 2 + int.from_bytes(data[at + 2 : at + 4], "big")
    if frame and rng.random() < 0.6:
        at = frame + rng.choice((0, 2))
    else:
        at = rng.choice(places)
    return data[:at] + (formats_bytes.border(rng) & 0xFFFF).to_bytes(2, "big") + data[at + 2 :]


def gif(rng: random.Random, data: bytes) -> bytes:
    """The canvas, or the place and size of a frame, or a frame many times."""
    start = data.find(b"\x2c", 13)
    big = formats_bytes.border(rng) & 0xFFFF
    match rng.randrange(3):
        case 0:
            at = rng.choice((6, 8))
        case 1:
            at = start + rng.choice((1, 3, 5, 7))
        case _:
            frame = data[start:-1]
            return data[:6] + struct.pack("<HH", big, big) + data[10:start] + frame * rng.choice((2, 200)) + b";"
    return data[:at] + big.to_bytes(2, "little") + data[at + 2 :]


def header(rng: random.Random, data: bytes) -> bytes:
    """A number in the first 64 bytes: BMP and WAV are all header."""
    width = rng.choice((2, 4))
    at = rng.randrange(2, 62)
    return (
        data[:at] + (formats_bytes.border(rng) & ((1 << 8 * width) - 1)).to_bytes(width, "little") + data[at + width :]
    )


def mutate(rng: random.Random, data: bytes) -> bytes:
    """An image or audio file of any kind."""
    own = header
    if data.startswith(_PNG):
        own = png
    elif data[:2] == b"\xff\xd8":
        own = jpeg
    elif data[:4] == b"GIF8":
        own = gif
    return formats_bytes.choose(rng, data, (own,), 0.3)
