"""Example and SequenceExample messages into tensors: what the Parse*Example ops share.

A feature is wanted in one of three forms: sparse (all values, with their places), dense (a fixed shape, or a first
axis of any length that is padded), ragged (all values, with the ends of the rows).
"""

# numpy's overloads answer arrays typed Any with Unknown
# pyright: reportUnknownVariableType=false, reportUnknownMemberType=false, reportUnknownArgumentType=false

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from schemas import example_pb2
from toolkit.errors import InvalidArgumentError
from toolkit.graph import dtypes
from toolkit.graph.dtypes import DType
from toolkit.graph.shape import Shape
from toolkit.kernels.types import Array

_FIELD = {dtypes.float32: "float_list", dtypes.int64: "int64_list", dtypes.string: "bytes_list"}


@dataclass(frozen=True, slots=True)
class Sparse:
    key: str
    dtype: DType


@dataclass(frozen=True, slots=True)
class Dense:
    """`shape` may be unknown in its first dimension; an empty default means that the feature is required."""

    key: str
    dtype: DType
    shape: Shape
    default: Array

    @property
    def is_variable(self) -> bool:
        return bool(self.shape.dims) and self.shape[0] is None

    @property
    def row(self) -> int:
        """The number of values of one row of a variable-length feature."""
        count = self.shape.slice(1).num_elements
        assert count is not None
        return count


@dataclass(frozen=True, slots=True)
class Ragged:
    key: str
    dtype: DType
    splits: DType


def check_dense(wanted: Dense) -> None:
    """Refuse a dense feature whose shape and default do not fit together.

    Raises:
        InvalidArgumentError: so.
    """
    shape, default = wanted.shape, wanted.default
    if default.dtype != wanted.dtype.numpy:
        raise InvalidArgumentError(f"the default of feature {wanted.key} is {default.dtype}, its type {wanted.dtype}")
    if shape.dims is None or any(d is None for d in shape.dims[1:]):
        raise InvalidArgumentError(
            f"dense_shape of feature {wanted.key} must be known but for its first dimension: {shape}"
        )
    if wanted.is_variable:
        if default.size != 1:
            raise InvalidArgumentError(
                f"dense_shape[{wanted.key}] is a variable length shape: {shape}, therefore the default must contain a "
                f"single element (the padding element). But its shape is: {list(default.shape)}"
            )
    elif default.size and list(default.shape) != shape.as_list():
        raise InvalidArgumentError(
            f"the default of feature {wanted.key} has shape {list(default.shape)}, expected {shape}"
        )


def parse_message(text: bytes, kind: Any, name: str) -> Any:
    """The message of serialized bytes.

    Raises:
        InvalidArgumentError: they are no such message.
    """
    try:
        return kind.FromString(text)
    except Exception:  # protobuf's DecodeError, in each of its implementations
        what = "example" if kind is example_pb2.Example else "sequence example"
        raise InvalidArgumentError(f"Name: {name}, Could not parse {what} input, value: '{text[:50]!r}'") from None


def values_of(feature: Any, dtype: DType, key: str, name: str) -> Sequence[Any] | None:
    """The values of a Feature message, or None when it holds none.

    Raises:
        InvalidArgumentError: they are of another type.
    """
    kind = None if feature is None else feature.WhichOneof("kind")
    if kind is None:
        return None
    if kind != _FIELD[dtype]:
        raise InvalidArgumentError(
            f"Name: {name}, Feature: {key}.  Data types don't match. Expected type: {dtype}, the feature is a {kind}"
        )
    return getattr(feature, kind).value


def _array(values: Sequence[Any], dtype: DType) -> Array:
    if dtype is dtypes.string:
        out = np.empty(len(values), object)
        out[:] = list(values)
        return out
    return np.array(values, dtype.numpy)


def _joined(parts: list[Array], dtype: DType) -> Array:
    return np.concatenate(parts) if parts else np.zeros(0, dtype.numpy)


def sparse_batch(rows: list[Array], dtype: DType) -> tuple[Array, Array, Array]:
    """indices int64 [n, 2], values [n], shape [2] of one vector per example."""
    lengths = np.array([len(row) for row in rows], np.int64)
    starts = np.repeat(np.cumsum(lengths) - lengths, lengths)
    places = np.stack([np.repeat(np.arange(len(rows)), lengths), np.arange(lengths.sum()) - starts], axis=1)
    return places.astype(np.int64), _joined(rows, dtype), np.array([len(rows), lengths.max(initial=0)], np.int64)


def sparse_one(row: Array) -> tuple[Array, Array, Array]:
    """indices int64 [n, 1], values [n], shape [1] of a single example."""
    return np.arange(len(row), dtype=np.int64)[:, None], row, np.array([len(row)], np.int64)


def _filled(dtype: DType, shape: Sequence[int], value: Any) -> Array:
    out = np.empty(tuple(shape), dtype.numpy)
    out[...] = value
    return out


def dense_row(wanted: Dense, values: Sequence[Any] | None, name: str) -> Array:
    """One example's value of a dense feature, or its default; a variable one as it is, [length, row...].

    Raises:
        InvalidArgumentError: it is missing and required, or has another number of values.
    """
    shape = wanted.shape
    if values is None:
        if wanted.is_variable:
            return np.zeros((0, *shape.slice(1).as_list()), wanted.dtype.numpy)
        if not wanted.default.size and shape.num_elements:
            raise InvalidArgumentError(
                f"Name: {name}, Feature: {wanted.key} (data type: {wanted.dtype}) is required but could not be found."
            )
        return wanted.default
    array = _array(values, wanted.dtype)
    if wanted.is_variable:
        if not wanted.row or array.size % wanted.row:
            raise InvalidArgumentError(
                f"Name: {name}, Key: {wanted.key}.  Number of {wanted.dtype} values is not a multiple of stride "
                f"length. Saw {array.size} values but output shape is: {shape}"
            )
        return array.reshape(-1, *shape.slice(1).as_list())
    if array.size != shape.num_elements:
        raise InvalidArgumentError(
            f"Name: {name}, Key: {wanted.key}, Index: 0.  Number of {wanted.dtype} values != expected.  Values size: "
            f"{array.size} but output shape: {shape}"
        )
    return array.reshape(shape.as_list())


def dense_batch(wanted: Dense, rows: list[Array]) -> Array:
    """All examples' values as one tensor; variable ones are padded with the default."""
    if not wanted.is_variable:
        if not rows:
            return np.zeros((0, *wanted.shape.as_list()), wanted.dtype.numpy)
        return np.stack(rows)
    longest = max((len(row) for row in rows), default=0)
    shape = (len(rows), longest, *wanted.shape.slice(1).as_list())
    out = _filled(wanted.dtype, shape, wanted.default.reshape(-1)[0])
    for i, row in enumerate(rows):
        out[i, : len(row)] = row
    return out


@dataclass(slots=True)
class Wanted:
    """The features that an op wants from each example."""

    sparse: list[Sparse]
    dense: list[Dense]
    ragged: list[Ragged]

    def check(self) -> None:
        for wanted in self.dense:
            check_dense(wanted)

    def read(self, features: Mapping[str, Any], name: str) -> tuple[list[Array], list[Array], list[Array]]:
        """(sparse, dense, ragged) vectors of one example's features."""

        def get(key: str, dtype: DType) -> Sequence[Any] | None:
            return values_of(features.get(key), dtype, key, name)

        sparse = [_array(get(s.key, s.dtype) or (), s.dtype) for s in self.sparse]
        dense = [dense_row(d, get(d.key, d.dtype), name) for d in self.dense]
        ragged = [_array(get(r.key, r.dtype) or (), r.dtype) for r in self.ragged]
        return sparse, dense, ragged

    def read_all(
        self, examples: Sequence[Any], names: Sequence[str], features: Callable[[Any], Mapping[str, Any]]
    ) -> Columns:
        """Every example's features, by feature."""
        rows = [self.read(features(example), name) for example, name in zip(examples, names, strict=True)]
        columns = [[[row[form][i] for row in rows] for i in range(count)]
                   for form, count in enumerate((len(self.sparse), len(self.dense), len(self.ragged)))]  # fmt: skip
        return Columns(self, columns[0], columns[1], columns[2])


@dataclass(slots=True)
class Columns:
    """Features read from a batch: for each wanted one a vector per example."""

    wanted: Wanted
    sparse: list[list[Array]]
    dense: list[list[Array]]
    ragged: list[list[Array]]

    def outputs(self, *, single: bool = False) -> tuple[list[Array], ...]:
        """sparse indices, sparse values, sparse shapes, dense values, ragged values, ragged splits.

        Args:
            single: there is one example, and outputs have no batch axis.
        """
        triples = [
            sparse_one(rows[0]) if single else sparse_batch(rows, s.dtype)
            for rows, s in zip(self.sparse, self.wanted.sparse, strict=True)
        ]
        dense = [
            (rows[0] if single else dense_batch(d, rows)) for rows, d in zip(self.dense, self.wanted.dense, strict=True)
        ]
        values: list[Array] = []
        splits: list[Array] = []
        for rows, r in zip(self.ragged, self.wanted.ragged, strict=True):
            values.append(_joined(rows, r.dtype))
            ends = np.zeros(0) if single else np.cumsum([0, *map(len, rows)])
            splits.append(ends.astype(r.splits.numpy))
        return [t[0] for t in triples], [t[1] for t in triples], [t[2] for t in triples], dense, values, splits


# -- sequences -----------------------------------------------------------------------------------------------


def steps_of(feature_list: Any, dtype: DType, key: str, name: str) -> list[Array]:
    """The vector of each step of a FeatureList message."""
    return [_array(values_of(feature, dtype, key, name) or (), dtype) for feature in feature_list.feature]


def sparse_steps(batch: list[list[Array]], dtype: DType, *, single: bool) -> tuple[Array, Array, Array]:
    """Steps of sequences as a sparse tensor: indices [n, 3] by example, step and place (without the example when
    `single`), values, shape."""
    places: list[Array] = []
    for number, steps in enumerate(batch):
        indices, _, _ = sparse_batch(steps, dtype)
        places.append(indices if single else np.insert(indices, 0, number, axis=1))
    longest = max((len(steps) for steps in batch), default=0)
    widest = max((len(step) for steps in batch for step in steps), default=0)
    shape = [longest, widest] if single else [len(batch), longest, widest]
    indices = np.concatenate(places) if places else np.zeros((0, len(shape)), np.int64)
    return indices.astype(np.int64), _joined([s for steps in batch for s in steps], dtype), np.array(shape, np.int64)


def dense_steps(batch: list[list[Array]], dtype: DType, shape: Shape, key: str, names: Sequence[str]) -> Array:
    """[batch, steps, shape...] with shorter sequences padded by zeros or empty strings.

    Raises:
        InvalidArgumentError: a step has another number of values.
    """
    longest = max((len(steps) for steps in batch), default=0)
    sizes = shape.as_list()
    for i, steps in enumerate(batch):  # before there is room for them: a shape may be wrong that is very large
        for t, step in enumerate(steps):
            if step.size != shape.num_elements:
                raise InvalidArgumentError(
                    f"Name: {names[i]}, Key: {key}, Index: {t}.  Number of {dtype} values != expected.  values size: "
                    f"{step.size} but output shape: {shape}"
                )
    out = _filled(dtype, (len(batch), longest, *sizes), b"" if dtype is dtypes.string else 0)
    for i, steps in enumerate(batch):
        for t, step in enumerate(steps):
            out[i, t] = step.reshape(sizes)
    return out
