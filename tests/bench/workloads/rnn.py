"""LSTM(128) and GRU(128) over 50 steps, for inference, with their loops in both of TensorFlow's forms."""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import Any

from tests.bench.workloads.base import Target, Workload, tensorflow
from tests.models import builder
from tests.network_models import _freeze

BATCH, STEPS, FEATURES, UNITS = 32, 50, 64, 128
#: name of the form to whether the functional loop is lowered to Enter, Switch, Merge, ...
FORMS = {"while-loop": True, "functional": False}


@builder(_freeze)
def recurrent_layer(folder: Path, layer: str, form: str) -> dict[str, Any]:
    """Keras's LSTM or GRU, frozen: input "sequence" float32[batch, 50, 64], output "hidden" float32[batch, 50, 128]."""
    import keras
    import numpy as np
    import tensorflow as tf

    keras.utils.set_random_seed(3)
    sequence = keras.Input((STEPS, FEATURES))
    network = keras.Model(sequence, getattr(keras.layers, layer)(UNITS, return_sequences=True)(sequence))
    batch = np.random.default_rng(5).standard_normal((2, STEPS, FEATURES)).astype(np.float32)
    spec = tf.TensorSpec([None, STEPS, FEATURES], tf.float32, name="sequence")
    return _freeze(folder, lambda x: {"hidden": network(x)}, [spec], {"sequence": batch}, FORMS[form])


def _feeds(random: Any, *, batch: int) -> dict[str, Any]:
    return {"sequence": random.standard_normal((batch, STEPS, FEATURES), dtype="float32")}


def workloads() -> list[Workload]:
    """Both forms of the LSTM's loop; the functional one of both layers beside peers that read ONNX, for 32 and 1."""
    found: list[Workload] = []
    for layer, gates, form, batch in (
        ("LSTM", 4, "while-loop", BATCH), ("LSTM", 4, "functional", BATCH), ("LSTM", 4, "functional", 1),
        ("GRU", 3, "functional", BATCH), ("GRU", 3, "functional", 1),
    ):  # fmt: skip
        weights = (FEATURES + UNITS) * gates * UNITS
        work = (2.0 * batch * STEPS * weights, 4.0 * (weights + batch * STEPS * (FEATURES + UNITS)))
        converted = form == "functional"
        # tf2onnx makes a loop of the GRU, which OpenVINO refuses
        readers = ("onnxruntime", "openvino") if layer == "LSTM" else ("onnxruntime",)
        both = (Target(readers, 1.0),) if converted else ()
        name = f"{layer}({UNITS}) T={STEPS} batch {batch}, {form}"
        found.append(
            Workload(
                name, "rnn", partial(recurrent_layer, layer, form), partial(_feeds, batch=batch),
                (*tensorflow(0.50), *both), work=work,
                onnx_shapes={"sequence": (batch, STEPS, FEATURES)} if converted else {},
            )
        )  # fmt: skip
    return found
