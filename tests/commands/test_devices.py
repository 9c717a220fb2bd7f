"""graphmill devices."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from commands.main import run
from toolkit.kernels.cuda import device, found, settings
from toolkit.kernels.cuda.driver import choose
from toolkit.kernels.cuda.driver.fake import FakeDriver
from toolkit.kernels.device_options import DeviceOptions

VARIABLE = "GRAPHMILL_CUDA"


def told(capsys: pytest.CaptureFixture[str], *args: str) -> str:
    assert run(["devices", *args]) == 0
    out, err = capsys.readouterr()
    assert err == ""
    return out


def test_what_there_is(capsys: pytest.CaptureFixture[str]) -> None:
    with choose.using(FakeDriver(2, memory=1 << 30)):
        lines = told(capsys).splitlines()
        report = json.loads(told(capsys, "--json"))
    assert lines[0].startswith("/device:GPU:0  Fake GPU, 1 GiB, compute capability ")
    assert lines[1].startswith("/device:GPU:1  Fake GPU, ")
    assert any(line.startswith("driver         CUDA 12.4") for line in lines)
    assert lines[-1] == "run a graph there: graphmill run MODEL --devices GPU=2"
    assert [each["device"] for each in report["devices"]] == ["/device:GPU:0", "/device:GPU:1"]
    assert report["devices"][0]["memory"] == 1 << 30 and report["missing"] == ""
    assert [each["name"] for each in report["libraries"]] == [
        "driver",
        "cuda-bindings",
        "llvmlite",
        "cuBLASLt",
        "cuDNN",
    ]


def test_those_that_are_visible(capsys: pytest.CaptureFixture[str]) -> None:
    with choose.using(FakeDriver(3)):
        try:
            settings.configure(DeviceOptions(visible=(2,)))
            assert [each["device"] for each in json.loads(told(capsys, "--json"))["devices"]] == ["/device:GPU:0"]
        finally:
            settings.forget()


def test_without_a_gpu(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(VARIABLE, "off")
    lines = told(capsys).splitlines()
    assert lines[0] == f"there is no GPU here: {VARIABLE} is off; graphs run on the CPU"
    report = json.loads(told(capsys, "--json"))
    assert report["devices"] == [] and report["missing"].endswith(f"{VARIABLE} is off")
    assert report["libraries"][0]["missing"] == report["missing"]


def test_what_is_missing_and_what_brings_it(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    def nothing(name: str) -> str:
        raise found.PackageNotFoundError(name)

    monkeypatch.setattr(found, "version", nothing)
    monkeypatch.setenv(VARIABLE, "off")
    text = told(capsys)
    assert "cuda-bindings  not installed  (calls the driver)" in text.splitlines()
    assert 'what is missing comes with: pip install "graphmill[cuda]"' in text.splitlines()


def test_a_variable_that_says_nothing(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(VARIABLE, "maybe")
    assert told(capsys).startswith("GRAPHMILL_CUDA is 'maybe'; expected off, fake")


MODEL = """
from toolkit import client as gm
x = gm.placeholder(gm.float32, [None, 2], name="x")
gm.ops.as_string(gm.ops.transpose(x, [1, 0], name="turned"), name="text")
with gm.get_default_graph().device("/device:GPU:0"):
    gm.ops.reshape(x, [-1], name="flat")
"""


@pytest.fixture
def model(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    """A graph, and two GPUs of which nothing was said."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "model.py").write_text(MODEL)
    assert run(["build", "model.py", "-o", "model.pb"]) == 0
    with choose.using(FakeDriver(2, memory=1 << 20)):
        yield "model.pb"
    settings.forget()


def test_a_graph_runs_on_a_gpu(model: str, capsys: pytest.CaptureFixture[str]) -> None:
    words = ["run", model, "--feed", "x=[[1,2],[3,4]]", "--devices", "GPU=1", "--deterministic", "-v"]
    assert run([*words, "--fetch", "turned", "--gpu-memory-limit", "0.5"]) == 0
    assert capsys.readouterr().out == "turned =\n[[1., 3.],\n [2., 4.]]\n"
    assert device.device(0).pool.budget.limit == 1 << 19 and device.device(0).deterministic
    assert run([*words, "--fetch", "turned", "--profile"]) == 0
    report = capsys.readouterr().out
    assert re.search(r"peak tensor memory .* on /job:localhost/replica:0/task:0/device:GPU:0", report), report


def test_a_graph_is_too_large_for_a_gpu(model: str, capsys: pytest.CaptureFixture[str]) -> None:
    words = ["run", model, "--feed", f"x={[[0, 1]] * 1000}", "--devices", "GPU=1", "--fetch", "turned"]
    assert run([*words, "--gpu-memory-limit", "8K"]) == 3
    error = capsys.readouterr().err
    assert "GPU:0 has no room for 8000 bytes" in error and error.count("\n") == 1


def test_without_soft_placement_a_node_without_a_kernel_is_refused(
    model: str, capsys: pytest.CaptureFixture[str]
) -> None:
    words = ["run", model, "--feed", "x=[[1,2]]", "--fetch", "flat", "--no-soft-placement"]
    assert run([*words, "--devices", "GPU=1"]) == 0
    assert run(words) == 2
    assert "no device fits /device:GPU:0" in capsys.readouterr().err


def test_more_than_there_are(model: str, capsys: pytest.CaptureFixture[str]) -> None:
    words = ["run", model, "--feed", "x=[[1,2]]", "--fetch", "flat", "--devices"]
    assert run([*words, "GPU=3"]) == 2
    assert capsys.readouterr().err == (
        "graphmill: error: --devices: there cannot be 3 devices of type GPU here; there is GPU:0 to GPU:1\n"
    )
