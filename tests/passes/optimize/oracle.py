"""What optimized graphs are held against: TensorFlow on both graphs, our runtime on both, the Graph Transform Tool."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from schemas.graph_pb2 import GraphDef
from tests import perturbation, rounding
from tests.passes.graphs import from_tensorflow, run_in_tensorflow, to_tensorflow
from tests.tolerance import assert_within
from toolkit.formats.arrays import tensor
from toolkit.graph import dtypes
from toolkit.graph.graph import Graph
from toolkit.graph.node import Node
from toolkit.passes.base import PassResult, run_pass
from toolkit.passes.optimize.kept import Kept
from toolkit.runtime.session import Session

Array = Any


def made(tf: Any, build: Callable[[Any], Any], *, functional: bool = True) -> Graph:
    """The graph that a function makes with TensorFlow 1's functions, which it is given.

    Args:
        functional: If and While instead of Switch and Merge, whatever other tests have left switched on.
    """
    v1 = tf.compat.v1
    (v1.enable_control_flow_v2 if functional else v1.disable_control_flow_v2)()
    try:
        with tf.Graph().as_default() as graph:
            build(v1)
    finally:
        v1.enable_control_flow_v2()
    return from_tensorflow(graph)


def constant(graph: Graph, name: str, value: Array) -> Node:
    """A Const in a graph that is made by hand."""
    proto = tensor.from_array(np.asarray(value))
    return graph.add("Const", name, attrs={"dtype": dtypes.from_enum(proto.dtype), "value": proto})


def feed(graph: Graph, seed: int = 1) -> dict[str, Array]:
    """Something for the placeholder `x`; sizes that are not known are 2."""
    node = graph.node("x")
    shape = [2 if size is None else size for size in node.attr("shape")]
    return {"x:0": np.random.default_rng(seed).normal(size=shape).astype(node.attr("dtype").numpy)}


def kept(*names: str, fed: Sequence[str] = ("x",)) -> Kept:
    return Kept(frozenset({*names, *fed}), frozenset(fed))


def changed(pass_: Any, graph: Graph) -> PassResult:
    """Apply a pass that must find something; the graph that came in stays what it was."""
    before = graph.to_proto().SerializeToString(deterministic=True)
    result = run_pass(pass_, graph)
    assert result.modified
    assert graph.to_proto().SerializeToString(deterministic=True) == before
    return result


def unchanged(pass_: Any, graph: Graph) -> PassResult:
    result = run_pass(pass_, graph)
    assert not result.modified
    assert ops(result.graph) == ops(graph)
    return result


def ops(graph: Graph) -> list[str]:
    """The ops of a graph, constants and identities left out, in order of their names."""
    return [n.op for n in sorted(graph, key=lambda n: n.name) if n.op not in ("Const", "Identity", "Placeholder")]


def agree(
    tf: Any, before: Graph, after: Graph, fetches: Sequence[str], feeds: Mapping[str, Array], *, ours: bool = True
) -> None:
    """The fetches of both graphs, here and in TensorFlow, are as near to each other as rounding explains."""
    wanted = run_in_tensorflow(tf, before, list(fetches), dict(feeds))
    results = [run_in_tensorflow(tf, after, list(fetches), dict(feeds))]
    if ours:
        for graph in (before, after):
            with Session(graph) as session:
                results.append(session.run(list(fetches), dict(feeds)))
    far = [_far(graph, fetches, feeds) for graph in (before, after)]
    for result in results:
        for name, value, want, *allowed in zip(fetches, result, wanted, *far, strict=True):
            assert np.asarray(value).dtype == np.asarray(want).dtype
            assert_within(value, want, sum(allowed), name)


def _far(graph: Graph, fetches: Sequence[str], feeds: Mapping[str, Array]) -> list[Any]:
    wide = any(dtypes.float64 in node.output_types for node in graph)  # the rules are for float32
    return (None if wide else rounding.allowed(graph, fetches, feeds)) or perturbation.allowed(graph, fetches, feeds)


def transformed(graph: Graph, inputs: str, outputs: str, transforms: str) -> Graph:
    """What the Graph Transform Tool makes of a graph; TensorFlow still ships it without an interface."""
    from tensorflow.python.util import _pywrap_transform_graph as tool

    data = graph.to_proto().SerializeToString()
    return Graph.from_proto(
        GraphDef.FromString(
            tool.TransformGraphWithStringInputs(data, inputs.encode(), outputs.encode(), transforms.encode())
        )
    )


def importable(tf: Any, graph: Graph) -> None:
    """TensorFlow takes the graph."""
    with tf.Graph().as_default():
        tf.import_graph_def(to_tensorflow(tf, graph), name="")
