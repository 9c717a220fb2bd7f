"""Random programs make TensorFlow's nodes, functions and numbers, derivatives of second order included."""

from __future__ import annotations

import importlib
from types import ModuleType
from typing import Any

import numpy as np
import pytest

from schemas import graph_pb2
from tests.client.client_programs import tf1_semantics
from tests.client.random_programs import FEEDS, Program
from tests.tf1.node_oracle import described, difference
from toolkit import tensorflow as ours
from toolkit.tensorflow.families.framework import functions

pytestmark = pytest.mark.tensorflow
#: programs for every run, and for the long one
FEW, MANY = 16, 400


def made(tf: Any, function: Any, seed: int) -> tuple[list[str], list[Any] | None]:
    """The nodes of a program as lines, and its numbers; None where TensorFlow cannot run it."""
    with tf.Graph().as_default() as graph:
        fetches = Program(tf, function, seed, functions=seed % 3 == 0).build()
        data = graph.as_graph_def().SerializeToString()
        start = tf.global_variables_initializer()
        with tf.Session() as session:
            session.run(start)
            try:
                numbers = session.run(fetches, {f"{name}:0": value for name, value in FEEDS.items()})
            except (tf.errors.InvalidArgumentError, tf.errors.NotFoundError):
                if tf is ours:
                    raise
                numbers = None  # TensorFlow's optimizer breaks some graphs, and its functions lack some gradients
    return described(graph_pb2.GraphDef.FromString(data)), numbers


def compare(tf: ModuleType, seed: int) -> None:
    theirs = importlib.import_module("tensorflow.python.framework.function")
    with tf1_semantics(tf):
        nodes, wanted = made(tf.compat.v1, theirs, seed)
    mine, found = made(ours, functions, seed)
    assert not difference(nodes, mine), f"nodes of program {seed}"
    assert found is not None
    for a, b in zip(found, found if wanted is None else wanted, strict=True):
        # float64: some hundred operations on numbers near 1, derivatives among them, whose sums may cancel
        np.testing.assert_allclose(a, b, rtol=1e-10, atol=1e-11, err_msg=f"program {seed}")


@pytest.mark.parametrize("seed", range(FEW))
def test_few(tf: ModuleType, seed: int) -> None:
    compare(tf, seed)


@pytest.mark.long
@pytest.mark.parametrize("part", range(8))
def test_many(tf: ModuleType, part: int) -> None:
    for seed in range(FEW + part, MANY, 8):
        compare(tf, seed)
