"""Networks for images: how many units they have, and what mistakes say. Their variables: tests/tf1/dropped/networks."""

from __future__ import annotations

from typing import Any

import pytest

from toolkit import tensorflow as tf
from toolkit.client.networks import residual

nets = tf.contrib.slim.nets


@pytest.mark.parametrize(("layers", "units"), [(50, 16), (101, 33), (152, 50), (200, 66)])
@pytest.mark.parametrize("version", [1, 2])
def test_layers_are_three_for_each_unit_and_two(
    monkeypatch: pytest.MonkeyPatch, layers: int, units: int, version: int
) -> None:
    seen: list[Any] = []
    monkeypatch.setattr(residual, "_network", lambda *arguments: seen.append(arguments))
    getattr(residual, f"resnet_v{version}_{layers}")(None)
    second, _, blocks, *_, scope = seen[0]
    assert (second, scope) == (version == 2, f"resnet_v{version}_{layers}")
    assert sum(len(block.args) for block in blocks) == units
    assert 3 * units + 2 == layers
    assert [block.args[-1]["stride"] for block in blocks] == [2, 2, 2, 1]
    assert [block.args[0]["depth"] for block in blocks] == [256, 512, 1024, 2048]


def test_sizes_of_images() -> None:
    sizes = {nets.vgg.vgg_16: 224, nets.inception.inception_v3: 299, nets.resnet_v1.resnet_v1: 224}
    assert {network: network.default_image_size for network in sizes} == sizes


MISTAKES = [
    ("nets.inception.inception_v1_base(x, 'Mixed_9z')", "final_endpoint: there is no 'Mixed_9z'"),
    ("nets.inception.inception_v2_base(x, depth_multiplier=0)", "depth_multiplier: expected a number above 0, got 0"),
    ("nets.resnet_v1.resnet_v1_50(x, output_stride=6)", "output_stride: expected a multiple of 4, got 6"),
    ("nets.resnet_v2.resnet_v2(x, [], output_stride=8)", "output_stride: strides multiply to 1, which is not 2"),
]


@pytest.mark.parametrize(("call", "says"), MISTAKES, ids=[call for call, _ in MISTAKES])
def test_mistakes(call: str, says: str) -> None:
    with tf.Graph().as_default(), pytest.raises(ValueError, match=says):
        eval(call, {"nets": nets, "x": tf.zeros([1, 32, 32, 3])})
