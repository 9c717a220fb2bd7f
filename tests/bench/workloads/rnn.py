"""LSTM(128) over 50 steps, batch 32, for inference, with its loop in both of TensorFlow's forms."""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import Any

from tests.bench.workloads.base import Workload, tensorflow
from tests.models import builder
from tests.network_models import _freeze

BATCH, STEPS, FEATURES, UNITS = 32, 50, 64, 128
#: name of the form to whether the functional loop is lowered to Enter, Switch, Merge, ...
FORMS = {"while-loop": True, "functional": False}


@builder(_freeze)
def lstm(folder: Path, form: str) -> dict[str, Any]:
    """Keras's LSTM, frozen: input "sequence" float32[batch, 50, 64], output "hidden" float32[batch, 50, 128]."""
    import keras
    import numpy as np
    import tensorflow as tf

    keras.utils.set_random_seed(3)
    sequence = keras.Input((STEPS, FEATURES))
    network = keras.Model(sequence, keras.layers.LSTM(UNITS, return_sequences=True)(sequence))
    batch = np.random.default_rng(5).standard_normal((2, STEPS, FEATURES)).astype(np.float32)
    spec = tf.TensorSpec([None, STEPS, FEATURES], tf.float32, name="sequence")
    return _freeze(folder, lambda x: {"hidden": network(x)}, [spec], {"sequence": batch}, FORMS[form])


def _feeds(random: Any) -> dict[str, Any]:
    return {"sequence": random.standard_normal((BATCH, STEPS, FEATURES), dtype="float32")}


def workloads() -> list[Workload]:
    """Both forms of the loop."""
    name = f"LSTM({UNITS}) T={STEPS} batch {BATCH}"
    weights = (FEATURES + UNITS) * 4 * UNITS
    work = (2.0 * BATCH * STEPS * weights, 4.0 * (weights + BATCH * STEPS * (FEATURES + UNITS)))
    return [
        Workload(f"{name}, {form}", "rnn", partial(lstm, form), _feeds, tensorflow(0.50), work=work) for form in FORMS
    ]
