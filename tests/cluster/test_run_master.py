"""`graphmill run --master`: the steps of a file at TensorFlow's servers."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from commands.main import run as graphmill
from tests.cluster.clients import unique
from tests.cluster.tensorflow_servers import Cluster, free_ports
from toolkit import tensorflow as gm
from toolkit.cluster.client import calls
from toolkit.formats import bundle

pytestmark = pytest.mark.tensorflow
SAMPLES = Path(__file__).resolve().parents[2] / "samples"
DIGITS = str(SAMPLES / "digits.npz")


@pytest.fixture(scope="module")
def trained_here(tmp_path_factory: pytest.TempPathFactory) -> tuple[str, Path]:
    """The digits CNN as a MetaGraphDef, and the folder of twenty steps in this process."""
    folder = tmp_path_factory.mktemp("digits")
    meta = str(folder / "digits.meta")
    assert graphmill(["build", str(SAMPLES / "digits_cnn.yaml"), "-o", meta]) == 0
    out = str(folder / "here.npz")
    assert graphmill([*training(meta), "--checkpoint-dir", str(folder / "here"), "--out", out]) == 0
    return meta, folder


def training(meta: str) -> list[str]:
    data = ["--feed", f"x={DIGITS}:x_train", "--feed", f"y={DIGITS}:y_train", "--batch", "32"]
    return ["run", meta, *data, "--target", "train", "--fetch", "loss", "--steps", "20"]


def test_training(
    servers: Cluster, trained_here: tuple[str, Path], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    meta, folder = trained_here
    at = ["--master", servers.target()]
    there = tmp_path / "there"
    out, trace = str(tmp_path / "there.npz"), str(tmp_path / "trace.json")
    # From the same checkpoint, for initial values are drawn by other generators there.
    start = bundle.read_state(str(folder / "here"))
    assert start is not None
    assert graphmill([*training(meta), *at, "--checkpoint", start.latest, "--out", out, "--trace", trace]) == 0
    again = str(tmp_path / "again.npz")
    assert graphmill([*training(meta), "--checkpoint", start.latest, "--out", again]) == 0
    with np.load(out) as ours, np.load(again) as local:
        assert ours["loss"].shape == (20,)
        # twenty steps of two implementations of float32, as in tests/tf1/test_programs.py
        np.testing.assert_allclose(ours["loss"], local["loss"], rtol=1e-4)
    events = json.loads(Path(trace).read_text())["traceEvents"]
    assert any("Conv2D" in event["name"] for event in events)  # fused with what follows
    assert graphmill([*training(meta), *at, "--checkpoint-dir", str(there)]) == 0
    state = bundle.read_state(str(there))
    assert state is not None
    with bundle.open_checkpoint(state.latest) as reader:
        assert int(reader.read("global_step")) == 20
    capsys.readouterr()
    timed = [*training(meta)[:-6], "--fetch", "loss", *at, "--checkpoint", state.latest, "--repeat", "3"]
    timed = [word for word in timed if word not in ("--batch", "32")]
    assert graphmill([*timed, "--stats", "json"]) == 0
    assert json.loads(capsys.readouterr().out)["step_ms"]["median"] > 0


def test_a_variable_at_the_parameter_server(
    servers: Cluster, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "counter.meta"
    with gm.Graph().as_default(), gm.device("/job:ps/task:0"):
        held = gm.get_variable(unique("held"), [], initializer=gm.zeros_initializer())
        gm.assign_add(held, 2.0, name="count")
        gm.identity(held, name="value")
        gm.train.export_meta_graph(str(file), saver_def=None)
    at = ["--master", servers.target()]
    assert graphmill(["run", str(file), *at, "--init", "--target", "count", "--steps", "3"]) == 0
    assert graphmill(["run", str(file), "--master", servers.target("worker", 1), "--fetch", "value"]) == 0
    assert "value = 6." in capsys.readouterr().out
    assert graphmill(["run", str(file), *at, "--fetch", "value", "--save", str(tmp_path / "model.ckpt")]) == 2
    assert "has no saver" in capsys.readouterr().err


def test_variables_without_values(servers: Cluster, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = tmp_path / "fresh.meta"
    with gm.Graph().as_default():
        held = gm.get_variable(unique("fresh"), [], initializer=gm.zeros_initializer(), use_resource=False)
        gm.identity(held, name="value")
        gm.train.export_meta_graph(str(file))
    assert graphmill(["run", str(file), "--master", servers.target(), "--fetch", "value"]) == 3
    assert "give the variables values with --init" in capsys.readouterr().err


def test_a_saved_model(servers: Cluster, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    folder = str(tmp_path / "saved")
    with gm.Graph().as_default(), gm.Session() as session:
        x = gm.placeholder(gm.float32, [None, 2], name="x")
        w = gm.get_variable(unique("w"), initializer=[[1.0], [2.0]])
        y = gm.matmul(x, w, name="y")
        session.run(w.initializer)
        gm.saved_model.simple_save(session, folder, {"x": x}, {"y": y})
    feed = ["--feed", "x=[[1, 1], [2, 3]]"]
    assert graphmill(["run", folder, *feed, "--master", servers.target("worker", 1)]) == 0
    assert "[3.]" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--dump", "*", "d"], "--dump and --master do not go together: tensors within a step stay at the servers"),
        (["--explain"], "--explain and --master do not go together: the servers compile"),
        (["--devices", "CPU=2"], "--devices and --master do not go together: the servers have their own"),
        (["--limit", "time=60s"], "--limit and --master do not go together"),
        (["--precision", "bf16"], "--precision and --master"),
        (["--trust"], "--trust and --master do not go together: what a graph may touch is the servers' to say"),
        (["--sandbox"], "--sandbox and --master do not go together"),
        (["--compare", "other.pb"], "--compare runs both models here"),
    ],
)
def test_what_cannot_be_had_there(
    options: list[str], message: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "one.pb"
    with gm.Graph().as_default() as graph:
        gm.constant(1, name="one")
    file.write_bytes(graph.as_graph_def().SerializeToString())
    assert graphmill(["run", str(file), "--fetch", "one", "--master", "grpc://localhost:1", *options]) == 2
    lines = capsys.readouterr().err.strip().split("\n")
    assert len(lines) == 1 and message in lines[0]


def test_nobody_there(tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(calls, "CONNECT_SECS", 0.2)
    file = tmp_path / "one.pb"
    with gm.Graph().as_default() as graph:
        gm.constant(1, name="one")
    file.write_bytes(graph.as_graph_def().SerializeToString())
    (port,) = free_ports(1)
    command: Any = ["run", str(file), "--fetch", "one", "--master"]
    assert graphmill([*command, f"grpc://localhost:{port}"]) == 3
    assert f"there is no server at grpc://localhost:{port}" in capsys.readouterr().err
    assert graphmill([*command, f"localhost:{port}"]) == 2
    assert f"--master: 'localhost:{port}' is no address of a master" in capsys.readouterr().err
