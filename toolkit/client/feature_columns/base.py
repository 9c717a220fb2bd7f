"""What a feature column is: a way from named features to tensors that a model takes."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any, NamedTuple, Protocol, cast

from toolkit.client import ops
from toolkit.client.arrays import array_ops
from toolkit.client.checks.assertions import assert_positive
from toolkit.client.construction.scopes import control_dependencies, name_scope
from toolkit.client.construction.tensor import Tensor
from toolkit.client.flow.control_flow import cond
from toolkit.client.math import math_ops
from toolkit.client.sparse import sparse_ops
from toolkit.client.sparse.tensor import SparseTensor, convert_to_tensor_or_sparse_tensor
from toolkit.graph import dtypes
from toolkit.graph.dtypes import DType
from toolkit.graph.shape import Shape


class Weights(Protocol):
    """Where the variables of columns come from."""

    def variable(self, column: FeatureColumn, shape: tuple[int, ...], initializer: Any, trainable: bool) -> Any:
        """The embedding of a column; made, or made before."""
        ...

    def shared(self, name: str, shape: tuple[int, ...], initializer: Any, trainable: bool) -> Any:
        """The embedding that several columns share under a collection's name."""
        ...


class FeatureColumn:
    """A column by its name, which orders the columns of a layer."""

    @property
    def name(self) -> str:
        raise NotImplementedError

    @property
    def scope_name(self) -> str:
        """The scope of its variables inside of a layer."""
        return self.name

    @property
    def parse_example_spec(self) -> dict[str, Any]:
        """How `parse_example` reads the features that it needs."""
        raise NotImplementedError

    def transform(self, features: FeatureCache) -> Any:
        """What it makes of the features."""
        raise NotImplementedError


class DenseColumn(FeatureColumn):
    """Gives a tensor [batch, ...] of floats."""

    @property
    def variable_shape(self) -> Shape:
        """Of one example."""
        raise NotImplementedError

    def dense(self, features: FeatureCache, weights: Weights) -> Tensor:
        raise NotImplementedError


class IdWeightPair(NamedTuple):
    """Sparse ids [batch, any] with their weights, or None where each counts once."""

    id_tensor: SparseTensor
    weight_tensor: SparseTensor | None


class CategoricalColumn(FeatureColumn):
    """Gives ids below `num_buckets`."""

    @property
    def num_buckets(self) -> int:
        raise NotImplementedError

    def ids(self, features: FeatureCache) -> IdWeightPair:
        return IdWeightPair(features.get(self), None)


class SequencePair(NamedTuple):
    """A tensor [batch, time, ...] and the lengths [batch]."""

    dense_tensor: Tensor
    sequence_length: Tensor


class SequenceDenseColumn(FeatureColumn):
    """Gives a tensor for each step of a sequence."""

    def sequence(self, features: FeatureCache, weights: Weights) -> SequencePair:
        raise NotImplementedError


class FeatureCache:
    """Features by key, and what columns have made of them, each once.

    Args:
        features: tensors, sparse tensors or values, by key.
    """

    def __init__(self, features: Mapping[str, Any]):
        self._features = dict(features)
        self._made: dict[Any, Any] = {}

    def get(self, key: str | FeatureColumn) -> Any:
        """A feature by its key, at least a matrix, or what a column makes of the features.

        Raises:
            ValueError: there is no such feature, or it is a scalar.
        """
        if key not in self._made:
            if isinstance(key, FeatureColumn):
                self._made[key] = key.transform(self)
            elif key in self._features:
                self._made[key] = self._raw(key)
            else:
                there = ", ".join(sorted(map(str, self._features))) or "none"
                raise ValueError(f"there is no feature '{key}'; there are: {there}")
        return self._made[key]

    def _raw(self, key: str) -> Any:
        tensor = convert_to_tensor_or_sparse_tensor(self._features[key])
        match tensor.static_shape.rank:
            case 0:
                raise ValueError(f"the feature '{key}' is a scalar; expected a value for each example")
            case 1:
                return _as_column(tensor)
            case None:
                check = assert_positive(_rank(tensor), message=f"the feature '{key}' is a scalar")
                with control_dependencies([check]):
                    is_vector = ops.equal(1, _rank(tensor))
                    return cond(is_vector, lambda: _as_column(tensor), lambda: tensor)
            case _:
                return tensor


def _as_column(tensor: Any) -> Any:
    if isinstance(tensor, SparseTensor):
        return sparse_ops.reshape(tensor, [sparse_shape(tensor)[0], 1])
    return array_ops.expand_dims(tensor, -1)


def _rank(tensor: Any) -> Tensor:
    if isinstance(tensor, SparseTensor):
        with name_scope(None, "Rank", [tensor.indices]) as scope:
            return ops.size(tensor.dense_shape, out_type=dtypes.int32, name=scope)
    return array_ops.rank(tensor)


def sparse_shape(tensor: SparseTensor) -> Any:
    """The shape of a sparse tensor in 32 bits."""
    with name_scope(None, "Shape", [tensor.indices]):
        return ops.cast(tensor.dense_shape, DstT=dtypes.int32)


def as_sparse_feature(tensor: Any, ignored: Any = None) -> SparseTensor:
    """A feature without what means that there is no value: "" or -1, or `ignored`."""
    tensor = convert_to_tensor_or_sparse_tensor(tensor)
    if isinstance(tensor, SparseTensor):
        return tensor
    with name_scope(None, "to_sparse_input", [tensor, ignored]):
        dtype = tensor.dtype.base
        if ignored is None:
            ignored = "" if dtype is dtypes.string else -1 if dtype.is_integer else dtype.numpy.type()
        nothing = math_ops.cast(ignored, dtype, name="ignore_value")
        indices = array_ops.where(ops.not_equal(tensor, nothing), name="indices")
        values = array_ops.gather_nd(tensor, indices, name="values")
        shape = array_ops.shape(tensor, out_type=dtypes.int64, name="dense_shape")
        return SparseTensor(indices, values, shape)


def normalized(columns: Any) -> list[FeatureColumn]:
    """Columns in the order of their names.

    Raises:
        ValueError: there are none, one is none, or two have one name.
    """
    if isinstance(columns, dict):
        raise ValueError("feature_columns is a dict; expected a list of columns")
    found = [columns] if isinstance(columns, FeatureColumn) else list(cast("Iterator[Any]", columns))
    if not found:
        raise ValueError("feature_columns is empty; expected at least one column")
    seen: dict[str, FeatureColumn] = {}
    for column in found:
        if not isinstance(column, FeatureColumn):
            raise ValueError(f"feature_columns holds {column!r}, of {type(column).__name__}; expected feature columns")
        if column.name in seen:
            raise ValueError(f"two columns are called '{column.name}': {seen[column.name]} and {column}")
        seen[column.name] = column
    return sorted(found, key=lambda column: column.name)


def check_batch_sizes(tensors: list[Tensor], columns: list[FeatureColumn]) -> None:
    """Raises ValueError where columns are known to be of different numbers of examples."""
    known: tuple[str, int] | None = None
    for tensor, column in zip(tensors, columns, strict=True):
        size = tensor.static_shape[0] if tensor.static_shape.rank else None
        if size is None:
            continue
        if known is not None and known[1] != size:
            raise ValueError(f"the column '{known[0]}' has {known[1]} examples, '{column.name}' {size}")
        known = known or (column.name, size)


def number_of_elements(column: Any) -> int:
    count = 1
    for size in column.variable_shape:
        count *= size or 0
    return count


def check_key(key: Any) -> None:
    if not isinstance(key, str):
        raise ValueError(f"key must be a text; got {key!r}, of {type(key).__name__}")


def check_words(dtype: DType, what: str) -> None:
    """Raises ValueError unless a type is of strings or integers."""
    if dtype is not dtypes.string and not dtype.is_integer:
        raise ValueError(f"{what} must be of strings or integers; it is of {dtype}")


def check_number(dtype: Any, what: str) -> None:
    """Raises ValueError unless a type is of numbers."""
    if dtype is None or not (dtype.is_integer or dtype.is_floating):
        raise ValueError(f"{what}: dtype must be of integers or floats; got {dtype}")


def check_normalizer(function: Callable[..., Any] | None, key: str) -> None:
    if function is not None and not callable(function):
        raise TypeError(f"the normalizer_fn of '{key}' must be a function; got {function!r}")
