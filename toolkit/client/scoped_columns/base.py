"""What a column of tf.contrib.layers is: a way from named features to the inputs of a deep or of a linear model."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable, Mapping
from typing import Any, ClassVar, NamedTuple, Protocol, cast

from toolkit.client.arrays import array_ops
from toolkit.client.checks.assertions import assert_rank_at_least
from toolkit.client.construction.convert import convert_to_tensor
from toolkit.client.construction.scopes import control_dependencies, name_scope
from toolkit.client.construction.tensor import Tensor
from toolkit.client.feature_columns.base import FeatureColumn
from toolkit.client.math import math_ops
from toolkit.client.sparse import sparse_ops
from toolkit.client.sparse.tensor import SparseTensor
from toolkit.graph.dtypes import DType

#: features by name, and what columns have made of them by column
Features = dict[Any, Any]


class Lookup(NamedTuple):
    """How a column's ids become rows of a table.

    Attributes:
        ids: sparse ids, or words where there is a hash key.
        weights: how much each id counts; None: as much as any other.
        size: how many rows the table has.
        dimension: how long they are; None in linear models, which decide themselves.
        shared_name: what tables are called that several columns share.
    """

    ids: SparseTensor
    weights: SparseTensor | None
    size: int
    initializer: Any
    combiner: str
    dimension: int | None = None
    shared_name: str | None = None
    max_norm: float | None = None
    trainable: bool = True


class Source(Protocol):
    """Where a column finds features and what other columns have made of them."""

    def get(self, key: Any) -> Any: ...


class ScopedColumn(FeatureColumn):
    """A column of tf.contrib.layers; layers of tf.feature_column take it as well."""

    #: what TensorFlow calls the class: columns are made in the order of their keys, which begin with it
    kind: ClassVar[str]
    #: fields that the key leaves out
    unkeyed: ClassVar[tuple[str, ...]] = ()
    #: whether the key is the text of the whole column
    is_text_key: ClassVar[bool] = True

    @property
    def config(self) -> dict[str, Any]:
        """How `parse_example` reads the features that it needs."""
        raise NotImplementedError

    @property
    def parse_example_spec(self) -> dict[str, Any]:
        return self.config

    @property
    def key(self) -> str:
        """What orders columns, and what no two of one model have in common."""
        found: list[str] = []
        for field in dataclasses.fields(cast("Any", self)):
            if field.name not in self.unkeyed:
                value = getattr(self, field.name)
                found.append(f"{field.name}={_text(value) if self.is_text_key else _short(value)}")
        return f"{self.kind}({', '.join(found)})"

    def insert_transformed_feature(self, columns_to_tensors: Features) -> None:
        """Add what the column makes of features to them."""
        columns_to_tensors[self] = self.transform(cast("Any", InsertedFeatures(columns_to_tensors)))

    def wide_lookup(self, transformed: Any) -> Lookup | None:
        """The lookup of a linear model; None where the column is dense.

        Raises:
            ValueError: the column is none of linear models.
        """
        del transformed
        return None

    def deep_lookup(self, transformed: Any) -> Lookup | None:
        """The lookup of a deep model; None where the column is dense."""
        del transformed
        return None

    def deep_input(self, transformed: Any, output_rank: int = 2) -> Tensor:
        """The numbers of a dense column.

        Raises:
            ValueError: the column has to be embedded first.
        """
        raise ValueError(f"the column '{self.name}' is none of deep models")

    def dense_tensor(self, transformed: Any) -> Tensor:
        """The numbers of a dense column in a linear model."""
        raise NotImplementedError(f"the column '{self.name}' has no dense form")

    @property
    def checkpoint(self) -> tuple[str, str] | None:
        """The checkpoint and the tensor in it that the column's table starts from."""
        return None

    @property
    def parents(self) -> tuple[ScopedColumn, ...]:
        """The columns that this one is made of."""
        return ()


class InsertedFeatures:
    """Features to which columns are added when they are asked for."""

    def __init__(self, features: Features):
        self._features = features

    def get(self, key: Any) -> Any:
        """Raises ValueError: there is no such feature."""
        if key not in self._features:
            if not isinstance(key, ScopedColumn):
                there = ", ".join(sorted(each for each in self._features if isinstance(each, str))) or "none"
                raise ValueError(f"there is no feature '{key}'; there are: {there}")
            key.insert_transformed_feature(self._features)
        return self._features[key]


def _text(value: Any) -> str:
    """A value as a named tuple of TensorFlow shows it."""
    if isinstance(value, DType):
        return f"tf.{value.name}"
    if isinstance(value, ScopedColumn):
        return value.key if value.is_text_key else value.key.partition("(")[0] + _fields_text(value)
    if isinstance(value, tuple):
        inner = ", ".join(_text(each) for each in cast("tuple[Any, ...]", value))
        return f"({inner},)" if len(cast("tuple[Any, ...]", value)) == 1 else f"({inner})"
    return repr(value)


def _fields_text(column: ScopedColumn) -> str:
    fields = dataclasses.fields(cast("Any", column))
    return "(" + ", ".join(f"{field.name}={_text(getattr(column, field.name))}" for field in fields) + ")"


def _short(value: Any) -> str:
    if isinstance(value, DType):
        return f"<dtype: '{value.name}'>"
    return value if isinstance(value, str) else _text(value)


def checked_columns(feature_columns: Any) -> list[ScopedColumn]:
    """Columns in the order of their keys.

    Raises:
        ValueError: they are a dict, or two have one key.
        TypeError: one is none of these columns.
    """
    if isinstance(feature_columns, Mapping):
        raise ValueError("feature_columns is a dict; expected a list or set of columns")
    found: dict[str, ScopedColumn] = {}
    for column in cast("Iterable[Any]", feature_columns):
        if not isinstance(column, ScopedColumn):
            raise TypeError(f"feature_columns holds {column!r}; expected columns of tf.contrib.layers")
        if column.key in found:
            raise ValueError(f"two columns are the same but for what their key leaves out: '{column.name}'")
        found[column.key] = column
    return [found[key] for key in sorted(found)]


def inner_flatten(inputs: Any, new_rank: int) -> Any:
    """The last dimensions as one, so that there are `new_rank` of them.

    Raises:
        ValueError: there are fewer.
    """
    with name_scope(None, "InnerFlatten", [inputs]):
        if isinstance(inputs, SparseTensor):
            return _flat_sparse(inputs, new_rank)
        inputs = convert_to_tensor(inputs)
        check = assert_rank_at_least(inputs, new_rank, message=f"a rank of at least {new_rank} is needed")
        with control_dependencies([check]):
            outer = array_ops.strided_slice(array_ops.shape(inputs), [0], [new_rank - 1])
            flat = array_ops.reshape(inputs, array_ops.concat((outer, [-1]), 0))
        if inputs.static_shape.rank is not None:
            sizes = [*inputs.static_shape]
            last: int | None = 1
            for size in sizes[new_rank - 1 :]:
                last = None if size is None or last is None else last * size
            flat.set_shape([*sizes[: new_rank - 1], last])
        return flat


def _flat_sparse(inputs: SparseTensor, new_rank: int) -> SparseTensor:
    sizes = inputs.dense_shape
    rank = sizes.static_shape[0] if sizes.static_shape.rank else None
    if rank is not None and rank < new_rank:
        raise ValueError(f"a sparse tensor of rank {rank} cannot become one of rank {new_rank}")
    outer, inner = sizes[: new_rank - 1], sizes[new_rank - 1 :]
    whole = array_ops.concat((outer, [math_ops.reduce_prod(inner)]), 0)
    return sparse_ops.reshape(inputs, whole)


def with_rank(tensor: Tensor, rank: int, name: str) -> Tensor:
    """Numbers [batch, ...] with so many dimensions, the last of which holds the numbers of an example.

    Raises:
        ValueError: there are two dimensions fewer, or more.
    """
    known = tensor.static_shape.rank
    if known is not None:
        if rank > known + 1:
            raise ValueError(f"the feature '{name}' has {known} dimensions; {rank} are needed, 3 for sequences, else 2")
        if rank == known + 1:
            return array_ops.expand_dims(tensor, -1, name="expand_dims")
        if rank == known:
            return tensor
    return inner_flatten(tensor, rank)
