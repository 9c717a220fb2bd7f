"""Ragged tensors, as nested row splits and flat values."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from toolkit.errors import InvalidArgumentError
from toolkit.kernels.cpu.arrays.gather import check_indices
from toolkit.kernels.cpu.common import integer, np, require, shape_text, to_ints
from toolkit.kernels.cpu.math.counting import rows_of_splits
from toolkit.kernels.registry import Compute, KernelNode, kernel
from toolkit.kernels.types import Array


@kernel("RaggedRange")
def ragged_range(op: KernelNode) -> Compute:
    """A range for each row; scalars serve every row."""
    split_type = op.output_types[0].numpy

    def compute(starts: Array, limits: Array, deltas: Array) -> tuple[Array, Array]:
        for value, name in ((starts, "starts"), (limits, "limits"), (deltas, "deltas")):
            require(value.ndim <= 1, f"{name} must be a scalar or vector")
        sizes = {len(v) for v in (starts, limits, deltas) if v.ndim}
        require(len(sizes) <= 1, "starts, limits, and deltas must have the same shape")
        count = sizes.pop() if sizes else 1
        first, last, step = (np.broadcast_to(v, (count,)) for v in (starts, limits, deltas))
        require((step != 0).all(), "Requires delta != 0")
        lengths = _range_lengths(first, last, step, np.iinfo(split_type).max)
        splits = np.concatenate([[0], np.cumsum(lengths)])
        row = np.repeat(np.arange(count), lengths)
        place = np.arange(splits[-1]) - splits[row]
        return splits.astype(split_type), (first[row] + place.astype(first.dtype) * step[row]).astype(first.dtype)

    return compute


def _range_lengths(first: Array, last: Array, step: Array, most: int) -> Array:
    """How many values there are in each row, int64.

    Raises:
        InvalidArgumentError: more than `most` in a row or together, or a number that is none.
    """
    if first.dtype.kind in "iu":
        low, high, size = (v.astype(np.int64).view(np.uint64) for v in (first, last, step))
        down = step < 0
        distance = np.where(down, low - high, high - low)  # unsigned, so that it cannot overflow
        size = np.where(down, -size, size)
        ahead = np.where(down, last < first, last > first)
        lengths = np.where(ahead, (distance - np.uint64(1)) // size + np.uint64(1), np.uint64(0))
        fits = lengths <= np.uint64(most)
    else:
        lengths = np.maximum(np.ceil((last - first) / step), 0).astype(np.float64)
        fits = lengths < float(most + 1)  # false for what is no number
    require(
        fits.all() and lengths.sum(dtype=np.float64) < float(most + 1), f"Requires ((limit - start) / delta) <= {most}"
    )
    return lengths.astype(np.int64)


@kernel("RaggedGather")
def ragged_gather(op: KernelNode) -> Compute:
    """Rows of a ragged tensor by index; indices of more dimensions make more levels of splits."""
    rank, out_rank = op.attr("PARAMS_RAGGED_RANK"), op.attr("OUTPUT_RAGGED_RANK")
    split_type = op.output_types[0].numpy if op.output_types else np.int64

    def compute(*args: Array) -> list[Array]:
        nested, values, indices = list(args[:rank]), args[rank], args[rank + 1]
        require(
            out_rank == rank + indices.ndim - 1, f"OUTPUT_RAGGED_RANK must be {rank + indices.ndim - 1}, got {out_rank}"
        )
        for splits in nested:
            _check_vector(splits)
        require(values.ndim >= 1, "values must be at least a vector, got a scalar")
        check_indices(indices, len(nested[0]) - 1)
        for level, splits in enumerate(nested):
            size = len(nested[level + 1]) - 1 if level + 1 < rank else len(values)
            require(
                splits[0] == 0 and (np.diff(splits) >= 0).all() and splits[-1] <= size,
                "Ragged splits must be sorted and point into the values",
            )
        out: list[Array] = []
        for d in range(1, indices.ndim):
            blocks = int(np.prod(indices.shape[:d], dtype=np.int64))
            out.append(np.arange(blocks + 1) * indices.shape[d])
        rows = indices.reshape(-1).astype(np.int64)
        for splits in nested:
            lengths = splits[rows + 1] - splits[rows]
            ends = np.concatenate([[0], np.cumsum(lengths)])
            out.append(ends)
            owner = np.repeat(np.arange(len(rows)), lengths)
            rows = splits[rows][owner] + np.arange(ends[-1]) - ends[owner]
        return [*(s.astype(split_type) for s in out), values[rows]]

    return compute


def _check_vector(splits: Array) -> None:
    require(splits.ndim == 1 and splits.size, f"row splits must be a vector from 0, got shape {shape_text(splits)}")


def coordinates(nested: Sequence[Array], count: int) -> tuple[Array, list[int]]:
    """([count, levels + 1] places of the values in a dense tensor, the size of each dimension).

    Raises:
        InvalidArgumentError: splits that do not fit together.
    """
    for splits in nested:
        _check_vector(splits)
    places: list[Array] = []
    sizes = [len(nested[0]) - 1]
    owner: Array = None
    for level in range(len(nested) - 1, -1, -1):
        splits = nested[level]
        below = len(nested[level + 1]) - 1 if level + 1 < len(nested) else count
        row = rows_of_splits(splits, below, "row splits")
        place = np.arange(below) - splits[row]
        if owner is None:
            places, owner = [place], row
        else:
            places, owner = [place[owner], *places], row[owner]
        sizes.insert(1, int(np.diff(splits).max(initial=0)))
    return np.stack([owner, *places], axis=1).astype(np.int64), sizes


@kernel("RaggedTensorToSparse")
def ragged_tensor_to_sparse(op: KernelNode) -> Compute:
    rank = op.attr("RAGGED_RANK")

    def compute(*args: Array) -> tuple[Array, Array, Array]:
        nested, values = args[:rank], args[rank]
        require(rank >= 1, "RAGGED_RANK must be at least 1")
        require(values.ndim >= 1, "values must be at least a vector, got a scalar")
        places, sizes = coordinates(nested, len(values))
        inner = values.shape[1:]
        if inner:
            count = int(np.prod(inner, dtype=np.int64))
            tail = np.indices(inner).reshape(len(inner), -1).T
            places = np.concatenate([np.repeat(places, count, axis=0), np.tile(tail, (len(values), 1))], axis=1)
        return places.astype(np.int64), values.reshape(-1), np.array([*sizes, *inner], np.int64)

    return compute


@kernel("RaggedTensorToTensor")
def ragged_tensor_to_tensor(op: KernelNode) -> Compute:
    """Rows cut or padded to the wanted shape, of which sizes may be left open."""
    kinds = [kind.decode(errors="replace") for kind in op.attr("row_partition_types")]

    def compute(shape: Array, values: Array, default: Array, *partitions: Array) -> Array:
        require(bool(kinds), "row_partition_types must not be empty")
        require(
            len(partitions) >= len(kinds),
            f"row_partition_types has {len(kinds)} names for {len(partitions)} row partition tensors",
        )
        require(values.ndim >= 1, "values must be at least a vector, got a scalar")
        parts = list(partitions[: len(kinds)])
        names = list(kinds)
        if names[0] == "FIRST_DIM_SIZE":
            first = integer(parts.pop(0), "the size of the first dimension")
            require(first >= 0, f"the size of the first dimension must not be negative, got {first}")
            names.pop(0)
        elif names[0] == "ROW_SPLITS":
            _check_vector(parts[0])
            first = len(parts[0]) - 1
        else:
            raise InvalidArgumentError(f"Cannot handle the row partition type {names[0]} at the first position")
        require(names, "at least one row partition besides the size of the first dimension is needed")
        rows_above = first
        owners: list[Array] = []
        lengths: list[int] = []
        for kind, part in zip(names, parts, strict=True):
            row, longest = _rows(kind, part, rows_above)
            owners.append(row)
            lengths.append(longest)
            rows_above = len(row)
        require(
            rows_above <= len(values),
            f"the partitions describe {rows_above} values, there are {len(values)}",
        )
        inner = values.shape[1:]
        natural: list[int] = [first, *lengths, *inner]
        sizes = _wanted_sizes(shape, natural)
        require(
            sizes[len(owners) + 1 :] == list(inner),
            f"the shape {sizes} must end with {list(inner)}, the dimensions of a value",
        )
        out = np.empty(sizes, values.dtype)
        try:
            out[...] = np.broadcast_to(default, sizes[len(owners) + 1 :] if default.ndim else ())
        except ValueError:
            raise InvalidArgumentError(
                f"default_value of shape {shape_text(default)} does not broadcast to the rows of {natural}"
            ) from None
        places = _places(owners)
        keep = (places < np.array(sizes[: len(owners) + 1])).all(axis=1)
        out[tuple(places[keep].T)] = values[: len(places)][keep]
        return out

    return compute


def _rows(kind: str, part: Array, above: int) -> tuple[Array, int]:
    """(the row of each value, the length of the longest row) of one partition below a level of `above` rows."""
    require(part.ndim == 1, f"a row partition must be a vector, got shape {shape_text(part)}")
    if kind == "ROW_SPLITS":
        require(
            part.size and part[0] == 0 and (part[1:] >= part[:-1]).all(),
            "row splits must begin with 0 and must not fall",
        )
        require(part.size - 1 <= above, f"row splits of {part.size - 1} rows, where there are {above}")
        lengths = np.diff(part)
        return np.repeat(np.arange(len(lengths)), lengths), int(lengths.max(initial=0))
    if kind == "VALUE_ROWIDS":
        require((part[1:] >= part[:-1]).all(), "row ids must not fall")
        require(
            not part.size or (part[0] >= 0 and part[-1] < above),
            f"row ids must be from 0 to {above - 1}, the rows that there are",
        )
        return part.astype(np.int64), int(np.bincount(part).max(initial=0)) if len(part) else 0
    raise InvalidArgumentError(f"Unsupported row partition type {kind}")


def _places(owners: list[Array]) -> Array:
    columns: list[Array] = []
    owner: Array = None
    for row in reversed(owners):
        starts = np.searchsorted(row, row, side="left")
        place = np.arange(len(row)) - starts
        columns = [place, *columns] if owner is None else [place[owner], *columns]
        owner = row if owner is None else row[owner]
    return np.stack([owner, *columns], axis=1)


def _wanted_sizes(shape: Array, natural: list[int]) -> list[int]:
    if shape.ndim == 0:
        require(
            int(shape) == -1,
            f"The only valid scalar shape tensor is the fully unknown shape specified as -1, got {int(shape)}",
        )
        return natural
    require(shape.ndim == 1, f"shape must be a vector, or the scalar -1, got shape {shape_text(shape)}")
    wanted = to_ints(shape)
    require(min(wanted, default=0) >= -1, f"sizes of the shape must be -1 or more, got {wanted}")
    require(len(wanted) == len(natural), f"the shape {wanted} must have {len(natural)} dimensions")
    return [n if w < 0 else w for w, n in zip(wanted, natural, strict=True)]


# -- variants --------------------------------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class RaggedVariant:
    """A ragged tensor as one value."""

    splits: tuple[Array, ...]
    values: Array

    def zeros_like(self) -> RaggedVariant:
        return RaggedVariant(self.splits, np.zeros_like(self.values))


def _encoded(value: object) -> Array:
    """A tensor of ragged variants.

    Raises:
        InvalidArgumentError: there is something else in it.
    """
    parts: Array = np.asarray(value, object) if hasattr(value, "shape") else np.array([None], object)
    require(
        all(isinstance(part, RaggedVariant) for part in parts.reshape(-1).tolist()),
        "the variant holds no ragged tensor",
    )
    return parts


def _check_splits(nested: Sequence[Array], values: Array) -> None:
    """Splits begin with 0, never fall, and end with as many as there are parts of the next level."""
    lengths = [*(splits.size - 1 for splits in nested[1:]), len(values)]
    for splits, length in zip(nested, lengths, strict=True):
        require(
            splits.ndim == 1
            and splits.size
            and splits[0] == 0
            and splits[-1] == length
            and (np.diff(splits) >= 0).all(),
            f"splits must be a vector from 0 to {length} that never falls, got shape {shape_text(splits)}",
        )


@kernel("RaggedTensorToVariant")
def ragged_tensor_to_variant(op: KernelNode) -> Compute:
    """One variant, or with `batched_input` a vector of the rows' variants."""
    rank, batched = op.attr("RAGGED_RANK"), bool(op.attr("batched_input"))

    def compute(*args: Array) -> object:
        nested, values = args[:rank], args[rank]
        require(values.ndim >= 1 or not (rank or batched), "values must be at least a vector, got a scalar")
        if rank:
            _check_splits(nested, values)
        if not batched:
            return RaggedVariant(tuple(nested), values)
        count = len(nested[0]) - 1 if rank else len(values)
        out = np.empty(count, object)
        for i in range(count):
            out[i] = _component(nested, values, i)
        return out

    return compute


def _component(nested: Sequence[Array], values: Array, i: int) -> RaggedVariant:
    if not nested:
        return RaggedVariant((), values[i])
    low, high = int(nested[0][i]), int(nested[0][i + 1])
    parts: list[Array] = []
    for splits in nested[1:]:
        part = splits[low : high + 1]
        low, high = int(part[0]), int(part[-1])
        parts.append(part - part[0])
    return RaggedVariant(tuple(parts), values[low:high])


@kernel("RaggedTensorFromVariant")
def ragged_tensor_from_variant(op: KernelNode) -> Compute:
    """The ragged tensor in a variant, or of the variants in a tensor stacked."""
    in_rank, out_rank = op.attr("input_ragged_rank"), op.attr("output_ragged_rank")
    dtype = op.output_types[-1].numpy
    split_type = op.attr("Tsplits").numpy

    def compute(encoded: object) -> list[Array]:
        if isinstance(encoded, RaggedVariant):
            require(
                out_rank == len(encoded.splits),
                f"the variant has {len(encoded.splits)} levels of splits, expected {out_rank}",
            )
            return [*encoded.splits, encoded.values]
        array = _encoded(encoded)
        rank = in_rank if in_rank >= 0 else out_rank - array.ndim
        require(out_rank == rank + array.ndim, f"output_ragged_rank must be {rank + array.ndim}, got {out_rank}")
        parts: list[RaggedVariant] = array.reshape(-1).tolist()
        levels: list[Array] = [
            np.arange(int(np.prod(array.shape[:d], dtype=np.int64)) + 1) * array.shape[d] for d in range(1, array.ndim)
        ]
        outer = [len(p.splits[0]) - 1 if p.splits else len(p.values) for p in parts]
        levels.append(np.concatenate([[0], np.cumsum(outer)]))
        for level in range(rank):
            pieces: list[Array] = [np.zeros(1, np.int64)]
            base = 0
            for part in parts:
                pieces.append(part.splits[level][1:] + base)
                base += int(part.splits[level][-1])
            levels.append(np.concatenate(pieces))
        values = np.concatenate([p.values for p in parts]) if parts else np.zeros(0, dtype)
        return [*(s.astype(split_type) for s in levels), values]

    return compute


@kernel("RaggedTensorToVariantGradient")
def ragged_tensor_to_variant_gradient(op: KernelNode) -> Compute:
    """The values' gradient, from the rows' variants."""
    dtype = op.output_types[0].numpy

    def compute(encoded: object, splits: Array, dims: Array) -> Array:
        shape = to_ints(dims)
        if isinstance(encoded, RaggedVariant):
            require(
                encoded.values.size == math.prod(shape),
                f"dense_values_shape {shape} does not hold {encoded.values.size} value(s)",
            )
            return np.asarray(encoded.values, dtype).reshape(shape)
        array = _encoded(encoded)
        require(
            splits.ndim == 1 and splits.size == array.size + 1,
            f"row_splits must have {array.size + 1} elements, got shape {shape_text(splits)}",
        )
        pieces = [
            np.broadcast_to(part.values, (int(splits[i + 1] - splits[i]), *part.values.shape[1:]))
            if part.values.ndim
            else np.full(int(splits[i + 1] - splits[i]), part.values, dtype)
            for i, part in enumerate(array.reshape(-1).tolist())
        ]
        return np.concatenate(pieces).reshape(shape) if pieces else np.zeros(shape, dtype)

    return compute
