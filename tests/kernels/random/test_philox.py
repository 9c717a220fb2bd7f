"""Philox: the answers that its authors give, and that ways to the same numbers agree."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from toolkit.kernels.random import distributions
from toolkit.kernels.random.philox import Philox, WordStream, doubles

ANSWERS = [  # of Random123's kat_vectors, philox4x32 10
    (0, 0, "6627e8d5 e169c58d bc57ac4c 9b00dbd8"),
    ((1 << 64) - 1, (1 << 128) - 1, "408f276d 41c83b0e a20bc7c6 6d5451fd"),
    (0x299F31D0A4093822, 0x0370734413198A2E85A308D3243F6A88, "d16cfe09 94fdcceb 5001e420 24126ea1"),
]


@pytest.mark.parametrize(("key", "counter", "answer"), ANSWERS)
def test_the_authors_answers(key: int, counter: int, answer: str) -> None:
    generator = Philox(key, counter)
    wanted = [int(word, 16) for word in answer.split()]
    assert generator.blocks(1).tolist() == [wanted]
    assert generator.blocks_at(np.zeros(1, np.uint64)).tolist() == [wanted]


def _near_a_carry(part: int, back: int) -> int:
    return ((1 << part) - back) % (1 << 128)


#: counters anywhere, and near the places where their parts carry
_COUNTERS = st.integers(0, (1 << 128) - 1) | st.builds(
    _near_a_carry, st.sampled_from([32, 64, 96, 128]), st.integers(1, 300)
)


@settings(deadline=None, max_examples=60)
@given(key=st.integers(0, (1 << 64) - 1), counter=_COUNTERS, count=st.integers(0, 400))
def test_few_blocks_are_the_first_of_many(key: int, counter: int, count: int) -> None:
    generator = Philox(key, counter)
    blocks = generator.blocks(count)
    assert blocks.dtype == np.uint32
    assert blocks.shape == (count, 4)
    assert np.array_equal(blocks, generator.blocks_at(np.arange(count, dtype=np.uint64)))


def test_doubles_are_those_of_the_stream() -> None:
    words = Philox(3, 4).words(64).reshape(-1, 2)
    stream = WordStream(Philox(3, 4))
    assert doubles(words).tolist() == [stream.double() for _ in range(32)]


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_large_fills_go_on_where_their_parts_begin(dtype: type[np.floating]) -> None:
    """Each result has its place in the sequence, so a later piece can be drawn alone."""
    kind = np.dtype(dtype)
    per_block = distributions.per_block(kind)
    generator, first = Philox(11, 12), 8190
    at = slice(first * per_block, (first + 5) * per_block)
    small = (5 * per_block,)
    large = ((first + 9000) * per_block,)
    normals = distributions.fill(generator, large, kind, distributions.normal)
    wanted = distributions.fill(generator.skip(first), small, kind, distributions.normal)
    assert np.array_equal(normals[at], wanted)
    truncated = distributions.truncated_normal(generator, large, kind)
    assert np.abs(truncated).max() < 2
    wanted = distributions.truncated_normal(generator.skip(first * per_block * 64), small, kind)
    assert np.array_equal(truncated[at], wanted)
