"""ResNet-50 and MobileNetV2 in 8 bits, quantized for each channel as TensorFlow's tools write it; and in float32.

Weights pass a QuantizeAndDequantizeV3 with a range for each output channel, what layers give passes a
FakeQuantWithMinMaxVars with a calibrated range, as quantization-aware training leaves them (batch norms folded). The
float32 network has the same weights without these nodes. And what `graphmill optimize` makes of that one: the pass
quantize_static, with ranges that it measures on images.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

from tests.bench.workloads.base import Target, Workload
from tests.bench.workloads.networks import images
from tests.models import CACHE, ROOT, Built, builder
from tests.network_models import _freeze

SIDE = 224
#: what says how `optimize` quantizes
_PASS = [
    ROOT / "toolkit" / name
    for name in (
        "passes/optimize/quantization/quantize_static.py", "passes/optimize/quantization/rounded_tensors.py",
        "runtime/analysis/calibration.py",
    )
]  # fmt: skip


class Layers:
    """Layers that get their weights and ranges when they are first applied, and use them afterwards.

    Args:
        seed: of the weights.

    Attributes:
        rounds: whether numbers are rounded to 8 bits.
    """

    def __init__(self, seed: int):
        import numpy as np

        self._random = np.random.default_rng(seed)
        self._known: list[Any] = []
        self._next = 0
        self.rounds = True

    def restart(self) -> None:
        """The next layer is the first one."""
        self._next = 0

    def _found(self, make: Callable[[], Any]) -> Any:
        if self._next == len(self._known):
            self._known.append(make())
        self._next += 1
        return self._known[self._next - 1]

    def round(self, x: Any) -> Any:
        """x in 256 steps over the range of the first x; 0 is one of them."""
        import numpy as np
        import tensorflow as tf

        def calibrate() -> tuple[Any, Any]:
            low, high = float(np.min(x)), float(np.max(x))
            step = high / 255 if low >= 0 else max(-low / 128, high / 127)
            return (np.float32(0), np.float32(high)) if low >= 0 else (np.float32(-128 * step), np.float32(127 * step))

        low, high = self._found(calibrate)
        return tf.quantization.fake_quant_with_min_max_vars(x, low, high) if self.rounds else x

    def conv(
        self, x: Any, channels: int, size: int = 1, stride: int = 1, *, depthwise: bool = False, strength: float = 1.0,
        activation: Callable[[Any], Any] | None = None,
    ) -> Any:  # fmt: skip
        """A convolution whose sums are normalised by the first x's statistics, as a folded batch norm does it."""
        import numpy as np
        import tensorflow as tf

        apply = tf.nn.depthwise_conv2d if depthwise else tf.nn.conv2d

        def convolve(weights: Any) -> Any:
            strides = [1, stride, stride, 1]
            return apply(x, weights, strides, "SAME")

        def calibrate() -> tuple[Any, Any]:
            inputs = int(x.shape[-1])
            shape = (size, size, inputs, 1) if depthwise else (size, size, inputs, channels)
            weights = self._random.standard_normal(shape).astype(np.float32)
            sums = np.asarray(convolve(weights))
            outputs = sums.shape[-1]
            low, high = 0.7 * strength, 1.3 * strength
            gamma = self._random.uniform(low, high, outputs) / (sums.std(axis=(0, 1, 2)) + 1e-3)
            offset = self._random.uniform(-0.3, 0.3, outputs) - sums.mean(axis=(0, 1, 2)) * gamma
            factor = gamma[:, None] if depthwise else gamma
            return (weights * factor).astype(np.float32), offset.astype(np.float32)

        weights, offset = self._found(calibrate)
        y = tf.nn.bias_add(convolve(self._rounded(weights, 2 if depthwise else 3)), offset)
        return self.round(y if activation is None else activation(y))

    def _rounded(self, weights: Any, axis: int) -> Any:
        """Weights in 255 steps around 0, of a size of its own for each output channel."""
        import numpy as np
        import tensorflow as tf

        if not self.rounds:
            return tf.constant(weights)
        most = np.abs(weights).max(axis=tuple(a for a in range(weights.ndim) if a != axis))
        return tf.raw_ops.QuantizeAndDequantizeV3(
            input=weights, input_min=-most, input_max=most, num_bits=8, signed_input=True, range_given=True,
            narrow_range=True, axis=axis,
        )  # fmt: skip

    def scores(self, x: Any, classes: int) -> Any:
        """The softmax of a product whose results vary by a fifth of themselves over the first x."""
        import numpy as np
        import tensorflow as tf

        features = self.round(tf.reduce_mean(x, axis=(1, 2)))

        def calibrate() -> tuple[Any, Any]:
            weights = self._random.standard_normal((int(features.shape[-1]), classes)).astype(np.float32)
            mean = np.asarray(features).mean(axis=0)
            weights *= 0.2 / ((np.asarray(features) - mean) @ weights).std()
            return weights, (-mean @ weights).astype(np.float32)

        weights, offset = self._found(calibrate)
        return tf.nn.softmax(tf.nn.bias_add(tf.matmul(features, self._rounded(weights, 1)), offset))


def resnet50(layers: Layers, image: Any) -> Any:
    """He et al. (2015), as keras.applications has it: strides in the first convolution of a block."""
    import tensorflow as tf

    relu = tf.nn.relu
    x = layers.conv(layers.round(image), 64, 7, 2, activation=relu)
    x = tf.nn.max_pool2d(x, 3, 2, "SAME")
    for stage, blocks in enumerate((3, 4, 6, 3)):
        width = 64 << stage
        for block in range(blocks):
            stride = 2 if stage and not block else 1
            shortcut = x if block else layers.conv(x, 4 * width, 1, stride)
            y = layers.conv(x, width, 1, stride, activation=relu)
            y = layers.conv(y, width, 3, activation=relu)
            y = layers.conv(y, 4 * width, strength=0.25)
            x = layers.round(relu(shortcut + y))
    return layers.scores(x, 1000)


def mobilenet_v2(layers: Layers, image: Any) -> Any:
    """Sandler et al. (2018), width 1."""
    import tensorflow as tf

    relu6 = tf.nn.relu6
    x = layers.conv(layers.round(image), 32, 3, 2, activation=relu6)
    for factor, channels, count, first in (
        (1, 16, 1, 1), (6, 24, 2, 2), (6, 32, 3, 2), (6, 64, 4, 2), (6, 96, 3, 1), (6, 160, 3, 2), (6, 320, 1, 1)
    ):  # fmt: skip
        for index in range(count):
            inputs, stride = int(x.shape[-1]), 1 if index else first
            y = layers.conv(x, factor * inputs, activation=relu6) if factor > 1 else x
            y = layers.conv(y, 0, 3, stride, depthwise=True, activation=relu6)
            y = layers.conv(y, channels, strength=0.4 if index else 1.0)
            x = layers.round(x + y) if index else y
    return layers.scores(layers.conv(x, 1280, activation=relu6), 1000)


#: how far rounding to 8 bits moved a score at most, of three images, against the largest score
_ROUNDED = {"ResNet50": 0.062, "MobileNetV2": 0.19}
NETWORKS: dict[str, Callable[[Layers, Any], Any]] = {"ResNet50": resnet50, "MobileNetV2": mobilenet_v2}


@builder(images, Layers, *NETWORKS.values(), _freeze)
def int8_classifier(folder: Path, name: str, precision: str) -> dict[str, Any]:
    """A frozen network, "int8" or "f32": input "image", output "scores"."""
    import numpy as np
    import tensorflow as tf

    layers = Layers(11)
    batch = images(np.random.default_rng(7), 12, SIDE, False)
    network = NETWORKS[name]
    network(layers, tf.constant(batch))
    layers.rounds = precision == "int8"

    def scored(image: Any) -> dict[str, Any]:
        layers.restart()
        return {"scores": network(layers, image)}

    spec = tf.TensorSpec([None, SIDE, SIDE, 3], tf.float32, name="image")
    return _freeze(folder, scored, [spec], {"image": batch[:2]}, False)


@builder(images, *_PASS)
def optimized_int8(folder: Path, source: str) -> dict[str, Any]:
    """The network in the cache's folder `source` in 8 bits, as `graphmill optimize` makes it with a dozen images."""
    import numpy as np

    from commands.main import run

    plain = Built(CACHE / source, json.loads((CACHE / source / "info.json").read_text()))
    np.savez(folder / "images.npz", image=images(np.random.default_rng(7), 12, SIDE, False))
    options = ["--passes", "quantize_static", "--calibrate", str(folder / "images.npz")]
    if run(["optimize", str(plain.path), *options, "-o", str(folder / "frozen.pb")]):
        raise RuntimeError(f"{source} could not be quantized")
    return {key: plain.info[key] for key in ("main", "inputs", "outputs")}


def _optimized(name: str) -> Built:
    return optimized_int8(int8_classifier(name, "f32").folder.name)


def _feeds(random: Any, *, batch: int) -> dict[str, Any]:
    return {"image": images(random, batch, SIDE, False)}


def workloads() -> list[Workload]:
    """Both in 8 bits, for one image, as made by hand and by `optimize`.

    Engines add in other orders, so that a few numbers near the middle between two steps are rounded to the other one,
    and those move others, until engines are about as far from each other as each is from the float32 network.
    `tests/compiler/integers/test_round_trips.py` holds each layer to the few ties that there are.
    """
    targets = (Target(("onnxruntime", "openvino"), 1.0), Target(("tensorflow",), 0.70))
    made: dict[str, Callable[[str], Any]] = {
        "int8": lambda name: int8_classifier(name, "int8"), "optimized to int8": _optimized
    }  # fmt: skip
    return [
        Workload(
            f"{name} {how} batch 1", "quantized", partial(model, name), partial(_feeds, batch=1), targets,
            onnx_shapes={"image": (1, SIDE, SIDE, 3)},
            rtol=2 * _ROUNDED[name],  # both engines' roundings
        )
        for how, model in made.items()
        for name in NETWORKS
    ]  # fmt: skip
