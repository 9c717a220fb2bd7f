"""Offsets in the arena: the lowest that is free, in order of time, however many pieces there are."""

from __future__ import annotations

import random

import pytest

from toolkit.compiler.backends.cpu.emission.arena import Storage, place
from toolkit.kernels.cpu.memory import guard

_ALIGNED = 64


def _size(piece: Storage) -> int:
    return max(_ALIGNED, -(-piece.size // _ALIGNED) * _ALIGNED)


def _lowest(piece: Storage, alive: list[tuple[int, int]]) -> int:
    """By trying the start and every end of a piece that is alive."""
    ends = sorted({0, *(end for _, end in alive)})
    size = _size(piece)
    return next(at for at in ends if all(at + size <= begin or end <= at for begin, end in alive))


@pytest.mark.parametrize("seed", range(40))
def test_each_lies_at_the_lowest_offset_that_is_free(seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(guard, "is_on", lambda: False)  # under it nothing shares a place
    chance = random.Random(seed)
    count, steps = chance.randrange(1, 80), chance.choice((5, 20, 100))
    pieces: list[Storage] = []
    for _ in range(count):
        first = chance.randrange(-1, steps)
        last = chance.choice((-1, first, chance.randrange(first, steps + 1), steps))
        pieces.append(Storage(chance.choice((0, 1, 64, 100, chance.randrange(5000))), first, last))
    total = place(pieces)
    placed: list[Storage] = []
    for piece in sorted(pieces, key=lambda each: (each.first, -each.size)):
        # what nobody reads has its place until the next comes
        alive = [(other.offset, other.offset + _size(other)) for other in placed if other.last >= piece.first]
        assert piece.offset == _lowest(piece, alive)
        placed.append(piece)
    assert total == max(piece.offset + _size(piece) for piece in pieces)
