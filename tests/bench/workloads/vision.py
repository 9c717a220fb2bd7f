"""Networks that are no classifiers: a U-Net, which labels pixels, and a detector with non-maximum suppression."""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import Any

from tests.bench.workloads.base import Target, Workload
from tests.bench.workloads.networks import images
from tests.models import builder
from tests.network_models import _calibrate, _freeze

#: pixels of the U-Net's images and channels of its levels, half of Ronneberger's (2015); pixels and classes of the
#: detector's, and how many boxes it keeps, as SSD's for COCO
UNET_SIDE, LEVELS = 256, (32, 64, 128, 256, 512)
DETECTOR_SIDE, CLASSES, KEPT = 320, 90, 100


@builder(images, _freeze, _calibrate)
def unet_network(folder: Path) -> dict[str, Any]:
    """A frozen U-Net: input "image" float32[batch, 256, 256, 3], output "probabilities" float32[batch, 256, 256, 4]."""
    import keras
    import numpy as np
    import tensorflow as tf

    keras.utils.set_random_seed(4)
    layers = keras.layers

    def block(x: Any, channels: int) -> Any:
        for _ in range(2):
            x = layers.Conv2D(channels, 3, padding="same", use_bias=False)(x)
            x = layers.ReLU()(layers.BatchNormalization()(x))
        return x

    image = x = keras.Input((UNET_SIDE, UNET_SIDE, 3))
    passed: list[Any] = []
    for channels in LEVELS[:-1]:
        passed.append(block(x, channels))
        x = layers.MaxPooling2D()(passed[-1])
    x = block(x, LEVELS[-1])
    for channels, across in zip(LEVELS[-2::-1], passed[::-1], strict=True):
        x = layers.Conv2DTranspose(channels, 2, strides=2, padding="same")(x)
        x = block(layers.Concatenate()([across, x]), channels)
    network = keras.Model(image, layers.Conv2D(4, 1)(x))
    batch = images(np.random.default_rng(7), 4, UNET_SIDE, False)
    _calibrate(network, batch)
    spec = tf.TensorSpec([None, UNET_SIDE, UNET_SIDE, 3], tf.float32, name="image")

    def label(x: Any) -> dict[str, Any]:
        return {"probabilities": tf.nn.softmax(network(x, training=False))}

    return _freeze(folder, label, [spec], {"image": batch[:1]}, False)


@builder(images, _freeze, _calibrate)
def detection_network(folder: Path) -> dict[str, Any]:
    """A frozen single-shot detector over MobileNetV2: input "image" float32[1, 320, 320, 3].

    Outputs: "scores" float32[100], of the boxes that suppression keeps, falling, and "covered" float32[4], the sum of
    these boxes by their scores: boxes of equal scores may come in either order.
    """
    import keras
    import numpy as np
    import tensorflow as tf

    keras.utils.set_random_seed(8)
    random = np.random.default_rng(8)
    backbone = keras.applications.MobileNetV2(
        weights=None, include_top=False, input_shape=(DETECTOR_SIDE, DETECTOR_SIDE, 3)
    )
    levels = [backbone.get_layer("block_13_expand_relu").output, backbone.output]
    network = keras.Model(backbone.input, levels)
    batch = images(random, 4, DETECTOR_SIDE, False)
    _calibrate(backbone, batch)
    features = network(batch, training=False)
    heads = [
        (random.standard_normal((1, 1, x.shape[-1], 6 * (4 + CLASSES))) / (x.shape[-1] ** 0.5 * np.std(x))).astype("f")
        for x in features
    ]

    def anchors(side: int) -> Any:
        """Centres and sides float32[side * side * 6, 4]."""
        place = (np.arange(side, dtype=np.float32) + 0.5) / side
        centres = np.stack(np.meshgrid(place, place, indexing="ij"), -1)[:, :, None].repeat(6, 2)
        sides = 2.0 / side * np.float32([[1, 1], [1.4, 0.7], [0.7, 1.4], [1.7, 0.6], [0.6, 1.7], [1.5, 1.5]])
        return np.concatenate([centres, np.broadcast_to(sides, centres.shape)], -1).reshape(-1, 4).astype(np.float32)

    def detect(image: Any) -> dict[str, Any]:
        boxes, scores = [], []
        for x, head in zip(network(image, training=False), heads, strict=True):
            raw = tf.reshape(tf.nn.conv2d(x, head, 1, "SAME"), [-1, 4 + CLASSES])
            anchor = anchors(int(x.shape[1]))
            centre = anchor[:, :2] + 0.1 * raw[:, :2] * anchor[:, 2:]
            side = anchor[:, 2:] * tf.exp(0.2 * tf.clip_by_value(raw[:, 2:4], -4.0, 4.0))
            boxes.append(tf.concat([centre - side / 2, centre + side / 2], -1))
            scores.append(tf.reduce_max(tf.sigmoid(raw[:, 4:] - 2.0), -1))
        box, score = tf.concat(boxes, 0), tf.concat(scores, 0)
        chosen = tf.image.non_max_suppression(box, score, KEPT, 0.5)
        best = tf.gather(score, chosen)
        covered = tf.reduce_sum(tf.gather(box, chosen) * best[:, None], 0)
        return {"scores": best, "covered": covered}

    spec = tf.TensorSpec([1, DETECTOR_SIDE, DETECTOR_SIDE, 3], tf.float32, name="image")
    return _freeze(folder, detect, [spec], {"image": batch[:1]}, False)


def _feeds(random: Any, *, side: int) -> dict[str, Any]:
    return {"image": images(random, 1, side, False)}


def workloads() -> list[Workload]:
    """Both, for one image."""
    targets = (Target(("onnxruntime", "openvino"), 0.97), Target(("tensorflow",), 0.70))
    return [
        Workload(
            name, "networks", model, partial(_feeds, side=side), targets, onnx_shapes={"image": (1, side, side, 3)},
        )
        for name, model, side in (
            ("U-Net batch 1", unet_network, UNET_SIDE), ("detector with NMS batch 1", detection_network, DETECTOR_SIDE)
        )
    ]  # fmt: skip
