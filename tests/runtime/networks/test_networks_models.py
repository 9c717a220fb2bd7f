"""Recurrent, convolutional, text, translation and detection networks give TensorFlow's numbers."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from tests import network_models
from tests.models import Built
from tests.runtime.networks.network_case import (
    assert_varies,
    check_outputs,
    far_of_case,
    far_of_signature,
    fed,
    run_case,
    run_signature,
)
from toolkit.formats.models.model import read_model

pytestmark = pytest.mark.tensorflow


def _check(built: Built, **session: Any) -> dict[str, Any]:
    wanted = built.arrays("outputs.npz")
    assert_varies(wanted)
    got = run_case(built, **session)
    check_outputs([got], wanted, far_of_case(built))
    return got


@pytest.mark.parametrize("tokens", [False, True])
@pytest.mark.parametrize("control_flow", ["lowered", "functional"])
def test_recurrent(control_flow: str, tokens: bool) -> None:
    built = network_models.recurrent(control_flow)
    ops = {node.op for node in read_model(str(built.path)).graph}
    assert ("NextIteration" in ops) == (control_flow == "lowered")
    assert bool(ops & {"While", "StatelessWhile"}) == (control_flow == "functional")
    _check(built, force_tokens=tokens)


@pytest.mark.parametrize("name", ["unet", "text_cnn", "fused_batch_norm"])
def test_frozen(name: str) -> None:
    _check(getattr(network_models, name)())


@pytest.mark.parametrize("name", ["transformer", "detector", "ragged_text", "seq2seq"])
def test_saved_model(name: str) -> None:
    _check(getattr(network_models, name)())


def test_detector_finds_several_boxes() -> None:
    """Suppression must have something to do."""
    wanted = network_models.detector().arrays("outputs.npz")
    assert wanted["count"].min() >= 2
    assert wanted["valid"].min() >= 2


def test_greedy_search() -> None:
    built = network_models.seq2seq()
    wanted = built.arrays("greedy.npz")
    assert len(np.unique(wanted["tokens"])) > 2
    model = read_model(str(built.path))
    inputs = fed(built.arrays("inputs.npz"))
    got = run_signature(model, inputs, "greedy")
    check_outputs([got], wanted, far_of_signature(model, inputs, "greedy"))


def test_beam_search_beats_greedy_or_equals_it() -> None:
    built = network_models.seq2seq()
    beam, greedy = run_case(built)["scores"], built.arrays("greedy.npz")["score"]
    assert (np.diff(beam, axis=1) <= 0).all()
    assert beam[:, 0].min() > -100
    assert greedy.shape == beam[:, 0].shape
