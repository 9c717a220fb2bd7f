"""What stages over large graphs take grows with the nodes, and no faster: calls are counted, not seconds."""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.bench.large_graphs import write_graph
from toolkit.formats.model import read_model, write_model
from toolkit.graph.check import require_valid
from toolkit.graph.device import DeviceSpec
from toolkit.graph.graph import Graph
from toolkit.graph.infer import infer
from toolkit.passes.partition import PartitionGraph
from toolkit.passes.place import Place
from toolkit.passes.prune import Prune
from toolkit.passes.validate.engine import validate_files

#: blocks of layers in the smaller graph; the larger has twice as many
BLOCKS = 4
_DEVICES = [DeviceSpec.parse(f"/job:localhost/replica:0/task:0/device:CPU:{number}") for number in (0, 1)]


def calls(work: Callable[[], Any]) -> int:
    """How many functions are called, in Python and out of it."""
    count = 0

    def note(frame: Any, event: str, argument: Any) -> None:
        nonlocal count
        count += event in ("call", "c_call")

    before = sys.getprofile()
    sys.setprofile(note)
    try:
        work()
    finally:
        sys.setprofile(before)
    return count


def placed(graph: Graph) -> Graph:
    """With a device for every node: two take turns in blocks."""
    out = graph.copy()
    for node in out:
        block = node.name.partition("/")[0][-1]
        node.device = str(_DEVICES[block.isdigit() and int(block) % 2])
    return out


#: stage to what it does with a file, and how many calls a node may take: what it takes today and a quarter
STAGES: dict[str, tuple[Callable[[Path], Callable[[], Any]], int]] = {
    "read": (lambda path: lambda: read_model(path), 18),
    "verify": (lambda path: (lambda graph: lambda: require_valid(graph))(read_model(path).graph), 40),
    "shapes": (lambda path: (lambda graph: lambda: infer(graph))(read_model(path).graph), 90),
    "prune": (lambda path: (lambda graph: lambda: Prune((), ("y",)).apply(graph))(read_model(path).graph), 47),
    "place": (lambda path: (lambda graph: lambda: Place(_DEVICES).apply(graph))(read_model(path).graph), 132),
    "partition": (
        lambda path: (lambda graph: lambda: PartitionGraph(by="device").split(graph))(placed(read_model(path).graph)),
        79,
    ),
    "write": (
        lambda path: (lambda model: lambda: write_model(model, path.with_suffix(".out.pb")))(read_model(path)),
        14,
    ),
    "validate": (lambda path: lambda: validate_files([str(path)]), 250),
}  # fmt: skip


@pytest.fixture(scope="module")
def files(tmp_path_factory: pytest.TempPathFactory) -> list[tuple[Path, int]]:
    folder = tmp_path_factory.mktemp("large")
    sizes = [write_graph(folder / f"{times}.pb", times * BLOCKS * 330) for times in (1, 2)]
    return [(folder / f"{times}.pb", size) for times, size in zip((1, 2), sizes, strict=True)]


@pytest.mark.parametrize("stage", STAGES)
def test_calls_grow_with_the_nodes(files: list[tuple[Path, int]], stage: str) -> None:
    prepare, most = STAGES[stage]
    (small, few), (large, many) = files
    prepare(small)()  # what is imported, and made once
    first, second = calls(prepare(small)), calls(prepare(large))
    assert second - first <= most * (many - few)
    # logarithms of sizes, and caches that are warm by then, are in what a tenth allows
    assert (second - first) / (many - few) <= 1.1 * first / few


def test_large_graphs_run_as_small_ones(files: list[tuple[Path, int]]) -> None:
    """The bench's graph is one that computes something, from its feeds."""
    import numpy as np

    from toolkit.runtime.session import Session

    graph = read_model(files[0][0]).graph
    rows = np.arange(16, dtype=np.float32).reshape(2, 8) / 8
    with Session(graph) as session:
        session.run("init")
        both = session.run("y:0", {"x:0": rows})
        each = [session.run("y:0", {"x:0": row[None]}) for row in rows]
    assert both.shape == (2, 8) and np.ptp(both) > 0 and not np.array_equal(*each)
