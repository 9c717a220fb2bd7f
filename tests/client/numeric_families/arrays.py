# Rows are lambdas, whose arguments have no types.
# pyright: basic
"""Reductions, and what moves elements: slices, gathers, scatters, segments, diagonals."""

from __future__ import annotations

from typing import Any

import numpy as np

from tests.client.numeric_families.rows import BY_ZERO, apart, of_version, off_zero, row, u, z
from toolkit import client as gm
from toolkit.client import ops

# -- reductions --------------------------------------------------------------------------------------------

for _op in ("Sum", "Mean", "Max", "Min", "Prod", "EuclideanNorm"):
    for _shape, _axes in (
        ((2, 3, 4), [0]), ((2, 3, 4), [-1, 0]), ((2, 3, 4), [0, 1, 2]), ((2, 3, 4), []), ((3,), [0]), ((), []),
    ):  # fmt: skip
        for _keep in (False, True):
            row(
                _op,
                lambda x, o=_op, a=_axes, k=_keep: ops.function(o)(x, gm.constant(a, "int32"), keep_dims=k),
                apart(*_shape) + 0.04, about=f"{_shape} {_axes} {_keep}",
            )  # fmt: skip
    row(_op, lambda x, o=_op: ops.function(o)(x, gm.constant(1)), apart(2, 3) + 0.1, about="a scalar axis")
for _op in ("Sum", "Mean", "Prod"):
    row(_op, lambda x, o=_op: ops.function(o)(x, [1]), z(2, 3), about="complex")
    row(_op, lambda x, o=_op: ops.function(o)(x, [0]), u(2, 0), about="empty")
row("Sum", lambda x: ops.function("Sum")(x, [0]), u(0, 3), about="of nothing")
row(
    "Prod", lambda x: ops.prod(x, [1]), np.array([[0.0, 2, 3], [0, 0, 4], [1, 2, 3]]), about="zeros", first_only=BY_ZERO
)
for _op in ("Cumsum", "Cumprod", "CumulativeLogsumexp"):
    for _exclusive in (False, True):
        for _reverse in (False, True):
            if _op == "CumulativeLogsumexp" and _exclusive:
                continue  # minus infinity is among the results; gradient_families has it
            for _axis in (0, -1):
                row(
                    _op,
                    lambda x, o=_op, e=_exclusive, r=_reverse, a=_axis: ops.function(o)(x, a, exclusive=e, reverse=r),
                    off_zero(2, 3), about=f"{_exclusive} {_reverse} {_axis}",
                )  # fmt: skip
row("Cumsum", lambda x: ops.cumsum(x, 0), z(3), about="complex")
row("Cumprod", lambda x: ops.cumprod(x, 0), z(3) + 1, about="complex")

# -- shapes ------------------------------------------------------------------------------------------------

row("Reshape", lambda x: ops.reshape(x, [3, -1]), u(2, 3))
row("Reshape", lambda x: ops.reshape(x, gm.constant([], "int32")), u(1, 1), about="to a scalar")
row("Reshape", lambda x: ops.reshape(x, [0, 5]), u(5, 0), about="empty")
row("ExpandDims", lambda x: ops.expand_dims(x, -1), u(2, 3))
row("Squeeze", lambda x: ops.squeeze(x, squeeze_dims=[1, -1]), u(2, 1, 3, 1))
row("Squeeze", ops.squeeze, u(1, 2, 1), about="all")
row("Transpose", lambda x: ops.transpose(x, [1, 2, 0]), u(2, 3, 4))
row("ConjugateTranspose", lambda x: ops.conjugate_transpose(x, [2, 0, 1]), z(2, 3, 4))
row("EnsureShape", lambda x: ops.ensure_shape(x, shape=[2, None]), u(2, 3))
row("BroadcastTo", lambda x: ops.broadcast_to(x, [4, 2, 3]), u(2, 1))
row("BroadcastTo", lambda x: ops.broadcast_to(x, [2, 3]), u(), about="scalar")
row("Tile", lambda x: ops.tile(x, [2, 1, 3]), u(2, 3, 1))
row("Tile", lambda x: ops.tile(x, [2, 0]), u(2, 3), about="to nothing")
row("Fill", lambda x: ops.fill([2, 3], x), u())

# -- joined and taken apart --------------------------------------------------------------------------------

for _axis in (0, 1, -1):
    _b = u(4, 3) if _axis == 0 else u(2, 4)
    row("ConcatV2", lambda x, y, a=_axis: ops.concat_v2([x, y], a), u(2, 3), _b, about=f"{_axis}")
    row("Concat", lambda x, y, a=max(_axis, 0): ops.concat(a, [x, y]), u(2, 3), u(2, 3), about=f"{_axis}")
    row("Pack", lambda x, y, a=_axis: ops.pack([x, y], axis=a), u(2, 3), u(2, 3), about=f"{_axis}")
    row("Unpack", lambda x, a=_axis: list(ops.unpack(x, num=2, axis=a)), u(2, 2), about=f"{_axis}")
    row("Split", lambda x, a=_axis: list(ops.split(a, x, num_split=2)), u(2, 4 - 2 * (not _axis)), about=f"{_axis}")
row("ConcatV2", lambda x, y: ops.concat_v2([x, y], 0), u(0, 2), u(3, 2), about="empty")
row("Unpack", lambda x: ops.unpack(x, num=3, axis=1)[1], u(2, 3), about="one")
row("Split", lambda x: ops.split(1, x, num_split=3)[2], u(2, 3), about="one")
row("SplitV", lambda x: list(ops.split_v(x, [1, 2], 1, num_split=2)), u(2, 3))
row("SplitV", lambda x: ops.split_v(x, [0, 2], 0, num_split=2)[1], u(2, 3), about="empty and one")
row("IdentityN", lambda x, y: list(ops.identity_n([x, y])), u(2, 3), u(2))

# -- parts -------------------------------------------------------------------------------------------------

row("Slice", lambda x: ops.slice(x, [0, 1], [2, -1]), u(2, 3))
row("Slice", lambda x: ops.slice(x, [1, 1], [0, 2]), u(2, 3), about="nothing")
for _about, _part in {
    "steps": lambda x: x[1::2, ::-1], "axes": lambda x: x[None, 1, ..., None], "negative": lambda x: x[-2:, :-1],
    "one": lambda x: x[1, 2], "nothing": lambda x: x[3:, 1:1],
}.items():  # fmt: skip
    row("StridedSlice", _part, u(4, 3), about=_about)
row("StridedSliceGrad", lambda g: ops.strided_slice_grad([4, 3], [0, 0], [4, 3], [2, 2], g), u(2, 2))
row("StridedSliceGrad", lambda g: ops.strided_slice_grad([4, 3], [1, 0], [2, 3], [1, 1], g, shrink_axis_mask=1), u(3))
row("TensorStridedSliceUpdate", lambda x, v: ops.tensor_strided_slice_update(x, [0], [4], [3], v), u(4, 2), u(2, 2))
for _op in ("Pad", "MirrorPad reflect", "MirrorPad symmetric"):
    _name, _, _mode = _op.partition(" ")
    _more: dict[str, Any] = {"mode": _mode.upper()} if _mode else {}
    row(_name, lambda x, o=_name, m=_more: ops.function(o)(x, [[1, 0], [1, 2]], **m), u(2, 3), about=_mode)
    row(_name, lambda x, o=_name, m=_more: ops.function(o)(x, [[0, 0]], **m), u(4), about=f"by nothing {_mode}")
row("PadV2", lambda x, c: ops.pad_v2(x, [[1, 0], [2, 1]], c), u(2, 3), u())
for _mode in ("REFLECT", "SYMMETRIC"):
    row("MirrorPadGrad", lambda g, m=_mode: ops.mirror_pad_grad(g, [[1, 0], [1, 1]], mode=m), u(3, 5), about=_mode)
row("ReverseV2", lambda x: ops.reverse_v2(x, [0, -1]), u(2, 3, 2))
row("ReverseSequence", lambda x: ops.reverse_sequence(x, [2, 0, 3], seq_dim=1, batch_dim=0), u(3, 4, 2))
row("ReverseSequence", lambda x: ops.reverse_sequence(x, [2, 1], seq_dim=0, batch_dim=2), u(3, 2, 2), about="axes")
row("Roll", lambda x: ops.roll(x, [1, -2], [0, 1]), u(3, 4))
row("MatrixBandPart", lambda x: ops.matrix_band_part(x, 1, 0), u(2, 3, 4))
row("MatrixBandPart", lambda x: ops.matrix_band_part(x, -1, 1), u(3, 3), about="all below")
row("Diag", ops.diag, u(3))
row("DiagPart", ops.diag_part, u(3, 3))
row("MatrixDiag", ops.matrix_diag, u(2, 3))
row("MatrixDiagPart", ops.matrix_diag_part, u(2, 3, 4))
row("MatrixDiagPart", ops.matrix_diag_part, u(4, 3), about="tall")
row("MatrixSetDiag", ops.matrix_set_diag, u(4, 3), u(3), about="tall")

# -- gathered and scattered --------------------------------------------------------------------------------

row("Gather", lambda x: ops.gather(x, [[1, 0], [1, 3]]), u(4, 3))
row("Gather", lambda x: ops.gather(x, gm.constant(2)), u(4), about="a scalar")
for _axis in (0, 1, -1):
    row("GatherV2", lambda x, a=_axis: ops.gather_v2(x, [2, 0, 2], a), u(3, 3), about=f"{_axis}")
row("GatherV2", lambda x: ops.gather_v2(x, [[2, 0], [1, 1]], 1, batch_dims=1), u(2, 3, 2), about="batches")
row("GatherV2", lambda x: ops.gather_v2(x, [[2, 0], [1, 1]], 2, batch_dims=1), u(2, 2, 3), about="batches, an axis")
row("GatherV2", lambda x: ops.gather_v2(x, gm.constant([], "int32"), 0), u(3, 2), about="nothing")
row("GatherNd", lambda x: ops.gather_nd(x, [[1, 2], [0, 0], [1, 2]]), u(2, 3))
row("GatherNd", lambda x: ops.gather_nd(x, [[[1]], [[1]]]), u(2, 3), about="rows")
row("ScatterNd", lambda v: ops.scatter_nd([[2], [0], [2]], v, [4, 3]), u(3, 3))
row("ScatterNd", lambda v: ops.scatter_nd([[2, 1], [0, 0]], v, [3, 2]), u(2), about="elements")
for _op in ("TensorScatterAdd", "TensorScatterSub", "TensorScatterUpdate"):
    row(_op, lambda x, v, o=_op: ops.function(o)(x, [[2], [0]], v), u(4, 3), u(2, 3))
    row(_op, lambda x, v, o=_op: ops.function(o)(x, [[2, 1]], v), u(4, 3), u(1), about="elements")
for _op in ("TensorScatterMax", "TensorScatterMin"):
    row(_op, lambda x, v, o=_op: ops.function(o)(x, [[2], [0]], v), apart(4, 3), apart(2, 3) * 1.17 + 0.03)
row("ScatterNdNonAliasingAdd", lambda x, v: ops.scatter_nd_non_aliasing_add(x, [[0], [2]], v), u(3, 2), u(2, 2))
row("DynamicPartition", lambda x: list(ops.dynamic_partition(x, [1, 0, 1, 2], num_partitions=4)), u(4, 3))
row("DynamicPartition", lambda x: ops.dynamic_partition(x, [[1, 0], [1, 1]], num_partitions=2)[1], u(2, 2), about="one")
for _op in ("DynamicStitch", "ParallelDynamicStitch"):
    row(_op, lambda x, y, o=_op: ops.function(o)([[2, 0], [1, 3, 4]], [x, y]), u(2, 3), u(3, 3))
row("TopKV2", lambda x: ops.function("TopKV2")(x, 2)[0], apart(2, 4))
row("TopKV2", lambda x: ops.function("TopKV2")(x, 3, sorted=False)[0], apart(5), about="a row")
row("TopK", of_version(6, lambda x: ops.function("TopK")(x, k=2)[0]), apart(2, 4))
row("NthElement", lambda x: ops.nth_element(x, 1), apart(2, 5))

# -- segments ----------------------------------------------------------------------------------------------

for _op in ("SegmentSum", "SegmentMean", "SegmentMax", "SegmentMin", "SegmentProd"):
    row(_op, lambda x, o=_op: ops.function(o)(x, [0, 0, 1, 1, 1]), apart(5, 2) + 0.03)
    row(_op, lambda x, o=_op: ops.function(o)(x, [0, 2, 2]), apart(3) + 0.03, about="a segment without rows")
for _op in ("UnsortedSegmentSum", "UnsortedSegmentProd"):
    row(_op, lambda x, o=_op: ops.function(o)(x, [1, 0, 1, -1, 0], 3), u(5, 2))
    row(_op, lambda x, o=_op: ops.function(o)(x, [[1, 0], [1, 1]], 2), u(2, 2, 3), about="of two axes")
for _op in ("UnsortedSegmentMax", "UnsortedSegmentMin"):
    row(_op, lambda x, o=_op: ops.function(o)(x, [1, 0, 1, -1, 0], 2), apart(5, 2))
row(
    "UnsortedSegmentProd",
    lambda x: ops.unsorted_segment_prod(x, [0, 0, 0, 1], 2),
    np.array([0.0, 2, 3, 4]),
    about="0",
    first_only=BY_ZERO,
)
for _op in ("SparseSegmentSum", "SparseSegmentMean", "SparseSegmentSqrtN"):
    row(_op, lambda x, o=_op: ops.function(o)(x, [0, 3, 3, 1], [0, 0, 1, 1]), u(4, 2))
    row(
        f"{_op}WithNumSegments",
        lambda x, o=_op: ops.function(o + "WithNumSegments")(x, [0, 3, 3, 1], [0, 0, 2, 2], 4), u(4, 2),
    )  # fmt: skip

# -- identities --------------------------------------------------------------------------------------------

row("CheckNumerics", lambda x: ops.check_numerics(x, message="m"), u(2, 3))
row("CheckNumericsV2", lambda x: ops.check_numerics_v2(x, message="m"), u(2, 3))
row("PlaceholderWithDefault", lambda x: ops.placeholder_with_default(x, shape=[2, 3]), u(2, 3))
row("Print", lambda x: ops.print(x, [gm.constant(1)], first_n=0), u(2, 3))
