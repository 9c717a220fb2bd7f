"""Whole processes, from the shell's point of view, beside TensorFlow's tool for the same job."""

from __future__ import annotations

import sys
import tempfile
from pathlib import Path

from tests import models
from tests.bench.measure import Row, alternate, compare, run_process, tool

_STRIP = """
import sys
from tensorflow.compat.v1 import GraphDef
from tensorflow.python.framework import graph_util
g = GraphDef.FromString(open(sys.argv[1], "rb").read())
open(sys.argv[3], "wb").write(graph_util.extract_sub_graph(g, [sys.argv[2]]).SerializeToString())
"""


def run(rounds: int) -> list[Row]:
    """The rows of this suite."""
    keras_model = models.saved_model_keras()
    network = models.resnet50()
    ours = tool("graphmill")
    rows: list[Row] = []

    def both(name: str, peer: str, mine: list[str], theirs: list[str], target: float | None) -> None:
        figures = alternate(lambda: run_process(mine).wall_s, lambda: run_process(theirs).wall_s, rounds)
        rows.append(compare(name, peer, "s", figures, target))

    both(
        "inspect a SavedModel", "saved_model_cli show --all",
        [ours, "inspect", str(keras_model.path)],
        [tool("saved_model_cli"), "show", "--all", "--dir", str(keras_model.path)],
        0.1,
    )  # fmt: skip
    both("print help", "saved_model_cli --help", [ours, "--help"], [sys.executable, "-c", "import tensorflow"], 0.1)
    for name, limit in (("validate", 1.5), ("visualize", 1.5)):
        with tempfile.TemporaryDirectory() as folder:
            more = ["-o", str(Path(folder, "net.svg"))] if name == "visualize" else []
            command = [ours, name, str(network.path), *more]
            seconds = sorted(run_process(command).wall_s for _ in range(rounds))[rounds // 2]
            rows.append(Row(f"{name} a frozen ResNet-50", "limit", "s", seconds, limit, seconds / limit, 1.0))
    with tempfile.TemporaryDirectory() as folder:
        output = network.output.partition(":")[0]
        both(
            "prune a frozen ResNet-50", "graph_util.extract_sub_graph",
            [ours, "prune", str(network.path), "--fetch", network.output, "-o", str(Path(folder, "a.pb"))],
            [sys.executable, "-c", _STRIP, str(network.path), output, str(Path(folder, "b.pb"))],
            None,
        )  # fmt: skip
    return rows
