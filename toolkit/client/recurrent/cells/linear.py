"""What cells share: products with a variable, and layer normalization with variables of a scope."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from toolkit.client.arrays import array_ops
from toolkit.client.construction.tensor import Tensor
from toolkit.client.math import math_ops
from toolkit.client.nn import nn_ops
from toolkit.client.recurrent.rnn_cell import RNNCell
from toolkit.client.variables.initializers import Constant, Zeros
from toolkit.client.variables.store import get_variable, variable_scope
from toolkit.errors import GraphError
from toolkit.graph import dtypes

#: below which variances count as it, as tf.contrib.layers.layer_norm has it; float16 cannot hold the smaller one
_EPSILON, _EPSILON_HALF = 1e-12, 1e-3


def linear(args: Sequence[Tensor], size: int, bias: bool = True, cell: RNNCell | None = None) -> Tensor:
    """[batch, size]: a product of what is joined along axis 1 with the scope's variable "kernel", and "bias" added.

    Args:
        cell: whose variables they are.
    """
    make = get_variable if cell is None else cell.add_variable
    joined = args[0] if len(args) == 1 else array_ops.concat(args, 1)
    width = last_size(joined)
    found = math_ops.matmul(joined, make("kernel", [width, size], dtype=joined.dtype.base))
    if not bias:
        return found
    return nn_ops.bias_add(found, make("bias", [size], dtype=joined.dtype.base, initializer=Zeros()))


def last_size(x: Tensor) -> int:
    """The size of the last axis.

    Raises:
        GraphError: it is not known.
    """
    size = x.static_shape[-1] if x.static_shape.rank else None
    if size is None:
        raise GraphError(f"the last size of '{x.name}' must be known; its shape is {x.static_shape}")
    return size


def normalized(cell: RNNCell, x: Tensor, scope: str, gain: float, shift: float) -> Tensor:
    """x [batch, n] with mean 0 and variance 1 in each row, times `scope/gamma`, plus `scope/beta`."""
    kind = x.dtype.base
    with variable_scope(scope):
        gamma = cell.add_variable("gamma", [last_size(x)], kind, Constant(gain))
        beta = cell.add_variable("beta", [last_size(x)], kind, Constant(shift))
    mean, variance = nn_ops.moments(x, [1], keepdims=True)
    least = _EPSILON_HALF if kind is dtypes.float16 else _EPSILON
    found = nn_ops.batch_normalization(x, mean, variance, beta, gamma, least)
    found.set_shape(x.static_shape)
    return found


def sharded(cell: RNNCell, name: str, shape: Sequence[int], dtype: Any, shards: int) -> Any:
    """A variable in parts of rows, `name_0`, `name_1`, ..., joined.

    Raises:
        GraphError: there are more parts than rows.
    """
    if shards > shape[0]:
        raise GraphError(f"{shape[0]} rows cannot be split into {shards} shards")
    rows, rest = divmod(shape[0], shards)
    parts = [
        cell.add_variable(f"{name}_{i}", [rows + (i < rest), *shape[1:]], dtype) for i in range(shards)
    ]  # fmt: skip
    return parts[0] if shards == 1 else array_ops.concat(parts, 0, name=name)
