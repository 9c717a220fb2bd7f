"""One graph, made by TensorFlow, run by TensorFlow and by us."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from types import ModuleType
from typing import Any

import numpy as np

from schemas import graph_pb2
from tests import perturbation
from toolkit.graph.graph import Graph
from toolkit.runtime.session import Session


class Both:
    """A TensorFlow 1 graph and our copy of it.

    Args:
        build: makes the graph inside its default scope; what it returns is ignored.
        control_flow_v2: functional control flow instead of Switch and Merge.
    """

    def __init__(self, tf: ModuleType, build: Callable[[Any], Any], *, control_flow_v2: bool = False):
        self.tf = tf
        self.v1 = tf.compat.v1
        self.tf_graph = tf.Graph()
        toggle = self.v1.enable_control_flow_v2 if control_flow_v2 else self.v1.disable_control_flow_v2
        toggle()
        try:
            with self.tf_graph.as_default():
                self.v1.set_random_seed(7)
                build(self.v1)
        finally:
            self.v1.enable_control_flow_v2()
        self.graph = our_graph(self.tf_graph)

    def check(
        self,
        fetches: Sequence[str],
        feeds: Mapping[str, Any] | None = None,
        *,
        before: Sequence[str] = (),
        rtol: float | None = None,
        atol: float = 0.0,
        grappler: bool = True,
        **session: Any,
    ) -> list[Any]:
        """Run `before` operations, then `fetches`, in both; compare, and return our values.

        Args:
            rtol, atol: say why beside them; without, numbers are held to what rounding explains in this graph.
            grappler: whether TensorFlow may rewrite the graph before it runs it.
        """
        config = self.v1.ConfigProto(allow_soft_placement=True)  # graphs may name devices that TensorFlow lacks here
        config.graph_options.rewrite_options.disable_meta_optimizer = not grappler
        with self.v1.Session(graph=self.tf_graph, config=config) as theirs:
            for name in before:
                theirs.run(name)
            wanted = theirs.run(list(fetches), dict(feeds or {}))
        with Session(self.graph, **session) as ours:
            for name in before:
                ours.run(name)
            got = ours.run(list(fetches), feeds)
        for name, mine, reference in zip(fetches, got, wanted, strict=True):
            if rtol is not None or not perturbation.is_rounded(reference):
                assert_same(mine, reference, name, rtol or 0.0, atol)
        if rtol is None:
            which = [i for i, each in enumerate(wanted) if perturbation.is_rounded(each)]
            results = [[values[i] for i in which] for values in (got, wanted)]
            perturbation.assert_close(
                self.graph, [fetches[i] for i in which], dict(feeds or {}), results, before, **session
            )
        return got


def assert_same(mine: Any, reference: Any, name: str = "", rtol: float = 0.0, atol: float = 0.0) -> None:
    """Equal in type, shape and value."""
    if reference is None:
        assert mine is None, name
        return
    if isinstance(reference, bytes):
        assert mine == reference, name
        return
    a, b = np.asarray(mine), np.asarray(reference)
    assert a.shape == b.shape, f"{name}: shape {a.shape}, TensorFlow's {b.shape}"
    if b.dtype.kind == "O":
        assert a.tolist() == b.tolist(), name
        return
    assert a.dtype == b.dtype, f"{name}: {a.dtype}, TensorFlow's {b.dtype}"
    np.testing.assert_allclose(a, b, rtol=rtol, atol=atol, err_msg=name)


def our_graph(tf_graph: Any) -> Graph:
    """Our graph of a TensorFlow graph."""
    return Graph.from_proto(graph_pb2.GraphDef.FromString(tf_graph.as_graph_def().SerializeToString()))
