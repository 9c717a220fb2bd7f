"""What stands at one place of an element: a tensor, a sparse tensor or a dataset, and the tensor that carries it."""

from __future__ import annotations

import importlib
from dataclasses import dataclass
from typing import Any

from toolkit.client import ops
from toolkit.client.construction.convert import convert_to_tensor
from toolkit.client.construction.tensor import Tensor
from toolkit.client.construction.tensor_shape import TensorShape
from toolkit.client.sparse.tensor import SparseTensor
from toolkit.graph import dtypes
from toolkit.graph.dtypes import DType
from toolkit.graph.shape import UNKNOWN, Shape


def _datasets() -> Any:
    """The module of datasets, which need leaves to be made."""
    return importlib.import_module("toolkit.client.data.dataset")


class Leaf:
    """What stands at one place of an element.

    Attributes:
        dtype, shape: of the value as the program sees it.
        carried: the type of the tensor in which datasets carry it.
        carried_shape: that tensor's shape.
    """

    dtype: DType
    shape: Shape

    @property
    def carried(self) -> DType:
        return self.dtype

    @property
    def carried_shape(self) -> Shape:
        return self.shape

    @property
    def value_class(self) -> type[Any]:
        """The class of values."""
        raise NotImplementedError

    def pack(self, value: Any) -> Tensor:
        """The tensor that carries a value."""
        raise NotImplementedError

    def unpack(self, tensor: Tensor) -> Any:
        """The value that a tensor carries."""
        raise NotImplementedError

    def with_shape(self, shape: Shape) -> Leaf:
        """The same with another shape."""
        raise NotImplementedError


@dataclass(frozen=True)
class TensorLeaf(Leaf):
    """A tensor."""

    dtype: DType
    shape: Shape

    @property
    def value_class(self) -> type[Any]:
        return Tensor

    def pack(self, value: Any) -> Tensor:
        return convert_to_tensor(value, self.dtype)

    def unpack(self, tensor: Tensor) -> Tensor:
        tensor.set_shape(self.shape)
        return tensor

    def with_shape(self, shape: Shape) -> TensorLeaf:
        return TensorLeaf(self.dtype, shape)

    def __repr__(self) -> str:
        return f"TensorSpec(shape={_shown(self.shape)}, dtype=tf.{self.dtype.name}, name=None)"


@dataclass(frozen=True)
class SparseLeaf(Leaf):
    """A sparse tensor; a variant [3] carries it."""

    dtype: DType
    shape: Shape

    @property
    def carried(self) -> DType:
        return dtypes.variant

    @property
    def carried_shape(self) -> Shape:
        return UNKNOWN

    @property
    def value_class(self) -> type[Any]:
        return SparseTensor

    def pack(self, value: SparseTensor) -> Tensor:
        return ops.serialize_sparse(value.indices, value.values, value.dense_shape, out_type=dtypes.variant)

    def pack_many(self, value: SparseTensor) -> Tensor:
        """A row for each of the first sizes."""
        return ops.serialize_many_sparse(value.indices, value.values, value.dense_shape, out_type=dtypes.variant)

    def unpack(self, tensor: Tensor) -> SparseTensor:
        rank = self.shape.rank
        indices, values, dense_shape = ops.deserialize_sparse(tensor, dtype=self.dtype)
        indices.set_shape(Shape([None, rank]))
        dense_shape.set_shape(Shape([rank]))
        value = SparseTensor(indices, values, dense_shape)
        value.set_shape(self.shape)
        return value

    def with_shape(self, shape: Shape) -> SparseLeaf:
        return SparseLeaf(self.dtype, shape)

    def __repr__(self) -> str:
        return f"SparseTensorSpec({_shown_shape(self.shape)}, tf.{self.dtype.name})"


@dataclass(frozen=True)
class DatasetLeaf(Leaf):
    """A dataset: what windows and groups are."""

    elements: Any

    @property
    def dtype(self) -> DType:  # pyright: ignore[reportIncompatibleVariableOverride]  # always that
        return dtypes.variant

    @property
    def shape(self) -> Shape:  # pyright: ignore[reportIncompatibleVariableOverride]  # always that
        return Shape([])

    @property
    def value_class(self) -> type[Any]:
        return _datasets().Dataset

    def pack(self, value: Any) -> Tensor:
        return value.variant

    def unpack(self, tensor: Tensor) -> Any:
        return _datasets().dataset_of(tensor, self.elements)

    def with_shape(self, shape: Shape) -> DatasetLeaf:
        return self

    def __repr__(self) -> str:
        return f"DatasetSpec({self.elements!r}, TensorShape([]))"


def _shown(shape: Shape) -> str:
    return "<unknown>" if shape.dims is None else repr(shape.dims)


def _shown_shape(shape: Shape) -> str:
    return repr(TensorShape(shape))
