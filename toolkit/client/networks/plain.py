"""Networks of one layer after the other: AlexNet, OverFeat, VGG.

Sources: Krizhevsky, arXiv 1404.5997; Sermanet and others, arXiv 1312.6229; Simonyan and Zisserman, arXiv 1409.1556.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from toolkit.client.argument_scopes import Scope, arg_scope
from toolkit.client.arrays import array_ops
from toolkit.client.construction.tensor import Tensor
from toolkit.client.nn import nn_ops
from toolkit.client.scoped_layers import common
from toolkit.client.scoped_layers.convolutional import convolution2d as conv2d
from toolkit.client.scoped_layers.dense import dropout, fully_connected
from toolkit.client.scoped_layers.pooling import max_pool2d
from toolkit.client.scoped_layers.regularizers import l2_regularizer
from toolkit.client.scoped_layers.shapes import repeat
from toolkit.client.variables.initializers import Constant, TruncatedNormal, Zeros
from toolkit.client.variables.store import variable_scope

#: what a network gives: logits, and tensors by their names
Outputs = tuple[Tensor, dict[str, Any]]


def trunc_normal(stddev: float) -> TruncatedNormal:
    """Random first values of this deviation, cut at twice of it."""
    return TruncatedNormal(0.0, stddev)


def _arg_scope(weight_decay: float, biases: Any, pools: str | None) -> Scope:
    with arg_scope(
        [conv2d, fully_connected], activation_fn=nn_ops.relu, biases_initializer=biases,
        weights_regularizer=l2_regularizer(weight_decay),
    ), arg_scope([conv2d], padding="SAME") as convolutions:  # fmt: skip
        if pools is None:
            return convolutions
        with arg_scope([max_pool2d], padding=pools) as found:
            return found


def alexnet_v2_arg_scope(weight_decay: float = 0.0005) -> Scope:
    """The arguments of AlexNet's layers."""
    return _arg_scope(weight_decay, Constant(0.1), "VALID")


def overfeat_arg_scope(weight_decay: float = 0.0005) -> Scope:
    """The arguments of OverFeat's layers."""
    return _arg_scope(weight_decay, Zeros(), "VALID")


def vgg_arg_scope(weight_decay: float = 0.0005) -> Scope:
    """The arguments of VGG's layers."""
    return _arg_scope(weight_decay, Zeros(), None)


def _classified(
    net: Any, sizes: tuple[int, list[int]], num_classes: int, is_training: Any, keep_prob: Any, last: dict[str, Any]
) -> Tensor:
    """Three dense layers as convolutions.

    Args:
        sizes: units of the first, and its kernel.
        last: arguments of the last.
    """
    net = conv2d(net, sizes[0], sizes[1], padding="VALID", scope="fc6")
    net = dropout(net, keep_prob, is_training=is_training, scope="dropout6")
    net = conv2d(net, 4096, [1, 1], scope="fc7")
    net = dropout(net, keep_prob, is_training=is_training, scope="dropout7")
    return conv2d(net, num_classes, [1, 1], activation_fn=None, normalizer_fn=None, scope="fc8", **last)


def _collected(net: Tensor, collection: str, name: str, squeeze: bool) -> Outputs:
    found = common.convert_collection_to_dict(collection)
    if squeeze:
        net = array_ops.squeeze(net, [1, 2], name="fc8/squeezed")
        found[f"{name}/fc8"] = net
    return net, found


def _cut(
    build: Callable[[Any], Tensor], inputs: Any, sizes: tuple[int, list[int]], num_classes: int, is_training: Any,
    keep_prob: Any, squeeze: bool, scope: str, default: str, own_name: bool,
) -> Outputs:  # fmt: skip
    """AlexNet or OverFeat, whose last layers start as truncated normal distributions.

    Args:
        own_name: collect under the variable scope's name, rather than the name scope's.
    """
    with variable_scope(scope, default, [inputs]) as opened:
        collection = (opened.name if own_name else opened.original_name_scope) + "_end_points"
        with arg_scope([conv2d, fully_connected, max_pool2d], outputs_collections=[collection]):
            net = build(inputs)
            with arg_scope([conv2d], weights_initializer=trunc_normal(0.005), biases_initializer=Constant(0.1)):
                last = {"biases_initializer": Zeros()}
                net = _classified(net, sizes, num_classes, is_training, keep_prob, last)
            return _collected(net, collection, opened.name, squeeze)


def alexnet_v2(
    inputs: Any, num_classes: int = 1000, is_training: Any = True, dropout_keep_prob: Any = 0.5,
    spatial_squeeze: bool = True, scope: Any = "alexnet_v2",
) -> Outputs:  # fmt: skip
    """AlexNet of images [batch, 224, 224, 3]: logits, and tensors by their names."""

    def build(net: Any) -> Tensor:
        net = conv2d(net, 64, [11, 11], 4, padding="VALID", scope="conv1")
        net = max_pool2d(net, [3, 3], 2, scope="pool1")
        net = conv2d(net, 192, [5, 5], scope="conv2")
        net = max_pool2d(net, [3, 3], 2, scope="pool2")
        for number, filters in ((3, 384), (4, 384), (5, 256)):
            net = conv2d(net, filters, [3, 3], scope=f"conv{number}")
        return max_pool2d(net, [3, 3], 2, scope="pool5")

    return _cut(
        build, inputs, (4096, [5, 5]), num_classes, is_training, dropout_keep_prob, spatial_squeeze, scope,
        "alexnet_v2", False,
    )  # fmt: skip


def overfeat(
    inputs: Any, num_classes: int = 1000, is_training: Any = True, dropout_keep_prob: Any = 0.5,
    spatial_squeeze: bool = True, scope: Any = "overfeat",
) -> Outputs:  # fmt: skip
    """OverFeat of images [batch, 231, 231, 3]: logits, and tensors by their names."""

    def build(net: Any) -> Tensor:
        net = conv2d(net, 64, [11, 11], 4, padding="VALID", scope="conv1")
        net = max_pool2d(net, [2, 2], scope="pool1")
        net = conv2d(net, 256, [5, 5], padding="VALID", scope="conv2")
        net = max_pool2d(net, [2, 2], scope="pool2")
        for number, filters in ((3, 512), (4, 1024), (5, 1024)):
            net = conv2d(net, filters, [3, 3], scope=f"conv{number}")
        return max_pool2d(net, [2, 2], scope="pool5")

    return _cut(
        build, inputs, (3072, [6, 6]), num_classes, is_training, dropout_keep_prob, spatial_squeeze, scope, "overfeat",
        True,
    )  # fmt: skip


#: channels of VGG's five groups of convolutions
_VGG_CHANNELS = (64, 128, 256, 512, 512)


def _vgg(
    counts: tuple[int, ...], inputs: Any, num_classes: int, is_training: Any, keep_prob: Any, squeeze: bool,
    scope: Any, default: str,
) -> Outputs:  # fmt: skip
    with variable_scope(scope, default, [inputs]) as opened:
        collection = opened.original_name_scope + "_end_points"
        with arg_scope([conv2d, fully_connected, max_pool2d], outputs_collections=collection):
            net = inputs
            for group, (count, channels) in enumerate(zip(counts, _VGG_CHANNELS, strict=True), 1):
                net = repeat(net, count, conv2d, channels, [3, 3], scope=f"conv{group}")
                net = max_pool2d(net, [2, 2], scope=f"pool{group}")
            net = _classified(net, (4096, [7, 7]), num_classes, is_training, keep_prob, {})
            return _collected(net, collection, opened.name, squeeze)


def vgg_a(
    inputs: Any, num_classes: int = 1000, is_training: Any = True, dropout_keep_prob: Any = 0.5,
    spatial_squeeze: bool = True, scope: Any = "vgg_a",
) -> Outputs:  # fmt: skip
    """VGG with 11 layers, of images [batch, 224, 224, 3]: logits, and tensors by their names."""
    return _vgg((1, 1, 2, 2, 2), inputs, num_classes, is_training, dropout_keep_prob, spatial_squeeze, scope, "vgg_a")


def vgg_16(
    inputs: Any, num_classes: int = 1000, is_training: Any = True, dropout_keep_prob: Any = 0.5,
    spatial_squeeze: bool = True, scope: Any = "vgg_16",
) -> Outputs:  # fmt: skip
    """VGG with 16 layers, of images [batch, 224, 224, 3]: logits, and tensors by their names."""
    return _vgg((2, 2, 3, 3, 3), inputs, num_classes, is_training, dropout_keep_prob, spatial_squeeze, scope, "vgg_16")


def vgg_19(
    inputs: Any, num_classes: int = 1000, is_training: Any = True, dropout_keep_prob: Any = 0.5,
    spatial_squeeze: bool = True, scope: Any = "vgg_19",
) -> Outputs:  # fmt: skip
    """VGG with 19 layers, of images [batch, 224, 224, 3]: logits, and tensors by their names."""
    return _vgg((2, 2, 4, 4, 4), inputs, num_classes, is_training, dropout_keep_prob, spatial_squeeze, scope, "vgg_19")


#: the size of images that a network was trained with, which programs ask it for
for _network in (alexnet_v2, vgg_a, vgg_16, vgg_19):
    _network.__dict__["default_image_size"] = 224
