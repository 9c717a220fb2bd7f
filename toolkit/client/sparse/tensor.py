"""SparseTensor: three tensors that stand for one with few values."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from toolkit.client import ops
from toolkit.client.construction import session_stack
from toolkit.client.construction.convert import as_dtype, constant, convert_to_tensor
from toolkit.client.construction.elements import Composite
from toolkit.client.construction.operation import Operation
from toolkit.client.construction.scopes import name_scope
from toolkit.client.construction.tensor import IndexedSlices, Tensor, TensorLike
from toolkit.client.construction.tensor_shape import plain_shape
from toolkit.client.structures.values import SparseTensorValue
from toolkit.errors import GraphError, UsageError
from toolkit.graph import dtypes
from toolkit.graph.dtypes import DType
from toolkit.graph.shape import UNKNOWN, Shape, of_rank

if TYPE_CHECKING:
    from toolkit.client.construction.graph import Graph


class SparseTensor(Composite):
    """A tensor by its values that are written down.

    Args:
        indices: int64 [n, rank], where the values stand, in row-major order.
        values: [n].
        dense_shape: int64 [rank].

    Raises:
        GraphError: shapes or types do not fit.
    """

    def __init__(self, indices: TensorLike, values: TensorLike, dense_shape: TensorLike) -> None:
        with name_scope(None, "SparseTensor", [indices, values, dense_shape]):
            self.indices: Tensor = convert_to_tensor(indices, dtypes.int64, name="indices")
            self.values: Tensor = convert_to_tensor(values, name="values")
            self.dense_shape: Tensor = convert_to_tensor(dense_shape, dtypes.int64, name="dense_shape")
        places, sizes = self.indices.static_shape, self.dense_shape.static_shape
        number = self.values.static_shape
        for shape, rank, what in ((places, 2, "indices"), (number, 1, "values"), (sizes, 1, "dense_shape")):
            if shape.rank not in (None, rank):
                raise GraphError(f"{what} of a sparse tensor: expected {rank} dimension(s), got shape {shape}")
        if places.rank and number.rank and None not in (places[0], number[0]) and places[0] != number[0]:
            raise GraphError(f"a sparse tensor has {places[0]} indices and {number[0]} values; give one for each")
        if places.rank and sizes.rank and None not in (places[1], sizes[0]) and places[1] != sizes[0]:
            raise GraphError(f"indices of {places[1]} numbers do not fit a dense_shape of {sizes[0]}")
        count = sizes[0] if sizes.rank and sizes[0] is not None else places[1] if places.rank else None
        self._refined = UNKNOWN if count is None else of_rank(count)
        known = self.graph.shapes.constant(self.dense_shape.output)
        if known is not None:
            self._refined = Shape([None if size is None or size < 0 else size for size in known])

    @classmethod
    def from_value(cls, sparse_tensor_value: Any) -> SparseTensor:
        """A sparse tensor of constants; a sparse tensor is given back as it is."""
        if isinstance(sparse_tensor_value, SparseTensor):
            return sparse_tensor_value
        if not isinstance(sparse_tensor_value, SparseTensorValue):
            raise UsageError(f"{sparse_tensor_value!r} is neither a SparseTensor nor a SparseTensorValue")
        return cls(*sparse_tensor_value)

    def parts(self) -> tuple[Callable[..., Any], list[Tensor]]:
        return SparseTensorValue, [self.indices, self.values, self.dense_shape]

    def of_parts(self, tensors: Sequence[Tensor]) -> SparseTensor:
        return SparseTensor(*tensors)

    @property
    def static_shape(self) -> Shape:
        """What is known of the dense shape."""
        return self._refined

    @property
    def shape(self) -> Any:
        return self.graph.present_shape(self._refined)

    def get_shape(self) -> Any:
        return self.shape

    def set_shape(self, shape: Any) -> None:
        """Refine what is known of the dense shape.

        Raises:
            GraphError: it contradicts that.
        """
        from toolkit.client.arrays import array_ops

        self._refined = self._refined.merge(plain_shape(shape))
        sizes = self._refined.dims
        if sizes is None or all(size is None for size in sizes):
            return
        if self._refined.is_fully_defined:
            self.dense_shape = constant(self._refined.as_list(), dtypes.int64, name="shape")
            return
        parts = array_ops.unstack(self.dense_shape, len(sizes))
        known = [
            part if size is None else constant(size, dtypes.int64) for part, size in zip(parts, sizes, strict=True)
        ]
        self.dense_shape = array_ops.stack(known)

    @property
    def dtype(self) -> DType:
        return self.values.dtype

    @property
    def op(self) -> Operation:
        return self.values.op

    @property
    def graph(self) -> Graph:
        return self.indices.graph

    @property
    def name(self) -> str:
        return self.values.name

    def with_values(self, new_values: TensorLike) -> SparseTensor:
        """Other values at the same places."""
        return SparseTensor(self.indices, new_values, self.dense_shape)

    def consumers(self) -> list[Operation]:
        """The operations that take one of its tensors."""
        return list(dict.fromkeys(op for part in self.parts()[1] for op in part.consumers()))

    def eval(self, feed_dict: Mapping[Any, Any] | None = None, session: Any = None) -> SparseTensorValue:
        """Its value, computed by the default session (or `session`)."""
        return session_stack.session_for(session, self.graph, f"eval of '{self.name}'").run(self, feed_dict)

    def __repr__(self) -> str:
        return f"SparseTensor(indices={self.indices!r}, values={self.values!r}, dense_shape={self.dense_shape!r})"

    def __mul__(self, other: TensorLike) -> SparseTensor:
        return self._with_dense("SparseDenseCwiseMul", "mul", other)

    def __truediv__(self, other: TensorLike) -> SparseTensor:
        return self._with_dense("SparseDenseCwiseDiv", "truediv", other)

    def _with_dense(self, op: str, scope: str, other: TensorLike) -> SparseTensor:
        """Each written element with the one of a dense tensor that stands in its place."""
        with name_scope(None, scope, [self.indices, self.values, self.dense_shape, other]) as entered:
            dense = convert_to_tensor(other, self.dtype.base, name="y")
            made: Tensor = ops.function(op)(self.indices, self.values, self.dense_shape, dense, name=entered)
            return self.with_values(made)


def as_sparse(value: Any) -> SparseTensor:
    """A sparse tensor, also of a SparseTensorValue.

    Raises:
        TypeError: it is neither.
    """
    if isinstance(value, SparseTensorValue):
        return SparseTensor.from_value(value)
    if not isinstance(value, SparseTensor):
        raise TypeError(f"expected a SparseTensor, got {type(value).__name__}")
    return value


def convert_to_tensor_or_sparse_tensor(value: Any, dtype: Any = None, name: str | None = None) -> Tensor | SparseTensor:
    """A sparse tensor stays one; anything else becomes a tensor.

    Raises:
        GraphError: it is of another type than `dtype`.
    """
    if isinstance(value, SparseTensorValue):
        value = SparseTensor.from_value(value)
    if isinstance(value, SparseTensor):
        _check_type(value, dtype)
        return value
    return convert_to_tensor(value, dtype, name)


def convert_to_tensor_or_indexed_slices(
    value: Any, dtype: Any = None, name: str | None = None
) -> Tensor | SparseTensor | IndexedSlices:
    """Slices and sparse tensors stay what they are; anything else becomes a tensor.

    Raises:
        GraphError: it is of another type than `dtype`.
    """
    if isinstance(value, IndexedSlices | SparseTensor):
        _check_type(value, dtype)
        return value
    return convert_to_tensor(value, dtype, name)


def _check_type(value: SparseTensor | IndexedSlices, dtype: Any) -> None:
    if dtype is not None and as_dtype(dtype).base is not value.dtype.base:
        raise GraphError(f"'{value.name}' has type {value.dtype}, where {as_dtype(dtype)} is wanted")
