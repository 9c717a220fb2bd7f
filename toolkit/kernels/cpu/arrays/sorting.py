"""Order and membership: unique, set difference, top-k, search in sorted rows, counting."""

from __future__ import annotations

from toolkit.errors import InvalidArgumentError
from toolkit.kernels.cpu.common import (
    integer,
    np,
    product,
    require,
    require_scalar,
    require_vector,
    shape_text,
    wide,
    wrap_axis,
)
from toolkit.kernels.registry import Compute, KernelNode, kernel
from toolkit.kernels.types import Array


def unique_in_order(x: Array, axis: int | None = None) -> tuple[Array, Array, Array]:
    """(positions of the first occurrences in order, number of the value at each position, counts).

    NaN is equal to nothing, itself included.
    """
    values = wide(x)
    if axis is not None:
        values = np.moveaxis(values, axis, 0)
        flat = np.ascontiguousarray(values).reshape(values.shape[0], product(values.shape[1:]))
        if values.dtype == object:
            table: dict[tuple[bytes, ...], int] = {}
            keys = np.array([table.setdefault(tuple(row), len(table)) for row in flat.tolist()], np.int64)
        elif flat.shape[1] == 0:
            keys = np.zeros(len(flat), np.int64)
        else:
            order = np.lexsort(flat.T[::-1])
            fresh = np.ones(len(flat), bool)
            fresh[1:] = (flat[order[1:]] != flat[order[:-1]]).any(axis=1)
            keys = np.empty(len(flat), np.int64)
            keys[order] = np.cumsum(fresh) - 1
        values = keys
    _, first, inverse, counts = np.unique(
        values, return_index=True, return_inverse=True, return_counts=True, equal_nan=False
    )
    order = np.argsort(first, kind="stable")
    rank = np.empty_like(order)
    rank[order] = np.arange(len(order))
    return first[order], rank[inverse.reshape(-1)], counts[order]


@kernel("Unique", "UniqueV2", "UniqueWithCounts", "UniqueWithCountsV2")
def unique(op: KernelNode) -> Compute:
    """Distinct values (or slices along an axis) in order of appearance, and for each element which one it is."""
    index_type = op.output_types[1].numpy
    with_counts = "Counts" in op.op

    def compute(x: Array, *axes: Array) -> list[Array]:
        axis: int | None = None
        if axes and axes[0].size:
            require(
                axes[0].size == 1,
                f"axis does not support input tensors larger than 1 element, got {shape_text(axes[0])}",
            )
            axis = wrap_axis(int(axes[0].reshape(())), x.ndim)
            first, inverse, counts = unique_in_order(x, axis)
            out = np.take(x, first, axis=axis)
        else:
            require_vector(x, "the input of unique")
            first, inverse, counts = unique_in_order(x)
            out = x[first]
        results = [out, inverse.astype(index_type)]
        return [*results, counts.astype(index_type)] if with_counts else results

    return compute


@kernel("ListDiff")
def list_diff(op: KernelNode) -> Compute:
    """What is in x and not in y, in order, with its positions."""
    index_type = op.output_types[1].numpy

    def compute(x: Array, y: Array) -> tuple[Array, Array]:
        require(x.ndim == 1, "x should be a 1D vector.")
        require(y.ndim == 1, "y should be a 1D vector.")
        kept = np.flatnonzero(~np.isin(wide(x), wide(y)))
        return x[kept], kept.astype(index_type)

    return compute


def descending_order(x: Array) -> Array:
    """The stable order of the last axis from the largest: of equal values the lower index comes first."""
    size = x.shape[-1]
    return size - 1 - np.flip(np.argsort(np.flip(wide(x), -1), axis=-1, kind="stable"), -1)


@kernel("TopK", "TopKV2")
def top_k(op: KernelNode) -> Compute:
    """The k largest of each row, largest first."""
    fixed = op.attr("k") if op.op == "TopK" else None
    index_type = op.output_types[1].numpy

    def compute(x: Array, *given: Array) -> tuple[Array, Array]:
        if fixed is None:
            require_scalar(given[0], "k")
            k = int(given[0])
        else:
            k = fixed
        require(k >= 0, f"Need k >= 0, got {k}")
        require(x.ndim >= 1, f"input must be >= 1-D, got shape {shape_text(x)}")
        require(x.shape[-1] >= k, f"input must have at least k columns. Had {x.shape[-1]}, needed {k}")
        chosen = descending_order(x)[..., :k]
        return np.take_along_axis(x, chosen, axis=-1), chosen.astype(index_type)

    return compute


@kernel("NthElement")
def nth_element(op: KernelNode) -> Compute:
    """The n-th smallest (or largest, with `reverse`) of each row."""
    from_end = bool(op.attr("reverse"))

    def compute(x: Array, n_input: Array) -> Array:
        require_scalar(n_input, "N")
        n = int(n_input)
        require(n >= 0, f"n must be non-negative but is {n}")
        require(x.ndim >= 1 and x.shape[-1] > n, f"Input must have at least n+1 columns, got shape {shape_text(x)}")
        position = x.shape[-1] - 1 - n if from_end else n
        return np.sort(wide(x), axis=-1)[..., position].astype(x.dtype)

    return compute


@kernel("InTopK", "InTopKV2")
def in_top_k(op: KernelNode) -> Compute:
    """Whether the target's prediction is among the k largest of its row; ties count in favour."""
    fixed = op.attr("k") if op.op == "InTopK" else None

    def compute(predictions: Array, targets: Array, *given: Array) -> Array:
        k = integer(given[0], "k") if fixed is None else fixed
        require(predictions.ndim == 2, "predictions must be 2-dimensional")
        require(targets.ndim == 1, "targets must be 1-dimensional")
        require(
            predictions.shape[0] == len(targets),
            f"First dimension of predictions {predictions.shape[0]} must match length of targets {len(targets)}",
        )
        classes = predictions.shape[1]
        valid = (targets >= 0) & (targets < classes)
        safe = np.clip(targets, 0, max(classes - 1, 0))
        if not classes:
            return np.zeros(len(targets), bool)
        score = predictions[np.arange(len(targets)), safe]
        larger = (predictions > score[:, None]).sum(axis=1)
        finite = np.isfinite(predictions).all(axis=1)  # TensorFlow says no as soon as it meets a NaN or infinity
        return valid & finite & (larger < k)

    return compute


@kernel("LowerBound", "UpperBound")
def bound(op: KernelNode) -> Compute:
    """Where each value belongs in its sorted row."""
    side = "left" if op.op == "LowerBound" else "right"
    dtype = op.output_types[0].numpy

    def compute(rows: Array, values: Array) -> Array:
        require(rows.ndim == 2, "sorted input argument must be a matrix")
        require(values.ndim == 2, "values argument must be a matrix")
        require(
            rows.shape[0] == values.shape[0],
            f"Leading dim_size of both tensors must match: {shape_text(rows)} vs. {shape_text(values)}",
        )
        haystack, needles = wide(rows)[:, None, :], wide(values)[:, :, None]
        before = haystack < needles if side == "left" else haystack <= needles
        return before.sum(axis=2).astype(dtype)

    return compute


@kernel("Bincount")
def bincount(op: KernelNode) -> Compute:
    """How often each value below `size` occurs, or the sum of its weights."""
    dtype = op.output_types[0].numpy

    def compute(values: Array, size_input: Array, weights: Array) -> Array:
        require_scalar(size_input, "size")
        size = int(size_input)
        require(size >= 0, f"size ({size}) must be non-negative")
        require(not values.size or values.min() >= 0, "Input arr must be non-negative!")
        require(
            not weights.size or weights.size == values.size,
            f"weights has shape {shape_text(weights)}, arr {shape_text(values)}",
        )
        out = np.zeros(size, dtype)
        flat = values.reshape(-1)
        inside = flat < size
        np.add.at(out, flat[inside], weights.reshape(-1)[inside] if weights.size else np.ones((), dtype))
        return out

    return compute


@kernel("DenseBincount")
def dense_bincount(op: KernelNode) -> Compute:
    """Counts of a vector, or of each row of a matrix; binary_output says only whether a value occurs."""
    binary = bool(op.attr("binary_output"))
    dtype = op.output_types[0].numpy

    def compute(values: Array, size_input: Array, weights: Array) -> Array:
        require(values.ndim <= 2, f"Shape must be at most rank 2 but is rank {values.ndim}")
        require(size_input.size == 1, f"Shape must be rank 0 but is rank {size_input.ndim}")
        size = int(size_input.reshape(()))
        require(size >= 0, f"size ({size}) must be non-negative")
        require(not values.size or values.min() >= 0, "Input arr must be non-negative!")
        require(
            not weights.size or weights.shape == values.shape,
            f"`weights` must be the same shape as `arr` or a length-0 `Tensor`, got {shape_text(weights)}",
        )
        if values.ndim == 0:
            raise InvalidArgumentError("Shape must be rank 1 or 2 but is rank 0")
        rows = values.reshape(1, -1) if values.ndim == 1 else values
        out = np.zeros((rows.shape[0], size), dtype)
        row = np.broadcast_to(np.arange(rows.shape[0])[:, None], rows.shape)
        inside = rows < size
        if binary:
            out[row[inside], rows[inside]] = 1
        else:
            added = weights.reshape(rows.shape)[inside] if weights.size else np.ones((), dtype)
            np.add.at(out, (row[inside], rows[inside]), added)
        return out[0] if values.ndim == 1 else out

    return compute
