"""Frozen networks that tf.keras.applications builds give TensorFlow's numbers."""

from __future__ import annotations

import numpy as np
import pytest

from tests import models
from toolkit.formats.model import read_model
from toolkit.runtime.session import Session

pytestmark = pytest.mark.tensorflow


@pytest.mark.parametrize("name", ["resnet50", "mobilenet_v2", "efficientnet_b0"])
def test_frozen_network(name: str) -> None:
    built = getattr(models, name)()
    arrays = built.arrays()
    spread = arrays["output"].max(axis=0) - arrays["output"].min(axis=0)
    assert spread.max() > 0.01, "the network's output must vary with its input, or the comparison proves nothing"
    got = Session(read_model(str(built.path))).run(built.output, {built.input: arrays["input"]})
    np.testing.assert_allclose(got, arrays["output"], rtol=1e-3, atol=1e-5)
