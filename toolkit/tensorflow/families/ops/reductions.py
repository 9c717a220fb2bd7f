# TensorFlow's arguments may be anything, so what they are is for tests to say, not for types.
# pyright: basic
"""tf.reduce_*, argmax and their kin, with the arguments of every release of TensorFlow 1."""

from __future__ import annotations

from typing import Any

import numpy as np

from toolkit.client import ops
from toolkit.client.arrays import array_ops
from toolkit.client.construction.convert import convert_to_tensor
from toolkit.client.construction.scopes import name_scope
from toolkit.client.construction.tensor import Tensor
from toolkit.client.math import math_ops
from toolkit.graph import dtypes
from toolkit.tensorflow.families.arguments import needed, renamed


def reduce_sum(
    input_tensor: Any, axis: Any = None, keepdims: Any = None, name: Any = None, reduction_indices: Any = None,
    keep_dims: Any = None,
) -> Tensor:  # fmt: skip
    return _reduced("Sum", input_tensor, axis, keepdims, name, reduction_indices, keep_dims)


def reduce_mean(
    input_tensor: Any, axis: Any = None, keepdims: Any = None, name: Any = None, reduction_indices: Any = None,
    keep_dims: Any = None,
) -> Tensor:  # fmt: skip
    return _reduced("Mean", input_tensor, axis, keepdims, name, reduction_indices, keep_dims)


def reduce_prod(
    input_tensor: Any, axis: Any = None, keepdims: Any = None, name: Any = None, reduction_indices: Any = None,
    keep_dims: Any = None,
) -> Tensor:  # fmt: skip
    return _reduced("Prod", input_tensor, axis, keepdims, name, reduction_indices, keep_dims)


def reduce_max(
    input_tensor: Any, axis: Any = None, keepdims: Any = None, name: Any = None, reduction_indices: Any = None,
    keep_dims: Any = None,
) -> Tensor:  # fmt: skip
    return _reduced("Max", input_tensor, axis, keepdims, name, reduction_indices, keep_dims)


def reduce_min(
    input_tensor: Any, axis: Any = None, keepdims: Any = None, name: Any = None, reduction_indices: Any = None,
    keep_dims: Any = None,
) -> Tensor:  # fmt: skip
    return _reduced("Min", input_tensor, axis, keepdims, name, reduction_indices, keep_dims)


def reduce_all(
    input_tensor: Any, axis: Any = None, keepdims: Any = None, name: Any = None, reduction_indices: Any = None,
    keep_dims: Any = None,
) -> Tensor:  # fmt: skip
    return _reduced("All", input_tensor, axis, keepdims, name, reduction_indices, keep_dims)


def reduce_any(
    input_tensor: Any, axis: Any = None, keepdims: Any = None, name: Any = None, reduction_indices: Any = None,
    keep_dims: Any = None,
) -> Tensor:  # fmt: skip
    return _reduced("Any", input_tensor, axis, keepdims, name, reduction_indices, keep_dims)


def _reduced(op: str, x: Any, axis: Any, keepdims: Any, name: Any, old_axis: Any, old_keep: Any) -> Tensor:
    axis = renamed("axis", axis, "reduction_indices", old_axis)
    keep = renamed("keepdims", keepdims, "keep_dims", old_keep)
    if axis is None:
        x = convert_to_tensor(x)  # before the scope of the op, as in TensorFlow
        axis = math_ops.reduction_axes(x, None)
    made: Tensor = ops.function(op)(x, axis, keep_dims=bool(keep), name=name)
    return made


def reduce_logsumexp(
    input_tensor: Any, axis: Any = None, keepdims: Any = None, name: Any = None, reduction_indices: Any = None,
    keep_dims: Any = None,
) -> Tensor:  # fmt: skip
    axis = renamed("axis", axis, "reduction_indices", reduction_indices)
    keep = renamed("keepdims", keepdims, "keep_dims", keep_dims)
    return math_ops.reduce_logsumexp(input_tensor, axis, bool(keep), name)


def reduce_variance(input_tensor: Any, axis: Any = None, keepdims: bool = False, name: Any = None) -> Tensor:
    with name_scope(name if name else "reduce_variance"):
        x = convert_to_tensor(input_tensor)
        means = reduce_mean(x, axis, True)
        offset = x - means
        squared = ops.square(offset)
        return reduce_mean(squared, axis, keepdims)


def reduce_std(input_tensor: Any, axis: Any = None, keepdims: bool = False, name: Any = None) -> Tensor:
    with name_scope(name if name else "reduce_std"):
        return ops.sqrt(reduce_variance(convert_to_tensor(input_tensor), axis, keepdims))


def reduce_euclidean_norm(input_tensor: Any, axis: Any = None, keepdims: bool = False, name: Any = None) -> Tensor:
    x = convert_to_tensor(input_tensor) if axis is None else input_tensor
    chosen = math_ops.reduction_axes(x, None) if axis is None else axis
    return ops.euclidean_norm(x, chosen, keep_dims=bool(keepdims), name=name)


def count_nonzero(
    input_tensor: Any = None, axis: Any = None, keepdims: Any = None, dtype: Any = dtypes.int64, name: Any = None,
    reduction_indices: Any = None, keep_dims: Any = None, input: Any = None,
) -> Tensor:  # fmt: skip
    keep = renamed("keepdims", keepdims, "keep_dims", keep_dims)
    given = needed("input", renamed("input", input, "input_tensor", input_tensor))
    axis = renamed("axis", axis, "reduction_indices", reduction_indices)
    with name_scope(name, "count_nonzero", [given]):
        x = convert_to_tensor(given, name="input")
        zero: Any = np.zeros((), x.dtype.base.numpy) if x.dtype.base is not dtypes.string else ""
        if x.dtype.base is dtypes.string:
            different = ops.not_equal(x, zero)
        else:
            different = ops.not_equal(x, array_ops.zeros([], x.dtype.base))
        counted = reduce_sum(math_ops.cast(different, dtypes.int64), axis, bool(keep))
        return math_ops.cast(counted, dtype)


def argmax(
    input: Any, axis: Any = None, name: Any = None, dimension: Any = None, output_type: Any = dtypes.int64
) -> Tensor:
    axis = renamed("axis", axis, "dimension", dimension)
    return ops.arg_max(input, 0 if axis is None else axis, output_type=output_type, name=name)


def argmin(
    input: Any, axis: Any = None, name: Any = None, dimension: Any = None, output_type: Any = dtypes.int64
) -> Tensor:
    axis = renamed("axis", axis, "dimension", dimension)
    return ops.arg_min(input, 0 if axis is None else axis, output_type=output_type, name=name)
