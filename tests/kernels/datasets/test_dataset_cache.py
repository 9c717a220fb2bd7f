"""Datasets cached in files: what TensorFlow wrote is read here, and the other way round."""

from __future__ import annotations

from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import pytest

from tests.kernels.datasets.test_dataset_ops import LIMIT, graph_of, outcome
from tests.runtime.oracle import Both, assert_same
from toolkit.errors import DataLossError, InvalidArgumentError, NotFoundError
from toolkit.formats.bundle import save
from toolkit.graph import dtypes
from toolkit.policy.access import RefusedError
from toolkit.policy.rules import Policy
from toolkit.runtime.session import Session

pytestmark = pytest.mark.tensorflow


def pipeline(tf: Any, prefix: Path, count: int = 4, parts: int = 3) -> Both:
    def element(x: Any) -> Any:
        return (x, tf.strings.as_string(x), tf.ones([2, 1]) * tf.cast(x, tf.float32), *([x] * 9))[:parts]

    return graph_of(tf, lambda tf: tf.data.Dataset.range(count).map(element).cache(str(prefix)))


def read(session: Any, both: Both) -> list[Any]:
    """The elements, and how they end."""
    names = [f"next:{i}" for i in range(both.graph.node("next").num_outputs)]
    session.run("init")
    found: list[Any] = []
    for _ in range(LIMIT):
        status, value = outcome(lambda: session.run(names))
        found.append(status or value)
        if status:
            break
    return found


def ours(both: Both, **given: Any) -> Session:
    return Session(both.graph, **given)


@pytest.mark.parametrize(("count", "parts"), [(4, 3), (1, 1), (12, 12), (0, 2)])
def test_files_are_those_of_tensorflow(tf: ModuleType, tmp_path: Path, count: int, parts: int) -> None:
    mine = pipeline(tf, tmp_path / "mine", count, parts)
    theirs = pipeline(tf, tmp_path / "theirs", count, parts)
    with ours(mine) as session, theirs.v1.Session(graph=theirs.tf_graph) as reference:
        wanted = read(reference, theirs)
        assert_alike(read(session, mine), wanted)
        assert_alike(read(session, mine), wanted)  # from the files
    for suffix in (".index", ".data-00000-of-00001") if count else ():
        assert (tmp_path / f"mine{suffix}").read_bytes() == (tmp_path / f"theirs{suffix}").read_bytes()
    assert {path.name for path in tmp_path.iterdir() if "mine" in path.name} >= {"mine.index"}
    # each reads what the other wrote, and not the input
    build = pipeline(tf, tmp_path / "theirs", 0, parts)
    with ours(build) as session:
        assert_alike(read(session, build), wanted)
    build = pipeline(tf, tmp_path / "mine", 0, parts)
    with build.v1.Session(graph=build.tf_graph) as reference:
        assert_alike(read(reference, build), wanted)


def assert_alike(found: list[Any], wanted: list[Any]) -> None:
    assert len(found) == len(wanted)
    for position, (mine, theirs) in enumerate(zip(found, wanted, strict=True)):
        if isinstance(theirs, str):
            assert mine == theirs
        else:
            for a, b in zip(mine, theirs, strict=True):
                assert_same(a, b, f"element {position}")


def test_what_is_not_read_to_its_end_leaves_nothing(tf: ModuleType, tmp_path: Path) -> None:
    both = pipeline(tf, tmp_path / "cache")
    with ours(both) as session:
        session.run("init")
        session.run("next:0")
    assert not [path for path in tmp_path.iterdir() if path.name.endswith(".index")]


def test_mistakes(tf: ModuleType, tmp_path: Path) -> None:
    both = pipeline(tf, tmp_path / "no" / "cache")
    with ours(both) as session, pytest.raises(NotFoundError, match="there is no folder for the cache"):
        session.run("init")
        session.run("next:0")
    both = pipeline(tf, tmp_path / "cache", parts=2)
    for tensors, kinds, error in (
        ([("      0_0", np.int64(1)), ("      0_1", np.int64(1))], [dtypes.int64] * 2, InvalidArgumentError),
        ([("      0_0", np.int64(1))], [dtypes.int64], DataLossError),
        ([("a", np.int64(1)), ("b", np.int64(1))], [dtypes.int64] * 2, NotFoundError),
    ):
        save(str(tmp_path / "cache"), tensors, kinds)
        with ours(both) as session, pytest.raises(error):
            session.run("init")
            session.run("next:0")


def test_a_policy(tf: ModuleType, tmp_path: Path) -> None:
    """The files are the model's to write where it is told to, and the first refusal is the last."""
    both = pipeline(tf, tmp_path / "cache")
    with ours(both, policy=Policy()) as session, pytest.raises(RefusedError) as refused:
        session.run("init")
    given = f"write={tmp_path}/cache*"
    assert f"may not read and write '{tmp_path}/cache'; allow it with --allow '{given}'" in str(refused.value)
    with ours(both, policy=Policy().allowing(given)) as session:
        assert len(read(session, both)) == 5
