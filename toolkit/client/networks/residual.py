"""Residual networks: units whose input is added to their output.

Sources: He and others, arXiv 1512.03385 (v1) and arXiv 1603.05027 (v2, normalized before each layer).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

from toolkit.client.argument_scopes import Scope, add_arg_scope, arg_scope
from toolkit.client.arrays import array_ops
from toolkit.client.construction.tensor import Tensor
from toolkit.client.math import math_ops
from toolkit.client.networks.plain import Outputs
from toolkit.client.nn import nn_ops
from toolkit.client.scoped_layers import common
from toolkit.client.scoped_layers.convolutional import convolution2d as conv2d
from toolkit.client.scoped_layers.initializers import variance_scaling_initializer
from toolkit.client.scoped_layers.normalization import batch_norm
from toolkit.client.scoped_layers.pooling import max_pool2d
from toolkit.client.scoped_layers.regularizers import l2_regularizer
from toolkit.client.scoped_layers.shapes import softmax
from toolkit.client.variables.store import variable_scope


class _Block(NamedTuple):
    scope: str
    unit_fn: Callable[..., Tensor]
    args: Sequence[dict[str, Any]]


class Block(_Block):
    """Units of one kind: their scope, what makes one, and the arguments of each."""


def subsample(inputs: Tensor, factor: int, scope: str | None = None) -> Tensor:
    """Every `factor`-th row and column."""
    return inputs if factor == 1 else max_pool2d(inputs, [1, 1], stride=factor, scope=scope)


def conv2d_same(
    inputs: Tensor, num_outputs: int, kernel_size: int, stride: int, rate: int = 1, scope: str | None = None
) -> Tensor:
    """A convolution padded by the kernel's size alone, so that rows do not move with the size of the image."""
    if stride == 1:
        return conv2d(inputs, num_outputs, kernel_size, stride=1, rate=rate, padding="SAME", scope=scope)
    total = kernel_size + (kernel_size - 1) * (rate - 1) - 1
    around = [total // 2, total - total // 2]
    padded = array_ops.pad(inputs, [[0, 0], around, around, [0, 0]])
    return conv2d(padded, num_outputs, kernel_size, stride=stride, rate=rate, padding="VALID", scope=scope)


@add_arg_scope
def stack_blocks_dense(
    net: Tensor, blocks: Sequence[Block], output_stride: int | None = None, outputs_collections: Any = None
) -> Tensor:
    """Blocks one after the other; once the image is as small as wanted, windows get holes in place of strides.

    Args:
        output_stride: by how much the image may be smaller in the end; default: by what the units say.

    Raises:
        ValueError: the units cannot reach that.
    """
    reached, rate = 1, 1
    for block in blocks:
        with variable_scope(block.scope, "block", [net]) as opened:
            for number, unit in enumerate(block.args, 1):
                step = unit.get("stride", 1)
                with variable_scope(f"unit_{number}", values=[net]):
                    if output_stride is not None and reached == output_stride:
                        net = block.unit_fn(net, rate=rate, **{**unit, "stride": 1})
                        rate *= step
                    else:
                        net = block.unit_fn(net, rate=1, **unit)
                        reached *= step
                if output_stride is not None and reached > output_stride:
                    raise ValueError(f"output_stride: strides multiply to {reached}, which is not {output_stride}")
            net = common.collected(outputs_collections, opened.name, net)
    if output_stride is not None and reached != output_stride:
        raise ValueError(f"output_stride: strides multiply to {reached}, which is not {output_stride}")
    return net


def resnet_arg_scope(
    weight_decay: float = 0.0001, batch_norm_decay: float = 0.997, batch_norm_epsilon: float = 1e-5,
    batch_norm_scale: bool = True,
) -> Scope:  # fmt: skip
    """The arguments of residual networks' layers."""
    norm: dict[str, Any] = {
        "decay": batch_norm_decay, "epsilon": batch_norm_epsilon, "scale": batch_norm_scale,
        "updates_collections": "update_ops",
    }  # fmt: skip
    with arg_scope(
        [conv2d], weights_regularizer=l2_regularizer(weight_decay), weights_initializer=variance_scaling_initializer(),
        activation_fn=nn_ops.relu, normalizer_fn=batch_norm, normalizer_params=norm,
    ), arg_scope([batch_norm], **norm), arg_scope([max_pool2d], padding="SAME") as found:  # fmt: skip
        return found


@add_arg_scope
def bottleneck_v1(
    inputs: Tensor, depth: int, depth_bottleneck: int, stride: int, rate: int = 1, outputs_collections: Any = None,
    scope: Any = None,
) -> Tensor:  # fmt: skip
    """A unit of three convolutions, the middle one narrow and with the stride; activated at its end."""
    with variable_scope(scope, "bottleneck_v1", [inputs]) as opened:
        if depth == common.known_size(inputs, -1, min_rank=4):
            shortcut = subsample(inputs, stride, "shortcut")
        else:
            shortcut = conv2d(inputs, depth, [1, 1], stride=stride, activation_fn=None, scope="shortcut")
        rest = conv2d(inputs, depth_bottleneck, [1, 1], stride=1, scope="conv1")
        rest = conv2d_same(rest, depth_bottleneck, 3, stride, rate=rate, scope="conv2")
        rest = conv2d(rest, depth, [1, 1], stride=1, activation_fn=None, scope="conv3")
        return common.collected(outputs_collections, opened.name, nn_ops.relu(shortcut + rest))


@add_arg_scope
def bottleneck_v2(
    inputs: Tensor, depth: int, depth_bottleneck: int, stride: int, rate: int = 1, outputs_collections: Any = None,
    scope: Any = None,
) -> Tensor:  # fmt: skip
    """A unit of three convolutions, the middle one narrow and with the stride; normalized and activated before."""
    plain: dict[str, Any] = {"normalizer_fn": None, "activation_fn": None}
    with variable_scope(scope, "bottleneck_v2", [inputs]) as opened:
        ready = batch_norm(inputs, activation_fn=nn_ops.relu, scope="preact")
        if depth == common.known_size(inputs, -1, min_rank=4):
            shortcut = subsample(inputs, stride, "shortcut")
        else:
            shortcut = conv2d(ready, depth, [1, 1], stride=stride, scope="shortcut", **plain)
        rest = conv2d(ready, depth_bottleneck, [1, 1], stride=1, scope="conv1")
        rest = conv2d_same(rest, depth_bottleneck, 3, stride, rate=rate, scope="conv2")
        rest = conv2d(rest, depth, [1, 1], stride=1, scope="conv3", **plain)
        return common.collected(outputs_collections, opened.name, shortcut + rest)


def _network(
    second: bool, inputs: Tensor, blocks: Sequence[Block], num_classes: int | None, is_training: Any,
    global_pool: bool, output_stride: int | None, include_root_block: bool, reuse: Any, scope: Any,
) -> Outputs:  # fmt: skip
    """The first version or the second."""
    unit = bottleneck_v2 if second else bottleneck_v1
    with variable_scope(scope, "resnet_v2" if second else "resnet_v1", [inputs], reuse=reuse) as opened:
        collection = opened.original_name_scope + "_end_points"
        with (
            arg_scope([conv2d, unit, stack_blocks_dense], outputs_collections=collection),
            arg_scope([batch_norm], is_training=is_training),
        ):
            net = inputs
            if include_root_block:
                if output_stride is not None:
                    if output_stride % 4:
                        raise ValueError(f"output_stride: expected a multiple of 4, got {output_stride}")
                    output_stride //= 4
                net = _root(net, second)
            net = stack_blocks_dense(net, blocks, output_stride)
            if second:
                net = batch_norm(net, activation_fn=nn_ops.relu, scope="postnorm")
            if global_pool:
                net = math_ops.reduce_mean(net, [1, 2], keepdims=True, name="pool5")
            if num_classes is not None:
                net = conv2d(net, num_classes, [1, 1], activation_fn=None, normalizer_fn=None, scope="logits")
            found = common.convert_collection_to_dict(collection)
            if num_classes is not None:
                found["predictions"] = softmax(net, scope="predictions")
            return net, found


def _root(net: Tensor, second: bool) -> Tensor:
    """The first layers, a quarter of the image."""
    with arg_scope([conv2d], **({"activation_fn": None, "normalizer_fn": None} if second else {})):
        net = conv2d_same(net, 64, 7, stride=2, scope="conv1")
    return max_pool2d(net, [3, 3], stride=2, scope="pool1")


def resnet_v1(
    inputs: Any, blocks: Any, num_classes: int | None = None, is_training: Any = True, global_pool: bool = True,
    output_stride: int | None = None, include_root_block: bool = True, reuse: Any = None, scope: Any = None,
) -> Outputs:  # fmt: skip
    """A residual network of images [batch, height, width, 3]: its output, and tensors by their names.

    Args:
        num_classes: None: features in place of logits.
        global_pool: take the mean over the image.
        output_stride: by how much smaller the features are; default: 32.
        include_root_block: begin with a large convolution and a pool.

    Raises:
        ValueError: the output stride cannot be reached.
    """
    return _network(
        False, inputs, blocks, num_classes, is_training, global_pool, output_stride, include_root_block, reuse, scope
    )


def resnet_v2(
    inputs: Any, blocks: Any, num_classes: int | None = None, is_training: Any = True, global_pool: bool = True,
    output_stride: int | None = None, include_root_block: bool = True, reuse: Any = None, scope: Any = None,
) -> Outputs:  # fmt: skip
    """`resnet_v1` with units that normalize before each layer."""
    return _network(
        True, inputs, blocks, num_classes, is_training, global_pool, output_stride, include_root_block, reuse, scope
    )


def _block(unit_fn: Any, scope: str, base_depth: int, num_units: int, stride: int) -> Block:
    sizes = {"depth": base_depth * 4, "depth_bottleneck": base_depth}
    return Block(scope, unit_fn, [{**sizes, "stride": 1}] * (num_units - 1) + [{**sizes, "stride": stride}])


def resnet_v1_block(scope: str, base_depth: int, num_units: int, stride: int) -> Block:
    """A block whose last unit has the stride."""
    return _block(bottleneck_v1, scope, base_depth, num_units, stride)


def resnet_v2_block(scope: str, base_depth: int, num_units: int, stride: int) -> Block:
    """A block of the second version, whose last unit has the stride."""
    return _block(bottleneck_v2, scope, base_depth, num_units, stride)


#: how many units the four blocks have, by the number of layers
UNITS = {50: (3, 4, 6, 3), 101: (3, 4, 23, 3), 152: (3, 8, 36, 3), 200: (3, 24, 36, 3)}


def _of_layers(layers: int, second: bool) -> Callable[..., Outputs]:
    """The network of a number of layers."""
    name = f"resnet_v{2 if second else 1}_{layers}"
    unit = bottleneck_v2 if second else bottleneck_v1

    def network(
        inputs: Any, num_classes: int | None = None, is_training: Any = True, global_pool: bool = True,
        output_stride: int | None = None, reuse: Any = None, scope: Any = name,
    ) -> Outputs:  # fmt: skip
        counts = enumerate(UNITS[layers], 1)
        blocks = [_block(unit, f"block{n}", 32 * 2**n, count, 1 if n == 4 else 2) for n, count in counts]
        return _network(
            second, inputs, blocks, num_classes, is_training, global_pool, output_stride, True, reuse, scope
        )  # fmt: skip

    network.__name__ = network.__qualname__ = name
    network.__doc__ = f"The residual network with {layers} layers; arguments as `resnet_v1`."
    return network


resnet_v1_50, resnet_v1_101, resnet_v1_152, resnet_v1_200 = (_of_layers(layers, False) for layers in UNITS)
resnet_v2_50, resnet_v2_101, resnet_v2_152, resnet_v2_200 = (_of_layers(layers, True) for layers in UNITS)
for _made in (resnet_v1, resnet_v2):
    _made.__dict__["default_image_size"] = 224  # of the images that they were trained with
