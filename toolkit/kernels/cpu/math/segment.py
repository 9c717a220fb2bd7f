"""Reductions over segments: sorted, unsorted, and of rows picked by index (sparse)."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from toolkit.errors import InvalidArgumentError
from toolkit.kernels.cpu.arrays.gather import check_indices
from toolkit.kernels.cpu.common import (
    NARROW_FLOATS,
    finfo,
    np,
    require,
    require_scalar,
    require_vector,
    shape_text,
    wide,
)
from toolkit.kernels.cpu.math.reduction import highest, lowest
from toolkit.kernels.registry import Compute, KernelNode, kernel
from toolkit.kernels.types import Array


def _finite_extreme(dtype: Any, sign: int) -> Any:
    """The type's own lowest or highest number: what an empty segment holds under max or min."""
    if dtype.kind in "iu":
        return lowest(dtype) if sign < 0 else highest(dtype)
    return sign * np.finfo(dtype).max


def _accumulate(how: Any, start: Any, count: int, ids: Array, data: Array) -> Array:
    """Row i of the result combines, by the ufunc `how`, the rows of `data` whose id is i."""
    out = np.full((count, *data.shape[1:]), start, data.dtype)
    how.at(out, ids, data)
    return out


# how, start value by type
_UNSORTED: dict[str, tuple[Any, Callable[[Any], Any]]] = {
    "UnsortedSegmentSum": (np.add, lambda dtype: 0),
    "UnsortedSegmentProd": (np.multiply, lambda dtype: 1),
    "UnsortedSegmentMax": (np.maximum, lambda dtype: _finite_extreme(dtype, -1)),
    "UnsortedSegmentMin": (np.minimum, lambda dtype: _finite_extreme(dtype, 1)),
}


@kernel(*_UNSORTED)
def unsorted_segment(op: KernelNode) -> Compute:
    """Rows with a negative id are left out."""
    how, start = _UNSORTED[op.op]

    def compute(data: Array, ids: Array, count_input: Array) -> Array:
        require_scalar(count_input, "num_segments")
        count = int(count_input)
        require(count >= 0, f"Input num_segments == {count} must not be negative.")
        require(
            data.shape[: ids.ndim] == ids.shape,
            f"data.shape = {shape_text(data)} does not start with segment_ids.shape = {shape_text(ids)}",
        )
        rows = data.reshape(ids.size, *data.shape[ids.ndim :])
        flat = ids.reshape(-1)
        too_large = flat >= count
        if too_large.any() and data.size:
            at = ",".join(map(str, np.argwhere(ids >= count)[0].tolist()))
            raise InvalidArgumentError(f"segment_ids[{at}] = {flat[too_large][0]} is out of range [0, {count})")
        inside = (flat >= 0) & ~too_large
        if not inside.all():
            rows, flat = rows[inside], flat[inside]
        dtype = data.dtype
        initial = start(dtype) if dtype not in NARROW_FLOATS else _narrow_start(start, dtype)
        return _accumulate(how, initial, count, flat, wide(rows)).astype(dtype)

    return compute


def _narrow_start(start: Callable[[Any], Any], dtype: Any) -> Any:
    value = start(np.dtype(np.float32))
    if abs(value) <= 1:
        return value
    return float(finfo(dtype).max) * (1 if value > 0 else -1)


def check_sorted(ids: Array) -> None:
    """Raise unless segment ids are a vector that never falls and never is negative.

    Raises:
        InvalidArgumentError: they are not.
    """
    require_vector(ids, "segment_ids")
    if len(ids):
        require(ids[0] >= 0, f"segment ids must be >= 0, got {ids[0]}")
        require((ids[1:] >= ids[:-1]).all(), "segment ids are not increasing")


_SORTED: dict[str, tuple[Any, Callable[[Any], Any]]] = {
    "SegmentSum": (np.add, lambda dtype: 0),
    "SegmentProd": (np.multiply, lambda dtype: 1),
    "SegmentMax": (np.maximum, lowest),
    "SegmentMin": (np.minimum, highest),
    "SegmentMean": (np.add, lambda dtype: 0),
}
#: what V1's gaps between segments hold, and V2's empty segments
_GAPS: dict[str, Callable[[Any], Any]] = {
    "SegmentProdV2": lambda dtype: 1,
    "SegmentMaxV2": lambda dtype: _finite_extreme(dtype, -1),
    "SegmentMinV2": lambda dtype: _finite_extreme(dtype, 1),
    "SegmentProd": lambda dtype: 1,
}


def _segments(name: str, data: Array, ids: Array, count: int) -> Array:
    how, start = _SORTED[name.removesuffix("V2")]
    rows = wide(data)
    out = _accumulate(how, start(rows.dtype), count, ids, rows)
    sizes = np.bincount(ids, minlength=count).reshape((-1,) + (1,) * (data.ndim - 1))
    if name.startswith("SegmentMean"):
        out = _divide_rows(out, sizes)
    if (sizes == 0).any():
        gap = _GAPS.get(name)
        value = 0 if gap is None else _narrow_start(gap, data.dtype) if data.dtype in NARROW_FLOATS else gap(rows.dtype)
        out = np.where(sizes == 0, np.asarray(value, out.dtype), out)
    return out.astype(data.dtype)


def _divide_rows(total: Array, sizes: Array) -> Array:
    counts = np.maximum(sizes, 1)
    if total.dtype.kind in "iu":
        return np.trunc(total / counts).astype(total.dtype)
    return np.divide(total, counts.astype(total.dtype))


@kernel(*_SORTED)
def segment(op: KernelNode) -> Compute:
    """Segments are runs of equal ids; the result has a row for each id up to the last."""

    def compute(data: Array, ids: Array) -> Array:
        require_vector(ids, "segment_ids")
        require(data.ndim >= 1, "data must be at least rank 1")
        require(
            len(ids) == data.shape[0],
            f"segment_ids should be the same size as dimension 0 of input: {len(ids)} vs. {shape_text(data)}",
        )
        check_sorted(ids)
        return _segments(op.op, data, ids, int(ids[-1]) + 1 if len(ids) else 0)

    return compute


@kernel("SegmentSumV2", "SegmentProdV2", "SegmentMaxV2", "SegmentMinV2")
def segment_v2(op: KernelNode) -> Compute:
    def compute(data: Array, ids: Array, count_input: Array) -> Array:
        require_scalar(count_input, "num_segments")
        require_vector(ids, "segment_ids")
        require(
            len(ids) == data.shape[0],
            f"segment_ids should be the same size as dimension 0 of input: {len(ids)} vs. {shape_text(data)}",
        )
        check_sorted(ids)
        count = int(count_input)
        require(not len(ids) or int(ids[-1]) < count, f"segment ids must be < num_segments = {count}")
        return _segments(op.op, data, ids, count)

    return compute


# -- sparse ----------------------------------------------------------------------------------------------


@kernel(
    "SparseSegmentSum", "SparseSegmentMean", "SparseSegmentSqrtN",
    "SparseSegmentSumWithNumSegments", "SparseSegmentMeanWithNumSegments", "SparseSegmentSqrtNWithNumSegments",
)  # fmt: skip
def sparse_segment(op: KernelNode) -> Compute:
    """Segments of the rows data[indices]; a mean divides by the count, sqrt_n by its root."""
    given_count = op.op.endswith("WithNumSegments")
    kind = op.op.removeprefix("SparseSegment").removesuffix("WithNumSegments")

    def compute(data: Array, indices: Array, ids: Array, *counts: Array) -> Array:
        require_vector(indices, "indices")
        require_vector(ids, "segment_ids")
        require(data.ndim >= 1, "data must be at least rank 1")
        require(len(indices) == len(ids), "segment_ids and indices should have same size.")
        check_sorted(ids)
        count = int(ids[-1]) + 1 if len(ids) else 0
        if given_count:
            require_scalar(counts[0], "num_segments")
            require(int(counts[0]) >= count, f"segment ids must be < num_segments = {int(counts[0])}")
            count = int(counts[0])
        check_indices(indices, data.shape[0])
        out = _accumulate(np.add, 0, count, ids, wide(data[indices]))
        return _normalize(out, kind, ids, count).astype(data.dtype)

    return compute


def _normalize(total: Array, kind: str, ids: Array, count: int) -> Array:
    if kind == "Sum":
        return total
    sizes = np.maximum(np.bincount(ids, minlength=count), 1).astype(total.dtype)
    if kind == "SqrtN":
        sizes = np.sqrt(sizes)
    return total / sizes.reshape((-1,) + (1,) * (total.ndim - 1))


@kernel("SparseSegmentSumGrad", "SparseSegmentMeanGrad", "SparseSegmentSqrtNGrad")
def sparse_segment_grad(op: KernelNode) -> Compute:
    kind = op.op.removeprefix("SparseSegment").removesuffix("Grad")

    def compute(grad: Array, indices: Array, ids: Array, rows: Array) -> Array:
        _check_gradient(grad, indices, ids, rows, "output_dim0")
        if not int(rows):
            return np.zeros((0, *grad.shape[1:]), grad.dtype)
        values = _scaled_gradient(wide(grad), kind, ids)
        return _accumulate(np.add, 0, int(rows), indices, values[ids]).astype(grad.dtype)

    return compute


def _check_gradient(grad: Array, indices: Array, ids: Array, rows: Array, rows_name: str) -> None:
    require_scalar(rows, rows_name)
    require_vector(indices, "indices")
    require_vector(ids, "segment_ids")
    require(grad.ndim >= 1, "grad must be at least a vector, got a scalar")
    require(len(indices) == len(ids), "segment_ids and indices should have same size.")
    require(int(rows) >= 0, f"{rows_name} must not be negative, got {int(rows)}")
    if int(rows):  # of no rows, nothing is looked at
        check_indices(ids, grad.shape[0], "segment_ids")
        check_indices(indices, int(rows))


def _scaled_gradient(grad: Array, kind: str, ids: Array) -> Array:
    return _normalize(grad, kind, ids, grad.shape[0])


@kernel("SparseSegmentSumGradV2", "SparseSegmentMeanGradV2", "SparseSegmentSqrtNGradV2")
def sparse_segment_grad_v2(op: KernelNode) -> Compute:
    """Gradients of the rows that were used only, and which rows those are, in increasing order."""
    kind = op.op.removeprefix("SparseSegment").removesuffix("GradV2")

    def compute(grad: Array, indices: Array, ids: Array, rows: Array) -> tuple[Array, Array]:
        _check_gradient(grad, indices, ids, rows, "dense_output_dim0")
        if not int(rows):
            return np.zeros((0, *grad.shape[1:]), grad.dtype), np.zeros(0, indices.dtype)
        used, position = np.unique(indices, return_inverse=True)
        values = _scaled_gradient(wide(grad), kind, ids)
        out = _accumulate(np.add, 0, len(used), position.reshape(-1), values[ids])
        return out.astype(grad.dtype), used

    return compute
