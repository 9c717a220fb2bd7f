"""What stages over large graphs take grows with the nodes, and no faster: calls are counted, not seconds."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from tests.bench.large_graphs import write_graph
from tests.passes.stage_calls import STAGES
from tests.patience import HUNG
from toolkit.formats.models.model import read_model

#: blocks of layers in the smaller graph; the larger has twice as many
BLOCKS = 4


@pytest.fixture(scope="module")
def files(tmp_path_factory: pytest.TempPathFactory) -> list[tuple[Path, int]]:
    folder = tmp_path_factory.mktemp("large")
    sizes = [write_graph(folder / f"{times}.pb", times * BLOCKS * 330) for times in (1, 2)]
    return [(folder / f"{times}.pb", size) for times, size in zip((1, 2), sizes, strict=True)]


@pytest.fixture(scope="module")
def counts(files: list[tuple[Path, int]]) -> dict[str, list[int]]:
    command = [sys.executable, "-m", "tests.passes.stage_calls", *(str(path) for path, _ in files)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=HUNG)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


@pytest.mark.parametrize("stage", STAGES)
def test_calls_grow_with_the_nodes(files: list[tuple[Path, int]], counts: dict[str, list[int]], stage: str) -> None:
    (_, few), (_, many) = files
    first, second = counts[stage]
    assert second - first <= STAGES[stage][1] * (many - few)
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
