"""Smaller array ops: flat indices, data formats, rows in place, edit distance."""

from __future__ import annotations

from typing import Any

from toolkit.errors import InvalidArgumentError
from toolkit.kernels.cpu.arrays.sorting import descending_order
from toolkit.kernels.cpu.common import np, require, require_vector, shape_text, to_ints, wide, wrap_axis
from toolkit.kernels.cpu.sparse.basic import check_bounds, linear
from toolkit.kernels.cpu.sparse.forms import check_sparse
from toolkit.kernels.registry import Compute, KernelNode, kernel, simple
from toolkit.kernels.types import Array


@simple("UnravelIndex")
def unravel_index(indices: Array, dims: Array) -> Array:
    """The coordinates, one row a dimension, of row-major positions."""
    require(indices.ndim <= 1, f"The indices can only be scalar or vector, got {shape_text(indices)}")
    require(indices.size > 0, "received empty tensor indices")
    require_vector(dims, "dims")
    sizes = to_ints(dims)
    require(0 not in sizes, f"Input dims cannot contain a dim of zero, but dims contains zero: {sizes}")
    total = int(np.prod(sizes, dtype=np.int64))
    flat = indices.reshape(-1)
    require(not len(flat) or int(flat.max()) < total, f"index is out of bound as with dims {sizes}")
    out = np.empty((len(sizes), len(flat)), dims.dtype)
    for row in range(len(sizes) - 1, -1, -1):
        out[row] = flat % sizes[row]
        flat = flat // sizes[row]
    return out[:, 0] if indices.ndim == 0 else out


@simple("ToBool")
def to_bool(x: Array) -> Array:
    """A scalar's truth (a string is true when it is not empty); of a tensor, whether it has elements."""
    if x.ndim == 0:
        return np.asarray(bool(x[()]))
    return np.asarray(x.shape[0] > 0)


def _pass(x: Array) -> Array:
    return x


simple("GuaranteeConst", "Copy", "CopyHost")(_pass)


#: types of a few bits, with which little is computed
_NARROW = ("float8", "float4", "int4", "uint4", "int2", "uint2")


@kernel("InplaceUpdate", "InplaceAdd", "InplaceSub")
def inplace(op: KernelNode) -> Compute:
    """Rows of x replaced or changed; the name is TensorFlow's, the result is a new tensor."""
    how = {"InplaceUpdate": None, "InplaceAdd": np.add, "InplaceSub": np.subtract}[op.op]
    dtype = op.input_types[0]
    # TensorFlow has kernels for all types, and looks at the type once there is something to do
    number = dtype.kind in "fiuc" and not dtype.is_quantized and not dtype.name.startswith(_NARROW)
    takes = number or (how is None and dtype.kind in "bs")

    def compute(x: Array, rows: Array, v: Array) -> Array:
        check_rows_in_place(x, rows, v)
        out = x.copy()
        if not v.size:
            return out
        require(takes, f"Unsupported data type: {dtype}")
        index = rows % x.shape[0]
        if how is None:
            out[index] = v
        else:
            how.at(out, index, v)
        return out

    return compute


def check_rows_in_place(x: Any, rows: Any, v: Any) -> None:
    """Refuse what are no rows of x.

    Raises:
        InvalidArgumentError: the shapes say so.
    """
    require_vector(rows, "i")
    require(x.ndim, "x must have rows, not be a scalar")
    require(x.ndim == v.ndim, f"x and v shape doesn't match (ranks differ): {shape_text(x)} vs. {shape_text(v)}")
    require(
        x.shape[1:] == v.shape[1:],
        f"x and v shape doesn't match beyond the first dimension: {shape_text(x)} vs. {shape_text(v)}",
    )
    count = rows.shape[0]
    require(count == v.shape[0], f"i and x shape doesn't match at index 0: {shape_text(rows)} vs. {shape_text(v)}")
    require(x.shape[0] > 0 or not count, "x has no rows")


def format_tables(op: KernelNode) -> tuple[list[int], list[int], list[int]]:
    """From one layout such as NHWC to another.

    Returns:
        Where each dimension goes; where each of all comes from, and each of the spatial ones among themselves.

    Raises:
        InvalidArgumentError: they have other letters, or not 4 or 5.
    """
    source, target = op.text("src_format"), op.text("dst_format")
    rank = len(source)
    if sorted(source) != sorted(target) or rank not in (4, 5):
        raise InvalidArgumentError(
            f"src_format '{source}' and dst_format '{target}' must be permutations of 4 or 5 letters"
        )
    spatial = ["".join(letter for letter in text if letter not in "NC") for text in (source, target)]
    return (
        [target.index(letter) for letter in source],
        [source.index(letter) for letter in target],
        [spatial[0].index(letter) for letter in spatial[1]],
    )


def check_permuted(x: Any, rank: int) -> int:
    """Which table of `format_tables`' two last ones is for a tensor.

    Raises:
        InvalidArgumentError: none is.
    """
    require(x.ndim in (1, 2), f"input must be a vector or 2D tensor, but got shape {shape_text(x)}")
    require(
        x.shape[0] in (rank, rank - 2),
        f"1D input must be of size {rank} or {rank - 2}, but got shape {shape_text(x)}",
    )
    if x.ndim == 2:
        require(x.shape[1] == 2, f"Second dimension of 2D input must be of size 2, but got shape {shape_text(x)}")
    return 0 if x.shape[0] == rank else 1


@kernel("DataFormatVecPermute", "DataFormatDimMap")
def data_format(op: KernelNode) -> Compute:
    """Per-dimension values, or dimension numbers, from one layout such as NHWC to another."""
    places, *tables = format_tables(op)
    rank = len(places)
    if op.op == "DataFormatDimMap":
        table = np.array(places)

        def dim_map(x: Array) -> Array:
            outside = (x < -rank) | (x >= rank)
            require(not outside.any(), f"Dimensions must lie in [{-rank}, {rank})")
            return table[x % rank].astype(x.dtype)

        return dim_map

    def permute(x: Array) -> Array:
        return x[tables[check_permuted(x, rank)]]

    return permute


@kernel("ApproxTopK")
def approx_top_k(op: KernelNode) -> Compute:
    """The exact answer is a valid approximation."""
    k, dim, largest = op.attr("k"), op.attr("reduction_dimension"), bool(op.attr("is_max_k"))

    def compute(x: Array) -> tuple[Array, Array]:
        axis = wrap_axis(dim, x.ndim, "reduction_dimension")
        require(k <= x.shape[axis], f"input must have at least k={k} columns, got {x.shape[axis]}")
        rows = np.moveaxis(x, axis, -1)
        chosen = descending_order(rows if largest else -wide(rows))[..., :k]
        values = np.take_along_axis(rows, chosen, axis=-1)
        return np.moveaxis(values, -1, axis), np.moveaxis(chosen, -1, axis).astype(np.int32)

    return compute


@simple("NearestNeighbors")
def nearest_neighbors(points: Array, centers: Array, k: Array) -> tuple[Array, Array]:
    """For each point the k nearest centers and their squared distances, nearest first."""
    require(points.ndim == 2, f"Input points should be a matrix, got {shape_text(points)}")
    require(centers.ndim == 2, f"Input centers should be a matrix, got {shape_text(centers)}")
    require(k.ndim == 0, f"Input k should be a scalar, got {shape_text(k)}")
    require(int(k) > 0, f"Input k should be positive, got {int(k)}")
    require(
        points.shape[1] == centers.shape[1],
        f"Points and centers must have the same dimension: {points.shape[1]} vs. {centers.shape[1]}",
    )
    distance = (points**2).sum(axis=1)[:, None] - 2 * points @ centers.T + (centers**2).sum(axis=1)[None, :]
    order = np.argsort(distance, axis=1, kind="stable")[:, : int(k)]
    return order.astype(np.int64), np.take_along_axis(distance, order, axis=1).astype(np.float32)


@kernel("EditDistance")
def edit_distance(op: KernelNode) -> Compute:
    """Levenshtein's distance between the rows of two sparse tensors, all rows at once."""
    normalize = bool(op.attr("normalize"))

    def compute(
        h_indices: Array, h_values: Array, h_shape: Array, t_indices: Array, t_values: Array, t_shape: Array
    ) -> Array:
        check_sparse(h_indices, h_values, h_shape)
        check_sparse(t_indices, t_values, t_shape)
        require(
            len(h_shape) == len(t_shape),
            f"hypothesis_shape and truth_shape must have the same length: {len(h_shape)} vs. {len(t_shape)}",
        )
        require(len(h_shape) >= 2, "the shapes must have at least 2 elements")
        groups = np.maximum(h_shape[:-1], t_shape[:-1])
        check_bounds(h_indices, h_shape)
        check_bounds(t_indices, t_shape)
        _, symbols = np.unique(np.concatenate([h_values, t_values]), return_inverse=True)
        symbols = symbols.reshape(-1)
        count = int(np.prod(groups, dtype=np.int64))
        hypothesis, h_lengths = _rows(linear(h_indices[:, :-1], groups), symbols[: len(h_values)], count, -1)
        truth, t_lengths = _rows(linear(t_indices[:, :-1], groups), symbols[len(h_values) :], count, -2)
        distance = _levenshtein(hypothesis, h_lengths, truth)
        out = distance[np.arange(count), t_lengths].astype(np.float32)
        if normalize:
            empty = np.where(h_lengths > 0, np.float32(np.inf), np.float32(0))
            out = np.where(t_lengths > 0, out / np.maximum(t_lengths, 1).astype(np.float32), empty).astype(np.float32)
        return out.reshape(to_ints(groups))

    return compute


def _rows(group: Array, values: Array, count: int, filler: int) -> tuple[Array, Array]:
    """The values of each group as a row of a matrix, filled up at the end, and their numbers."""
    lengths = np.bincount(group, minlength=count)
    out = np.full((count, int(lengths.max(initial=0))), filler, np.int64)
    order = np.argsort(group, kind="stable")
    starts = np.cumsum(lengths) - lengths
    out[group[order], np.arange(len(group)) - starts[group[order]]] = values[order]
    return out, lengths


def _levenshtein(hypothesis: Array, lengths: Array, truth: Array) -> Array:
    """The last row of each pair's table. Insertions along a row are a running minimum."""
    columns = np.arange(truth.shape[1] + 1)
    row = np.tile(columns, (len(truth), 1))
    for i in range(hypothesis.shape[1]):
        change = row[:, :-1] + (truth != hypothesis[:, i : i + 1])
        best = np.concatenate([row[:, :1] + 1, np.minimum(row[:, 1:] + 1, change)], axis=1)
        following = np.minimum.accumulate(best - columns, axis=1) + columns
        row = np.where((i < lengths)[:, None], following, row)
    return row
