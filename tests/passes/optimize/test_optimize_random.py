"""Random graphs with branches, loops, variables and feeds in the middle: chains of passes keep what they compute."""

from __future__ import annotations

import random
from dataclasses import MISSING
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st

from tests.compiler.random.test_random_graphs import _PIECES  # pyright: ignore[reportPrivateUsage] -- the same graphs
from tests.passes.optimize.equivalence import Case
from toolkit.graph.graph import Graph
from toolkit.passes.optimize.notation import parameters
from toolkit.passes.optimize.rewriting import Optimization
from toolkit.passes.optimize.table import TABLE, preset

#: passes that keep every bit, and need no parameter
EXACT = [
    name
    for name, row in TABLE.items()
    if row.exact and all(each.default is not MISSING for _, each in parameters(row.load()).values())
]
_CASE = {
    "pieces": _PIECES, "resource": st.booleans(), "fed": st.none() | st.integers(0, 40), "count": st.integers(0, 3),
    "flag": st.booleans(),
}  # fmt: skip
_SETTINGS: dict[str, Any] = {
    "deadline": None, "suppress_health_check": [HealthCheck.too_slow, HealthCheck.data_too_large],
    "phases": [Phase.explicit, Phase.reuse, Phase.generate],
}  # fmt: skip


def _chain(rng: random.Random) -> list[Optimization]:
    return [TABLE[rng.choice(EXACT)].load()() for _ in range(rng.randint(1, 5))]


def _check(seed: int, **choices: Any) -> None:
    rng = random.Random(seed)
    case = Case(**choices)
    case.check(_chain(rng))
    case.check(preset(rng.choice(("size", "training"))))


@settings(max_examples=8, **_SETTINGS)
@given(st.integers(0, 10**6), st.fixed_dictionaries(_CASE))
def test_chains_of_passes_keep_the_outputs(seed: int, choices: dict[str, Any]) -> None:
    _check(seed, **choices)


@pytest.mark.long
@settings(max_examples=2000, **_SETTINGS)
@given(st.integers(0, 10**6), st.fixed_dictionaries(_CASE))
def test_many_chains_of_passes_keep_the_outputs(seed: int, choices: dict[str, Any]) -> None:
    _check(seed, **choices)


@settings(max_examples=4, **_SETTINGS)
@given(st.fixed_dictionaries(_CASE))
def test_what_is_for_inference_keeps_the_outputs_within_rounding(choices: dict[str, Any]) -> None:
    Case(**choices).check(preset("inference"), exact=False)


@pytest.mark.long
@pytest.mark.tensorflow
@settings(max_examples=20, **_SETTINGS)
@given(st.integers(0, 10**6), st.fixed_dictionaries(_CASE))
def test_tensorflow_computes_the_same_from_the_optimized_graph(tf: Any, seed: int, choices: dict[str, Any]) -> None:
    case = Case(**choices)
    passes = [*preset("training"), *_chain(random.Random(seed))]
    wanted, found = (_in_tensorflow(tf, case, graph) for graph in (case.graph, case.optimized(passes).graph))
    for name, a, b in zip(case.fetches, found, wanted, strict=True):
        # constants are folded by other kernels than TensorFlow's, and loops carry the last digits on
        np.testing.assert_allclose(a, b, rtol=1e-3, atol=1e-4, err_msg=name)


def _in_tensorflow(tf: Any, case: Case, graph: Graph) -> list[Any]:
    message = tf.compat.v1.GraphDef.FromString(graph.to_proto().SerializeToString())
    config = tf.compat.v1.ConfigProto()
    config.graph_options.rewrite_options.disable_meta_optimizer = True
    with tf.Graph().as_default() as loaded:
        tf.import_graph_def(message, name="")
        with tf.compat.v1.Session(graph=loaded, config=config) as session:
            session.run(case.initializers)
            return session.run(case.fetches, case.feeds)
