"""A Ray cluster that is there already: joined by its address, and left as it was."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

pytest.importorskip("ray")

from tests import patience

ROOT = Path(__file__).resolve().parents[3]
#: a driver of its own: it starts Ray, says where, and ends it with its input
HEAD = """
import sys
from toolkit.cluster.ray.connection import Connection
from toolkit.cluster.ray.library import ray
made = Connection("", 3)
actors = lambda: sum(each["Resources"].get("CPU", 0) for each in ray().nodes()) - ray().available_resources()["CPU"]
print(ray().get_runtime_context().gcs_address, flush=True)
for line in sys.stdin:
    print(actors(), flush=True)
made.close()
"""


@pytest.fixture(scope="module")
def head() -> Iterator[Any]:
    """A process with a Ray of its own, and its address."""
    scratch = tempfile.mkdtemp(prefix="gm-", dir="/tmp")  # short, for sockets
    process = subprocess.Popen(
        [sys.executable, "-c", HEAD], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
        env={**os.environ, "PYTHONPATH": str(ROOT), "TMPDIR": scratch},
    )  # fmt: skip
    assert process.stdout is not None
    yield process, process.stdout.readline().strip()
    process.communicate(timeout=patience.HUNG)
    shutil.rmtree(scratch, ignore_errors=True)


def test_batches_on_a_cluster_that_is_joined(head: Any, tmp_path: Path) -> None:
    process, address = head
    (tmp_path / "in").mkdir()
    for number in range(4):
        np.save(tmp_path / "in" / f"{number}.npy", np.full((3, 2), number, np.float32))
    model = tmp_path / "model.pb"
    from toolkit import tensorflow as gm

    with gm.Graph().as_default() as graph:
        gm.identity(gm.placeholder(gm.float32, [None, 2], name="x") + 1.0, name="y")
        model.write_bytes(graph.as_graph_def().SerializeToString())
    command = [
        sys.executable, "-m", "commands.main", "run", "model.pb", "--engine", f"ray://{address}", "--feed",
        "x=in/*.npy", "--fetch", "y", "--out", "out",
    ]  # fmt: skip
    found = subprocess.run(
        command, cwd=tmp_path, env={**os.environ, "PYTHONPATH": str(ROOT)}, capture_output=True, text=True,
        timeout=patience.HUNG, check=False,
    )  # fmt: skip
    assert found.returncode == 0, found.stderr
    assert re.search(r"^4 shard\(s\) are in out$", found.stderr, re.MULTILINE), found.stderr
    for number in range(4):
        with np.load(tmp_path / "out" / f"{number}.npz") as results:
            np.testing.assert_array_equal(results["y"], np.full((3, 2), number + 1, np.float32))
    process.stdin.write("\n")
    process.stdin.flush()
    assert float(process.stdout.readline()) == 0.0, "its actors are there"
