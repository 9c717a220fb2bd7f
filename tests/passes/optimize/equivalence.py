"""Whether an optimized graph computes what the graph computed, on made and on random graphs."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
import pytest

from schemas.graph_pb2 import GraphDef
from tests.compiler.random.random_graphs import Graph as RandomGraph
from tests.perturbation import assert_agree, of_work
from toolkit import client as gm
from toolkit.graph.graph import Graph
from toolkit.graph.metagraph import MetaGraph
from toolkit.passes.base import PassResult, run_pass
from toolkit.passes.optimize.kept import Kept, kept_by
from toolkit.passes.optimize.rewriting import Optimization
from toolkit.passes.optimize.run import Optimized, optimize
from toolkit.runtime.session import Session


def made_graph(build: Callable[[], Any]) -> Graph:
    """The graph that a function makes with the client."""
    with gm.Graph().as_default() as program:
        build()
    return Graph.from_proto(GraphDef.FromString(program.as_graph_def().SerializeToString()))


def apply(pass_: Optimization, graph: Graph, fetches: Sequence[str] = (), feeds: Sequence[str] = ()) -> PassResult:
    """A pass on a graph of which some tensors are asked for; the graph is verified afterwards."""
    from dataclasses import replace

    return run_pass(replace(pass_, kept=kept_by(MetaGraph(graph), feeds, fetches)), graph)


def values(graph: Graph, fetches: Sequence[str], feeds: Mapping[str, Any] | None = None, steps: int = 1) -> list[Any]:
    """What a graph computes, step by step."""
    found: list[Any] = []
    with Session(graph.copy()) as session:
        for _ in range(steps):
            found += session.run(list(fetches), dict(feeds or {}))
    return found


def assert_same(before: Sequence[Any], after: Sequence[Any]) -> None:
    """Bit for bit but for the sign of NaN."""
    assert len(before) == len(after)
    for old, new in zip(before, after, strict=True):
        assert np.shape(old) == np.shape(new) and np.asarray(old).dtype == np.asarray(new).dtype
        np.testing.assert_array_equal(new, old)


def ops_of(graph: Graph) -> list[str]:
    """The ops of a graph, sorted."""
    return sorted(node.op for node in graph)


def _squares(graph: Graph) -> set[str]:
    """The products of a tensor with itself."""
    products = (node for node in graph if node.op in ("MatMul", "BatchMatMul", "BatchMatMulV2", "BatchMatMulV3"))
    return {node.name for node in products if node.inputs[0] == node.inputs[1]}


class Case:
    """A random graph of the client with branches, loops and variables: what it computes, step by step."""

    def __init__(self, pieces: list[Any], **choices: Any):
        made = RandomGraph(pieces, **choices)
        self.graph = Graph.from_proto(GraphDef.FromString(made.graph.as_graph_def().SerializeToString()))
        self.fetches = list(dict.fromkeys(tensor.name for tensor in made.fetches))
        self.initializers = [operation.name for operation in made.initializers]
        self.feeds = made.feeds

    def kept(self) -> Kept:
        return kept_by(MetaGraph(self.graph), list(self.feeds), self.fetches, self.initializers)

    def optimized(self, passes: Sequence[Optimization]) -> Optimized:
        return optimize(self.graph, passes, self.kept())

    def run(self, graph: Graph, steps: int = 2) -> list[Any]:
        """What a step after the other computes, by the kernels that define the ops: two runs of the same arithmetic
        are equal bit for bit."""
        with pytest.MonkeyPatch.context() as patch:
            patch.setenv("GRAPHMILL_SEGMENTS", "off")
            patch.setenv("GRAPHMILL_ONEDNN", "off")
            with Session(graph.copy()) as session:
                return self._work(session, steps)

    def _work(self, session: Session, steps: int) -> list[Any]:
        session.run(list(self.initializers))
        found: list[Any] = []
        for _ in range(steps):
            found += session.run(list(self.fetches), dict(self.feeds))
        return found

    def check(self, passes: Sequence[Optimization], *, exact: bool = True) -> Optimized:
        """Optimize, and raise AssertionError unless the graph computes what it did.

        Args:
            exact: bit for bit; else as near as rounding explains. A product that has become one of a tensor with
                itself is compared in the second way: NumPy computes half of it and mirrors that (BLAS's syrk), whose
                sums are added up in another order.
        """
        done = self.optimized(passes)
        before, after = self.run(self.graph), self.run(done.graph)
        if exact and _squares(done.graph) == _squares(self.graph):
            assert_same(before, after)
        else:
            assert_agree([after, before], lambda: of_work(self.graph, lambda session: self._work(session, 2)))
        return done
