"""Functions of the library: each place that calls one has random numbers of its own, as TensorFlow's inlining gives."""

from __future__ import annotations

from types import ModuleType
from typing import Any

import numpy as np
import pytest

from tests import perturbation
from tests.runtime.oracle import Both
from toolkit.runtime.session import Session

pytestmark = pytest.mark.tensorflow
ZERO = {"x:0": np.zeros(1, np.float32)}
#: fetched one after the other in one session; the states go on from run to run
RUNS = [["a"], ["b"], ["a", "b"], ["other"], ["nested"], ["loop"], ["branch"], ["calls"], ["chained"], ["a"]]


@pytest.mark.parametrize("v2", [False, True], ids=["switch", "functional"])
def test_call_sites_have_random_states_of_their_own(tf: ModuleType, v2: bool) -> None:
    def seeded(seed: int) -> Any:
        @tf.function
        def draw(x: Any) -> Any:  # the node has the same name in both functions
            return x + tf.raw_ops.RandomUniform(shape=[1], dtype=tf.float32, seed=seed, seed2=4, name="r")

        return draw

    f, g = seeded(3), seeded(5)

    @tf.function
    def outer(x: Any) -> Any:
        return f(x) + 10 * f(x)

    def build(v1: Any) -> None:
        x = v1.placeholder("float32", [1], name="x")
        a = v1.identity(f(x), name="a")
        v1.identity(f(x), name="b")
        v1.identity(g(x), name="other")
        v1.identity(outer(x), name="nested")
        loop = v1.while_loop(  # one iteration after the other: TensorFlow draws in any order where it may
            lambda i, y: i < 3, lambda i, y: (i + 1, 10 * y + f(0 * y)), [v1.constant(0), x], parallel_iterations=1
        )
        v1.identity(loop[1], name="loop")
        v1.identity(v1.cond(x[0] >= 0, lambda: f(x), lambda: x), name="branch")
        v1.identity(v1.cond(x[0] >= 0, lambda: f(x) + 10 * f(x), lambda: x), name="calls")
        with v1.control_dependencies([a]):
            v1.identity(f(x), name="chained")

    both = Both(tf, build, control_flow_v2=v2)

    def work(running: Any) -> list[Any]:
        return [value for names in RUNS for value in running.run([f"{name}:0" for name in names], ZERO)]

    with (
        Session(both.graph) as ours,
        Session(both.graph, force_tokens=True) as tokens,
        both.v1.Session(graph=both.tf_graph) as theirs,
    ):
        results = [work(running) for running in (ours, tokens, theirs)]
    labels = [f"{name} of {names}" for names in RUNS for name in names]
    perturbation.assert_agree(results, lambda: perturbation.of_work(both.graph, work), labels)
