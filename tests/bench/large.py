"""Graphs of 100,000 and of a million nodes: whole commands beside TensorFlow's whole processes, and beside limits."""

from __future__ import annotations

import statistics
import sys
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from tests.bench.large_graphs import write_graph
from tests.bench.measure import NotRun, ProcessCost, Row, alternate, compare, run_process, tool
from tests.bench.settings import Settings

MANY, MOST = 100_000, 1_000_000
#: shares of TensorFlow's whole process
PRUNE_TARGET, RUN_TARGET = 0.2, 0.1
#: for a million nodes: seconds and MB of static stages, of pictures and comparisons, of a first run
STATIC_S, STATIC_MB, VIEW_S, RUN_S = 12, 1024, 30, 40

_PRUNE = """
import sys
from tensorflow.compat.v1 import GraphDef
from tensorflow.python.framework import graph_util
g = GraphDef.FromString(open(sys.argv[1], "rb").read())
open(sys.argv[2], "wb").write(graph_util.extract_sub_graph(g, ["y"]).SerializeToString())
"""
_RUN = """
import sys
import tensorflow.compat.v1 as tf
g = tf.GraphDef.FromString(open(sys.argv[1], "rb").read())
with tf.Graph().as_default():
    tf.import_graph_def(g, name="")
    with tf.Session() as session:
        session.run("init")
        session.run("y:0", {"x:0": [[1, 2, 3, 4, 5, 6, 7, 8]]})
"""
_FIRST_RUN = ["--init-op", "init", "--feed", "x=[[1,2,3,4,5,6,7,8]]", "--fetch", "y"]
_CLUSTER = "local: {CPU: 2}\n"
#: the first half of the blocks of a million nodes is on another device
_RULES = '"block_000[01]*": /device:CPU:1\n'


@dataclass(frozen=True)
class _Stage:
    """A command over the largest graph; seconds and MB that it may take."""

    name: str
    arguments: list[str]
    seconds: float
    megabytes: float | None = None


def _stages(graph: str, folder: str) -> list[_Stage]:
    placed, cluster, rules = f"{folder}/placed.pb", f"{folder}/cluster.yaml", f"{folder}/rules.yaml"
    Path(cluster).write_text(_CLUSTER)
    Path(rules).write_text(_RULES)
    place = ["place", graph, "--cluster", cluster, "--rules", rules, "-o", placed]
    return [
        _Stage("inspect", ["inspect", graph], STATIC_S, STATIC_MB),
        _Stage("prune", ["prune", graph, "--fetch", "y", "-o", f"{folder}/pruned.pb"], STATIC_S, STATIC_MB),
        _Stage("place", place, STATIC_S, STATIC_MB),
        _Stage("partition", ["partition", placed, "--by", "device", "-o", f"{folder}/parts"], STATIC_S, STATIC_MB),
        _Stage("validate", ["validate", graph], STATIC_S, STATIC_MB),
        _Stage("visualize", ["visualize", graph, "-o", f"{folder}/graph.svg"], VIEW_S),
        _Stage("diff", ["diff", graph, graph], VIEW_S),
        _Stage("first run", ["run", graph, *_FIRST_RUN], RUN_S),
    ]


def run(settings: Settings) -> Iterator[Row | NotRun]:
    """Rows of 100,000 nodes beside TensorFlow, then of a million beside limits, once each."""
    ours = tool("graphmill")
    with tempfile.TemporaryDirectory() as folder:
        graph = f"{folder}/many.pb"
        write_graph(graph, MANY)
        prune = ["prune", graph, "--fetch", "y", "-o", f"{folder}/ours.pb"]
        for name, mine, theirs, target in (
            ("prune", prune, [sys.executable, "-c", _PRUNE, graph, f"{folder}/theirs.pb"], PRUNE_TARGET),
            ("first run of", ["run", graph, *_FIRST_RUN], [sys.executable, "-c", _RUN, graph], RUN_TARGET),
        ):
            title = f"{name} {MANY:,} nodes"
            if not settings.wants(title):
                continue
            if "tensorflow" not in settings.peers:
                yield NotRun(title, "tensorflow", "not asked for")
                continue
            yield _beside(title, [ours, *mine], theirs, settings.rounds, target)
        if not any(settings.wants(f"{stage.name} {MOST:,} nodes") for stage in _stages(graph, folder)):
            return
        write_graph(graph, MOST)
        for stage in _stages(graph, folder):
            title = f"{stage.name} {MOST:,} nodes"
            if settings.wants(title) or (stage.name == "place" and settings.wants(f"partition {MOST:,} nodes")):
                yield from _within(title, run_process([ours, *stage.arguments]), stage)


def _beside(title: str, mine: list[str], theirs: list[str], rounds: int, target: float) -> Row:
    costs: dict[str, list[ProcessCost]] = {"mine": [], "theirs": []}

    def side(name: str, command: list[str]) -> float:
        costs[name].append(run_process(command))
        return costs[name][-1].wall_s

    figures = alternate(lambda: side("mine", mine), lambda: side("theirs", theirs), rounds)
    peaks = [statistics.median(cost.peak_mb for cost in costs[name]) for name in ("mine", "theirs")]
    return compare(title, "tensorflow", "s", figures, target, f"peaks {peaks[0]:,.0f} and {peaks[1]:,.0f} MB")


def _within(title: str, cost: ProcessCost, stage: _Stage) -> Iterator[Row]:
    yield Row(title, "limit", "s", cost.wall_s, stage.seconds, cost.wall_s / stage.seconds, 1.0)
    if stage.megabytes is not None:
        yield Row(f"{title}, peak", "limit", "MB", cost.peak_mb, stage.megabytes, cost.peak_mb / stage.megabytes, 1.0)
