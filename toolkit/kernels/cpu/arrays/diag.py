"""Diagonals and bands of matrices."""

from __future__ import annotations

from typing import Any

from toolkit.kernels.cpu.common import np, require, require_scalar, shape_text, to_ints
from toolkit.kernels.registry import Compute, KernelNode, kernel, simple
from toolkit.kernels.types import Array


@simple("Diag")
def diag(x: Array) -> Array:
    """A tensor of twice the rank with x on its diagonal."""
    require(x.ndim >= 1, "Input must be at least rank 1, got 0")
    out = np.zeros((x.size, x.size), x.dtype)
    np.fill_diagonal(out, x.reshape(-1))
    return out.reshape(x.shape * 2)


@simple("DiagPart")
def diag_part(x: Array) -> Array:
    half = x.ndim // 2
    require(
        x.ndim % 2 == 0 and x.ndim, f"The rank of the tensor should be even and positive, got shape {shape_text(x)}"
    )
    require(
        x.shape[:half] == x.shape[half:], f"Invalid shape {shape_text(x)}: dimensions i and i + {half} do not match"
    )
    size = int(np.prod(x.shape[:half], dtype=int))
    return x.reshape(size, size).diagonal().reshape(x.shape[:half])


@simple("MatrixBandPart", "BatchMatrixBandPart")
def matrix_band_part(x: Array, num_lower: Array, num_upper: Array) -> Array:
    """Zero outside of a band; a negative bound keeps that whole triangle."""
    lower, upper = band_part_limits(x, num_lower, num_upper)
    row, column = np.arange(x.shape[-2])[:, None], np.arange(x.shape[-1])[None, :]
    keep = ((lower < 0) | (row - column <= lower)) & ((upper < 0) | (column - row <= upper))
    return np.where(keep, x, np.zeros((), x.dtype))


def band_part_limits(x: Any, num_lower: Array, num_upper: Array) -> tuple[int, int]:
    """How far a band reaches below and above the diagonal; negative for all of that triangle.

    Raises:
        InvalidArgumentError: it is more than there is, or x is no matrix.
    """
    require(x.ndim >= 2, f"input must be at least 2-dim, received shape: {shape_text(x)}")
    for value, name, limit in ((num_lower, "num_lower", x.shape[-2]), (num_upper, "num_upper", x.shape[-1])):
        require_scalar(value, name)
        require(
            value <= limit,
            f"{name} must be negative or less or equal to the number of rows or columns ({limit}) got: {value}",
        )
    return int(num_lower), int(num_upper)


def band_limits(k: Array) -> tuple[int, int]:
    require(k.ndim <= 1, f"diag_index must be a scalar or vector, received shape: {shape_text(k)}")
    values = to_ints(k)
    require(1 <= len(values) <= 2, f"diag_index must have only one or two elements, received {len(values)} elements.")
    low, high = values[0], values[-1]
    require(low <= high, f"lower_diag_index must not be larger than upper_diag_index: {low} > {high}")
    return low, high


def alignment(op: KernelNode) -> tuple[bool, bool]:
    """(superdiagonals to the left, subdiagonals to the left); versions before V3 put all to the left."""
    if not op.op.endswith("V3"):
        return True, True
    upper, _, lower = op.text("align").partition("_")
    return upper == "LEFT", lower == "LEFT"


def band(rows: int, columns: int, low: int, high: int) -> int:
    """The length of the longest diagonal."""
    return min(rows + min(high, 0), columns - max(low, 0))


def _band_indices(
    rows: int, columns: int, low: int, high: int, left: tuple[bool, bool]
) -> tuple[Array, Array, Array, Array]:
    """For each diagonal, top first, and each slot of the longest one: (inside, row, column, slot grid shape)."""
    length = band(rows, columns, low, high)
    d = np.arange(high, low - 1, -1)[:, None]
    slot = np.arange(max(length, 0))[None, :]
    own = np.minimum(rows + np.minimum(d, 0), columns - np.maximum(d, 0))
    to_left = np.where(d >= 0, left[0], left[1])
    place = slot - np.where(to_left, 0, length - own)
    inside = (place >= 0) & (place < own)
    safe = np.where(inside, place, 0)
    return inside, safe - np.minimum(d, 0), safe + np.maximum(d, 0), place


def check_diagonal_range(rows: int, columns: int, low: int, high: int) -> None:
    for value, name in ((low, "lower_diag_index"), (high, "upper_diag_index")):
        require(
            -rows < value < columns or value == 0,
            f"{name} is out of bound: {value}. It must be between {-rows} and {columns}",
        )


@kernel("MatrixDiagPart", "MatrixDiagPartV2", "MatrixDiagPartV3", "BatchMatrixDiagPart")
def matrix_diag_part(op: KernelNode) -> Compute:
    """One diagonal of each matrix, or a band of them as rows padded to the longest."""
    left = alignment(op)
    banded = "V" in op.op

    def compute(x: Array, *args: Array) -> Array:
        require(x.ndim >= 2, f"input must be at least 2-dim, received shape: {shape_text(x)}")
        low, high = band_limits(args[0]) if banded else (0, 0)
        rows, columns = x.shape[-2:]
        check_diagonal_range(rows, columns, low, high)
        if not banded:
            return np.diagonal(x, axis1=-2, axis2=-1)
        padding = args[1]
        require(padding.size == 1, f"padding_value must be a scalar, got shape {shape_text(padding)}")
        inside, row, column, _ = _band_indices(rows, columns, low, high, left)
        out = np.where(inside, x[..., row, column], padding.reshape(()))
        return out[..., 0, :] if low == high else out

    return compute


def _put(target: Array, diagonals: Array, low: int, high: int, left: tuple[bool, bool]) -> None:
    """Write diagonals (with an axis for them) into matrices, in place."""
    inside, row, column, _ = _band_indices(target.shape[-2], target.shape[-1], low, high, left)
    target[..., row[inside], column[inside]] = diagonals[..., inside]


@kernel("MatrixSetDiag", "MatrixSetDiagV2", "MatrixSetDiagV3", "BatchMatrixSetDiag")
def matrix_set_diag(op: KernelNode) -> Compute:
    left = alignment(op)
    banded = "V" in op.op

    def compute(x: Array, diagonal: Array, *args: Array) -> Array:
        low, high = check_diagonal(x, diagonal, args[0] if banded else None)
        out = np.array(x)
        _put(out, diagonal[..., None, :] if low == high else diagonal, low, high, left)
        return out

    return compute


def check_diagonal(x: Any, diagonal: Any, k: Array | None) -> tuple[int, int]:
    """The lowest and the highest of the diagonals that are set.

    Raises:
        InvalidArgumentError: the matrices have none such, or their numbers are more or fewer.
    """
    require(x.ndim >= 2, f"input must be at least 2-dim, received shape: {shape_text(x)}")
    require(diagonal.ndim >= 1, f"diagonal must be at least 1-dim, received shape: {shape_text(diagonal)}")
    low, high = (0, 0) if k is None else band_limits(k)
    rows, columns = x.shape[-2:]
    check_diagonal_range(rows, columns, low, high)
    wanted = x.shape[:-2] + ((high - low + 1,) if low != high else ()) + (band(rows, columns, low, high),)
    require(
        diagonal.shape == wanted,
        f"Input and diagonal do not fit: diagonal must have shape {shape_text(wanted)}, got {shape_text(diagonal)}",
    )
    return low, high


@kernel("MatrixDiag", "BatchMatrixDiag")
def matrix_diag(op: KernelNode) -> Compute:
    def compute(diagonal: Array) -> Array:
        require(diagonal.ndim >= 1, f"diagonal must be at least 1-dim, received shape: {shape_text(diagonal)}")
        size = diagonal.shape[-1]
        out = np.zeros((*diagonal.shape, size), diagonal.dtype)
        out[..., np.arange(size), np.arange(size)] = diagonal
        return out

    return compute


@kernel("MatrixDiagV2", "MatrixDiagV3")
def matrix_diag_band(op: KernelNode) -> Compute:
    """Matrices with a band of given diagonals; sizes of -1 are the smallest that hold them."""
    left = alignment(op)

    def compute(diagonal: Array, k: Array, num_rows: Array, num_cols: Array, padding: Array) -> Array:
        low, high = band_limits(k)
        rows, columns = matrix_sizes(diagonal, (low, high), num_rows, num_cols, padding)
        batch = diagonal.shape[:-1] if low == high else diagonal.shape[:-2]
        out = np.full((*batch, rows, columns), padding[()], diagonal.dtype)
        _put(out, diagonal[..., None, :] if low == high else diagonal, low, high, left)
        return out

    return compute


def matrix_sizes(
    diagonal: Any, limits: tuple[int, int], num_rows: Array, num_cols: Array, padding: Array
) -> tuple[int, int]:
    """Rows and columns of matrices with given diagonals.

    Raises:
        InvalidArgumentError: there are more diagonals or fewer than `limits` say, or they do not fit.
    """
    require(diagonal.ndim >= 1, f"diagonal must be at least 1-dim, received shape: {shape_text(diagonal)}")
    low, high = limits
    for value, name in ((num_rows, "num_rows"), (num_cols, "num_cols"), (padding, "padding_value")):
        require_scalar(value, name)
    if low != high:
        require(
            diagonal.ndim >= 2 and diagonal.shape[-2] == high - low + 1,
            f"The number of diagonals provided in the input does not match the lower_diag_index and "
            f"upper_diag_index range {low}..{high}: {shape_text(diagonal)}",
        )
    length = diagonal.shape[-1]
    least_rows, least_columns = length - min(high, 0), length + max(low, 0)
    rows, columns = int(num_rows), int(num_cols)
    require(rows == -1 or rows >= least_rows, f"The number of rows is too small: {rows} < {least_rows}")
    require(
        columns == -1 or columns >= least_columns,
        f"The number of columns is too small: {columns} < {least_columns}",
    )
    if rows == -1 and columns == -1:
        rows = columns = max(least_rows, least_columns)
    rows = least_rows if rows == -1 else rows
    columns = least_columns if columns == -1 else columns
    require(
        rows == least_rows or columns == least_columns,
        "The number of rows or columns is not consistent with the specified d_lower, d_upper, and diagonal.",
    )
    return rows, columns
