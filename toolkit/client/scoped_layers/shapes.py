"""Layers without variables: shapes, encodings, softmax; layers one after the other."""

from __future__ import annotations

from typing import Any, cast

from toolkit.client import ops
from toolkit.client.argument_scopes import add_arg_scope
from toolkit.client.arrays import array_ops, grids
from toolkit.client.construction.convert import constant, convert_to_tensor
from toolkit.client.construction.scopes import name_scope
from toolkit.client.construction.tensor import Tensor
from toolkit.client.layers.core import Flatten
from toolkit.client.math import math_ops
from toolkit.client.nn import nn_ops
from toolkit.client.scoped_layers import common
from toolkit.client.sparse.tensor import SparseTensor
from toolkit.client.variables import initializers
from toolkit.client.variables.model_variables import model_variable
from toolkit.client.variables.store import variable_scope
from toolkit.graph import dtypes

_FLAT = ("NCHW", "NHWC")


@add_arg_scope
def flatten(inputs: Any, outputs_collections: Any = None, scope: Any = None) -> Tensor:
    """[batch, everything else]."""
    with name_scope(scope, "Flatten", [inputs]) as opened:
        return common.collected(outputs_collections, opened, Flatten().apply(convert_to_tensor(inputs)))


@add_arg_scope
def one_hot_encoding(
    labels: Any, num_classes: Any, on_value: Any = 1.0, off_value: Any = 0.0, outputs_collections: Any = None,
    scope: Any = None,
) -> Tensor:  # fmt: skip
    """Class numbers [batch] as rows [batch, num_classes]."""
    with name_scope(scope, "OneHotEncoding", [labels, num_classes]) as opened:
        labels = convert_to_tensor(labels)
        if labels.dtype.base is dtypes.int32:
            labels = math_ops.cast(labels, dtypes.int64, name="ToInt64")
        outputs = array_ops.one_hot(labels, num_classes, on_value, off_value)
        return common.collected(outputs_collections, opened, outputs)


@add_arg_scope
def dense_to_sparse(
    tensor: Any, eos_token: Any = 0, outputs_collections: Any = None, scope: Any = None
) -> SparseTensor:
    """What is not the token that ends sequences, as a sparse tensor."""
    with variable_scope(scope, "dense_to_sparse", [tensor]) as opened:
        tensor = convert_to_tensor(tensor)
        places = array_ops.where(math_ops.not_equal(tensor, constant(eos_token, tensor.dtype.base)))
        values = array_ops.gather_nd(tensor, places)
        outputs = SparseTensor(places, values, array_ops.shape(tensor, out_type=dtypes.int64))
        return common.collected(outputs_collections, opened.name, outputs)


@add_arg_scope
def images_to_sequence(
    inputs: Any, data_format: Any = "NHWC", outputs_collections: Any = None, scope: Any = None
) -> Tensor:
    """Images [batch, height, width, channels] as sequences of columns [width, batch * height, channels].

    Raises:
        ValueError: the layout is none.
    """
    first = common.channels_first(data_format, _FLAT)
    with name_scope(scope, "ImagesToSequence", [inputs]) as opened:
        inputs = convert_to_tensor(inputs)
        if first:
            inputs = array_ops.transpose(inputs, [0, 2, 3, 1])
        _, _, width, depth = inputs.static_shape
        sizes = array_ops.shape(inputs)
        batch, height = sizes[0], sizes[1]
        turned = array_ops.transpose(inputs, [2, 0, 1, 3])
        return common.collected(outputs_collections, opened, array_ops.reshape(turned, [width, batch * height, depth]))


@add_arg_scope
def sequence_to_images(
    inputs: Any, height: int, output_data_format: str = "channels_last", outputs_collections: Any = None,
    scope: Any = None,
) -> Tensor:  # fmt: skip
    """`images_to_sequence` undone."""
    with name_scope(scope, "SequenceToImages", [inputs]) as opened:
        inputs = convert_to_tensor(inputs)
        width, count, depth = inputs.static_shape
        apart = array_ops.reshape(inputs, [width, -1 if count is None else count // height, height, depth])
        order = [1, 3, 2, 0] if output_data_format == "channels_first" else [1, 2, 0, 3]
        return common.collected(outputs_collections, opened, array_ops.transpose(apart, order))


@add_arg_scope
def softmax(logits: Any, scope: Any = None) -> Tensor:
    """Softmax over the last axis, whatever the others are.

    Raises:
        ValueError: fewer than two dimensions, or the last size is not known.
    """
    with variable_scope(scope, "softmax", [logits]):
        logits = convert_to_tensor(logits)
        rows = array_ops.reshape(logits, [-1, common.known_size(logits, -1, min_rank=2)])
        found = array_ops.reshape(nn_ops.softmax(rows), array_ops.shape(logits))
        found.set_shape(logits.static_shape)
        return found


@add_arg_scope
def unit_norm(inputs: Any, dim: int, epsilon: float = 1e-7, scope: Any = None) -> Tensor:
    """The inputs, of length 1 along an axis.

    Raises:
        ValueError: the rank is not known, or there is no such axis.
    """
    with variable_scope(scope, "UnitNorm", [inputs]):
        rank = inputs.static_shape.rank
        if rank is None or not 0 <= dim < rank:
            raise ValueError(f"dim: there is no axis {dim} in {inputs.static_shape}")
        lengths = math_ops.sqrt(epsilon + math_ops.reduce_sum(math_ops.square(inputs), dim, True))
        times: list[Any] = [array_ops.ones([dim], dtypes.int32)] if dim else []
        times.append(array_ops.strided_slice(array_ops.shape(inputs), [dim], [dim + 1]))
        if dim < rank - 1:
            times.append(array_ops.ones([rank - 1 - dim], dtypes.int32))
        return ops.real_div(inputs, array_ops.tile(lengths, array_ops.concat(times, 0)), name="div")


@add_arg_scope
def maxout(inputs: Any, num_units: int, axis: int = -1, scope: Any = None) -> Tensor:
    """The largest of each group of numbers along an axis, `num_units` of them (arXiv 1302.4389).

    Raises:
        ValueError: the axis cannot be divided into that many groups.
    """
    with variable_scope(scope, "MaxOut", [inputs]):
        inputs = convert_to_tensor(inputs)
        sizes: list[Any] = list(inputs.static_shape)
        channels = common.known_size(inputs, axis)
        if channels % num_units:
            raise ValueError(f"num_units: {channels} features make no {num_units} groups of one size")
        sizes[axis] = num_units
        sizes.append(channels // num_units)
        # sizes that are not known come from the tensor
        sizes = [array_ops.shape(inputs)[place] if size is None else size for place, size in enumerate(sizes)]
        return math_ops.reduce_max(array_ops.reshape(inputs, sizes), -1)


@add_arg_scope
def spatial_softmax(
    features: Any, temperature: Any = None, name: Any = None, variables_collections: Any = None,
    trainable: bool = True, data_format: Any = "NHWC",
) -> Tensor:  # fmt: skip
    """Where each channel of images is large, as expected places [batch, 2 * channels], from -1 to 1.

    Args:
        temperature: of the softmax over places: a fixed start of a variable; default: 1.

    Raises:
        ValueError: the layout is none, or the number of channels is not known.
    """
    first = common.channels_first(data_format, _FLAT)
    with variable_scope(name, "spatial_softmax"):
        sizes = array_ops.shape(features)
        height, width = (sizes[2], sizes[3]) if first else (sizes[1], sizes[2])
        channels = common.known_size(features, 1 if first else 3)
        with name_scope("spatial_softmax_op", "spatial_softmax_op", [features]):
            x, y = _places(height, width)
            x, y = array_ops.reshape(x, [height * width]), array_ops.reshape(y, [height * width])
            start = initializers.Ones() if temperature is None else initializers.Constant(temperature)
            collections = common.collections_of(variables_collections, "temperature") if trainable else None
            warmth = model_variable(
                "temperature", (), dtypes.float32, start, trainable=trainable, collections=collections
            )  # fmt: skip
            if not first:
                features = array_ops.transpose(features, [0, 3, 1, 2])
            attention = nn_ops.softmax(array_ops.reshape(features, [-1, height * width]) / warmth)
            expected = [math_ops.reduce_sum(each * attention, [1], keepdims=True) for each in (x, y)]
            points = array_ops.reshape(array_ops.concat(expected, 1), [-1, channels * 2])
            points.set_shape([None, channels * 2])
    return points


def _places(height: Tensor, width: Tensor) -> list[Tensor]:
    """Rows and columns of a grid, from -1 to 1."""
    return grids.meshgrid([ops.lin_space(-1.0, 1.0, height), ops.lin_space(-1.0, 1.0, width)], indexing="ij")


# -- several layers --------------------------------------------------------------------------------------------------


def _called(layer: Any, otherwise: str) -> str:
    """What a layer is called, also under `functools.partial`."""
    names = (getattr(each, "__name__", None) for each in (layer, getattr(layer, "func", None)))
    return next((name for name in names if name), otherwise)


def repeat(inputs: Any, repetitions: int, layer: Any, *args: Any, **kwargs: Any) -> Any:
    """The same layer several times, in scopes `name_1`, `name_2`, ...

    Args:
        args, kwargs: what the layer takes besides its inputs; `scope` is the name.
    """
    scope = kwargs.pop("scope", None)
    with variable_scope(scope, "Repeat", [inputs]):
        outputs: Any = convert_to_tensor(inputs)
        name = _called(layer, "repeat") if scope is None else scope
        for number in range(1, repetitions + 1):
            outputs = layer(outputs, *args, **kwargs, scope=f"{name}_{number}")
        return outputs


def stack(inputs: Any, layer: Any, stack_args: Any, **kwargs: Any) -> Any:
    """A layer once for each entry of `stack_args`, in scopes `name_1`, `name_2`, ...

    Args:
        stack_args: what the layer takes after its inputs: a list for each time, or one value.
        kwargs: what it takes each time; `scope` is the name.

    Raises:
        ValueError: `stack_args` is no list.
    """
    scope = kwargs.pop("scope", None)
    if not isinstance(stack_args, list | tuple):
        raise ValueError(f"stack_args: expected a list, got {type(stack_args).__name__}")
    with variable_scope(scope, "Stack", [inputs]):
        outputs: Any = convert_to_tensor(inputs)
        name = _called(layer, "stack") if scope is None else scope
        for number, given in enumerate(cast("list[Any]", stack_args), 1):
            arguments: list[Any] = list(cast("Any", given)) if isinstance(given, list | tuple) else [given]
            outputs = layer(outputs, *arguments, **kwargs, scope=f"{name}_{number}")
        return outputs
