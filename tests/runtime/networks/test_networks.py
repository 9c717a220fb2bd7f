"""Frozen networks that tf.keras.applications builds give TensorFlow's numbers."""

from __future__ import annotations

import pytest

from tests import models
from tests.runtime.networks.network_case import check_outputs, far_of_run
from toolkit.formats.models.model import read_model
from toolkit.runtime.session import Session

pytestmark = pytest.mark.tensorflow


@pytest.mark.parametrize("name", ["resnet50", "mobilenet_v2", "efficientnet_b0"])
def test_frozen_network(name: str) -> None:
    built = getattr(models, name)()
    arrays = built.arrays()
    spread = arrays["output"].max(axis=0) - arrays["output"].min(axis=0)
    assert spread.max() > 0.01, "the network's output must vary with its input, or the comparison proves nothing"
    model, feeds = read_model(str(built.path)), {built.input: arrays["input"]}
    with Session(model) as running:
        got = running.run(built.output, feeds)
    check_outputs([{"": got}], {"": arrays["output"]}, far_of_run(model, {"": built.output}, feeds))
