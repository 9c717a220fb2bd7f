"""Graphs that are made here and run by both clients, ours and TensorFlow's, at the same master."""

from __future__ import annotations

import itertools
import os
from collections.abc import Mapping
from types import ModuleType
from typing import Any

import numpy as np

_numbers = itertools.count()


def unique(name: str) -> str:
    """A name that no other test's variable, queue or container has at a shared cluster."""
    return f"{name}.{os.getpid()}.{next(_numbers)}"  # containers may not have _


def theirs(
    tf: ModuleType, target: str, graph: Any, fetches: list[str], feeds: Mapping[str, Any] | None = None,
    targets: tuple[str, ...] = (),
) -> list[Any]:  # fmt: skip
    """What TensorFlow's client gets at a master for a graph of ours, by names."""
    theirs_graph = tf.Graph()
    with theirs_graph.as_default():
        message = tf.compat.v1.GraphDef.FromString(graph.as_graph_def().SerializeToString())
        tf.import_graph_def(message, name="")
        with tf.compat.v1.Session(target, graph=theirs_graph) as session:
            if targets:
                session.run(list(targets))
            return session.run(fetches, feeds)


def same(ours: Any, expected: Any) -> None:
    """Equal in every bit: the same kernels have made both."""
    if isinstance(expected, bytes) or np.asarray(expected).dtype.kind == "O":  # NumPy's own texts lose zero bytes
        ours, expected = np.asarray(ours, object), np.asarray(expected, object)
    ours, expected = np.asarray(ours), np.asarray(expected)
    assert ours.dtype == expected.dtype
    assert ours.shape == expected.shape
    np.testing.assert_array_equal(ours, expected)
