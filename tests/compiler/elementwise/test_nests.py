"""Chains of elementwise operations as machine code: random graphs against TensorFlow, memory that is used again."""

# functions over tensors, which have no types
# pyright: reportUnknownVariableType=false, reportUnknownMemberType=false, reportUnknownArgumentType=false
# pyright: reportUnknownLambdaType=false

from __future__ import annotations

from types import ModuleType

import numpy as np
import pytest
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st

from tests.compiler.compare import assert_close, check, explained, node_by_node
from tests.compiler.random.random_chains import Chains, Piece
from tests.compiler.random.random_loops import RandomLoop
from tests.compiler.targets import changed
from toolkit import client as gm
from toolkit.runtime.session import Session

ops = gm.ops
_PIECE = st.tuples(st.integers(0, 1000), st.integers(0, 1000), st.integers(0, 1000), st.integers(0, 100_000))
_SLOW = [HealthCheck.too_slow, HealthCheck.data_too_large, HealthCheck.function_scoped_fixture]
_PHASES = [Phase.explicit, Phase.reuse, Phase.generate]


@pytest.mark.tensorflow
@settings(max_examples=25, deadline=None, suppress_health_check=_SLOW, phases=_PHASES)
@given(pieces=st.lists(_PIECE, min_size=15, max_size=40))
def test_random_chains(tf: ModuleType, pieces: list[Piece]) -> None:
    Chains(tf, pieces).check()


@pytest.mark.long
@pytest.mark.tensorflow
@settings(max_examples=1000, deadline=None, suppress_health_check=_SLOW, phases=_PHASES)
@given(pieces=st.lists(_PIECE, min_size=15, max_size=60))
def test_many_random_chains(tf: ModuleType, pieces: list[Piece]) -> None:
    Chains(tf, pieces).check()


@pytest.mark.tensorflow
@settings(max_examples=15, deadline=None, suppress_health_check=_SLOW, phases=_PHASES)
@given(pieces=st.lists(_PIECE, min_size=15, max_size=40), least=st.sampled_from([1, 4, 50, 300]))
def test_random_chains_of_what_counts_as_large(tf: ModuleType, pieces: list[Piece], least: int) -> None:
    Chains(tf, pieces).check(processor=changed(nests={"separate": least}))


def test_large_tensors_are_together_only_where_they_meet() -> None:
    shape = [600, 700]
    with gm.Graph().as_default() as graph:
        x, y, z = (gm.placeholder(gm.float32, shape, name=name) for name in "xyz")
        a, b, c = (ops.tanh(each) * 0.5 + 1.0 for each in (x, y, z))
        beside = ops.square(x) - 3.0  # of the same tensor as a
        met = ops.select_v2(ops.greater(a, b), a * b, a - b)
    feeds = {f"{name}:0": np.random.default_rng(n).normal(size=shape) for n, name in enumerate("xyz")}
    feeds = {name: value.astype(np.float32) for name, value in feeds.items()}

    def nests(fetches: list[object]) -> int:
        check(graph, fetches, feeds)
        return sum(line.split()[1:2] == ["nest"] for line in explained(graph, fetches, feeds).splitlines())

    assert nests([a, b, c]) == 3
    assert nests([a, beside, c]) == 2
    assert nests([met]) == 1
    assert nests([met, c]) == 2
    assert nests([c, met, a, beside]) == 2


@pytest.mark.tensorflow
@settings(max_examples=15, deadline=None, suppress_health_check=_SLOW, phases=_PHASES)
@given(pieces=st.lists(_PIECE, min_size=6, max_size=18), how=st.integers(0, 1 << 30), v2=st.booleans())
def test_random_loops(tf: ModuleType, pieces: list[Piece], how: int, v2: bool) -> None:
    RandomLoop(tf, pieces, how, v2=v2).check()


@pytest.mark.long
@pytest.mark.tensorflow
@settings(max_examples=1000, deadline=None, suppress_health_check=_SLOW, phases=_PHASES)
@given(pieces=st.lists(_PIECE, min_size=6, max_size=30), how=st.integers(0, 1 << 30), v2=st.booleans())
def test_many_random_loops(tf: ModuleType, pieces: list[Piece], how: int, v2: bool) -> None:
    RandomLoop(tf, pieces, how, v2=v2).check()


def test_results_of_other_sizes_do_not_take_the_place_of_what_other_threads_read() -> None:
    random = np.random.default_rng(0)
    with gm.Graph().as_default() as graph:
        x, w = gm.placeholder(gm.float32, [1024, 64], name="x"), gm.placeholder(gm.float32, [64, 1024], name="w")
        a, b = ops.mat_mul(x, w), ops.mat_mul(ops.neg(x) * 1.5 + 1.0, w)
        c = ops.mul(ops.tanh(a), ops.exp(b * 0.1))
        fetches = [c, ops.greater(c, a)]
    feeds = {"x:0": random.normal(size=(1024, 64)), "w:0": random.normal(size=(64, 1024))}
    feeds = {name: value.astype(np.float32) for name, value in feeds.items()}
    with Session(graph, threads=1) as running:
        wanted = running.run(fetches, feeds)
    with Session(graph, threads=2) as running:
        assert "machine code" in "\n".join(running.explain(fetches, feeds))
        for _ in range(10):
            got = running.run(fetches, feeds)
            np.testing.assert_array_equal(got[1], wanted[1])
            assert_close(graph, fetches, feeds, got)


def test_a_part_that_is_the_whole() -> None:
    with gm.Graph().as_default() as graph:
        x = gm.placeholder(gm.float32, [4, 6], name="x")
        y = ops.tanh(ops.exp(x))
        fetches = [ops.neg(ops.exp(ops.slice(y, [0, 0], [4, 6]))), y]
    feeds = {"x:0": np.linspace(-1, 1, 24, dtype=np.float32).reshape(4, 6)}
    check(graph, fetches, feeds)


@pytest.mark.parametrize("shape", [(224, 224, 3), (1, 53, 7, 5), (2, 16, 16, 15), (64, 2), (40, 40, 1), (9, 31, 31, 3)])
def test_constants_of_few_channels(shape: tuple[int, ...]) -> None:
    """They are repeated along rows: the same bits as with one pixel at a time."""
    random = np.random.default_rng(1)
    channels = shape[-1]
    vector = random.normal(size=channels).astype(np.float32)
    spread = random.normal(size=(1,) * (len(shape) - 1) + (channels,)).astype(np.float32) + 3
    with gm.Graph().as_default() as graph:
        x, y = (gm.placeholder(gm.float32, list(shape), name=name) for name in "xy")
        z = (x * np.float32(1 / 255) + vector - spread) / spread
        fetches = [z, ops.greater(z * y, vector), z + random.normal(size=shape).astype(np.float32)]
        # a number for each channel that is computed, and a part of a tensor
        fetches.append(ops.exp(ops.sum(y, list(range(len(shape) - 1)), keep_dims=True) * 1e-3) * (x - vector) * 2.0)
        fetches.append((x[:1] * vector + spread) * 0.5)
    feeds = {f"{name}:0": random.normal(size=shape).astype(np.float32) for name in "xy"}
    with Session(graph) as running:
        got = running.run(fetches, feeds)
    wanted = node_by_node(graph, fetches, feeds)
    for index in (0, 1, 2, 4):
        np.testing.assert_array_equal(got[index], wanted[index])
    assert_close(graph, fetches, feeds, got)
