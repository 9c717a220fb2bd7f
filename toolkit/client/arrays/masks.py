"""Masks of sequences: which steps are before a row's end."""

from __future__ import annotations

from typing import Any

from toolkit.client import ops
from toolkit.client.construction.convert import DTypeLike, as_dtype, constant, convert_to_tensor
from toolkit.client.construction.scopes import name_scope
from toolkit.client.construction.tensor import Tensor, TensorLike
from toolkit.client.math import math_ops
from toolkit.graph import dtypes


def sequence_mask(
    lengths: TensorLike, maxlen: TensorLike | None = None, dtype: DTypeLike = dtypes.bool_, name: str | None = None
) -> Tensor:
    """Rows [..., maxlen] that are true (or 1) at the first `lengths` positions of each.

    Args:
        maxlen: a scalar; default: the largest of the lengths.
    """
    with name_scope(name, "SequenceMask", [lengths, maxlen]):
        lengths = convert_to_tensor(lengths)
        if maxlen is None:
            longest: Any = ops.function("Max")(lengths, math_ops.reduction_axes(lengths, None), keep_dims=False)
            maxlen = math_ops.maximum(constant(0, longest.dtype.base), longest)
        else:
            maxlen = convert_to_tensor(maxlen)
        row = ops.range(constant(0, maxlen.dtype.base), maxlen, constant(1, maxlen.dtype.base))
        matrix = ops.cast(ops.expand_dims(lengths, -1), DstT=maxlen.dtype.base)
        found = ops.less(row, matrix)
        return found if as_dtype(dtype).base is dtypes.bool_ else ops.cast(found, DstT=as_dtype(dtype))
