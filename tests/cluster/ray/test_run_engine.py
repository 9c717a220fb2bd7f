"""`graphmill run --engine ray`: the steps of a file in actors."""

from __future__ import annotations

import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

import numpy as np
import pytest

pytest.importorskip("ray")

from commands.main import run as graphmill
from tests import patience
from toolkit.formats import bundle

ROOT = Path(__file__).resolve().parents[3]
SAMPLES = ROOT / "samples"
DIGITS = str(SAMPLES / "digits.npz")
CLUSTER = """
jobs:
  ps: [{resources: {cpus: 1}}]
  worker: [{resources: {cpus: 1}}, {devices: {CPU: 2}}]
"""


@pytest.fixture(scope="module")
def files(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with a cluster, the digits CNN as it was built, and placed on that cluster."""
    folder = tmp_path_factory.mktemp("digits")
    (folder / "cluster.yaml").write_text(CLUSTER)
    meta, placed = str(folder / "digits.meta"), str(folder / "placed.meta")
    assert graphmill(["build", str(SAMPLES / "digits_cnn.yaml"), "-o", meta]) == 0
    assert graphmill(["place", meta, "--cluster", str(folder / "cluster.yaml"), "-o", placed]) == 0
    return folder


def training(meta: Path, *more: str) -> list[str]:
    data = ["--feed", f"x={DIGITS}:x_train", "--feed", f"y={DIGITS}:y_train", "--batch", "32"]
    return ["run", str(meta), *data, "--target", "train", "--fetch", "loss", "--steps", "12", *more]


def test_training_has_the_losses_of_one_process(ray_here: Any, files: Path, tmp_path: Path) -> None:
    here, there, folder = str(tmp_path / "here.npz"), str(tmp_path / "there.npz"), str(tmp_path / "ckpt")
    engine = ["--engine", "ray", "--cluster", str(files / "cluster.yaml"), "--checkpoint-dir", folder]
    assert graphmill(training(files / "digits.meta", "--init", "--out", here, "--seed", "1", "--shuffle")) == 0
    assert graphmill(training(files / "placed.meta", *engine, "--out", there, "--seed", "1", "--shuffle")) == 0
    with np.load(here) as one, np.load(there) as other:
        assert one["loss"].shape == (12,)
        # one process and several add up in the same order, but where oneDNN has more threads: as float32 sums differ
        np.testing.assert_allclose(one["loss"], other["loss"], rtol=1e-5)
    state = bundle.read_state(folder)
    assert state is not None
    with bundle.open_checkpoint(state.latest) as reader:
        assert int(reader.read("global_step")) == 12
    assert ray_here.is_initialized()  # the program's Ray is the program's to end


@pytest.mark.parametrize(
    ("options", "told"),
    [
        (["--cluster", "c.yaml"], "--cluster is without effect here: it says what --engine ray runs on"),
        (["--engine", "ray", "--master", "grpc://localhost:1"], "--engine and --master do not go together"),
        (["--engine", "ray", "--explain"], "--explain and --engine do not go together: the actors compile"),
        (["--engine", "ray", "--devices", "CPU=2"], "--devices and --engine do not go together: --cluster says"),
        (["--engine", "ray", "--limit", "time=60s"], "--limit and --engine do not go together"),
        (["--engine", "ray", "--sandbox"], "--sandbox and --engine do not go together"),
        (["--engine", "ray", "--compare", DIGITS], "--engine is without effect there"),
        (["--engine", "spark"], "--engine: 'spark' is no Ray cluster; expected ray, or ray://HOST:PORT"),
        (["--engine", "ray://localhost:1"], "--engine: no Ray cluster answers at localhost:1: Connection refused"),
    ],
)
def test_what_does_not_go_together(
    options: list[str], told: str, files: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    import ray

    monkeypatch.setattr(ray, "is_initialized", lambda: False)
    code = graphmill(["run", str(files / "digits.meta"), "--init", "--fetch", "conv1/kernel", *options])
    assert code == (3 if "refused" in told else 2)
    assert told in capsys.readouterr().err


def test_what_a_cluster_lacks_is_said(ray_here: Any, files: Path, capsys: pytest.CaptureFixture[str]) -> None:
    cluster = files / "rich.yaml"
    cluster.write_text("jobs: {worker: [{resources: {gpus: 8}}]}")
    options = ["--engine", "ray", "--cluster", str(cluster)]
    assert graphmill(["run", str(files / "digits.meta"), "--init", "--fetch", "conv1/kernel", *options]) == 2
    error = capsys.readouterr().err
    assert (
        "rich.yaml: /job:worker/replica:0/task:0 needs 1 CPU, 8 GPU, and no host of the Ray cluster has that" in error
    )


def test_a_model_touches_what_it_is_allowed_to(
    ray_here: Any, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    from toolkit import tensorflow as gm

    secret, model = tmp_path / "secret.txt", tmp_path / "m" / "reader.pb"
    secret.write_text("told")
    model.parent.mkdir()
    with gm.Graph().as_default() as graph:
        gm.read_file(str(secret), name="read")
        model.write_bytes(graph.as_graph_def().SerializeToString())
    command = ["run", str(model), "--fetch", "read", "--engine", "ray"]
    assert graphmill(command) == 2
    assert "secret.txt" in capsys.readouterr().err
    assert graphmill([*command, "--allow", f"read={secret}"]) == 0
    assert "told" in capsys.readouterr().out


def test_a_ray_of_its_own_is_gone_when_the_command_is(files: Path) -> None:
    """In a process of its own: Ray is started at loopback, and ends with the command, whose error is one line."""
    scratch = tempfile.mkdtemp(prefix="gm-", dir="/tmp")  # short, for sockets
    environment = {**os.environ, "TMPDIR": scratch, "PYTHONPATH": str(ROOT)}
    command = [sys.executable, "-m", "commands.main", "run", str(files / "digits.meta"), "--engine", "ray", "--fetch"]

    def run(*more: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [*command, *more], capture_output=True, text=True, env=environment, timeout=patience.HUNG, check=False
        )

    process = run("conv1/kernel")
    left = [*Path(scratch).glob("graphmill-ray-*")]
    shutil.rmtree(scratch)
    assert process.returncode == 3, process.stderr
    assert re.search(r"^graphmill: error: .*--init", process.stderr, re.MULTILINE), process.stderr
    assert not left, "its folder is there"
    assert not [each for each in _processes() if scratch in each], "its processes are there"


def _processes() -> list[str]:
    found: list[str] = []
    for folder in Path("/proc").iterdir():
        try:
            found.append((folder / "cmdline").read_bytes().decode(errors="replace"))
        except OSError:  # no process, or it has ended
            continue
    return found


@pytest.mark.long
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_signal_ends_batches_and_ray(tmp_path: Path, number: signal.Signals) -> None:
    """What is complete stays, all processes end, and the same command goes on."""
    from toolkit import tensorflow as gm

    with gm.Graph().as_default() as graph:
        gm.identity(gm.placeholder(gm.float32, [None, 2], name="x") + 1.0, name="y")
        (tmp_path / "model.pb").write_bytes(graph.as_graph_def().SerializeToString())
    (tmp_path / "in").mkdir()
    for shard in range(1000):
        np.save(tmp_path / "in" / f"{shard:04}.npy", np.full((20, 2), shard, np.float32))
    scratch = tempfile.mkdtemp(prefix="gm-", dir="/tmp")  # short, for sockets
    # a shell that has put the test behind itself lets it ignore SIGINT
    heeds = "import signal; signal.signal(signal.SIGINT, signal.default_int_handler)"
    options = ["run", "model.pb", "--engine", "ray", "--feed", "x=in/*.npy", "--fetch", "y", "--out", "out"]
    command = [sys.executable, "-c", f"{heeds}; from commands.main import main; main()", *options]
    environment = {**os.environ, "TMPDIR": scratch, "PYTHONPATH": str(ROOT)}
    process = subprocess.Popen(command, cwd=tmp_path, env=environment, stderr=subprocess.PIPE, text=True)
    patience.until(lambda: any((tmp_path / "out").glob("*.npz")), "the first results")
    process.send_signal(number)
    _, error = process.communicate(timeout=patience.HUNG)
    assert process.returncode == 130, error
    patience.until(lambda: not [each for each in _processes() if scratch in each], "Ray has ended")
    assert not [*Path(scratch).glob("graphmill-ray-*")]
    done = len(list((tmp_path / "out").glob("*.npz")))
    assert 0 < done < 1000
    again = subprocess.run(
        command, cwd=tmp_path, env=environment, capture_output=True, text=True, timeout=patience.HUNG, check=False
    )
    shutil.rmtree(scratch)
    assert again.returncode == 0, again.stderr
    assert f"{done} of 1000 shards are complete already" in again.stderr
    with np.load(tmp_path / "out" / "0999.npz") as results:
        np.testing.assert_array_equal(results["y"], np.full((20, 2), 1000, np.float32))
