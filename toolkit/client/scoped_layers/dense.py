"""Dense layers, biases, dropout."""

from __future__ import annotations

import functools
from typing import Any

from toolkit.client.argument_scopes import add_arg_scope
from toolkit.client.arrays import array_ops
from toolkit.client.construction.context import get_default_graph
from toolkit.client.construction.convert import convert_to_tensor
from toolkit.client.construction.tensor import Tensor
from toolkit.client.layers import core
from toolkit.client.math import math_ops
from toolkit.client.nn import nn_ops
from toolkit.client.scoped_layers import common
from toolkit.client.scoped_layers.common import WEIGHT_NAMES, XAVIER, ZEROS
from toolkit.client.variables.model_variables import model_variable
from toolkit.client.variables.store import get_variable, variable_scope
from toolkit.graph.metagraph import GraphKeys

_ACTIVATIONS = "activations"


@add_arg_scope
def fully_connected(
    inputs: Any, num_outputs: int, activation_fn: Any = nn_ops.relu, normalizer_fn: Any = None,
    normalizer_params: Any = None, weights_initializer: Any = XAVIER, weights_regularizer: Any = None,
    biases_initializer: Any = ZEROS, biases_regularizer: Any = None, reuse: Any = None,
    variables_collections: Any = None, outputs_collections: Any = None, trainable: bool = True, scope: Any = None,
) -> Tensor:  # fmt: skip
    """activation(inputs @ weights + biases), over the last axis.

    Args:
        normalizer_fn: in place of the bias: a function of the outputs and of `normalizer_params`.

    Raises:
        ValueError: `num_outputs` is no whole number, or the last size of the inputs is not known.
    """
    if not isinstance(num_outputs, int):
        kind = type(num_outputs).__name__
        raise ValueError(f"num_outputs: expected a whole number, got {num_outputs} of type {kind}")
    with variable_scope(
        scope, "fully_connected", [inputs], reuse=reuse, custom_getter=common.variable_getter(WEIGHT_NAMES)
    ) as opened:
        inputs = convert_to_tensor(inputs)
        layer = core.Dense(
            num_outputs, None, bool(not normalizer_fn and biases_initializer), weights_initializer, biases_initializer,
            weights_regularizer, biases_regularizer, trainable=trainable, name=opened.name, dtype=inputs.dtype.base,
            _scope=opened, _reuse=reuse,
        )  # fmt: skip
        outputs: Any = layer.apply(inputs)
        common.add_to_collections(layer.kernel, variables_collections, "weights")
        if layer.bias is not None:
            common.add_to_collections(layer.bias, variables_collections, "biases")
        if normalizer_fn is not None:
            outputs = normalizer_fn(outputs, **(normalizer_params or {}))
        if activation_fn is not None:
            outputs = activation_fn(outputs)
        return common.collected(outputs_collections, opened.name, outputs)


#: dense layers by their activations
relu = functools.partial(fully_connected, activation_fn=nn_ops.relu)
relu6 = functools.partial(fully_connected, activation_fn=nn_ops.relu6)
elu = functools.partial(fully_connected, activation_fn=nn_ops.elu)
linear = functools.partial(fully_connected, activation_fn=None)


@add_arg_scope
def bias_add(
    inputs: Any, activation_fn: Any = None, initializer: Any = ZEROS, regularizer: Any = None, reuse: Any = None,
    variables_collections: Any = None, outputs_collections: Any = None, trainable: bool = True,
    data_format: Any = "NHWC", scope: Any = None,
) -> Tensor:  # fmt: skip
    """inputs + biases, one for each channel.

    Raises:
        ValueError: the number of channels is not known, or NCHW of another rank than 4.
    """
    first = common.channels_first(data_format, ("NCHW", "NHWC"))
    with variable_scope(scope, "BiasAdd", [inputs], reuse=reuse) as opened:
        inputs = convert_to_tensor(inputs)
        if first and inputs.static_shape.rank != 4:
            raise ValueError(f"data_format: NCHW is for 4 dimensions, the inputs have {inputs.static_shape.rank}")
        biases = model_variable(
            "biases", [common.known_size(inputs, 1 if first else -1)], inputs.dtype.base, initializer, regularizer,
            trainable, common.collections_of(variables_collections, "biases"),
        )  # fmt: skip
        outputs: Any = nn_ops.bias_add(inputs, biases, data_format)
        if activation_fn is not None:
            outputs = activation_fn(outputs)
        return common.collected(outputs_collections, opened.name, outputs)


@add_arg_scope
def dropout(
    inputs: Any, keep_prob: Any = 0.5, noise_shape: Any = None, is_training: Any = True,
    outputs_collections: Any = None, scope: Any = None, seed: int | None = None,
) -> Tensor:  # fmt: skip
    """In training, each number is kept with a probability, and grows, so that sums stay; otherwise nothing changes."""
    with variable_scope(scope, "Dropout", [inputs], custom_getter=common.variable_getter()) as opened:
        inputs = convert_to_tensor(inputs)
        layer = core.Dropout(1 - keep_prob, noise_shape, seed, name=opened.name, _scope=opened)
        outputs = layer.apply(inputs, training=common.training_flag(is_training))
        return common.collected(outputs_collections, opened.name, outputs)


# -- of the first releases -------------------------------------------------------------------------------------------


def legacy_fully_connected(
    x: Any, num_output_units: int, activation_fn: Any = None, weight_init: Any = XAVIER, bias_init: Any = ZEROS,
    name: Any = None, weight_collections: Any = ("weights",), bias_collections: Any = ("biases",),
    output_collections: Any = (_ACTIVATIONS,), trainable: bool = True, weight_regularizer: Any = None,
    bias_regularizer: Any = None,
) -> Tensor:  # fmt: skip
    """activation(x @ weights + bias), over the last axis, as the first releases had it.

    Raises:
        ValueError: fewer than two dimensions, or the last size is not known.
    """
    graph = get_default_graph()
    with variable_scope(name, "fully_connected", [x]):
        x = convert_to_tensor(x)
        size = common.known_size(x, -1, min_rank=2)
        shape = x.static_shape
        weights = get_variable(
            "weights", [size, num_output_units], x.dtype.base, weight_init, weight_regularizer, trainable,
            _with_globals(weight_collections),
        )  # fmt: skip
        rows = x if shape.rank == 2 else array_ops.reshape(x, [-1, size])
        y: Any = math_ops.matmul(rows, weights)
        if bias_init is not None:
            biases = get_variable(
                "bias", [num_output_units], x.dtype.base, bias_init, bias_regularizer, trainable,
                _with_globals(bias_collections),
            )  # fmt: skip
            y = nn_ops.bias_add(y, biases)
        if shape.rank != 2:
            sizes: list[Any] = array_ops.unstack(array_ops.shape(x))
            y = array_ops.reshape(y, array_ops.stack([*sizes[:-1], num_output_units]))
            y.set_shape([*shape.slice(0, -1), num_output_units])
        if activation_fn is not None:
            y = activation_fn(y)
        graph.add_to_collections([*(output_collections or ()), _ACTIVATIONS], y)
        return y


def _with_globals(collections: Any) -> list[str]:
    return list(dict.fromkeys([*(collections or ()), GraphKeys.GLOBAL_VARIABLES]))


legacy_relu = functools.partial(legacy_fully_connected, activation_fn=nn_ops.relu)
legacy_linear = functools.partial(legacy_fully_connected, activation_fn=None)
