# TensorFlow's arguments may be anything, so what they are is for tests to say, not for types.
# pyright: basic
"""tf.sparse: what has had other names for its arguments."""

from __future__ import annotations

from typing import Any

from toolkit.client import ops
from toolkit.client.construction.tensor import Tensor
from toolkit.client.sparse import sparse_ops
from toolkit.client.sparse.tensor import SparseTensor
from toolkit.tensorflow.families.arguments import needed, renamed


def add(a: Any, b: Any, threshold: Any = None, thresh: Any = None) -> Any:
    least = renamed("threshold", threshold, "thresh", thresh)
    return sparse_ops.add(a, b, 0 if least is None else least)


def concat(
    axis: Any, sp_inputs: Any, name: Any = None, expand_nonconcat_dim: bool = False, concat_dim: Any = None,
    expand_nonconcat_dims: Any = None,
) -> SparseTensor:  # fmt: skip
    grow = expand_nonconcat_dim if expand_nonconcat_dims is None else expand_nonconcat_dims
    return sparse_ops.concat(axis if concat_dim is None else concat_dim, sp_inputs, name, grow)


def _reduced(call: Any, op: str, x: Any, axis: Any, keepdims: Any, old_axis: Any, old_keep: Any) -> Any:
    axis = renamed("axis", axis, "reduction_axes", old_axis)
    keep = renamed("keepdims", keepdims, "keep_dims", old_keep)
    return call(op, x, axis, bool(keep))


def reduce_max(
    sp_input: Any, axis: Any = None, keepdims: Any = None, reduction_axes: Any = None, keep_dims: Any = None
) -> Tensor:
    return _reduced(sparse_ops.reduce, "SparseReduceMax", sp_input, axis, keepdims, reduction_axes, keep_dims)


def reduce_sum(
    sp_input: Any, axis: Any = None, keepdims: Any = None, reduction_axes: Any = None, keep_dims: Any = None
) -> Tensor:
    return _reduced(sparse_ops.reduce, "SparseReduceSum", sp_input, axis, keepdims, reduction_axes, keep_dims)


def reduce_max_sparse(
    sp_input: Any, axis: Any = None, keepdims: Any = None, reduction_axes: Any = None, keep_dims: Any = None
) -> SparseTensor:
    op = "SparseReduceMaxSparse"
    return _reduced(sparse_ops.reduce_sparse, op, sp_input, axis, keepdims, reduction_axes, keep_dims)


def reduce_sum_sparse(
    sp_input: Any, axis: Any = None, keepdims: Any = None, reduction_axes: Any = None, keep_dims: Any = None
) -> SparseTensor:
    op = "SparseReduceSumSparse"
    return _reduced(sparse_ops.reduce_sparse, op, sp_input, axis, keepdims, reduction_axes, keep_dims)


def _segments(kind: str, data: Any, indices: Any, ids: Any, name: Any, count: Any, sparse_gradient: bool) -> Tensor:
    if count is None:
        return ops.function(f"SparseSegment{kind}")(data, indices, ids, sparse_gradient=sparse_gradient, name=name)
    op = ops.function(f"SparseSegment{kind}WithNumSegments")
    return op(data, indices, ids, count, sparse_gradient=sparse_gradient, name=name)


def segment_sum(
    data: Any, indices: Any, segment_ids: Any, name: Any = None, num_segments: Any = None, sparse_gradient: bool = False
) -> Tensor:
    return _segments("Sum", data, indices, segment_ids, name, num_segments, sparse_gradient)


def segment_mean(
    data: Any, indices: Any, segment_ids: Any, name: Any = None, num_segments: Any = None, sparse_gradient: bool = False
) -> Tensor:
    return _segments("Mean", data, indices, segment_ids, name, num_segments, sparse_gradient)


def segment_sqrt_n(
    data: Any, indices: Any, segment_ids: Any, name: Any = None, num_segments: Any = None, sparse_gradient: bool = False
) -> Tensor:
    return _segments("SqrtN", data, indices, segment_ids, name, num_segments, sparse_gradient)


#: stands for arguments that are given by name alone
_REQUIRED = object()


def split(
    keyword_required: Any = _REQUIRED, sp_input: Any = None, num_split: Any = None, axis: Any = None, name: Any = None,
    split_dim: Any = None,
) -> list[SparseTensor]:  # fmt: skip
    if keyword_required is not _REQUIRED:
        raise ValueError("sparse_split takes its arguments by name: sp_input=..., num_split=..., axis=...")
    at = needed("axis", renamed("axis", axis, "split_dim", split_dim))
    return sparse_ops.split(needed("sp_input", sp_input), needed("num_split", num_split), at, name)
