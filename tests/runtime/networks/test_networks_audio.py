"""A published model with trained weights: the audio transcription network of the `basic-pitch` package."""

from __future__ import annotations

from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import pytest

from tests.runtime.networks.network_case import Far, assert_varies, check_outputs, far_of_signature, run_signature
from tests.runtime.networks.published import Package
from toolkit.formats.models.model import read_model

pytestmark = pytest.mark.tensorflow

MODEL = "basic_pitch/saved_models/icassp_2022/nmp"
PACKAGE = Package(
    "basic-pitch",
    "0.4.0",
    "basic_pitch-0.4.0-py2.py3-none-any.whl",
    "738adb503aae7fdfc7d1e1511aa0ce35052315f260a19531ef4c356708425db0",
    MODEL,
)
#: the ONNX twin numbers its outputs
ONNX_OUTPUTS = {
    "contour": "StatefulPartitionedCall:0",
    "note": "StatefulPartitionedCall:1",
    "onset": "StatefulPartitionedCall:2",
}


@pytest.fixture(scope="module")
def package() -> Path:
    return PACKAGE.fetch()


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


def _far(package: Path, audio: Any) -> Far:
    return far_of_signature(read_model(str(package / MODEL)), {"input_2": audio})


def test_like_tensorflow(tf: ModuleType, package: Path, audio: Any, ours: dict[str, Any]) -> None:
    """By the loader of TensorFlow 1: that of TensorFlow 2 wants the model's optimizer as a Python object."""
    v1 = tf.compat.v1
    with tf.Graph().as_default(), v1.Session() as session:
        signature = v1.saved_model.load(session, ["serve"], str(package / MODEL)).signature_def["serving_default"]
        fetches = {label: info.name for label, info in signature.outputs.items()}
        wanted = session.run(fetches, {signature.inputs["input_2"].name: audio})
    assert_varies(wanted)
    check_outputs([ours], wanted, _far(package, audio))


def test_like_its_onnx_twin(package: Path, audio: Any, ours: dict[str, Any]) -> None:
    import onnxruntime

    session = onnxruntime.InferenceSession(str(package / f"{MODEL}.onnx"), providers=["CPUExecutionProvider"])
    values = session.run(list(ONNX_OUTPUTS.values()), {session.get_inputs()[0].name: audio})
    check_outputs([ours], dict(zip(ONNX_OUTPUTS, values, strict=True)), _far(package, audio))


def test_hears_the_notes(ours: dict[str, Any]) -> None:
    """The loudest keys are the ones that were played (piano key 48 is A4, at 440 Hz)."""
    loudest = [set(np.argsort(clip.max(axis=0))[-count:]) for clip, count in zip(ours["note"], (3, 2), strict=True)]
    assert loudest == [{48, 52, 55}, {34, 41}]
