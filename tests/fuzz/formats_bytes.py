"""Mutations that know nothing of a format: bits, bytes, stretches, and the numbers at which checks go wrong."""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence

Mutate = Callable[[random.Random, bytes], bytes]

#: where signs, widths and counters turn over
BORDERS = (
    0, 1, 2, 3, 7, 8, 15, 16, 63, 64, 127, 128, 254, 255, 256, 32767, 32768, 65535, 65536, 2**24, 2**31 - 1, 2**31,
    2**32 - 1, 2**32, 2**40, 2**53, 2**62, 2**63 - 1, 2**63, 2**64 - 2, 2**64 - 1,
)  # fmt: skip


def border(rng: random.Random, near: int = 0) -> int:
    """A number from the borders, or a neighbour of one, or of `near`."""
    choice = rng.random()
    if choice < 0.2:
        return max(0, near + rng.choice((-2, -1, 1, 2, 8)))
    return max(0, rng.choice(BORDERS) + (rng.choice((-1, 0, 1)) if choice < 0.5 else 0))


def flip(rng: random.Random, data: bytes) -> bytes:
    """Change one to eight bits."""
    out = bytearray(data)
    for _ in range(rng.randint(1, 8) if out else 0):
        out[rng.randrange(len(out))] ^= 1 << rng.randrange(8)
    return bytes(out)


def truncate(rng: random.Random, data: bytes) -> bytes:
    return data[: rng.randrange(len(data) + 1)]


def extend(rng: random.Random, data: bytes) -> bytes:
    more = rng.choice((b"\0" * 16, b"\xff" * 16, rng.randbytes(rng.randint(1, 64)), data[: rng.randint(0, 256)]))
    return data + more if rng.random() < 0.7 else more + data


def splice(rng: random.Random, data: bytes) -> bytes:
    """Copy, move or remove a stretch."""
    if len(data) < 2:
        return data
    start = rng.randrange(len(data))
    end = min(len(data), start + rng.randint(1, max(2, len(data) // 4)))
    at = rng.randrange(len(data))
    part = data[start:end]
    if rng.random() < 0.3:
        return data[:start] + data[end:]
    if rng.random() < 0.5:
        return data[:at] + part * rng.choice((1, 1, 1, 2, 50)) + data[at:]
    return data[:at] + part + data[at + len(part) :]


def number(rng: random.Random, data: bytes) -> bytes:
    """Put a border into one, two, four or eight bytes, little- or big-endian."""
    width = rng.choice((1, 2, 4, 8))
    if len(data) < width:
        return data
    at = rng.randrange(min(len(data), 512) if rng.random() < 0.7 else len(data))
    at = min(at, len(data) - width)
    value = border(rng) & ((1 << 8 * width) - 1)
    return data[:at] + value.to_bytes(width, rng.choice(("little", "big"))) + data[at + width :]


def fill(rng: random.Random, data: bytes) -> bytes:
    if not data:
        return data
    start = rng.randrange(len(data))
    end = min(len(data), start + rng.randint(1, 32))
    return data[:start] + rng.choice((b"\0", b"\xff", b"\x7f", b"\x80", b"9")) * (end - start) + data[end:]


_ANY: tuple[Mutate, ...] = (flip, truncate, extend, splice, number, number, fill)


def mutate(rng: random.Random, data: bytes) -> bytes:
    """Any one of the above."""
    return rng.choice(_ANY)(rng, data)


def choose(rng: random.Random, data: bytes, own: Sequence[Mutate], share: float = 0.25) -> bytes:
    """One to three of a format's own mutations; with a probability of `share` one that knows nothing of it.

    A mutation that finds the data too damaged already gives up; the data stays what it was.
    """
    for _ in range(rng.choice((1, 1, 1, 2, 3))):
        try:
            data = rng.choice(own)(rng, data) if rng.random() >= share else mutate(rng, data)
        except Exception:  # whatever a mutation meets in data that others have damaged
            continue
    return data
