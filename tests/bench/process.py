"""Whole processes, from the shell's point of view, beside TensorFlow's tool for the same job."""

from __future__ import annotations

import sys
import tempfile
from pathlib import Path

from tests import models
from tests.bench.measure import Row, alternate, compare, run_process, tool
from tests.bench.page import rows as page_rows

_STRIP = """
import sys
from tensorflow.compat.v1 import GraphDef
from tensorflow.python.framework import graph_util
g = GraphDef.FromString(open(sys.argv[1], "rb").read())
open(sys.argv[3], "wb").write(graph_util.extract_sub_graph(g, [sys.argv[2]]).SerializeToString())
"""


_EXPORT = """
import sys, keras
keras.applications.ResNet50(weights=None).export(sys.argv[1], verbose=False)
"""


def _big(path: str, scope: str = "") -> str:
    """A graph of 100,000 nodes in 100 scopes."""
    from schemas.graph_pb2 import GraphDef

    graph = GraphDef()
    names = [f"{scope}scope_{number % 100}/node_{number}" for number in range(100_000)]
    graph.node.add(name=names[0], op="Placeholder").attr["dtype"].type = 1  # type: ignore[assignment]
    for number in range(1, len(names)):
        node = graph.node.add(name=names[number], op="AddV2", input=[names[number - 1], names[number // 2]])
        node.attr["T"].type = 1  # type: ignore[assignment]
    Path(path).write_bytes(graph.SerializeToString())
    return path


def _within_limits(ours: str, frozen: str, folder: str, rounds: int) -> list[Row]:
    """Commands that have a time of their own to stay below, without a peer."""
    saved, big, renamed = f"{folder}/resnet", _big(f"{folder}/big.pb"), _big(f"{folder}/renamed.pb", "net/")
    run_process([sys.executable, "-c", _EXPORT, saved])
    complete = {
        "_GRAPHMILL_COMPLETE": "complete_bash", "COMP_CWORD": "4",
        "COMP_WORDS": f"graphmill\nprune\n{big}\n--fetch\nscope_9",
    }  # fmt: skip
    work: list[tuple[str, list[str], float, dict[str, str]]] = [
        ("validate a frozen ResNet-50", ["validate", frozen], 1.5, {}),
        ("validate a ResNet-50 SavedModel", ["validate", saved], 1.5, {}),
        ("inspect a ResNet-50 SavedModel", ["inspect", saved], 1.5, {}),
        ("visualize a frozen ResNet-50", ["visualize", frozen, "-o", f"{folder}/net.svg"], 1.5, {}),
        ("visualize a ResNet-50 SavedModel", ["visualize", saved, "-o", f"{folder}/saved.svg"], 1.5, {}),
        ("validate 100,000 nodes", ["validate", big], 10, {}),
        ("inspect 100,000 nodes", ["inspect", big], 10, {}),
        ("diff 100,000 nodes, equal", ["diff", big, big], 10, {}),
        ("diff 100,000 nodes, all renamed", ["diff", big, renamed, "--ignore", "names"], 10, {}),
        ("visualize 100,000 nodes", ["visualize", big, "-o", f"{folder}/big.svg"], 10, {}),
        ("complete a name of 100,000", [], 0.3, complete),
    ]
    rows: list[Row] = []
    for name, arguments, limit, environment in work:
        seconds = sorted(run_process([ours, *arguments], environment).wall_s for _ in range(rounds))[rounds // 2]
        rows.append(Row(name, "limit", "s", seconds, limit, seconds / limit, 1.0))
    page = Path(folder, "big.html")
    run_process([ours, "visualize", big, "-o", str(page)])
    return [*rows, *page_rows(page, rounds)]


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
    with tempfile.TemporaryDirectory() as folder:
        rows += _within_limits(ours, str(network.path), folder, rounds)
    with tempfile.TemporaryDirectory() as folder:
        output = network.output.partition(":")[0]
        both(
            "prune a frozen ResNet-50", "graph_util.extract_sub_graph",
            [ours, "prune", str(network.path), "--fetch", network.output, "-o", str(Path(folder, "a.pb"))],
            [sys.executable, "-c", _STRIP, str(network.path), output, str(Path(folder, "b.pb"))],
            None,
        )  # fmt: skip
    return rows
