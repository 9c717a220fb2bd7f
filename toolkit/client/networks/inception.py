"""Inception networks: blocks of several branches, whose outputs are joined.

Sources: Szegedy and others, arXiv 1409.4842 (v1), arXiv 1502.03167 (v2) and arXiv 1512.00567 (v3). A block is a text,
one branch after the other, separated by ";"; a branch is its layers, separated by spaces:

    0a_1x1:64        a convolution, Conv2d_0a_1x1, of 64 channels, its kernel as the name says
    1a_1x1@3x3:384   another kernel than the name says
    avg_0a_3x3       a pool: AvgPool_0a_3x3 or MaxPool_0a_3x3
    .../2            of stride 2; with "!": without padding, "=": with it
    ...~0.09         with first weights of this deviation
    a|b              both, of the same input, joined
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

from toolkit.client.argument_scopes import Scope, arg_scope
from toolkit.client.arrays import array_ops
from toolkit.client.construction.tensor import Tensor
from toolkit.client.networks.plain import Outputs, trunc_normal
from toolkit.client.nn import nn_ops
from toolkit.client.scoped_layers.convolutional import convolution2d as conv2d
from toolkit.client.scoped_layers.convolutional import separable_convolution2d as separable_conv2d
from toolkit.client.scoped_layers.dense import dropout, fully_connected
from toolkit.client.scoped_layers.initializers import variance_scaling_initializer
from toolkit.client.scoped_layers.normalization import batch_norm
from toolkit.client.scoped_layers.pooling import avg_pool2d, max_pool2d
from toolkit.client.scoped_layers.regularizers import l2_regularizer
from toolkit.client.scoped_layers.shapes import softmax
from toolkit.client.variables.store import variable_scope
from toolkit.errors import did_you_mean

_LAYER = re.compile(
    r"(?P<pool>avg_|max_)?(?P<name>\w+?_(?P<rows>\d)x(?P<columns>\d))(@(?P<kernel>\d)x\d)?(:(?P<depth>\d+))?"
    r"(/(?P<stride>\d))?(?P<padding>[!=])?(~(?P<deviation>[\d.]+))?"
)
#: what some layers are called in checkpoints, against the rule
_ODD_NAMES = {"1_0c_5x5": "Conv_1_0c_5x5"}

_V1_STEM = {
    "Conv2d_1a_7x7": "1a_7x7:64/2", "MaxPool_2a_3x3": "max_2a_3x3/2", "Conv2d_2b_1x1": "2b_1x1:64",
    "Conv2d_2c_3x3": "2c_3x3:192", "MaxPool_3a_3x3": "max_3a_3x3/2",
}  # fmt: skip


def _v1(a: int, b: int, c: int, d: int, e: int, f: int, second: str = "0b") -> str:
    return (
        f"0a_1x1:{a}; 0a_1x1:{b} 0b_3x3:{c}; 0a_1x1:{d} {second}_3x3:{e}; max_0a_3x3 0b_1x1:{f}"
    )  # fmt: skip


_V1 = _V1_STEM | {
    "Mixed_3b": _v1(64, 96, 128, 16, 32, 32), "Mixed_3c": _v1(128, 128, 192, 32, 96, 64),
    "MaxPool_4a_3x3": "max_4a_3x3/2", "Mixed_4b": _v1(192, 96, 208, 16, 48, 64),
    "Mixed_4c": _v1(160, 112, 224, 24, 64, 64), "Mixed_4d": _v1(128, 128, 256, 24, 64, 64),
    "Mixed_4e": _v1(112, 144, 288, 32, 64, 64), "Mixed_4f": _v1(256, 160, 320, 32, 128, 128),
    "MaxPool_5a_2x2": "max_5a_2x2/2", "Mixed_5b": _v1(256, 160, 320, 32, 128, 128, "0a"),
    "Mixed_5c": _v1(384, 192, 384, 48, 128, 128),
}  # fmt: skip


def _v2(a: int, b: int, c: int, d: int, e: int, f: int, pool: str = "avg") -> str:
    return (
        f"0a_1x1:{a}; 0a_1x1:{b}~0.09 0b_3x3:{c}; 0a_1x1:{d}~0.09 0b_3x3:{e} 0c_3x3:{e}; {pool}_0a_3x3 0b_1x1:{f}~0.1"
    )


def _v2_smaller(a: int, b: int, c: int, d: int) -> str:
    return f"0a_1x1:{a}~0.09 1a_3x3:{b}/2; 0a_1x1:{c}~0.09 0b_3x3:{d} 1a_3x3:{d}/2; max_1a_3x3/2"


_V2 = {
    "MaxPool_2a_3x3": "max_2a_3x3/2", "Conv2d_2b_1x1": "2b_1x1:64~0.1", "Conv2d_2c_3x3": "2c_3x3:192",
    "MaxPool_3a_3x3": "max_3a_3x3/2", "Mixed_3b": _v2(64, 64, 64, 64, 96, 32),
    "Mixed_3c": _v2(64, 64, 96, 64, 96, 64), "Mixed_4a": _v2_smaller(128, 160, 64, 96),
    "Mixed_4b": _v2(224, 64, 96, 96, 128, 128), "Mixed_4c": _v2(192, 96, 128, 96, 128, 128),
    "Mixed_4d": _v2(160, 128, 160, 128, 160, 96), "Mixed_4e": _v2(96, 128, 192, 160, 192, 96),
    "Mixed_5a": _v2_smaller(128, 192, 192, 256), "Mixed_5b": _v2(352, 192, 320, 160, 224, 128),
    "Mixed_5c": _v2(352, 192, 320, 192, 224, 128, "max"),
}  # fmt: skip

_V3_STEM = {
    "Conv2d_1a_3x3": "1a_3x3:32/2", "Conv2d_2a_3x3": "2a_3x3:32", "Conv2d_2b_3x3": "2b_3x3:64=",
    "MaxPool_3a_3x3": "max_3a_3x3/2", "Conv2d_3b_1x1": "3b_1x1:80", "Conv2d_4a_3x3": "4a_3x3:192",
    "MaxPool_5a_3x3": "max_5a_3x3/2",
}  # fmt: skip


def _v3_5(pooled: int, second: str = "0a_1x1:48 0b_5x5:64") -> str:
    return f"0a_1x1:64; {second}; 0a_1x1:64 0b_3x3:96 0c_3x3:96; avg_0a_3x3 0b_1x1:{pooled}"


def _v3_6(n: int) -> str:
    return (
        f"0a_1x1:192; 0a_1x1:{n} 0b_1x7:{n} 0c_7x1:192; "
        f"0a_1x1:{n} 0b_7x1:{n} 0c_1x7:{n} 0d_7x1:{n} 0e_1x7:192; avg_0a_3x3 0b_1x1:192"
    )


def _v3_7(last: str) -> str:
    return (
        f"0a_1x1:320; 0a_1x1:384 0b_1x3:384|{last}_3x1:384; 0a_1x1:448 0b_3x3:384 0c_1x3:384|0d_3x1:384; "
        "avg_0a_3x3 0b_1x1:192"
    )


_V3 = {
    "Mixed_5b": _v3_5(32), "Mixed_5c": _v3_5(64, "0b_1x1:48 1_0c_5x5:64"), "Mixed_5d": _v3_5(64),
    "Mixed_6a": "1a_1x1@3x3:384/2!; 0a_1x1:64 0b_3x3:96 1a_1x1@3x3:96/2!; max_1a_3x3/2!",
    "Mixed_6b": _v3_6(128), "Mixed_6c": _v3_6(160), "Mixed_6d": _v3_6(160), "Mixed_6e": _v3_6(192),
    "Mixed_7a": "0a_1x1:192 1a_3x3:320/2!; 0a_1x1:192 0b_1x7:192 0c_7x1:192 1a_3x3:192/2!; max_1a_3x3/2!",
    "Mixed_7b": _v3_7("0b"), "Mixed_7c": _v3_7("0c"),
}  # fmt: skip


def _layer(net: Tensor, text: str, depth: Callable[[int], int]) -> Tensor:
    found = _LAYER.fullmatch(text)
    assert found is not None, text
    size = found["kernel"] or ""
    kernel = [int(size), int(size)] if size else [int(found["rows"]), int(found["columns"])]
    options: dict[str, Any] = {"stride": int(found["stride"])} if found["stride"] else {}
    if found["padding"]:
        options["padding"] = "VALID" if found["padding"] == "!" else "SAME"
    name = found["name"]
    if found["pool"]:
        pool, kind = (avg_pool2d, "AvgPool") if found["pool"] == "avg_" else (max_pool2d, "MaxPool")
        return pool(net, kernel, scope=f"{kind}_{name}", **options)
    if found["deviation"]:
        options["weights_initializer"] = trunc_normal(float(found["deviation"]))
    scope = _ODD_NAMES.get(name, f"Conv2d_{name}")
    return conv2d(net, depth(int(found["depth"])), kernel, scope=scope, **options)


def _step(net: Tensor, text: str, depth: Callable[[int], int]) -> Tensor:
    parts = [_layer(net, each, depth) for each in text.split("|")]
    return parts[0] if len(parts) == 1 else array_ops.concat(parts, 3)


def _block(net: Tensor, name: str, text: str, depth: Callable[[int], int]) -> Tensor:
    if ";" not in text:
        return _layer(net, text, depth)
    with variable_scope(name):
        branches: list[Tensor] = []
        for number, branch in enumerate(text.split(";")):
            with variable_scope(f"Branch_{number}"):
                made = net
                for step in branch.split():
                    made = _step(made, step, depth)
            branches.append(made)
        return array_ops.concat(branches, 3)


def _built(net: Tensor, table: dict[str, str], last: str, depth: Callable[[int], int], found: dict[str, Any]) -> Tensor:
    """The blocks of a table up to the last that is wanted, noted under their names."""
    for name, text in table.items():
        found[name] = net = _block(net, name, text, depth)
        if name == last:
            break
    return net


def _require(last: str, *tables: dict[str, str]) -> None:
    names = [name for table in tables for name in table]
    if last not in names:
        raise ValueError(f"final_endpoint: there is no '{last}'{did_you_mean(last, names)}")


def _depths(multiplier: float, least: int) -> Callable[[int], int]:
    if multiplier <= 0:
        raise ValueError(f"depth_multiplier: expected a number above 0, got {multiplier}")
    return lambda channels: max(int(channels * multiplier), least)


# -- version 1 -------------------------------------------------------------------------------------------------------


def inception_v1_base(inputs: Any, final_endpoint: str = "Mixed_5c", scope: Any = "InceptionV1") -> Outputs:
    """Version 1 up to a block: its output, and tensors by their names.

    Raises:
        ValueError: there is no such block.
    """
    found: dict[str, Any] = {}
    _require(final_endpoint, _V1)
    with (
        variable_scope(scope, "InceptionV1", [inputs]),
        arg_scope([conv2d, fully_connected], weights_initializer=trunc_normal(0.01)),
        arg_scope([conv2d, max_pool2d], stride=1, padding="SAME"),
    ):
        return _built(inputs, _V1, final_endpoint, int, found), found


def inception_v1(
    inputs: Any, num_classes: int = 1000, is_training: Any = True, dropout_keep_prob: Any = 0.8,
    prediction_fn: Any = softmax, spatial_squeeze: bool = True, reuse: Any = None, scope: Any = "InceptionV1",
) -> Outputs:  # fmt: skip
    """Version 1 (GoogLeNet) of images [batch, 224, 224, 3]: logits, and tensors by their names."""
    with (
        variable_scope(scope, "InceptionV1", [inputs, num_classes], reuse=reuse) as opened,
        arg_scope([batch_norm, dropout], is_training=is_training),
    ):
        net, found = inception_v1_base(inputs, scope=opened)
        with variable_scope("Logits"):
            net = avg_pool2d(net, [7, 7], stride=1, scope="MaxPool_0a_7x7")
            net = dropout(net, dropout_keep_prob, scope="Dropout_0b")
            logits = _logits(net, num_classes, "Conv2d_0c_1x1", spatial_squeeze)
            found["Logits"] = logits
            found["Predictions"] = prediction_fn(logits, scope="Predictions")
    return logits, found


def _logits(net: Tensor, num_classes: int, scope: str, squeeze: bool, **options: Any) -> Tensor:
    logits = conv2d(net, num_classes, [1, 1], activation_fn=None, normalizer_fn=None, scope=scope, **options)
    return array_ops.squeeze(logits, [1, 2], name="SpatialSqueeze") if squeeze else logits


# -- version 2 -------------------------------------------------------------------------------------------------------


def inception_v2_base(
    inputs: Any, final_endpoint: str = "Mixed_5c", min_depth: int = 16, depth_multiplier: float = 1.0,
    scope: Any = None,
) -> Outputs:  # fmt: skip
    """Version 2 up to a block: its output, and tensors by their names.

    Args:
        min_depth: channels that every layer has at least.
        depth_multiplier: makes layers wider or narrower.

    Raises:
        ValueError: there is no such block, or the multiplier is not above 0.
    """
    depth = _depths(depth_multiplier, min_depth)
    first = "Conv2d_1a_7x7"
    _require(final_endpoint, {first: ""}, _V2)
    with (
        variable_scope(scope, "InceptionV2", [inputs]),
        arg_scope([conv2d, max_pool2d, avg_pool2d, separable_conv2d], stride=1, padding="SAME"),
    ):
        net = separable_conv2d(
            inputs, depth(64), [7, 7], depth_multiplier=min(int(depth(64) / 3), 8), stride=2,
            weights_initializer=trunc_normal(1.0), scope=first,
        )  # fmt: skip
        found: dict[str, Any] = {first: net}
        if final_endpoint != first:
            net = _built(net, _V2, final_endpoint, depth, found)
        return net, found


def inception_v2(
    inputs: Any, num_classes: int = 1000, is_training: Any = True, dropout_keep_prob: Any = 0.8, min_depth: int = 16,
    depth_multiplier: float = 1.0, prediction_fn: Any = softmax, spatial_squeeze: bool = True, reuse: Any = None,
    scope: Any = "InceptionV2",
) -> Outputs:  # fmt: skip
    """Version 2 of images [batch, 224, 224, 3]: logits, and tensors by their names.

    Raises:
        ValueError: the multiplier is not above 0.
    """
    with (
        variable_scope(scope, "InceptionV2", [inputs, num_classes], reuse=reuse) as opened,
        arg_scope([batch_norm, dropout], is_training=is_training),
    ):
        net, found = inception_v2_base(inputs, scope=opened, min_depth=min_depth, depth_multiplier=depth_multiplier)
        with variable_scope("Logits"):
            net = dropout(_pooled(net, 7), dropout_keep_prob, scope="Dropout_1b")
            logits = _logits(net, num_classes, "Conv2d_1c_1x1", spatial_squeeze)
        found["Logits"] = logits
        found["Predictions"] = prediction_fn(logits, scope="Predictions")
    return logits, found


def _fitting(net: Tensor, size: int) -> list[int]:
    """A window of a size, or of the image's, where that is known and less."""
    height, width = net.static_shape[1], net.static_shape[2]
    return [size, size] if height is None or width is None else [min(height, size), min(width, size)]


def _pooled(net: Tensor, size: int) -> Tensor:
    window = _fitting(net, size)
    return avg_pool2d(net, window, padding="VALID", scope=f"AvgPool_1a_{window[0]}x{window[1]}")


# -- version 3 -------------------------------------------------------------------------------------------------------


def inception_v3_base(
    inputs: Any, final_endpoint: str = "Mixed_7c", min_depth: int = 16, depth_multiplier: float = 1.0,
    scope: Any = None,
) -> Outputs:  # fmt: skip
    """Version 3 up to a block: its output, and tensors by their names; arguments as `inception_v2_base`.

    Raises:
        ValueError: there is no such block, or the multiplier is not above 0.
    """
    depth = _depths(depth_multiplier, min_depth)
    _require(final_endpoint, _V3_STEM, _V3)
    found: dict[str, Any] = {}
    with variable_scope(scope, "InceptionV3", [inputs]):
        with arg_scope([conv2d, max_pool2d, avg_pool2d], stride=1, padding="VALID"):
            net = _built(inputs, _V3_STEM, final_endpoint, depth, found)
        if final_endpoint in found:
            return net, found
        with arg_scope([conv2d, max_pool2d, avg_pool2d], stride=1, padding="SAME"):
            return _built(net, _V3, final_endpoint, depth, found), found


def inception_v3(
    inputs: Any, num_classes: int = 1000, is_training: Any = True, dropout_keep_prob: Any = 0.8, min_depth: int = 16,
    depth_multiplier: float = 1.0, prediction_fn: Any = softmax, spatial_squeeze: bool = True, reuse: Any = None,
    scope: Any = "InceptionV3",
) -> Outputs:  # fmt: skip
    """Version 3 of images [batch, 299, 299, 3]: logits, and tensors by their names, AuxLogits among them.

    Raises:
        ValueError: the multiplier is not above 0.
    """
    depth = _depths(depth_multiplier, min_depth)
    with (
        variable_scope(scope, "InceptionV3", [inputs, num_classes], reuse=reuse) as opened,
        arg_scope([batch_norm, dropout], is_training=is_training),
    ):
        net, found = inception_v3_base(inputs, scope=opened, min_depth=min_depth, depth_multiplier=depth_multiplier)
        with arg_scope([conv2d, max_pool2d, avg_pool2d], stride=1, padding="SAME"), variable_scope("AuxLogits"):
            found["AuxLogits"] = _auxiliary(found["Mixed_6e"], num_classes, depth, spatial_squeeze)
        with variable_scope("Logits"):
            net = dropout(_pooled(net, 8), keep_prob=dropout_keep_prob, scope="Dropout_1b")
            found["PreLogits"] = net
            logits = _logits(net, num_classes, "Conv2d_1c_1x1", spatial_squeeze)
        found["Logits"] = logits
        found["Predictions"] = prediction_fn(logits, scope="Predictions")
    return logits, found


def _auxiliary(net: Tensor, num_classes: int, depth: Callable[[int], int], squeeze: bool) -> Tensor:
    """Logits from the middle of the network."""
    net = avg_pool2d(net, [5, 5], stride=3, padding="VALID", scope="AvgPool_1a_5x5")
    net = conv2d(net, depth(128), [1, 1], scope="Conv2d_1b_1x1")
    window = _fitting(net, 5)
    net = conv2d(
        net, depth(768), window, weights_initializer=trunc_normal(0.01), padding="VALID",
        scope=f"Conv2d_2a_{window[0]}x{window[1]}",
    )  # fmt: skip
    return _logits(net, num_classes, "Conv2d_2b_1x1", squeeze, weights_initializer=trunc_normal(0.001))


# -- arguments -------------------------------------------------------------------------------------------------------


def _arguments(weight_decay: float, normalizer_fn: Any, norm: dict[str, Any]) -> Scope:
    with (
        arg_scope([conv2d, fully_connected], weights_regularizer=l2_regularizer(weight_decay)),
        arg_scope(
            [conv2d], weights_initializer=variance_scaling_initializer(), activation_fn=nn_ops.relu,
            normalizer_fn=normalizer_fn, normalizer_params=norm,
        ) as found,
    ):  # fmt: skip
        return found


def _norm(
    collection: str, decay: float = 0.9997, epsilon: float = 0.001, updates: Any = "update_ops"
) -> dict[str, Any]:
    kept = {"beta": None, "gamma": None, "moving_mean": [collection], "moving_variance": [collection]}
    return {"decay": decay, "epsilon": epsilon, "updates_collections": updates, "variables_collections": kept}


def inception_v1_arg_scope(
    weight_decay: float = 0.00004, use_batch_norm: bool = True, batch_norm_var_collection: str = "moving_vars"
) -> Scope:
    """The arguments of version 1's layers."""
    if not use_batch_norm:
        return _arguments(weight_decay, None, {})
    return _arguments(weight_decay, batch_norm, _norm(batch_norm_var_collection))


def inception_v2_arg_scope(weight_decay: float = 0.00004, batch_norm_var_collection: str = "moving_vars") -> Scope:
    """The arguments of version 2's layers."""
    return _arguments(weight_decay, batch_norm, _norm(batch_norm_var_collection))


def inception_v3_arg_scope(
    weight_decay: float = 0.00004, batch_norm_var_collection: str = "moving_vars", batch_norm_decay: float = 0.9997,
    batch_norm_epsilon: float = 0.001, updates_collections: Any = "update_ops", use_fused_batchnorm: bool = True,
) -> Scope:  # fmt: skip
    """The arguments of version 3's layers."""
    norm = _norm(batch_norm_var_collection, batch_norm_decay, batch_norm_epsilon, updates_collections)
    return _arguments(weight_decay, batch_norm, {**norm, "fused": use_fused_batchnorm})


#: the size of images that a network was trained with, which programs ask it for
for _made, _size in ((inception_v1, 224), (inception_v2, 224), (inception_v3, 299)):
    _made.__dict__["default_image_size"] = _size
