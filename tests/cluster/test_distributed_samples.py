"""The programs under samples/distributed run as they stand there, at our servers, and learn."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from tests import patience
from tests.cluster.mixed_clusters import MixedCluster
from toolkit import tensorflow as gm

ROOT = Path(__file__).resolve().parents[2]
SAMPLES = ROOT / "samples" / "distributed"


@pytest.fixture(autouse=True)
def empty(graphmill_cluster: MixedCluster) -> None:
    """The programs have variables of the same names."""
    gm.Session.reset(graphmill_cluster.target())


def started(program: str, folder: Path, *options: str) -> subprocess.Popen[str]:
    command = [sys.executable, "-m", "commands.main", "python", str(SAMPLES / program), *options]
    return subprocess.Popen(
        command, cwd=folder, env={**os.environ, "PYTHONPATH": str(ROOT)}, text=True,
        stdout=subprocess.PIPE, stderr=subprocess.PIPE,
    )  # fmt: skip


def output(process: subprocess.Popen[str]) -> str:
    try:
        out, errors = process.communicate(timeout=patience.HUNG)
    finally:
        process.kill()
        process.wait()
    assert process.returncode == 0, errors
    return out


def learns(text: str) -> None:
    found = re.search(r"^loss (\S+) -> (\S+)$", text, re.MULTILINE)
    assert found, text
    before, after = map(float, found.groups())
    assert after < 0.9 * before, text


def test_in_graph_replication(graphmill_cluster: MixedCluster, tmp_path: Path) -> None:
    learns(output(started("in_graph.py", tmp_path, f"--master={graphmill_cluster.target()}")))


def test_layers_on_workers_in_a_pipeline(graphmill_cluster: MixedCluster, tmp_path: Path) -> None:
    learns(output(started("pipelined_lstm.py", tmp_path, f"--master={graphmill_cluster.target()}")))


def test_shards_over_servers(graphmill_cluster: MixedCluster, tmp_path: Path) -> None:
    options = [f"--master={graphmill_cluster.target()}", "--ps_job=worker", "--ps=2"]
    text = output(started("sharded_embeddings.py", tmp_path, *options))
    assert "shards on /job:worker/task:0, /job:worker/task:1" in text
    learns(text)


@pytest.mark.parametrize("how", ["async", "sync"])
def test_parameter_servers(graphmill_cluster: MixedCluster, tmp_path: Path, how: str) -> None:
    options = ["--steps=60", *(["--sync"] if how == "sync" else [])]
    folder = str(tmp_path / "ckpt")

    def worker(task: int, *more: str) -> subprocess.Popen[str]:
        master = f"--master={graphmill_cluster.target('worker', task)}"
        return started("parameter_servers.py", tmp_path, master, f"--task={task}", *options, *more)

    workers = [worker(0, f"--folder={folder}")]
    # A worker that finds no variables looks again after half a minute only; so the chief has made them before.
    patience.until(lambda: gm.train.latest_checkpoint(folder) is not None, "the chief is ready")
    workers.append(worker(1))
    texts = [output(worker) for worker in workers]
    accuracies = [float(found) for text in texts for found in re.findall(r"^accuracy (\S+)$", text, re.MULTILINE)]
    assert max(accuracies) > 0.8, texts
    reader = gm.train.NewCheckpointReader(gm.train.latest_checkpoint(folder))
    assert int(reader.get_tensor("global_step")) >= 60


def test_every_program_is_in_the_readme() -> None:
    text = (ROOT / "samples" / "README.md").read_text()
    names = [path.name for path in SAMPLES.iterdir() if path.is_file()]
    assert [name for name in names if f"`distributed/{name}`" not in text] == []
