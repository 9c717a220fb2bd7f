"""Loops as machine code against TensorFlow in the same run: one session for many steps, and without compiling."""

from __future__ import annotations

import copy
from types import ModuleType
from typing import Any

import numpy as np
import pytest

from tests import perturbation
from tests.compiler.loops.loop_cases import CASES
from tests.runtime.oracle import Both
from toolkit.kernels.cpu.native.compiler import compiler
from toolkit.kernels.cpu.onednn.library import library
from toolkit.runtime.session import Session

pytestmark = pytest.mark.tensorflow
#: what is installed here: LLVM for loops at all, oneDNN for products in them
COMPILES = compiler() is not None
MULTIPLIES = COMPILES and library() is not None


def loops_of(lines: list[str]) -> list[bool]:
    """Of each loop in an explanation, whether it is machine code."""
    return ["machine code" in line for line in lines if line.split()[1:2] == ["loop"]]


def fetches_of(graph: Any) -> list[str]:
    count = sum(1 for node in graph if node.name.startswith("out") and node.name[3:].isdigit())
    return [f"out{index}:0" for index in range(count)]


@pytest.mark.parametrize("v2", [False, True], ids=["v1", "v2"])
@pytest.mark.parametrize("name", CASES)
def test_loop(name: str, v2: bool, tf: ModuleType) -> None:
    case = CASES[name]
    both = Both(tf, case.build, control_flow_v2=v2)
    fetches = fetches_of(both.graph)
    assert fetches
    config = tf.compat.v1.ConfigProto()
    config.graph_options.rewrite_options.disable_meta_optimizer = True
    with tf.compat.v1.Session(graph=both.tf_graph, config=config) as theirs, Session(both.graph) as ours:
        for before in case.before:
            theirs.run(before)
            ours.run(before)
        kept: list[Any] = []
        expected: list[Any] = []
        steps = [*case.steps(), *case.steps()]
        for feeds in steps:
            expected += theirs.run(fetches, feeds)
            got = ours.run(fetches, feeds)
            kept.append((got, copy.deepcopy(got)))

        def work(running: Session) -> list[Any]:
            for before in case.before:
                running.run(before)
            if case.before:
                return [value for feeds in steps for value in running.run(fetches, feeds)]
            return 2 * [value for feeds in case.steps() for value in running.run(fetches, feeds)]  # there is no state

        perturbation.assert_agree(
            [[value for _, saved in kept for value in saved], expected],
            lambda: perturbation.of_work(both.graph, work),
            [f"{label} of {feeds.get('n:0')}" for feeds in steps for label in fetches],
        )
        for got, saved in kept:  # what a step gave is nobody's buffer
            for mine, before_ in zip(got, saved, strict=True):
                np.testing.assert_array_equal(mine, before_)
        found = loops_of(ours.explain(fetches, case.steps()[0]))
        lines = ours.explain(fetches, case.steps()[0])
        assert len(found) == case.whole[2], lines
        if MULTIPLIES:
            assert sum(found) == case.whole[v2], lines
        else:  # without products of oneDNN, or LLVM, the interpreter has more to do
            assert sum(found) <= case.whole[v2], lines
