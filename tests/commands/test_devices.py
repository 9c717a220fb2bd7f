"""graphmill devices."""

from __future__ import annotations

import json

import pytest

from commands.main import run
from toolkit.kernels.cuda import found, settings
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
