"""Small graphs built with TensorFlow and run by both: for ops whose values cannot be fed or fetched."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from tests.kernels.op_suite import SAME, compare
from toolkit.errors import BY_CODE, OpError
from toolkit.graph.graph import Graph
from toolkit.runtime.session import Session

#: makes the graph and returns the tensors (or operations) to fetch
Build = Callable[[], Any]


def run_both(build: Build, feeds: Mapping[str, Any] | None = None, runs: int = 1) -> tuple[list[Any], list[Any]]:
    """(our results, TensorFlow's), each a list of runs; a failed run is its canonical status.

    The graph is made by `build` inside a v1 graph; `init` among its operations runs first, once.
    """
    import tensorflow as tf

    v1 = tf.compat.v1
    feeds = feeds or {}
    theirs: list[Any] = []
    with tf.Graph().as_default() as graph, tf.device("CPU:0"):
        fetches = build()
        fetches = list(fetches) if isinstance(fetches, list | tuple) else [fetches]
        names = [fetch.name for fetch in fetches]
        initializes = any(operation.name == "init" for operation in graph.get_operations())
        # no grappler: what it folds away would not be tested
        config = v1.ConfigProto()
        config.graph_options.rewrite_options.disable_meta_optimizer = True
        with v1.Session(config=config) as session:
            if initializes:
                session.run("init")
            for _ in range(runs):
                try:
                    theirs.append([_plain(v) for v in session.run(names, dict(feeds))])
                except tf.errors.OpError as error:
                    theirs.append(BY_CODE[error.error_code].status)
        serialized = graph.as_graph_def().SerializeToString()
    return run_ours(serialized, names, feeds, runs, initializes), theirs


def run_ours(
    serialized: bytes, names: list[str], feeds: Mapping[str, Any], runs: int = 1, initializes: bool = False
) -> list[Any]:
    from schemas import graph_pb2

    mine: list[Any] = []
    graph = Graph.from_proto(graph_pb2.GraphDef.FromString(serialized))
    with Session(graph) as session:
        if initializes:
            session.run("init")
        for _ in range(runs):
            try:
                mine.append([_plain(v) for v in session.run(names, dict(feeds))])
            except OpError as error:
                mine.append(error.status)
    return mine


def _plain(value: Any) -> Any:
    if value is None:
        return None
    return np.array(value, object) if isinstance(value, bytes) else np.asarray(value)


def check_graph(
    build: Build,
    feeds: Mapping[str, Any] | None = None,
    *,
    runs: int = 1,
    error: str | None = None,
) -> None:
    """Raise AssertionError unless both give the same values, or fail with the status `error`."""
    mine, theirs = run_both(build, feeds, runs)
    for run, (ours, expected) in enumerate(zip(mine, theirs, strict=True)):
        if isinstance(expected, str):
            assert error in (expected, SAME), f"TensorFlow refuses run {run}: {expected}"
            assert ours == expected, f"run {run}: expected {expected}, ours: {ours}"
            continue
        assert error in (None, SAME), f"the case says {error}, TensorFlow gives {expected}"
        assert not isinstance(ours, str), f"run {run}: TensorFlow succeeds, ours fails: {ours}"
        for position, (a, b) in enumerate(zip(ours, expected, strict=True)):
            assert (a is None) == (b is None)
            if b is not None:
                compare(a, b, f"run {run}, fetch {position}")
