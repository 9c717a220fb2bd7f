"""Tables from keys to values: fixed ones with what fills them, and ones that steps change."""

from __future__ import annotations

import uuid
from collections.abc import Sequence
from typing import Any

from toolkit.client import ops
from toolkit.client.construction.context import get_default_graph
from toolkit.client.construction.convert import DTypeLike, as_dtype, convert_to_tensor
from toolkit.client.construction.operation import Operation
from toolkit.client.construction.scopes import colocate_with, device, init_scope, name_scope
from toolkit.client.construction.tensor import Tensor, TensorLike
from toolkit.client.sparse.tensor import SparseTensor
from toolkit.client.train.saveables import SaveableObject, SaveSpec
from toolkit.errors import UsageError
from toolkit.graph import dtypes
from toolkit.graph.dtypes import DType
from toolkit.graph.metagraph import GraphKeys


class TextFileIndex:
    """Columns of a file that are no columns: the whole line, the number of the line."""

    WHOLE_LINE = -2
    LINE_NUMBER = -1


class LookupInterface:
    """What all tables offer: `lookup`, `size`, the types of keys and values."""

    resource_handle: Any = None

    def __init__(self, key_dtype: DTypeLike, value_dtype: DTypeLike):
        self._key_dtype = as_dtype(key_dtype)
        self._value_dtype = as_dtype(value_dtype)

    @property
    def key_dtype(self) -> DType:
        return self._key_dtype

    @property
    def value_dtype(self) -> DType:
        return self._value_dtype

    @property
    def name(self) -> Any:
        raise NotImplementedError

    def size(self, name: str | None = None) -> Tensor:
        """How many keys the table has."""
        raise NotImplementedError

    def lookup(self, keys: Any, name: str | None = None) -> Any:
        """The value of each key; of sparse keys, sparse."""
        raise NotImplementedError

    def __getitem__(self, keys: Any) -> Any:
        return self.lookup(keys)

    def _check_keys(self, keys: Any) -> None:
        if keys.dtype.base is not self._key_dtype.base:
            raise TypeError(f"the keys of '{self.name}' are of {self._key_dtype}, got {keys.dtype}; cast them")


class TableInitializerBase:
    """What fills a table once: `initialize(table)` adds the operation."""

    def __init__(self, key_dtype: DTypeLike, value_dtype: DTypeLike):
        self._key_dtype = as_dtype(key_dtype)
        self._value_dtype = as_dtype(value_dtype)

    @property
    def key_dtype(self) -> DType:
        return self._key_dtype

    @property
    def value_dtype(self) -> DType:
        return self._value_dtype

    @property
    def shared_name(self) -> str:
        """What tables that this fills are called, so that equal ones are one; "": each has a name of its own."""
        return ""

    def initialize(self, table: Any) -> Operation:
        raise NotImplementedError


def _check_types(table: LookupInterface, filler: TableInitializerBase) -> None:
    for what, wanted, got in (
        ("keys", table.key_dtype, filler.key_dtype),
        ("values", table.value_dtype, filler.value_dtype),
    ):
        if wanted.base is not got.base:
            raise TypeError(f"the {what} of the table are of {wanted}, but it is filled with {got}")


class KeyValueTensorInitializer(TableInitializerBase):
    """Fills a table with the pairs of two tensors."""

    def __init__(
        self,
        keys: TensorLike,
        values: TensorLike,
        key_dtype: DTypeLike = None,
        value_dtype: DTypeLike = None,
        name: str | None = None,
    ):
        self._keys = convert_to_tensor(keys, key_dtype, name="keys")
        self._values = convert_to_tensor(values, value_dtype, name="values")
        self._name = "key_value_init" if name is None else name
        super().__init__(self._keys.dtype.base, self._values.dtype.base)

    def initialize(self, table: Any) -> Operation:
        _check_types(table, self)
        with name_scope(self._name, None, [table.resource_handle, self._keys, self._values]):
            op = ops.lookup_table_import_v2(table.resource_handle, self._keys, self._values)
        get_default_graph().add_to_collection(GraphKeys.TABLE_INITIALIZERS, op)
        return op


class TextFileInitializer(TableInitializerBase):
    """Fills a table from the lines of a file.

    Args:
        key_index, value_index: columns, or `TextFileIndex.WHOLE_LINE`, `TextFileIndex.LINE_NUMBER`.
        vocab_size: how many lines there must be; default: as many as there are.
        value_index_offset: added to numbers of lines.

    Raises:
        UsageError: no file, a column below -2, a size below 1.
        TypeError: numbers of lines that are not int64.
    """

    def __init__(
        self,
        filename: Any,
        key_dtype: DTypeLike,
        key_index: int,
        value_dtype: DTypeLike,
        value_index: int,
        vocab_size: int | None = None,
        delimiter: str = "\t",
        name: str | None = None,
        value_index_offset: int = 0,
    ):
        super().__init__(key_dtype, value_dtype)
        if not isinstance(filename, Tensor) and not filename:
            raise UsageError("a table from a file needs the name of the file")
        for what, index, dtype in (("key", key_index, self.key_dtype), ("value", value_index, self.value_dtype)):
            if index < TextFileIndex.WHOLE_LINE:
                raise UsageError(f"{what}_index {index}: expected a column, -1 (line number) or -2 (whole line)")
            if index == TextFileIndex.LINE_NUMBER and dtype is not dtypes.int64:
                raise TypeError(f"{what}_dtype: numbers of lines are int64, not {dtype}")
            if index == TextFileIndex.WHOLE_LINE and not dtype.is_integer and dtype is not dtypes.string:
                raise TypeError(f"{what}_dtype: whole lines are strings or integers, not {dtype}")
        if vocab_size is not None and vocab_size <= 0:
            raise UsageError(f"vocab_size {vocab_size}: expected at least 1")
        self._filename = filename
        self._columns = key_index, value_index
        self._vocab_size = vocab_size
        self._delimiter = delimiter
        self._name = name
        self._offset = value_index_offset
        with init_scope(), device("/device:CPU:*"):
            self._path: Any = convert_to_tensor(filename, dtypes.string, name="asset_path")

    @property
    def shared_name(self) -> str:
        parts = [self._filename, *([self._vocab_size] if self._vocab_size else []), *self._columns]
        return "hash_table_" + "_".join(map(str, [*parts, *([self._offset] if self._offset else [])]))

    def initialize(self, table: Any) -> Operation:
        _check_types(table, self)
        with name_scope(self._name, "text_file_init", [table.resource_handle]):
            path = convert_to_tensor(self._path, dtypes.string, name="asset_filepath")
            op = ops.initialize_table_from_text_file_v2(
                table.resource_handle, path, key_index=self._columns[0], value_index=self._columns[1],
                vocab_size=self._vocab_size or -1, delimiter=self._delimiter, offset=self._offset,
            )  # fmt: skip
        graph = get_default_graph()
        graph.add_to_collection(GraphKeys.TABLE_INITIALIZERS, op)
        if path.op.type == "Const":
            graph.add_to_collection(GraphKeys.ASSET_FILEPATHS, path)
        return op


class TextFileStringTableInitializer(TextFileInitializer):
    """From numbers of lines to lines."""

    def __init__(
        self,
        filename: Any,
        key_column_index: int = TextFileIndex.LINE_NUMBER,
        value_column_index: int = TextFileIndex.WHOLE_LINE,
        vocab_size: int | None = None,
        delimiter: str = "\t",
        name: str = "text_file_string_table_init",
    ):
        super().__init__(
            filename, dtypes.int64, key_column_index, dtypes.string, value_column_index, vocab_size, delimiter, name
        )


class TextFileIdTableInitializer(TextFileInitializer):
    """From lines to their numbers."""

    def __init__(
        self,
        filename: Any,
        key_column_index: int = TextFileIndex.WHOLE_LINE,
        value_column_index: int = TextFileIndex.LINE_NUMBER,
        vocab_size: int | None = None,
        delimiter: str = "\t",
        name: str = "text_file_id_table_init",
        key_dtype: DTypeLike = dtypes.string,
    ):
        super().__init__(
            filename, key_dtype, key_column_index, dtypes.int64, value_column_index, vocab_size, delimiter, name
        )


class InitializableLookupTableBase(LookupInterface):
    """A table that is filled once, by an initializer; keys that it does not have get a default value."""

    def __init__(self, default_value: TensorLike, initializer: Any):
        super().__init__(initializer.key_dtype, initializer.value_dtype)
        self._default_value = convert_to_tensor(default_value, self._value_dtype)
        self._filler = initializer
        with init_scope():
            self.resource_handle = self._create()
        if get_default_graph().control_flow_context is not None:
            with init_scope():
                self._init_op = initializer.initialize(self)
        else:
            self._init_op = initializer.initialize(self)

    def _create(self) -> Tensor:
        raise NotImplementedError

    @property
    def default_value(self) -> Tensor:
        return self._default_value

    @property
    def initializer(self) -> Operation:
        return self._init_op

    def size(self, name: str | None = None) -> Tensor:
        with name_scope(name, f"{self.name}_Size", [self.resource_handle]):
            return ops.lookup_table_size_v2(self.resource_handle)

    def lookup(self, keys: Any, name: str | None = None) -> Any:
        if not hasattr(keys, "dtype") or not hasattr(keys.dtype, "base"):
            keys = convert_to_tensor(keys, self._key_dtype)
        self._check_keys(keys)
        dense = keys.values if isinstance(keys, SparseTensor) else keys
        with name_scope(name, f"{self.name}_Lookup", [self.resource_handle, dense, self._default_value]):
            values: Tensor = ops.lookup_table_find_v2(self.resource_handle, dense, self._default_value)
        values.set_shape(dense.static_shape)
        return SparseTensor(keys.indices, values, keys.dense_shape) if isinstance(keys, SparseTensor) else values


class StaticHashTable(InitializableLookupTableBase):
    """A table that is filled once."""

    def __init__(
        self,
        initializer: Any,
        default_value: TensorLike,
        name: str | None = None,
        experimental_is_anonymous: bool = False,
    ):
        self._shared = initializer.shared_name or f"hash_table_{uuid.uuid4()}"
        self._given = name or "hash_table"
        self._anonymous = experimental_is_anonymous
        super().__init__(default_value, initializer)

    def _create(self) -> Tensor:
        types = {"key_dtype": self._key_dtype, "value_dtype": self._value_dtype}
        if self._anonymous:
            handle = ops.anonymous_hash_table(**types, name=self._given)
        else:
            handle = ops.hash_table_v2(shared_name=self._shared, **types, name=self._given)
        self._name = handle.op.name.split("/")[-1]
        return handle

    @property
    def name(self) -> str:
        return self._name

    def export(self, name: str | None = None) -> tuple[Tensor, Tensor]:
        """All keys, and their values."""
        with name_scope(name, f"{self.name}_Export", [self.resource_handle]):
            keys, values = ops.lookup_table_export_v2(
                self.resource_handle, Tkeys=self._key_dtype, Tvalues=self._value_dtype
            )
        values.set_shape(keys.static_shape.concatenate(self._default_value.static_shape))
        return keys, values


class _MutableTable(LookupInterface):
    """A table that steps change."""

    _given: str

    def __init__(
        self, key_dtype: DTypeLike, value_dtype: DTypeLike, default_value: TensorLike, label: str | None, kept: bool
    ):
        super().__init__(key_dtype, value_dtype)
        self._default_value = convert_to_tensor(default_value, self._value_dtype, name=label)
        self.resource_handle = self._create()
        self._name = self.resource_handle.op.name.split("/")[-1]
        if kept:
            get_default_graph().add_to_collection("saveable_objects", TableSaveable(self, self._given))

    def _create(self) -> Tensor:
        raise NotImplementedError

    @property
    def name(self) -> str:
        return self._name

    def size(self, name: str | None = None) -> Tensor:
        with name_scope(name, f"{self.name}_Size", [self.resource_handle]), colocate_with(self.resource_handle):
            return ops.lookup_table_size_v2(self.resource_handle)

    def lookup(self, keys: Any, name: str | None = None) -> Any:
        with name_scope(name, f"{self.name}_lookup_table_find", [self.resource_handle]):
            keys = convert_to_tensor(keys, self._key_dtype, name="keys")
            with colocate_with(self.resource_handle):
                return ops.lookup_table_find_v2(self.resource_handle, keys, self._default_value)

    def insert(self, keys: Any, values: Any, name: str | None = None) -> Operation:
        """Pairs come in, or get new values."""
        with name_scope(name, f"{self.name}_lookup_table_insert", [self.resource_handle]):
            keys = convert_to_tensor(keys, self._key_dtype, name="keys")
            values = convert_to_tensor(values, self._value_dtype, name="values")
            with colocate_with(self.resource_handle):
                return ops.lookup_table_insert_v2(self.resource_handle, keys, values)

    def remove(self, keys: Any, name: str | None = None) -> Operation:
        """Keys go; those that are not there are passed over.

        Raises:
            TypeError: keys of another type.
        """
        self._check_keys(keys)
        with name_scope(name, f"{self.name}_lookup_table_remove", [self.resource_handle]):
            return ops.lookup_table_remove_v2(self.resource_handle, keys)

    def export(self, name: str | None = None) -> tuple[Tensor, Tensor]:
        """All keys, and their values."""
        handle = self.resource_handle
        with name_scope(name, f"{self.name}_lookup_table_export_values", [handle]), colocate_with(handle):
            return ops.lookup_table_export_v2(handle, Tkeys=self._key_dtype, Tvalues=self._value_dtype)


class TableSaveable(SaveableObject):
    """A table's pairs, as `NAME-keys` and `NAME-values` of a checkpoint."""

    #: the collection names objects of this process alone
    in_process_only = True

    def __init__(self, table: _MutableTable, name: str):
        keys, values = table.export()
        super().__init__(table, [SaveSpec(keys, "", f"{name}-keys"), SaveSpec(values, "", f"{name}-values")], name)

    def restore(self, restored_tensors: Sequence[Tensor], restored_shapes: Sequence[Any] | None) -> Operation:
        handle = self.op.resource_handle
        with name_scope(f"{self.name}_table_restore"), colocate_with(handle):
            return ops.lookup_table_import_v2(handle, restored_tensors[0], restored_tensors[1])


class MutableHashTable(_MutableTable):
    """A table that steps change, with values that are numbers, strings or vectors (the default's shape)."""

    def __init__(
        self,
        key_dtype: DTypeLike,
        value_dtype: DTypeLike,
        default_value: TensorLike,
        name: str = "MutableHashTable",
        checkpoint: bool = True,
    ):
        self._given, self._kept = name, checkpoint
        super().__init__(key_dtype, value_dtype, default_value, None, checkpoint)

    def _create(self) -> Tensor:
        attrs: dict[str, Any] = {"key_dtype": self._key_dtype, "value_dtype": self._value_dtype}
        attrs |= {"use_node_name_sharing": self._kept, "name": self._given}
        if self._default_value.static_shape.rank == 0:
            return ops.mutable_hash_table_v2(**attrs)
        return ops.mutable_hash_table_of_tensors_v2(**attrs, value_shape=self._default_value.static_shape)


class DenseHashTable(_MutableTable):
    """A table that steps change, in one block of memory; two keys stand for places without a key."""

    def __init__(
        self,
        key_dtype: DTypeLike,
        value_dtype: DTypeLike,
        default_value: TensorLike,
        empty_key: TensorLike,
        deleted_key: TensorLike,
        initial_num_buckets: int | None = None,
        name: str = "MutableDenseHashTable",
        checkpoint: bool = True,
    ):
        self._given, self._kept = name, checkpoint
        self._keys_of_none = empty_key, deleted_key
        self._buckets = initial_num_buckets
        super().__init__(key_dtype, value_dtype, default_value, "default_value", checkpoint)

    def _create(self) -> Tensor:
        empty, deleted = self._keys_of_none
        return ops.mutable_dense_hash_table_v2(
            convert_to_tensor(empty, self._key_dtype, name="empty_key"),
            convert_to_tensor(deleted, self._key_dtype, name="deleted_key"),
            value_dtype=self._value_dtype, value_shape=self._default_value.static_shape,
            use_node_name_sharing=self._kept, initial_num_buckets=self._buckets, name=self._given,
        )  # fmt: skip

    def insert_or_assign(self, keys: Any, values: Any, name: str | None = None) -> Operation:
        return self.insert(keys, values, name)

    def erase(self, keys: Any, name: str | None = None) -> Operation:
        return self.remove(keys, name)
