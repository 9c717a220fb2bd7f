"""What a value is, without the value: tensors, and what stands for several of them."""

from __future__ import annotations

from typing import Any

from toolkit.client.construction.context import get_default_graph
from toolkit.client.construction.convert import as_dtype, convert_to_tensor
from toolkit.client.construction.graph import Graph
from toolkit.client.construction.tensor import IndexedSlices, Tensor
from toolkit.client.construction.tensor_shape import plain_shape
from toolkit.client.data.dataset import Dataset
from toolkit.client.data.optionals import Optional
from toolkit.client.flow.tensor_array import TensorArray
from toolkit.client.ragged.tensor import RaggedTensor
from toolkit.client.sparse.tensor import SparseTensor
from toolkit.errors import ArgumentTypeError, GraphmillError
from toolkit.graph import dtypes
from toolkit.graph.dtypes import DType
from toolkit.graph.shape import UNKNOWN, Shape


def _shape(value: Any) -> Shape:
    return UNKNOWN if value is None else plain_shape(value)


class TypeSpec:
    """What values of one kind are like.

    Two that are made alike are equal, and may be keys.
    """

    def __init__(self) -> None:
        raise TypeError("a TypeSpec is made by one of its kinds, such as TensorSpec([2], tf.float32)")

    @property
    def value_type(self) -> Any:
        """The class of the values."""
        raise NotImplementedError

    def parts(self) -> tuple[Any, ...]:
        """What it was made with; shapes last."""
        raise NotImplementedError

    def of(self, value: Any) -> TypeSpec:
        """What a value is.

        Raises:
            TypeError: it is of another kind.
        """
        raise NotImplementedError

    def with_parts(self, parts: tuple[Any, ...]) -> TypeSpec:
        """Another one of its kind."""
        return type(self)(*parts)

    def is_compatible_with(self, spec_or_value: Any) -> bool:
        """Whether a value, or what another one describes, may stand where this is asked for."""
        try:
            other = spec_or_value if isinstance(spec_or_value, TypeSpec) else self.of(spec_or_value)
        except TypeError:
            return False
        if type(other) is not type(self):
            return False
        pairs = zip(self.parts(), other.parts(), strict=True)
        return all(_compatible(mine, theirs) for mine, theirs in pairs)

    def most_specific_compatible_type(self, other: TypeSpec) -> TypeSpec:
        """The narrowest that both are instances of.

        Raises:
            ValueError: they are of different kinds or types.
        """
        if type(other) is not type(self):
            raise ValueError(f"{self!r} and {other!r} have no type in common")
        common: list[Any] = []
        for mine, theirs in zip(self.parts(), other.parts(), strict=True):
            if isinstance(mine, Shape) and isinstance(theirs, Shape):
                common.append(mine.most_specific_common(theirs))
            elif isinstance(mine, TypeSpec) and isinstance(theirs, TypeSpec):
                common.append(mine.most_specific_compatible_type(theirs))
            elif mine == theirs:
                common.append(mine)
            else:
                raise ValueError(f"{self!r} and {other!r} have no type in common")
        return self.with_parts(tuple(common))

    def __eq__(self, other: object) -> bool:
        return type(other) is type(self) and self.parts() == other.parts()

    def __hash__(self) -> int:
        return hash((type(self), self.parts()))

    def __repr__(self) -> str:
        return f"{type(self).__name__}({', '.join(_shown(part) for part in self.parts())})"


def _shown(part: Any) -> str:
    return f"tf.{part.name}" if isinstance(part, DType) else str(part) if isinstance(part, Shape) else repr(part)


def _compatible(mine: Any, theirs: Any) -> bool:
    if isinstance(mine, Shape) and isinstance(theirs, Shape):
        return mine.is_compatible_with(theirs)
    if isinstance(mine, TypeSpec):
        return mine.is_compatible_with(theirs)
    return mine == theirs


class _OneTensor(TypeSpec):
    """A kind with a type and a shape."""

    _dtype: DType
    _shape: Shape

    @property
    def dtype(self) -> DType:
        return self._dtype

    @property
    def shape(self) -> Any:
        return get_default_graph().present_shape(self._shape)


class TensorSpec(_OneTensor):
    """A tensor of a type and a shape."""

    def __init__(self, shape: Any, dtype: Any = dtypes.float32, name: str | None = None):
        self._shape, self._dtype, self._name = _shape(shape), as_dtype(dtype), name

    @classmethod
    def from_spec(cls, spec: Any, name: str | None = None) -> TensorSpec:
        """The same, under another name."""
        return cls(spec.shape, spec.dtype, name or getattr(spec, "name", None))

    @classmethod
    def from_tensor(cls, tensor: Tensor, name: str | None = None) -> TensorSpec:
        """What a tensor is; its name is that of its operation."""
        if not isinstance(tensor, Tensor):
            raise TypeError(f"tensor: expected a Tensor, got {type(tensor).__name__}")
        return cls(tensor.static_shape, tensor.dtype, name or tensor.op.name)

    @property
    def name(self) -> str | None:
        return self._name

    @property
    def value_type(self) -> Any:
        return Tensor

    def parts(self) -> tuple[Any, ...]:
        return self._dtype, self._shape

    def with_parts(self, parts: tuple[Any, ...]) -> TensorSpec:
        return TensorSpec(parts[1], parts[0], self._name)

    def of(self, value: Any) -> TypeSpec:
        return TensorSpec.from_tensor(value)

    def __repr__(self) -> str:
        return f"TensorSpec(shape={self._shape}, dtype=tf.{self._dtype.name}, name={self._name!r})"


class SparseTensorSpec(_OneTensor):
    """A sparse tensor."""

    def __init__(self, shape: Any = None, dtype: Any = dtypes.float32):
        self._shape, self._dtype = _shape(shape), as_dtype(dtype)

    @classmethod
    def from_value(cls, value: Any) -> SparseTensorSpec:
        if not hasattr(value, "dense_shape"):
            raise TypeError(f"value: expected a SparseTensor, got {type(value).__name__}")
        return cls(value.static_shape, value.dtype)

    @property
    def value_type(self) -> Any:
        return SparseTensor

    def parts(self) -> tuple[Any, ...]:
        return self._shape, self._dtype

    def of(self, value: Any) -> TypeSpec:
        return SparseTensorSpec.from_value(value)


class RaggedTensorSpec(_OneTensor):
    """A ragged tensor.

    Raises:
        ValueError: the number of ragged axes is not said, or is not below the rank.
    """

    def __init__(
        self, shape: Any = None, dtype: Any = dtypes.float32, ragged_rank: int | None = None,
        row_splits_dtype: Any = dtypes.int64, flat_values_spec: Any = None,
    ):  # fmt: skip
        self._shape, self._splits = _shape(shape), as_dtype(row_splits_dtype)
        self._dtype = as_dtype(flat_values_spec.dtype if dtype is None else dtype)
        self._flat = flat_values_spec
        rank = self._shape.rank
        if ragged_rank is None and rank is None:
            raise ValueError("ragged_rank: expected a number where the rank of the shape is not known")
        self._ragged_rank = (rank or 1) - 1 if ragged_rank is None else ragged_rank
        if rank is not None and self._ragged_rank >= rank:
            raise ValueError(f"ragged_rank: expected less than the rank {rank}, got {self._ragged_rank}")

    @classmethod
    def from_value(cls, value: Any) -> RaggedTensorSpec:
        if not hasattr(value, "nested_row_splits"):
            raise TypeError(f"value: expected a RaggedTensor, got {type(value).__name__}")
        shape = value.static_shape if hasattr(value, "static_shape") else value.shape
        return cls(shape, value.dtype, value.ragged_rank, value.row_splits.dtype)

    @property
    def ragged_rank(self) -> int:
        return self._ragged_rank

    @property
    def row_splits_dtype(self) -> DType:
        return self._splits

    @property
    def flat_values_spec(self) -> Any:
        return self._flat

    @property
    def value_type(self) -> Any:
        return RaggedTensor if self._ragged_rank else Tensor

    def parts(self) -> tuple[Any, ...]:
        return self._shape, self._dtype, self._ragged_rank, self._splits

    def of(self, value: Any) -> TypeSpec:
        return RaggedTensorSpec.from_value(value)


class IndexedSlicesSpec(TypeSpec):
    """Slices of a tensor."""

    def __init__(
        self, shape: Any = None, dtype: Any = dtypes.float32, indices_dtype: Any = dtypes.int64,
        dense_shape_dtype: Any = None, indices_shape: Any = None,
    ):  # fmt: skip
        self._shape, self._values, self._indices = _shape(shape), as_dtype(dtype), as_dtype(indices_dtype)
        self._dense = None if dense_shape_dtype is None else as_dtype(dense_shape_dtype)
        self._indices_shape = Shape([None]) if indices_shape is None else _shape(indices_shape)

    @property
    def value_type(self) -> Any:
        return IndexedSlices

    def parts(self) -> tuple[Any, ...]:
        return self._shape, self._values, self._indices, self._dense, self._indices_shape

    def of(self, value: Any) -> TypeSpec:
        if not isinstance(value, IndexedSlices):
            raise TypeError(f"value: expected IndexedSlices, got {type(value).__name__}")
        dense = None if value.dense_shape is None else value.dense_shape.dtype.base
        shape = plain_shape(value.shape)
        return IndexedSlicesSpec(shape, value.dtype, value.indices.dtype, dense, value.indices.static_shape)


class TensorArraySpec(TypeSpec):
    """A TensorArray."""

    def __init__(
        self, element_shape: Any = None, dtype: Any = dtypes.float32, dynamic_size: bool = False,
        infer_shape: bool = True,
    ):  # fmt: skip
        self._element_shape, self._values = _shape(element_shape), as_dtype(dtype)
        self._grows, self._infers = dynamic_size, infer_shape

    @classmethod
    def from_value(cls, value: Any) -> TensorArraySpec:
        if not hasattr(value, "flow"):
            raise TypeError(f"value: expected a TensorArray, got {type(value).__name__}")
        return cls(value.element_shape, value.dtype, value.dynamic_size)

    @property
    def value_type(self) -> Any:
        return TensorArray

    def parts(self) -> tuple[Any, ...]:
        return self._element_shape, self._values, self._grows, self._infers

    def of(self, value: Any) -> TypeSpec:
        return TensorArraySpec.from_value(value)


class NoneTensorSpec(TypeSpec):
    """The value None."""

    def __init__(self) -> None:
        pass

    @classmethod
    def from_value(cls, value: Any) -> NoneTensorSpec:
        if value is not None:
            raise TypeError(f"value: expected None, got {type(value).__name__}")
        return cls()

    @property
    def value_type(self) -> Any:
        return type(None)

    def most_specific_compatible_shape(self, other: TypeSpec) -> TypeSpec:
        return self.most_specific_compatible_type(other)

    def parts(self) -> tuple[Any, ...]:
        return ()

    def of(self, value: Any) -> TypeSpec:
        return NoneTensorSpec.from_value(value)


class OptionalSpec(TypeSpec):
    """A value that may be missing.

    Args:
        element_spec: what it is where it is there, a structure of specs.
    """

    def __init__(self, element_spec: Any):
        self._element = element_spec

    @classmethod
    def from_value(cls, value: Any) -> OptionalSpec:
        if not isinstance(value, Optional):
            raise TypeError(f"value: expected an Optional, got {type(value).__name__}")
        return cls(value.value_structure)

    @property
    def value_type(self) -> Any:
        return Optional

    def parts(self) -> tuple[Any, ...]:
        return (self._element,)

    def of(self, value: Any) -> TypeSpec:
        return OptionalSpec.from_value(value)


class DatasetSpec(TypeSpec):
    """A dataset, or several of a shape.

    Args:
        element_spec: what its elements are.
    """

    def __init__(self, element_spec: Any, dataset_shape: Any = ()):
        self._element, self._dataset_shape = element_spec, _shape(list(dataset_shape))

    @classmethod
    def from_value(cls, value: Any) -> DatasetSpec:
        if not isinstance(value, Dataset):
            raise TypeError(f"value: expected a Dataset, got {type(value).__name__}")
        return cls(value.element_spec)

    @property
    def element_spec(self) -> Any:
        return self._element

    @property
    def value_type(self) -> Any:
        return Dataset

    def parts(self) -> tuple[Any, ...]:
        return self._element, self._dataset_shape

    def of(self, value: Any) -> TypeSpec:
        return DatasetSpec.from_value(value)


def spec_of(value: Any) -> TypeSpec:
    """What a value is: of what becomes a tensor, the tensor's.

    Raises:
        ArgumentTypeError: it becomes none.
    """
    if isinstance(value, TypeSpec):
        return value
    if isinstance(value, Tensor):
        return TensorSpec(value.static_shape, value.dtype.base)
    if value is None:
        return NoneTensorSpec()
    if isinstance(value, IndexedSlices):
        return IndexedSlicesSpec().of(value)
    for kind in (SparseTensorSpec, RaggedTensorSpec, TensorArraySpec, OptionalSpec, DatasetSpec):
        try:
            return kind.from_value(value)
        except TypeError:
            continue
    try:
        with Graph().as_default():
            tensor = convert_to_tensor(value)
    except (GraphmillError, TypeError, ValueError):
        raise ArgumentTypeError(f"{value!r} is no tensor and becomes none, so it has no TypeSpec") from None
    return TensorSpec(tensor.static_shape, tensor.dtype.base)
