"""RaggedTensor: values, and where the rows begin that they stand in."""

from __future__ import annotations

import importlib
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from toolkit.client.arrays import array_ops
from toolkit.client.checks.assertions import assert_equal, assert_rank_at_least
from toolkit.client.construction import session_stack
from toolkit.client.construction.convert import as_dtype, convert_to_tensor
from toolkit.client.construction.elements import Composite
from toolkit.client.construction.operation import Operation
from toolkit.client.construction.scopes import name_scope
from toolkit.client.construction.tensor import Tensor, TensorLike, apply
from toolkit.client.math import math_ops
from toolkit.client.ragged.partition import RowPartition, as_indices
from toolkit.client.ragged.value import RaggedTensorValue, nested_value
from toolkit.errors import GraphError, UsageError
from toolkit.graph import dtypes
from toolkit.graph.dtypes import DType
from toolkit.graph.shape import UNKNOWN, Shape

if TYPE_CHECKING:
    from toolkit.client.construction.graph import Graph
    from toolkit.client.sparse.tensor import SparseTensor


def _part(name: str) -> Any:
    """The module of this package that computes something, loaded on first use: all of them make ragged tensors."""
    return importlib.import_module(f"{__package__}.{name}")


class RaggedTensor(Composite):
    """A tensor with one or more axes along which rows have lengths of their own; made by its `from_` methods.

    Args:
        values: the values of all rows, one after the other, [values, ...]; ragged themselves where there are several
            ragged axes.
        row_partition: where the rows begin and end.
    """

    def __init__(self, values: Any, row_partition: Any, internal: bool = False):
        if not internal:
            raise ValueError("a RaggedTensor is made by one of its methods, such as RaggedTensor.from_row_lengths()")
        self._values: Any = values
        self._partition: RowPartition = row_partition

    # -- made of -----------------------------------------------------------------------------------------------

    @classmethod
    def _joined(cls, values: Any, partition: RowPartition, validate: bool) -> RaggedTensor:
        values = convert_to_tensor_or_ragged_tensor(values, name="values")
        if isinstance(values, RaggedTensor) and values.partition.dtype is not partition.dtype:
            raise ValueError(
                f"row_splits of {partition.dtype} around values with row_splits of {values.partition.dtype}; "
                "with_row_splits_dtype makes them alike"
            )
        if values.static_shape.rank == 0:
            raise ValueError("values: expected the values of all rows, got one number")
        if validate:
            said = "Arguments to _from_row_partition do not form a valid RaggedTensor"
            count = number_of_rows(values, partition.dtype)
            checks: list[Any] = [
                assert_equal(math_ops.cast(partition.nvals(), partition.dtype), count, message=said)
            ]  # fmt: skip
            if isinstance(values, Tensor):
                checks.append(assert_rank_at_least(values, 1))
            partition = partition.with_dependencies(checks)
        return cls(values, partition, internal=True)

    @classmethod
    def from_row_splits(
        cls, values: TensorLike, row_splits: TensorLike, name: str | None = None, validate: bool = True
    ) -> RaggedTensor:
        with name_scope(name, "RaggedFromRowSplits", _flat([values, row_splits])):
            return cls._joined(values, RowPartition.from_row_splits(row_splits, validate, _hint(values)), validate)

    @classmethod
    def from_row_lengths(
        cls, values: TensorLike, row_lengths: TensorLike, name: str | None = None, validate: bool = True
    ) -> RaggedTensor:
        with name_scope(name, "RaggedFromRowLengths", _flat([values, row_lengths])):
            return cls._joined(values, RowPartition.from_row_lengths(row_lengths, validate, _hint(values)), validate)

    @classmethod
    def from_row_starts(
        cls, values: TensorLike, row_starts: TensorLike, name: str | None = None, validate: bool = True
    ) -> RaggedTensor:
        with name_scope(name, "RaggedFromRowStarts", _flat([values, row_starts])):
            values = convert_to_tensor_or_ragged_tensor(values, name="values")
            count = number_of_rows(values)
            partition = RowPartition.from_row_starts(row_starts, count, validate, _hint(values))
            return cls._joined(values, partition, validate)

    @classmethod
    def from_row_limits(
        cls, values: TensorLike, row_limits: TensorLike, name: str | None = None, validate: bool = True
    ) -> RaggedTensor:
        with name_scope(name, "RaggedFromRowLimits", _flat([values, row_limits])):
            values = convert_to_tensor_or_ragged_tensor(values, name="values")
            return cls._joined(values, RowPartition.from_row_limits(row_limits, validate, _hint(values)), validate)

    @classmethod
    def from_value_rowids(
        cls, values: TensorLike, value_rowids: TensorLike, nrows: TensorLike = None, name: str | None = None,
        validate: bool = True,
    ) -> RaggedTensor:  # fmt: skip
        with name_scope(name, "RaggedFromValueRowIds", _flat([values, value_rowids, nrows])):
            partition = RowPartition.from_value_rowids(value_rowids, nrows, validate, _hint(values))
            return cls._joined(values, partition, validate)

    @classmethod
    def from_uniform_row_length(
        cls, values: TensorLike, uniform_row_length: TensorLike, nrows: TensorLike = None, validate: bool = True,
        name: str | None = None,
    ) -> RaggedTensor:  # fmt: skip
        """Rows that all have one length: an axis of a known size inside of ragged ones."""
        with name_scope(name, "RaggedFromUniformRowLength", _flat([values, uniform_row_length, nrows])):
            values = convert_to_tensor_or_ragged_tensor(values, name="values")
            length = as_indices(uniform_row_length, "UniformRowLength", _hint(values), rank=0)
            count = number_of_rows(values, length.dtype.base)
            partition = RowPartition.from_uniform_row_length(length, count, nrows, validate, _hint(values))
            return cls._joined(values, partition, validate)

    @classmethod
    def from_nested_row_splits(
        cls, flat_values: TensorLike, nested_row_splits: Sequence[Any], name: str | None = None, validate: bool = True
    ) -> Any:
        """Several ragged axes, the outermost first."""
        _check_list(nested_row_splits, "nested_row_splits")
        with name_scope(name, "RaggedFromNestedRowSplits", _flat([flat_values, *nested_row_splits])):
            result: Any = flat_values
            for splits in reversed(nested_row_splits):
                result = cls.from_row_splits(result, splits, validate=validate)
            return result

    @classmethod
    def from_nested_row_lengths(
        cls, flat_values: TensorLike, nested_row_lengths: Sequence[Any], name: str | None = None, validate: bool = True
    ) -> Any:
        _check_list(nested_row_lengths, "nested_row_lengths")
        with name_scope(name, "RaggedFromNestedRowlengths", _flat([flat_values, *nested_row_lengths])):
            result: Any = flat_values
            for lengths in reversed(nested_row_lengths):
                result = cls.from_row_lengths(result, lengths, validate=validate)
            return result

    @classmethod
    def from_nested_value_rowids(
        cls, flat_values: TensorLike, nested_value_rowids: Sequence[Any], nested_nrows: Sequence[Any] | None = None,
        name: str | None = None, validate: bool = True,
    ) -> Any:  # fmt: skip
        _check_list(nested_value_rowids, "nested_value_rowids")
        rows = [None] * len(nested_value_rowids) if nested_nrows is None else list(nested_nrows)
        if len(rows) != len(nested_value_rowids):
            raise ValueError(f"nested_nrows: expected {len(nested_value_rowids)} numbers, got {len(rows)}")
        with name_scope(name, "RaggedFromNestedValueRowIds", _flat([flat_values, *nested_value_rowids, *rows])):
            result: Any = flat_values
            for ids, count in reversed(list(zip(nested_value_rowids, rows, strict=True))):
                result = cls.from_value_rowids(result, ids, count, validate=validate)
            return result

    @classmethod
    def from_tensor(
        cls, tensor: TensorLike, lengths: Any = None, padding: TensorLike = None, ragged_rank: int = 1,
        name: str | None = None, row_splits_dtype: Any = dtypes.int64,
    ) -> RaggedTensor:  # fmt: skip
        """A dense tensor, whole, without what stands behind `lengths`, or without trailing `padding`."""
        return _part("conversion").from_tensor(tensor, lengths, padding, ragged_rank, name, as_dtype(row_splits_dtype))

    @classmethod
    def from_sparse(
        cls, st_input: SparseTensor, name: str | None = None, row_splits_dtype: Any = dtypes.int64
    ) -> RaggedTensor:
        """A sparse matrix whose rows have their values at the front."""
        return _part("conversion").from_sparse(st_input, name, as_dtype(row_splits_dtype))

    # -- parts -------------------------------------------------------------------------------------------------

    @property
    def partition(self) -> RowPartition:
        """Where the rows begin and end."""
        return self._partition

    @property
    def values(self) -> Any:
        return self._values

    @property
    def flat_values(self) -> Tensor:
        """The innermost values."""
        return self._values.flat_values if isinstance(self._values, RaggedTensor) else self._values

    @property
    def row_splits(self) -> Tensor:
        return self._partition.splits

    @property
    def nested_partitions(self) -> tuple[RowPartition, ...]:
        inner = self._values.nested_partitions if isinstance(self._values, RaggedTensor) else ()
        return (self._partition, *inner)

    @property
    def nested_row_splits(self) -> tuple[Tensor, ...]:
        return tuple(partition.splits for partition in self.nested_partitions)

    @property
    def ragged_rank(self) -> int:
        """How many axes are ragged, or of one length inside of ragged ones."""
        return len(self.nested_partitions)

    @property
    def uniform_row_length(self) -> Tensor | None:
        return self._partition.known_uniform_length

    @property
    def dtype(self) -> DType:
        return self._values.dtype

    @property
    def static_shape(self) -> Shape:
        """The sizes that are known; None along ragged axes."""
        outer = Shape([self._partition.static_nrows, self._partition.static_uniform_row_length])
        inner = self._values.static_shape
        return outer.concatenate(inner.slice(1) if inner.rank is not None else UNKNOWN)

    @property
    def shape(self) -> Any:
        return self.graph.present_shape(self.static_shape)

    def get_shape(self) -> Any:
        return self.shape

    @property
    def graph(self) -> Graph:
        return self.flat_values.graph

    @property
    def name(self) -> str:
        return self.flat_values.name

    @property
    def op(self) -> Operation:
        return self.flat_values.op

    def parts(self) -> tuple[Callable[..., Any], list[Tensor]]:
        def value(*parts: Any) -> RaggedTensorValue:
            return nested_value(parts[-1], list(parts[:-1]))

        return value, [*self.nested_row_splits, self.flat_values]

    def of_parts(self, tensors: Sequence[Tensor]) -> RaggedTensor:
        *splits, flat = tensors
        return RaggedTensor.from_nested_row_splits(flat, splits, validate=False)

    def consumers(self) -> list[Operation]:
        """The operations that take one of its tensors."""
        return list(dict.fromkeys(op for part in self.parts()[1] for op in part.consumers()))

    def eval(self, feed_dict: Mapping[Any, Any] | None = None, session: Any = None) -> RaggedTensorValue:
        """Its value, computed by the default session (or `session`)."""
        return session_stack.session_for(session, self.graph, f"eval of '{self.name}'").run(self, feed_dict)

    # -- rows --------------------------------------------------------------------------------------------------

    def value_rowids(self, name: str | None = None) -> Tensor:
        """The row of each value."""
        with name_scope(name, "RaggedValueRowIds", self.parts()[1]):
            return self._partition.value_rowids()

    def nested_value_rowids(self, name: str | None = None) -> tuple[Tensor, ...]:
        with name_scope(name, "RaggedNestedValueRowIds", self.parts()[1]):
            inner = self._values.nested_value_rowids() if isinstance(self._values, RaggedTensor) else ()
            return (self.value_rowids(), *inner)

    def nrows(self, out_type: Any = None, name: str | None = None) -> Tensor:
        with name_scope(name, "RaggedNRows", self.parts()[1]):
            count = self._partition.nrows()
            return count if out_type is None else math_ops.cast(count, out_type)

    def row_starts(self, name: str | None = None) -> Tensor:
        with name_scope(name, "RaggedRowStarts", self.parts()[1]):
            return self._partition.row_starts()

    def row_limits(self, name: str | None = None) -> Tensor:
        with name_scope(name, "RaggedRowLimits", self.parts()[1]):
            return self._partition.row_limits()

    def row_lengths(self, axis: int = 1, name: str | None = None) -> Any:
        """The lengths along an axis: [rows] for the first ragged one, ragged themselves further inside."""
        if axis == 0:
            return self._partition.nrows()
        if axis == 1:
            return self._partition.row_lengths()
        with name_scope(name, "RaggedRowLengths", self.parts()[1]):
            axis = positive_axis(axis, self)
            if axis < 2:
                return self.row_lengths(axis)
            if isinstance(self._values, RaggedTensor):
                return self.with_values(self._values.row_lengths(axis - 1))
            shape = array_ops.shape(self._values, out_type=self._partition.dtype)
            return self.with_values(array_ops.ones(shape[: axis - 1], self._partition.dtype) * shape[axis - 1])

    def nested_row_lengths(self, name: str | None = None) -> tuple[Tensor, ...]:
        with name_scope(name, "RaggedNestedRowLengths", self.parts()[1]):
            return tuple(partition.row_lengths() for partition in self.nested_partitions)

    def bounding_shape(self, axis: Any = None, name: str | None = None, out_type: Any = None) -> Tensor:
        """The shape of the smallest dense tensor that all of it fits into."""
        kind = self._partition.dtype if out_type is None else as_dtype(out_type)
        with name_scope(name, "RaggedBoundingBox", self.parts()[1]):
            if isinstance(axis, int) and axis in (0, 1):
                size = self.nrows() if axis == 0 else longest(self.row_lengths())
                return math_ops.cast(size, kind)
            sizes = [self.nrows(), *(longest(partition.row_lengths()) for partition in self.nested_partitions)]
            flat = array_ops.shape(self.flat_values, out_type=self._partition.dtype)
            box = array_ops.concat([array_ops.stack(sizes), flat[1:]], 0)
            box = math_ops.cast(box, kind)
            return box if axis is None else array_ops.gather(box, axis)

    # -- others like it ----------------------------------------------------------------------------------------

    def with_values(self, new_values: Any) -> RaggedTensor:
        """Other values in the same rows."""
        values = convert_to_tensor_or_ragged_tensor(new_values, name="values")
        if values.static_shape.rank == 0:
            raise ValueError("new_values: expected the values of all rows, got one number")
        known = [each.static_shape[0] for each in (self._values, values) if each.static_shape.rank]
        if len(set(known) - {None}) > 1:
            raise ValueError(f"new_values: expected {known[0]} values, got {known[1]}")
        if isinstance(values, RaggedTensor) and values.partition.dtype is not self._partition.dtype:
            wide = self.with_row_splits_dtype(dtypes.int64)
            return wide.with_values(values.with_row_splits_dtype(dtypes.int64))
        return RaggedTensor(values, self._partition, internal=True)

    def with_flat_values(self, new_values: Any) -> RaggedTensor:
        """Other innermost values."""
        if isinstance(self._values, RaggedTensor):
            return self.with_values(self._values.with_flat_values(new_values))
        return self.with_values(new_values)

    def with_row_splits_dtype(self, dtype: Any) -> RaggedTensor:
        kind = as_dtype(dtype)
        if kind not in (dtypes.int32, dtypes.int64):
            raise ValueError(f"dtype: row splits are int32 or int64, not {kind}")
        if self._partition.dtype is kind:
            return self
        values = self._values
        if isinstance(values, RaggedTensor):
            values = values.with_row_splits_dtype(kind)
        return RaggedTensor(values, self._partition.with_dtype(kind), internal=True)

    def merge_dims(self, outer_axis: int, inner_axis: int) -> Any:
        """Axes joined into one."""
        outer, inner = positive_axis(outer_axis, self), positive_axis(inner_axis, self)
        if outer > inner:
            raise ValueError(f"expected outer_axis <= inner_axis, got {outer_axis} and {inner_axis}")
        return _part("conversion").merged(self, outer, inner)

    def to_tensor(self, default_value: TensorLike = None, name: str | None = None, shape: Any = None) -> Tensor:
        """The dense tensor, with a default value (0, "") behind short rows; of another shape where one is given."""
        return _part("conversion").to_tensor(self, default_value, name, shape)

    def to_sparse(self, name: str | None = None) -> SparseTensor:
        """The values with their coordinates."""
        return _part("conversion").to_sparse(self, name)

    def numpy(self) -> Any:
        """What an eager tensor has.

        Raises:
            ValueError: always; a session computes values.
        """
        raise ValueError(f"'{self.name}' has no value while the graph is built; a session computes it")

    def to_list(self) -> list[Any]:
        """What an eager tensor has; values of sessions have it.

        Raises:
            ValueError: always.
        """
        raise ValueError(f"'{self.name}' has no value while the graph is built; session.run(it).to_list() has")

    def __repr__(self) -> str:
        return f"tf.RaggedTensor(values={self._values!r}, row_splits={self.row_splits!r})"

    def __bool__(self) -> bool:
        raise GraphError(f"'{self.name}' has no value while the graph is built; use cond(), not a Python 'if'")

    def __getitem__(self, key: Any) -> Any:
        return _part("slicing").sliced(self, key)


def _operators() -> None:
    """Python's operators, value by value."""

    def binary(operator: str, swapped: bool) -> Callable[[Any, Any], Any]:
        def method(self: RaggedTensor, other: Any) -> Any:
            operate = _part("elementwise").operate
            return operate(operator, other, self) if swapped else operate(operator, self, other)

        return method

    for name in ("add", "sub", "mul", "truediv", "floordiv", "mod", "pow", "and", "or", "xor"):
        setattr(RaggedTensor, f"__{name}__", binary(name, False))
        setattr(RaggedTensor, f"__r{name}__", binary(name, True))
    for name, operator in (("lt", "Less"), ("le", "LessEqual"), ("gt", "Greater"), ("ge", "GreaterEqual")):
        setattr(RaggedTensor, f"__{name}__", binary(operator, False))

    def unary(operator: str) -> Callable[[Any], Any]:
        def method(self: RaggedTensor) -> Any:
            return self.with_flat_values(apply(operator, self.flat_values))

        return method

    for name, operator in (("neg", "negative"), ("abs", "abs"), ("invert", "invert")):
        setattr(RaggedTensor, f"__{name}__", unary(operator))


_operators()


def _flat(values: Sequence[Any]) -> list[Any]:
    """Tensors in place of ragged ones, for scopes."""
    return [
        each
        for value in values
        if value is not None
        for each in (value.parts()[1] if isinstance(value, RaggedTensor) else [value])
    ]


def _hint(values: Any) -> DType | None:
    return values.partition.dtype if isinstance(values, RaggedTensor) else None


def _check_list(given: Any, name: str) -> None:
    if isinstance(given, Tensor):
        raise TypeError(f"{name}: expected a list, the outermost axis first, got a tensor")


def longest(lengths: Tensor) -> Tensor:
    """The largest length; 0 where there are no rows."""
    return ops_maximum(math_ops.reduce_max(lengths), 0)


def ops_maximum(x: Tensor, least: int) -> Tensor:
    return math_ops.maximum(x, least)


def positive_axis(axis: int, value: Any) -> int:
    """An axis from 0 on.

    Raises:
        ValueError: there is no such axis, or the rank is not known and the axis counted from behind.
    """
    rank = value.static_shape.rank
    if rank is None:
        if axis < 0:
            raise ValueError(f"axis {axis} cannot be counted from behind: the rank is not known")
        return axis
    if not -rank <= axis < rank:
        raise ValueError(f"axis: expected a number from {-rank} to {rank - 1}, got {axis}")
    return axis % rank


def number_of_rows(values: Any, dtype: DType | None = None) -> Tensor:
    """The first size, as a tensor."""
    if isinstance(values, RaggedTensor):
        return values.nrows(dtype)
    return array_ops.shape(values, out_type=dtype or dtypes.int64)[0]


def is_ragged(value: Any) -> bool:
    """Whether something is a ragged tensor, or the value of one."""
    return isinstance(value, RaggedTensor | RaggedTensorValue)


def convert_to_tensor_or_ragged_tensor(value: Any, dtype: Any = None, name: str | None = None) -> Any:
    """A ragged tensor stays one, the value of one becomes one; anything else becomes a tensor.

    Raises:
        UsageError: it is of another type than `dtype`.
    """
    if isinstance(value, RaggedTensor):
        if dtype is not None and as_dtype(dtype).base is not value.dtype.base:
            raise UsageError(f"'{value.name}' has type {value.dtype}, where {as_dtype(dtype)} is wanted; cast it")
        return value
    if isinstance(value, RaggedTensorValue):
        with name_scope(name, "ConvertToTensorOrRaggedTensor", []):
            flat = convert_to_tensor(value.flat_values, dtype, name="flat_values")
            return RaggedTensor.from_nested_row_splits(flat, value.nested_row_splits, validate=False)
    return convert_to_tensor(value, dtype, name)
