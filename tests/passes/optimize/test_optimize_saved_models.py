"""SavedModels of TensorFlow 2: optimized, they load there as before, objects and all, and their signatures agree."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from commands import main
from tests import models


def _arguments(tf: Any, function: Any) -> dict[str, Any]:
    made: dict[str, Any] = {}
    for name, spec in function.structured_input_signature[1].items():
        shape = [size or 2 for size in spec.shape]
        made[name] = tf.fill(shape, "a") if spec.dtype == tf.string else tf.ones(shape, spec.dtype)
    return made


@pytest.mark.long
@pytest.mark.tensorflow
@pytest.mark.parametrize("preset", ["inference", "training", "size"])
@pytest.mark.parametrize("name", ["saved_model_tf2", "saved_model_keras"])
def test_optimized_models_load_in_tensorflow(tf: Any, tmp_path: Path, name: str, preset: str) -> None:
    source, made = getattr(models, name)().path, tmp_path / "made"
    line = ["optimize", str(source), "--preset", preset, "--verify", "random", "-o", str(made)]
    assert main.run(line) == 0
    before, after = tf.saved_model.load(str(source)), tf.saved_model.load(str(made))
    assert set(before.signatures) == set(after.signatures)
    for key, function in before.signatures.items():
        wanted = function(**_arguments(tf, function))
        found = after.signatures[key](**_arguments(tf, function))
        for label, value in wanted.items():
            if value.dtype == tf.string:
                assert np.array_equal(found[label].numpy(), value.numpy())
            else:
                # inference takes cheaper operations, each a rounding or two away
                np.testing.assert_allclose(found[label].numpy(), value.numpy(), rtol=1e-4, atol=1e-6)
