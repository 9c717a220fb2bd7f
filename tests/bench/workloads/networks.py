"""Frozen, calibrated classifiers of keras.applications at their own sizes, for batches of 1 and 16."""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import Any

from tests.bench.workloads.base import Target, Workload
from tests.models import builder
from tests.network_models import _calibrate, _freeze

#: application to (pixels, whether it scales 0..255 itself)
NETWORKS = {
    "ResNet50": (224, False),
    "MobileNetV2": (224, False),
    "EfficientNetB0": (224, True),
    "InceptionV3": (299, False),
    "DenseNet121": (224, False),
    "Xception": (299, False),
    "NASNetMobile": (224, False),
}
#: those that are measured in bfloat16 too
BFLOAT16 = ("ResNet50", "MobileNetV2", "EfficientNetB0", "InceptionV3")
BATCHES = (1, 16)


def images(random: Any, count: int, side: int, raw: bool) -> Any:
    """Images float32[count, side, side, 3] that differ in more than noise: waves of their own on each.

    They span 0 to 255 if `raw`, else about -2 to 2.
    """
    import numpy as np

    line = np.arange(side, dtype=np.float32) / side
    result = np.empty((count, side, side, 3), np.float32)
    for image in result:
        image[:] = random.uniform(-1, 1, 3) + 0.3 * random.standard_normal((side, side, 1), np.float32)
        for _ in range(4):
            fx, fy, phase = random.uniform(-12, 12), random.uniform(-12, 12), random.uniform(0, 6.3)
            # cos(a + b) from cosines and sines of lines: an image costs no transcendental function per pixel
            row, column = 6.3 * fx * line, 6.3 * fy * line + phase
            wave = np.outer(np.cos(column), np.cos(row)) - np.outer(np.sin(column), np.sin(row))
            image += wave[..., None].astype(np.float32) * random.uniform(-1, 1, 3).astype(np.float32)
    squashed = 255 / (1 + np.exp(-result))
    return squashed if raw else squashed / 64 - 2


@builder(images, _freeze, _calibrate)
def classifier(folder: Path, name: str) -> dict[str, Any]:
    """A frozen network whose batch norms are calibrated and whose scores vary: input "image", output "scores"."""
    import keras
    import numpy as np
    import tensorflow as tf

    keras.utils.set_random_seed(11)
    side, raw = NETWORKS[name]
    network = getattr(keras.applications, name)(weights=None, input_shape=(side, side, 3))
    batch = images(np.random.default_rng(7), 12, side, raw)
    last = [layer for layer in network.layers if hasattr(layer, "kernel")][-1]
    until_last = keras.Model(network.input, last.input)
    _calibrate(until_last, batch)
    features = np.asarray(until_last(batch, training=False))
    mean = features.mean(axis=0)
    kernel = np.asarray(last.kernel)
    kernel = kernel * (0.2 / ((features - mean) @ kernel).std())  # scores that vary by a fifth of themselves
    last.kernel.assign(kernel)
    last.bias.assign(-mean @ kernel)
    spec = tf.TensorSpec([None, side, side, 3], tf.float32, name="image")
    return _freeze(folder, lambda x: {"scores": network(x, training=False)}, [spec], {"image": batch[:2]}, False)


def _feeds(random: Any, *, name: str, batch: int) -> dict[str, Any]:
    side, raw = NETWORKS[name]
    return {"image": images(random, batch, side, raw)}


def workloads() -> list[Workload]:
    """Every network at every batch in float32, then those of BFLOAT16 in bfloat16."""
    found: list[Workload] = []
    for precision in ("f32", "bf16"):
        for name in NETWORKS if precision == "f32" else BFLOAT16:
            for batch in BATCHES:
                targets = (Target(("onnxruntime", "openvino"), 0.97), Target(("tensorflow",), 0.70))
                label = f"{name} batch {batch}"
                if precision == "bf16":
                    targets, label = (Target(("openvino",), 1.05),), f"{label} bf16"
                side = NETWORKS[name][0]
                found.append(
                    Workload(
                        label, "networks", partial(classifier, name), partial(_feeds, name=name, batch=batch), targets,
                        precision, onnx_shapes={"image": (batch, side, side, 3)},
                        rtol=1e-3 if precision == "f32" else 0.15,  # bfloat16 keeps 8 bits: OpenVINO is up to 0.08 off
                    )
                )  # fmt: skip
    return found
