"""Freezing beside TensorFlow's own: generated models with variables of every kind, in branches, loops and functions."""

from __future__ import annotations

import random
from types import ModuleType
from typing import Any

import numpy as np
import pytest

from tests import perturbation
from tests.passes.graphs import from_tensorflow, plain_config, run_in_tensorflow
from tests.passes.stages import Initial
from toolkit.graph.graph import Graph
from toolkit.graph.summary import VARIABLES
from toolkit.passes.base import run_pass
from toolkit.passes.freezing.freeze import Freeze
from toolkit.passes.pruning.prune import Prune

_READS = frozenset({"ReadVariableOp", "ResourceGather"})


def _used(v1: Any, y: Any, weights: Any, how: str) -> Any:
    if how == "cond":
        return v1.cond(v1.reduce_sum(y) > 0.0, lambda: v1.matmul(y, weights), lambda: y - v1.gather(weights, [0]))
    if how == "while":
        body = lambda i, s: (i + 1, v1.tanh(v1.matmul(s, weights)))  # noqa: E731 -- while_loop takes functions
        return v1.while_loop(lambda i, s: i < 2, body, (v1.constant(0), y))[1]
    if how == "gather":
        return y + v1.nn.embedding_lookup(weights, v1.constant([2, 0]))
    return v1.tanh(v1.matmul(y, weights))


def _build(v1: Any, rng: random.Random) -> None:
    y = v1.placeholder(v1.float32, [2, 3], name="x")
    for n in range(rng.randint(2, 5)):
        kind, how = rng.choice(("ref", "resource", "parts")), rng.choice(("plain", "cond", "while", "gather"))
        weights = v1.get_variable(
            f"v{n}", [3, 3], use_resource=kind == "resource" or (kind == "parts" and rng.random() < 0.5),
            initializer=v1.random_normal_initializer(seed=n),
            partitioner=v1.fixed_size_partitioner(3) if kind == "parts" else None,
        )  # fmt: skip
        y = _used(v1, y, v1.convert_to_tensor(weights) if kind == "parts" else weights, how)
    v1.identity(y, name="y")


def _variable_ops(graph: Graph) -> set[str]:
    library = graph.library
    ops = {node.op for node in graph} | {node.op for name in library for node in library.function(name).node_def}
    return ops & (VARIABLES | _READS)


def check(tf: ModuleType, seed: int) -> None:
    """Both frozen graphs give what the model gives with its variables."""
    v1, rng = tf.compat.v1, random.Random(seed)
    (v1.enable_control_flow_v2 if rng.random() < 0.5 else v1.disable_control_flow_v2)()
    try:
        with tf.Graph().as_default() as graph:
            _build(v1, rng)
            feeds = {"x:0": np.random.default_rng(seed).normal(size=(2, 3)).astype(np.float32)}
            with v1.Session(graph=graph, config=plain_config(tf)) as session:
                session.run(v1.global_variables_initializer())
                wanted = session.run(["y:0"], feeds)
                values = {v.op.name: session.run(v) for v in v1.global_variables()}
                theirs = v1.graph_util.convert_variables_to_constants(session, graph.as_graph_def(), ["y"])
    finally:
        v1.enable_control_flow_v2()
    pruned = run_pass(Prune(("x",), ("y:0",), ()), from_tensorflow(graph)).graph
    made = run_pass(Freeze(Initial(values)), pruned).graph
    assert not _variable_ops(made)
    results = [run_in_tensorflow(tf, made, ["y:0"], feeds)]
    library = pruned.library
    if not any(node.op == "ResourceGather" for name in library for node in library.function(name).node_def):
        # TensorFlow's leaves ResourceGather in the branches of an If, and then refuses what it has made
        with tf.Graph().as_default() as loaded:
            tf.import_graph_def(theirs, name="")
            with v1.Session(graph=loaded, config=plain_config(tf)) as session:
                results.append(session.run(["y:0"], feeds))
    perturbation.assert_close(made, ["y:0"], feeds, [*results, wanted])


@pytest.mark.tensorflow
@pytest.mark.parametrize("seed", range(12))
def test_frozen_as_tensorflow_freezes(tf: ModuleType, seed: int) -> None:
    check(tf, seed)


@pytest.mark.long
@pytest.mark.tensorflow
@pytest.mark.parametrize("seed", range(100, 300))
def test_many_frozen_as_tensorflow_freezes(tf: ModuleType, seed: int) -> None:
    check(tf, seed)
