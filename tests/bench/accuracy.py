"""python -m tests.bench.accuracy [NETWORK ...]: how far networks in float32 are from the same networks in float64.

Each frozen classifier of the benchmark is rewritten to float64 and run by the kernels that define the ops; that is the
reference. Errors are those of the scores, the largest as a share of the largest score, of graphmill as it runs by
default, without Winograd's algorithm, with `--precision exact`, and of TensorFlow, on the same images.
"""

from __future__ import annotations

import argparse
import os
from collections.abc import Callable, Generator
from contextlib import contextmanager
from typing import Any

import numpy as np

from schemas import graph_pb2, types_pb2
from tests.bench.workloads.networks import NETWORKS, classifier, images
from toolkit.formats.arrays.tensor import from_array, to_array
from toolkit.formats.models.graphdef import from_proto
from toolkit.runtime.session import Session

_FLOAT, _DOUBLE = types_pb2.DT_FLOAT, types_pb2.DT_DOUBLE


def doubled(graph: graph_pb2.GraphDef) -> graph_pb2.GraphDef:
    """A frozen graph in float64; its batch norms, an op that knows only float32, are spelled out."""
    made = graph_pb2.GraphDef(versions=graph.versions)
    for node in graph.node:
        if node.op.startswith("FusedBatchNorm"):
            _spell_out(made, node)
            continue
        new = made.node.add()
        new.CopyFrom(node)
        for name, value in new.attr.items():
            if name == "value" and value.tensor.dtype == _FLOAT:
                value.tensor.CopyFrom(from_array(to_array(value.tensor).astype(np.float64)))
            elif value.type == _FLOAT:
                value.type = _DOUBLE
            for position, kind in enumerate(value.list.type):
                if kind == _FLOAT:
                    value.list.type[position] = _DOUBLE
    return made


def _spell_out(made: graph_pb2.GraphDef, node: Any) -> None:
    """(x - mean) * (scale / sqrt(variance + epsilon)) + shift, under the name of the batch norm."""
    x, scale, shift, mean, variance = node.input[:5]
    epsilon = made.node.add(name=f"{node.name}/epsilon", op="Const")
    epsilon.attr["dtype"].type = _DOUBLE
    epsilon.attr["value"].tensor.CopyFrom(from_array(np.float64(node.attr["epsilon"].f)))

    def add(op: str, name: str, *inputs: str) -> str:
        made.node.add(name=name, op=op, input=inputs).attr["T"].type = _DOUBLE
        return name

    root = add("Rsqrt", f"{node.name}/root", add("AddV2", f"{node.name}/sum", variance, epsilon.name))
    factor = add("Mul", f"{node.name}/factor", root, scale)
    centred = add("Sub", f"{node.name}/centred", x, mean)
    add("AddV2", node.name, add("Mul", f"{node.name}/scaled", centred, factor), shift)


@contextmanager
def _environment(**variables: str) -> Generator[None]:
    before = dict(os.environ)
    os.environ.update(variables)
    try:
        yield
    finally:
        os.environ.clear()
        os.environ.update(before)


def ours(graph: graph_pb2.GraphDef, feeds: dict[str, Any], fetch: str, precision: str = "f32", **variables: str) -> Any:
    """What a session makes of a graph."""
    own = graph_pb2.GraphDef.FromString(graph.SerializeToString())  # a graph takes the nodes over
    with _environment(**variables), Session(from_proto(own), precision=precision) as session:
        return session.run(fetch, feeds)


def tensorflows(graph: graph_pb2.GraphDef, feeds: dict[str, Any], fetch: str) -> Any:
    """What TensorFlow makes of it."""
    import tensorflow as tf

    v1 = tf.compat.v1
    with v1.Graph().as_default():
        v1.import_graph_def(v1.GraphDef.FromString(graph.SerializeToString()), name="")
        with v1.Session() as session:
            return session.run(fetch, feeds)


def errors(name: str, batch: int = 2) -> dict[str, float]:
    """The largest error of each way to compute a network, as a share of the largest score."""
    built = classifier(name)
    graph = graph_pb2.GraphDef.FromString(built.path.read_bytes())
    side, raw = NETWORKS[name]
    given, fetch = built.info["inputs"]["image"], built.info["outputs"]["scores"]
    picture = images(np.random.default_rng(3), batch, side, raw)
    right = ours(doubled(graph), {given: picture.astype(np.float64)}, fetch, "exact")
    assert right.dtype == np.float64
    feeds = {given: picture}
    ways: dict[str, Callable[[], Any]] = {
        "default": lambda: ours(graph, feeds, fetch),
        "no Winograd": lambda: ours(graph, feeds, fetch, GRAPHMILL_WINOGRAD="off"),
        "exact": lambda: ours(graph, feeds, fetch, "exact"),
        "TensorFlow": lambda: tensorflows(graph, feeds, fetch),
    }
    return {way: float(np.abs(run() - right).max() / np.abs(right).max()) for way, run in ways.items()}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("networks", nargs="*", default=list(NETWORKS), metavar="NETWORK", help=", ".join(NETWORKS))
    found = {name: errors(name) for name in parser.parse_args().networks}
    ways = list(next(iter(found.values())))
    print("| network | " + " | ".join(ways) + " |")
    print("|---|" + "---:|" * len(ways))
    for name, row in found.items():
        print(f"| {name} | " + " | ".join(f"{row[way]:.1e}" for way in ways) + " |")


if __name__ == "__main__":
    main()
