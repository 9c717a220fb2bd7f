"""Batches in shares: the same numbers as in one piece, and only where every example is computed by itself."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from tests import perturbation
from tests.compiler.targets import changed
from tests.forks import child_says
from tests.runtime.oracle import Both
from toolkit import Session
from toolkit.compiler import plan
from toolkit.compiler.transforms import batches
from toolkit.kernels.cpu.onednn.library import library
from toolkit.target.target import Target

pytestmark = pytest.mark.skipif(library() is None, reason="without oneDNN there are no shares")
_RANDOM = np.random.default_rng(7)
_NOTE = "the batch is run in shares"
Build = Callable[[Any, Any], Any]


#: shares of networks that are small enough for a test
_SMALL = changed(batches={"least_work": 0, "least_examples": 1})


def _constant(v1: Any, *shape: int) -> Any:
    return v1.constant(_RANDOM.normal(size=shape).astype(np.float32) * 0.3)


def _by_example(v1: Any, x: Any) -> Any:
    y = v1.nn.relu(v1.nn.bias_add(v1.nn.conv2d(x, _constant(v1, 3, 3, 6, 8), 1, "SAME"), _constant(v1, 8)))
    z = v1.nn.max_pool2d(v1.pad(y, [[0, 0], [1, 1], [1, 1], [0, 0]]), 3, 2, "VALID")
    z = v1.concat([z, v1.sigmoid(z) * _constant(v1, 8)], 3)
    flat = v1.reshape(v1.transpose(z, [0, 3, 1, 2]), [-1, 16 * 6 * 6])
    scores = v1.matmul(flat, _constant(v1, 16 * 6 * 6, 10))
    return v1.nn.softmax(scores - v1.reduce_mean(scores, 1, keepdims=True))


_MIXED: dict[str, Build] = {
    "a mean over the batch": lambda v1, x: x - v1.reduce_mean(x, 0, keepdims=True),
    "a mean over everything": lambda v1, x: x * v1.reduce_mean(x),
    "the batch is turned around": lambda v1, x: v1.reverse(x, [0]),
    "examples are joined": lambda v1, x: v1.reshape(v1.reshape(x, [4, -1]), [8, 12, 12, 6]) + 1.0,
    "a constant for each example": lambda v1, x: x + _constant(v1, 8, 1, 1, 1),
    "statistics of the batch": lambda v1, x: v1.raw_ops.FusedBatchNormV3(
        x=x, scale=_constant(v1, 6), offset=_constant(v1, 6), mean=[], variance=[], is_training=True
    )[0],
    "a product along the batch": lambda v1, x: (
        1e-3
        * v1.matmul(v1.reshape(x, [8, -1]), v1.matmul(v1.reshape(x, [8, -1]), v1.reshape(x, [8, -1]), transpose_a=True))
    ),
    "a transposed batch": lambda v1, x: v1.transpose(x, [3, 1, 2, 0]) * 2.0,
    "examples are joined along the batch": lambda v1, x: v1.concat([x, x], 0),
}


def _check(tf: Any, build: Build, threads: int, batch: int = 8, target: Target = _SMALL) -> str:
    def make(v1: Any) -> None:
        v1.identity(build(v1, v1.placeholder("float32", [batch, 12, 12, 6], name="x")), name="out")

    both = Both(tf, make)
    x = _RANDOM.normal(size=(batch, 12, 12, 6)).astype(np.float32)
    feeds = {"x:0": x}
    theirs = both.check(["out:0"], feeds)
    with Session(both.graph, threads=threads, processor=target) as session:
        ours = [session.run(["out:0"], feeds) for _ in range(3)]
        perturbation.assert_close(both.graph, ["out:0"], feeds, [*ours, theirs])
        return "\n".join(session.explain(["out:0"], feeds))


@pytest.mark.parametrize("threads", [2, 4])
def test_shares(tf: Any, threads: int) -> None:
    assert _NOTE in _check(tf, _by_example, threads)


@pytest.mark.parametrize("batch,threads", [(7, 2), (8, 1), (8, 3), (1, 2)])
def test_no_even_shares(tf: Any, batch: int, threads: int) -> None:
    assert _NOTE not in _check(tf, _by_example, threads, batch)


@pytest.mark.parametrize("build", list(_MIXED.values()), ids=list(_MIXED))
def test_examples_that_depend_on_others(tf: Any, build: Build) -> None:
    assert _NOTE not in _check(tf, build, 2)


def test_little_work_is_not_shared(tf: Any) -> None:
    assert _NOTE not in _check(tf, _by_example, 2, target=changed(_SMALL, batches={"least_work": 1e9}))


def test_an_error_in_a_share_is_reported_once_all_have_ended() -> None:
    ended: list[int] = []

    def function(share: Any) -> list[Any]:
        ended.append(len(share[0]))
        if share[0][0]:
            raise ValueError("a share failed")
        return list(share)

    shares = batches.Shares(3, 2, lambda: None)
    with pytest.raises(ValueError, match="a share failed"):
        shares.run(function, [np.arange(6)])
    assert ended == [2, 2, 2]
    assert shares.run(lambda share: list(share), [np.arange(6)])[0].tolist() == list(range(6))


def test_large_tensors_are_computed_in_pieces(tf: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    sizes: list[int] = []
    run = plan.Plan.run

    def seen(self: plan.Plan, arguments: Any, *rest: Any) -> Any:
        sizes.append(len(arguments[0]))
        return run(self, arguments, *rest)

    monkeypatch.setattr(plan.Plan, "run", seen)
    for large, size in ((1 << 25, 4), (4 * 2 * 12 * 12 * 16, 2), (0, 1)):
        sizes.clear()
        assert _NOTE in _check(tf, _by_example, 2, target=changed(_SMALL, batches={"large": large}))
        assert min(sizes) == size and sizes.count(size) >= 3 * 8 // size


def test_pieces_come_back_in_order() -> None:
    shares = batches.Shares(2, 6, lambda: None, 2)
    seen: list[list[int]] = []

    def function(share: Any) -> list[Any]:
        seen.append(share[0].tolist())
        return list(share)

    assert shares.run(function, [np.arange(12)])[0].tolist() == list(range(12))
    assert sorted(seen) == [[first, first + 1] for first in range(0, 12, 2)]


def test_arguments_that_are_no_batch_go_to_every_share() -> None:
    """A network may be fed what it does not look at."""
    shares = batches.Shares(2, 4, lambda: None)
    seen: list[Any] = []

    def function(share: Any) -> list[Any]:
        seen.append(share[1:])
        return [share[0]]

    scalar, handle = np.float32(3), object()
    assert shares.run(function, [np.arange(8), scalar, handle])[0].tolist() == list(range(8))
    assert seen == [[scalar, handle], [scalar, handle]]


def test_a_child_has_threads_of_its_own() -> None:
    shares = batches.Shares(2, 3, lambda: None)

    def answers() -> bool:
        return shares.run(lambda share: list(share), [np.arange(6)])[0].tolist() == list(range(6))

    assert answers()
    assert child_says(answers)
    assert answers()
