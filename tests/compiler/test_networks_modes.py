"""Whole networks give the same in every mode: compiled with oneDNN, without, node by node, in the dataflow executor."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from tests import models, network_models
from tests.bench.workloads.rnn import recurrent_layer
from tests.compiler.modes import MODES, check_modes
from tests.runtime.networks.network_case import check_outputs, far_of_signature, fed
from tests.runtime.networks.test_networks_audio import MODEL, PACKAGE
from toolkit.formats.models.model import read_model
from toolkit.runtime.jobs.job import run_model
from toolkit.runtime.jobs.options import RunOptions

pytestmark = pytest.mark.tensorflow  # which builds them

_FROZEN: dict[str, Callable[[], Any]] = {
    "lstm, lowered": lambda: recurrent_layer("LSTM", "while-loop"),
    "lstm, functional": lambda: recurrent_layer("LSTM", "functional"),
    "recurrent, lowered": lambda: network_models.recurrent("lowered"),
    "recurrent, functional": lambda: network_models.recurrent("functional"),
    "text": network_models.text_cnn,
    "u-net": network_models.unet,
    "batch norm": network_models.fused_batch_norm,
}


@pytest.mark.parametrize("name", ["mobilenet_v2", "efficientnet_b0"])
def test_image_networks(name: str) -> None:
    built = getattr(models, name)()
    check_modes(read_model(str(built.path)), [built.output], {built.input: built.arrays()["input"]}, large=True)


@pytest.mark.parametrize("name", sorted(_FROZEN))
def test_frozen_networks(name: str) -> None:
    built = _FROZEN[name]()
    inputs = fed(built.arrays("inputs.npz"))
    feeds = {built.info["inputs"][label]: value for label, value in inputs.items()}
    check_modes(read_model(str(built.path)), list(built.info["outputs"].values()), feeds, large=True)


def _check_signature(path: str, feeds: dict[str, Any], signature: str = "serving_default") -> None:
    found: list[dict[str, Any]] = []
    for environment, settings in MODES.values():
        with pytest.MonkeyPatch.context() as patch:
            for name, value in environment.items():
                patch.setenv(name, value)
            options = RunOptions(feeds=feeds, signature=signature, **settings)
            found.append(run_model(read_model(path), options, log=print).outputs)
    wanted, *others = found
    check_outputs(others, wanted, far_of_signature(read_model(path), feeds, signature))


@pytest.mark.parametrize("name", ["detector", "ragged_text", "seq2seq", "transformer"])
def test_saved_models(name: str) -> None:
    built = getattr(network_models, name)()
    inputs = built.arrays("inputs.npz")
    _check_signature(str(built.path), fed(inputs), built.info.get("signature", "serving_default"))


def test_audio_network() -> None:
    """Two chords with the noise that every recording has: of silence the logarithm shows only rounding errors."""
    time = np.arange(43844) / 22050
    tones = np.stack([np.sin(2 * np.pi * pitch * time) for pitch in (440.0, 196.0)])[..., None]
    audio = 0.3 * tones + 0.05 * np.random.default_rng(1).standard_normal(tones.shape)
    _check_signature(str(PACKAGE.fetch() / MODEL), {"input_2": audio.astype(np.float32)})
