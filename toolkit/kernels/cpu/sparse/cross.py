"""Crosses of features: every combination of one feature of each column, row by row, joined or hashed.

Columns are sparse, ragged or dense matrices of strings or int64. All combinations of all rows are made at once.
"""

# numpy's overloads answer arrays typed Any with Unknown
# pyright: reportUnknownVariableType=false, reportUnknownMemberType=false, reportUnknownArgumentType=false

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from toolkit.graph import dtypes
from toolkit.kernels.cpu.common import flag, integer, np, require, shape_text
from toolkit.kernels.encodings.hashing import concatenated64, fingerprint64, hash_all, siphash24
from toolkit.kernels.registry import Compute, KernelNode, kernel
from toolkit.kernels.types import Array

_SEPARATOR = b"_X_"
_MOST = (1 << 63) - 1
_U64 = (1 << 64) - 1


@dataclass(slots=True)
class _Column:
    """Features of one column: `values` [n], and for each row where its features start and how many there are."""

    values: Array
    starts: Array
    counts: Array
    dense: bool = False


def _dense_column(matrix: Array) -> _Column:
    rows, width = matrix.shape
    return _Column(matrix.reshape(-1), np.arange(rows) * width, np.full(rows, width), True)


def _sparse_column(indices: Array, values: Array, batch: int) -> _Column:
    """Features in the order of rows; what follows an index out of order is left out."""
    rows = indices[:, 0]
    wrong = (rows < np.maximum.accumulate(rows)) | (rows < 0) | (rows >= batch)
    rows = rows[: int(np.argmax(wrong))] if wrong.any() else rows
    counts = np.bincount(rows, minlength=batch)[:batch]
    return _Column(values, np.cumsum(counts) - counts, counts)


def _combinations(columns: Sequence[_Column], batch: int) -> tuple[Array, list[Array]]:
    """How many crosses each row has, and for each column which value each cross takes."""
    totals = np.full(batch, 1 if columns else 0, np.int64)
    for column in columns:
        totals = totals * column.counts
    rows = np.repeat(np.arange(batch), totals)
    number = np.arange(rows.size) - np.repeat(np.cumsum(totals) - totals, totals)
    chosen: list[Array] = []
    for column in reversed(columns):  # the last column turns fastest
        count = column.counts[rows]
        chosen.append(column.starts[rows] + number % count)
        number = number // count
    return totals, chosen[::-1]


def _texts(column: _Column) -> Array:
    """The values as strings."""
    if column.values.dtype == object:
        return column.values
    return np.array([str(value).encode() for value in column.values.tolist()], object)


def _joined(columns: Sequence[_Column], chosen: Sequence[Array], separator: bytes) -> Array:
    picked = [_texts(column)[which].tolist() for column, which in zip(columns, chosen, strict=True)]
    out = np.empty(len(picked[0]) if picked else 0, object)
    out[:] = [separator.join(parts) for parts in zip(*picked, strict=True)]
    return out


def _fingerprints(column: _Column) -> Array:
    """Strings by their fingerprint, numbers as they are."""
    if column.values.dtype == object:
        return hash_all(column.values.tolist(), fingerprint64)
    return column.values.view(np.uint64)


def _hashed(hashes: Sequence[Array], chosen: Sequence[Array], start: Array | None, buckets: int) -> Array:
    """int64: the hashes of each combination taken together, below `buckets`, or 2**63 - 1 when that is 0."""
    out = start
    with np.errstate(over="ignore"):
        for values, which in zip(hashes, chosen, strict=True):
            out = values[which] if out is None else concatenated64(out, values[which])
    if out is None:
        return np.zeros(0, np.int64)
    return (out % np.uint64(buckets if buckets > 0 else _MOST)).astype(np.int64)


def _check(indices: Sequence[Array], values: Sequence[Array], shapes: Sequence[Array], dense: Sequence[Array]) -> int:
    """The number of rows.

    Raises:
        InvalidArgumentError: a part of a wrong rank or size, or rows that differ in number.
    """
    for i, matrix in enumerate(indices):
        require(matrix.ndim == 2, f"Input indices should be a matrix but received shape {shape_text(matrix)} at {i}")
        require(matrix.shape[1] == 2, f"Expected D2 of index to be 2 got {matrix.shape[1]} at position {i}")
    require(len(values) == len(indices), f"Expected {len(indices)} input values, got {len(values)}")
    for i, (matrix, vector) in enumerate(zip(indices, values, strict=True)):
        require(vector.ndim == 1, f"Input values should be a vector but received shape {shape_text(vector)} at {i}")
        require(
            len(vector) == len(matrix), f"Expected size of values to be {len(matrix)} got {len(vector)} at position {i}"
        )
    for i, shape in enumerate(shapes):
        require(shape.ndim == 1, f"Input shapes should be a vector but received shape {shape_text(shape)} at {i}")
        require(shape.size == 2, f"shape should imply a 2D tensor, but got {shape_text(shape)} at position {i}")
    for i, matrix in enumerate(dense):
        require(matrix.ndim == 2, f"Dense inputs should be a matrix but received shape {shape_text(matrix)} at {i}")
    rows = [int(shape[0]) for shape in shapes] + [len(matrix) for matrix in dense]
    for i, number in enumerate(rows):
        require(number == rows[0], f"Expected batch size {rows[0]} got {number} at position {i}")
    return rows[0] if rows else 0


class _Inputs:
    """The inputs of a SparseCross op as columns."""

    def __init__(self, op: KernelNode):
        self._sparse: int = op.attr("N")
        self._values = len(op.attr("sparse_types"))
        self._dense = len(op.attr("dense_types"))

    def columns(self, inputs: Sequence[Array]) -> tuple[list[_Column], int, Sequence[Array]]:
        """(columns, rows, what follows them)."""
        cuts = np.cumsum([self._sparse, self._values, self._sparse, self._dense]).tolist()
        indices, values, shapes, dense, rest = (
            inputs[start:stop] for start, stop in zip([0, *cuts], [*cuts, len(inputs)], strict=True)
        )
        batch = _check(indices, values, shapes, dense)
        columns = [_sparse_column(*pair, batch) for pair in zip(indices, values, strict=True)]
        return columns + [_dense_column(matrix) for matrix in dense], batch, rest


def _sparse_output(totals: Array, values: Array) -> tuple[Array, Array, Array]:
    """The crosses as a sparse matrix."""
    rows = np.repeat(np.arange(totals.size), totals)
    within = np.arange(rows.size) - np.repeat(np.cumsum(totals) - totals, totals)
    shape = np.array([totals.size, totals.max() if totals.size else 0], np.int64)
    return np.stack([rows, within], axis=1).astype(np.int64), values, shape


@kernel("SparseCross")
def sparse_cross(op: KernelNode) -> Compute:
    inputs, textual = _Inputs(op), op.attr("out_type") is dtypes.string
    buckets, key = op.attr("num_buckets"), op.attr("hash_key")
    strings_only = op.attr("internal_type") is dtypes.string

    def compute(*args: Array) -> tuple[Array, Array, Array]:
        columns, batch, _ = inputs.columns(args)
        for column in columns if strings_only else ():
            require(
                column.values.dtype == object,
                f"{'Dense inputs' if column.dense else 'Input values'} should be of internal type string but "
                "received int64",
            )
        totals, chosen = _combinations(columns, batch)
        if textual:
            return _sparse_output(totals, _joined(columns, chosen, _SEPARATOR))
        start = np.full(totals.sum(), key & _U64, np.uint64)
        return _sparse_output(totals, _hashed([_fingerprints(c) for c in columns], chosen, start, buckets))

    return compute


@kernel("SparseCrossV2")
def sparse_cross_v2(op: KernelNode) -> Compute:
    inputs = _Inputs(op)

    def compute(*args: Array) -> tuple[Array, Array, Array]:
        columns, batch, (separator,) = inputs.columns(args)
        require(np.ndim(separator) == 0, f"Input separator should be a scalar. Received: {shape_text(separator)}")
        totals, chosen = _combinations(columns, batch)
        return _sparse_output(totals, _joined(columns, chosen, np.asarray(separator, object).item()))

    return compute


@kernel("SparseCrossHashed")
def sparse_cross_hashed(op: KernelNode) -> Compute:
    inputs = _Inputs(op)

    def compute(*args: Array) -> tuple[Array, Array, Array]:
        columns, batch, (buckets, strong, salt) = inputs.columns(args)
        number, keys = integer(buckets, "num_buckets"), flag(strong, "strong_hash")
        require(salt.shape == (2,), f'Input "salt" must have length 2 but has shape {shape_text(salt)}')
        keyed = siphash24((int(salt[0]), int(salt[1]))) if keys else None
        totals, chosen = _combinations(columns, batch)
        hashes = [_keyed_hashes(column, keyed) for column in columns]
        return _sparse_output(totals, _hashed(hashes, chosen, None, number))

    return compute


def _keyed_hashes(column: _Column, keyed: Callable[[Array], Array] | None) -> Array:
    """Hashes of the values; of a number's eight bytes TensorFlow takes the first four."""
    values = column.values
    if values.dtype == object:
        return hash_all(values.tolist(), keyed or fingerprint64)
    if column.dense and keyed is None:
        return values.view(np.uint64)
    return hash_all([value.tobytes()[:4] for value in values], keyed or fingerprint64)


class _RaggedInputs:
    """The inputs of a RaggedCross op as columns, in the order that the op names."""

    def __init__(self, op: KernelNode):
        self.order = op.text("input_order")
        names = ("ragged_values_types", "ragged_splits_types", "sparse_values_types", "dense_types")
        ragged, splits, sparse, dense = (len(op.attr(name)) for name in names)
        number: int = op.attr("Nsparse")
        require(ragged == splits, "ragged values and splits must have the same length")
        require(number == sparse, "sparse indices and values must have the same length")
        require(ragged + sparse + dense == len(self.order), "Invalid length for input_order")
        self._cuts = np.cumsum([ragged, splits, number, sparse, number, dense]).tolist()

    def columns(self, inputs: Sequence[Array]) -> tuple[list[_Column], int]:
        values, splits, indices, flat, shapes, dense = (
            inputs[start:stop] for start, stop in zip([0, *self._cuts[:-1]], self._cuts, strict=True)
        )
        rank = "tf.ragged.cross only supports inputs with rank=2."
        for value, split in zip(values, splits, strict=True):
            require(value.ndim == 1 and split.ndim == 1, rank)
            _check_splits(split, value.size)
        for i, (index, value, shape) in enumerate(zip(indices, flat, shapes, strict=True)):
            require(index.ndim == 2 and value.ndim == 1 and shape.ndim == 1, f"Invalid SparseTensor {i}")
            require(shape.size == 2, rank)
        for matrix in dense:
            require(matrix.ndim == 2, rank)
        rows = [s.size - 1 for s in splits] + [len(m) for m in dense] + [int(s[0]) for s in shapes]
        batch = rows[0] if rows else 0
        require(all(n == batch for n in rows), "inputs must all have the same batch dimension size.")
        found = {
            "R": [_Column(v, s[:-1].astype(np.int64), np.diff(s)) for v, s in zip(values, splits, strict=True)],
            "S": [_ragged_of_sparse(n, i, v, batch) for n, (i, v) in enumerate(zip(indices, flat, strict=True))],
            "D": [_dense_column(matrix) for matrix in dense],
        }
        return self._ordered(found), batch

    def _ordered(self, found: dict[str, list[_Column]]) -> list[_Column]:
        out: list[_Column] = []
        for letter in self.order:
            require(letter in found, "Unexpected input_order value.")
            require(found[letter], f'input_order "{self.order}" names more inputs of kind {letter} than there are')
            out.append(found[letter].pop(0))
        return out


def _check_splits(splits: Array, size: int) -> None:
    require(splits.size > 0, "Invalid ragged splits: splits are empty")
    require(splits[0] == 0, f"Invalid ragged splits: first element must be 0 but is {splits[0]}")
    require((np.diff(splits) >= 0).all(), "Invalid ragged splits: values must be in ascending order")
    require(splits[-1] == size, f"Invalid ragged splits: last element must be {size} but is {splits[-1]}")


def _ragged_of_sparse(number: int, indices: Array, values: Array, batch: int) -> _Column:
    """Features by the first number of their index; indices that belong to no value are left out.

    TensorFlow looks at no more of a sparse tensor than this, and stops at the first row beyond the batch; a value
    whose index it would read from beside the matrix is an error here.
    """
    known = indices[: len(values), 0] if indices.shape[1] else np.zeros(0, np.int64)
    rows = np.maximum.accumulate(known)
    looked_at = batch > 0 and not (rows >= batch).any()
    require(
        len(known) == len(values) or not looked_at,
        f"Invalid SparseTensor {number}: {len(values)} values, indices of shape {shape_text(indices)}",
    )
    stops = np.searchsorted(rows, np.arange(batch), side="right")
    starts = np.concatenate([[0], stops[:-1]]).astype(np.int64)[:batch]
    return _Column(values, starts, stops - starts)


@kernel("RaggedCross")
def ragged_cross(op: KernelNode) -> Compute:
    inputs, textual = _RaggedInputs(op), op.attr("out_values_type") is dtypes.string
    buckets, key = op.attr("num_buckets"), op.attr("hash_key")
    splits_type: Any = op.attr("out_row_splits_type").numpy

    def compute(*args: Array) -> tuple[Array, Array]:
        columns, batch = inputs.columns(args)
        totals, chosen = _combinations(columns, batch)
        if textual:
            values = _joined(columns, chosen, _SEPARATOR)
        else:
            start = np.full(totals.sum(), key & _U64, np.uint64)
            values = _hashed([_fingerprints(c) for c in columns], chosen, start, buckets)
        return values, np.concatenate([[0], np.cumsum(totals)]).astype(splits_type)

    return compute
