"""Two hosts in network namespaces, by the words of `graphmill help clusters`: on a good cable, a bad one, and none."""

from __future__ import annotations

import re
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

pytest.importorskip("grpc")

from tests import patience
from tests.cluster.networks import ADDRESSES, Hosts, hosts, reason

pytestmark = pytest.mark.long
ROOT = Path(__file__).resolve().parents[2]
PROGRAM = ROOT / "samples" / "distributed" / "parameter_servers.py"
TOKEN = {"GRAPHMILL_CLUSTER_TOKEN": "of these two"}


@pytest.fixture
def two() -> Iterator[Hosts]:
    """With a parameter server on the first and a worker on the second."""
    lacking = reason()
    if lacking:
        pytest.skip(lacking)
    with hosts() as made:
        yield made


def _tasks(two: Hosts, folder: Path, *options: str) -> list[subprocess.Popen[str]]:
    file = folder / "cluster.yaml"
    file.write_text(f'jobs:\n  ps: ["{ADDRESSES[0]}:2222"]\n  worker: ["{ADDRESSES[1]}:2222"]\n')
    allowed = ["--allow", f"write={folder}", "--allow", f"read={folder}"]
    tasks: list[subprocess.Popen[str]] = []
    for host, job in enumerate(("ps", "worker")):
        task = two.start(
            host, "worker", "--cluster", "cluster.yaml", "--job", job, *allowed, *options, folder=folder, **TOKEN
        )
        assert task.stdout is not None
        assert "ready" in (line := task.stdout.readline()), line + task.stdout.read()
        tasks.append(task)
    return tasks


def _training(two: Hosts, folder: Path, steps: int) -> subprocess.Popen[str]:
    master = f"--master=grpc://{ADDRESSES[1]}:2222"
    return two.start(
        1, "python", str(PROGRAM), master, "--task=0", "--workers=1", f"--steps={steps}", f"--folder={folder / 'ckpt'}",
        folder=folder, **TOKEN,
    )  # fmt: skip


def _learned(training: subprocess.Popen[str]) -> None:
    text, _ = training.communicate(timeout=patience.HUNG)
    found = re.search(r"^accuracy (\S+)$", text, re.MULTILINE)
    assert training.returncode == 0 and found is not None, text
    assert float(found[1]) > 0.8


@pytest.mark.parametrize(("delay", "loss"), [(0.0, 0.0), (0.02, 0.0), (0.002, 0.02)])
def test_training_over_a_cable(two: Hosts, delay: float, loss: float, tmp_path: Path) -> None:
    two.cable.delay, two.cable.loss = delay, loss
    _tasks(two, tmp_path)
    status = two.start(1, "cluster", "status", "cluster.yaml", folder=tmp_path, **TOKEN)
    assert "/job:ps/replica:0/task:0" in status.communicate(timeout=patience.HUNG)[0]
    _learned(_training(two, tmp_path, 100))


def test_without_the_token_nobody_is_let_in(two: Hosts, tmp_path: Path) -> None:
    _tasks(two, tmp_path)
    stranger = two.start(0, "cluster", "status", "cluster.yaml", folder=tmp_path)
    assert "token" in stranger.communicate(timeout=patience.HUNG)[0]


def test_a_cut_is_found_by_deadline_and_training_goes_on_when_it_is_mended(two: Hosts, tmp_path: Path) -> None:
    _, worker = _tasks(two, tmp_path, "--lost-after", "3")
    two.cable.delay = 0.005  # so that steps are under way at any time
    training = _training(two, tmp_path, 250)
    patience.until(lambda: (tmp_path / "ckpt" / "checkpoint").exists() or training.poll() is not None, "training")
    two.cable.loss = 1.0
    assert worker.stdout is not None  # where the next session looks for the parameter server, when the first is lost
    assert any("waiting for /job:ps" in line for line in worker.stdout)
    assert training.poll() is None
    two.cable.loss = two.cable.delay = 0.0
    _learned(training)
