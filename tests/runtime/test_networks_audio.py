"""A published model with trained weights: the audio transcription network of the `basic-pitch` package."""

from __future__ import annotations

import fcntl
import hashlib
import subprocess
import sys
import zipfile
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import pytest

from tests.models import ROOT
from tests.runtime.network_case import assert_varies, check_outputs, run_signature
from toolkit.formats.model import read_model

pytestmark = pytest.mark.tensorflow

WHEEL = "basic_pitch-0.4.0-py2.py3-none-any.whl"
SHA256 = "738adb503aae7fdfc7d1e1511aa0ce35052315f260a19531ef4c356708425db0"
MODEL = "basic_pitch/saved_models/icassp_2022/nmp"
#: the ONNX twin numbers its outputs
ONNX_OUTPUTS = {
    "contour": "StatefulPartitionedCall:0",
    "note": "StatefulPartitionedCall:1",
    "onset": "StatefulPartitionedCall:2",
}


@pytest.fixture(scope="module")
def package() -> Path:
    """The unpacked wheel, fetched once (0.8 MB). Its dependencies, an old TensorFlow among them, are not needed."""
    cache = ROOT / ".cache" / "test-packages"
    cache.mkdir(parents=True, exist_ok=True)
    folder = cache / "basic_pitch-0.4.0"
    with (cache / "basic_pitch.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not folder.exists():
            _unpack(_fetch(cache), folder)
    return folder


def _fetch(cache: Path) -> Path:
    wheel = cache / WHEEL
    if not wheel.exists():
        command = [sys.executable, "-m", "pip", "download", "--quiet", "--no-deps", "--disable-pip-version-check"]
        command += ["--dest", str(cache), "basic-pitch==0.4.0"]
        result = subprocess.run(command, capture_output=True, text=True, check=False)
        if result.returncode != 0:
            pytest.skip(f"basic-pitch cannot be fetched from the package index: {result.stderr.strip()[-200:]}")
    digest = hashlib.sha256(wheel.read_bytes()).hexdigest()
    assert digest == SHA256, f"{WHEEL} is not the published one: its SHA-256 is {digest}"
    return wheel


def _unpack(wheel: Path, folder: Path) -> None:
    scratch = folder.with_suffix(".tmp")
    with zipfile.ZipFile(wheel) as archive:
        archive.extractall(scratch, [name for name in archive.namelist() if name.startswith(MODEL)])
    scratch.rename(folder)


@pytest.fixture(scope="module")
def audio() -> Any:
    """Two seconds of two chords, shape (2, 43844, 1) at 22,050 Hz, with the noise that every recording has.

    Without it the logarithm of the spectrum's empty bins would show nothing but rounding errors.
    """
    time = np.arange(43844) / 22050
    random = np.random.default_rng(1)
    clips = [
        sum(np.sin(2 * np.pi * pitch * time) * np.exp(-2 * (time - start)) * (time > start) for pitch, start in notes)
        for notes in (((440.0, 0.0), (554.4, 0.7), (659.3, 1.1)), ((196.0, 0.2), (293.7, 0.5)))
    ]
    return (0.3 * np.stack(clips)[..., None] + 0.01 * random.standard_normal((2, 43844, 1))).astype(np.float32)


@pytest.fixture(scope="module")
def ours(package: Path, audio: Any) -> dict[str, Any]:
    return run_signature(read_model(str(package / MODEL)), {"input_2": audio})


def test_like_tensorflow(tf: ModuleType, package: Path, audio: Any, ours: dict[str, Any]) -> None:
    """By the loader of TensorFlow 1: that of TensorFlow 2 wants the model's optimizer as a Python object."""
    v1 = tf.compat.v1
    with tf.Graph().as_default(), v1.Session() as session:
        signature = v1.saved_model.load(session, ["serve"], str(package / MODEL)).signature_def["serving_default"]
        fetches = {label: info.name for label, info in signature.outputs.items()}
        wanted = session.run(fetches, {signature.inputs["input_2"].name: audio})
    assert_varies(wanted)
    check_outputs(ours, wanted)


def test_like_its_onnx_twin(package: Path, audio: Any, ours: dict[str, Any]) -> None:
    import onnxruntime

    session = onnxruntime.InferenceSession(str(package / f"{MODEL}.onnx"), providers=["CPUExecutionProvider"])
    values = session.run(list(ONNX_OUTPUTS.values()), {session.get_inputs()[0].name: audio})
    check_outputs(ours, dict(zip(ONNX_OUTPUTS, values, strict=True)))


def test_hears_the_notes(ours: dict[str, Any]) -> None:
    """The loudest keys are the ones that were played (piano key 48 is A4, at 440 Hz)."""
    loudest = [set(np.argsort(clip.max(axis=0))[-count:]) for clip, count in zip(ours["note"], (3, 2), strict=True)]
    assert loudest == [{48, 52, 55}, {34, 41}]
