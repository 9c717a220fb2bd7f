"""Vocabularies: tables from words to numbers and back, with numbers for words that are in none."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

from toolkit.client import ops
from toolkit.client.arrays import array_ops
from toolkit.client.construction.convert import DTypeLike, as_dtype, convert_to_tensor
from toolkit.client.construction.scopes import name_scope
from toolkit.client.construction.tensor import Tensor, TensorLike
from toolkit.client.lookup.tables import (
    InitializableLookupTableBase,
    KeyValueTensorInitializer,
    LookupInterface,
    StaticHashTable,
    TextFileIdTableInitializer,
    TextFileIndex,
    TextFileStringTableInitializer,
)
from toolkit.client.math import math_ops
from toolkit.client.sparse.tensor import SparseTensor
from toolkit.errors import UsageError
from toolkit.graph import dtypes


class HasherSpec(NamedTuple):
    """Which hash function, and its key."""

    hasher: str
    key: Any


FastHashSpec = HasherSpec("fasthash", None)


class StrongHashSpec(HasherSpec):
    """A keyed hash: two unsigned integers."""

    __slots__ = ()

    def __new__(cls, key: Any) -> StrongHashSpec:
        if len(key) != 2 or not all(isinstance(part, int) for part in key):
            raise UsageError(f"the key of a strong hash is two whole numbers, not {key!r}")
        return super().__new__(cls, "stronghash", key)


class IdTableWithHashBuckets(LookupInterface):
    """A table with numbers behind its own for keys that it does not have, by their hash.

    Args:
        table: strings or int64 to int64; None: there are buckets alone.

    Raises:
        TypeError: keys or values of another type.
        UsageError: no table and no buckets.
    """

    def __init__(
        self,
        table: Any,
        num_oov_buckets: int,
        hasher_spec: Any = FastHashSpec,
        name: str | None = None,
        key_dtype: DTypeLike = None,
    ):
        self._table: Any = table
        if table is not None:
            kind = table.key_dtype if key_dtype is None else as_dtype(key_dtype)
            if table.key_dtype not in (dtypes.int64, dtypes.string) or table.value_dtype is not dtypes.int64:
                raise TypeError(
                    f"a vocabulary is from strings or int64 to int64, not {table.key_dtype} to {table.value_dtype}"
                )
            if table.key_dtype.is_integer != kind.is_integer:
                raise TypeError(f"key_dtype {kind}: the table's keys are {table.key_dtype}")
        else:
            if num_oov_buckets <= 0:
                raise UsageError("a vocabulary without a table needs num_oov_buckets of at least 1")
            kind = dtypes.string if key_dtype is None else as_dtype(key_dtype)
        if not kind.is_integer and kind is not dtypes.string:
            raise TypeError(f"key_dtype: expected integers or strings, not {kind}")
        if not isinstance(hasher_spec, HasherSpec):
            raise TypeError(f"hasher_spec: expected FastHashSpec or StrongHashSpec(key), not {hasher_spec!r}")
        self._buckets = num_oov_buckets
        self._hash = _hash_function(hasher_spec)
        chosen = name.rstrip("/") if name else (table.name if table is not None else "hash_bucket")
        self._name = chosen.split("/")[-1]
        super().__init__(kind, dtypes.int64)
        self.resource_handle = None if table is None else table.resource_handle

    @property
    def name(self) -> str:
        return self._name

    @property
    def initializer(self) -> Any:
        if self._table is not None:
            return self._table.initializer
        with name_scope(None, "init"):
            return ops.no_op()

    init = initializer

    def size(self, name: str | None = None) -> Tensor:
        with name_scope(name, f"{self.name}_Size"):
            own = self._table.size() if self._table is not None else convert_to_tensor(0, dtypes.int64)
            return own + self._buckets

    def lookup(self, keys: Any, name: str | None = None) -> Any:
        self._check_keys(keys)
        values = keys.values if isinstance(keys, SparseTensor) else keys
        if self._table is not None and self._table.key_dtype is dtypes.int64:
            values = math_ops.cast(values, dtypes.int64)
        if self._buckets == 0 and self._table is not None:
            ids = self._table.lookup(values, name=name)
        else:
            with name_scope(name, f"{self.name}_Lookup"):
                text = values if values.dtype.base is dtypes.string else ops.as_string(values)
                ids = self._hash(text, num_buckets=self._buckets, name="hash_bucket")
                if self._table is not None:
                    found = self._table.lookup(values)
                    ids = math_ops.add(ids, self._table.size())
                    ids = array_ops.where_v2(math_ops.not_equal(found, self._table.default_value), found, ids)
        return SparseTensor(keys.indices, ids, keys.dense_shape) if isinstance(keys, SparseTensor) else ids


def _hash_function(spec: HasherSpec) -> Callable[..., Tensor]:
    if spec.hasher == "fasthash":
        return ops.string_to_hash_bucket_fast
    if spec.hasher == "legacy":
        return ops.string_to_hash_bucket
    if spec.hasher != "stronghash":
        raise UsageError(f"hasher {spec.hasher!r}: expected fasthash or stronghash")

    def strong(text: Tensor, num_buckets: int, name: str) -> Tensor:
        return ops.string_to_hash_bucket_strong(text, key=list(spec.key), num_buckets=num_buckets, name=name)

    return strong


class StaticVocabularyTable(IdTableWithHashBuckets):
    """The pairs of an initializer, int64 values, and at least one number for what it does not have."""

    def __init__(
        self,
        initializer: Any,
        num_oov_buckets: int,
        lookup_key_dtype: DTypeLike = None,
        name: str | None = None,
        experimental_is_anonymous: bool = False,
    ):
        if num_oov_buckets <= 0:
            raise UsageError(f"num_oov_buckets {num_oov_buckets}: expected at least 1; a StaticHashTable has none")
        table = None
        if initializer is not None:
            table = StaticHashTable(initializer, -1, experimental_is_anonymous=experimental_is_anonymous)
        super().__init__(table, num_oov_buckets, FastHashSpec, name, lookup_key_dtype)


class HashTable(InitializableLookupTableBase):
    """A table that is filled once, which others may share by name."""

    def __init__(
        self, initializer: Any, default_value: TensorLike, shared_name: str | None = None, name: str | None = None
    ):
        self._shared = shared_name or ""
        self._given = name
        super().__init__(default_value, initializer)

    def _create(self) -> Tensor:
        with name_scope(self._given, "hash_table", []) as scope:
            handle = ops.hash_table_v2(
                shared_name=self._shared, key_dtype=self._key_dtype, value_dtype=self._value_dtype, name=scope
            )
        self._name = handle.op.name.split("/")[-1]
        return handle

    @property
    def init(self) -> Any:
        return self.initializer

    @property
    def name(self) -> str:
        return self._name

    export = StaticHashTable.export


def index_table_from_file(
    vocabulary_file: Any = None,
    num_oov_buckets: int = 0,
    vocab_size: int | None = None,
    default_value: int = -1,
    hasher_spec: Any = FastHashSpec,
    key_dtype: DTypeLike = dtypes.string,
    name: str | None = None,
    key_column_index: int = TextFileIndex.WHOLE_LINE,
    value_column_index: int = TextFileIndex.LINE_NUMBER,
    delimiter: str = "\t",
) -> Any:
    """From the lines of a file to their numbers.

    Raises:
        UsageError: no file, fewer than no buckets.
        TypeError: keys that are neither integers nor strings.
    """
    _check_file(vocabulary_file, num_oov_buckets)
    kind = as_dtype(key_dtype)
    if not kind.is_integer and kind is not dtypes.string:
        raise TypeError(f"key_dtype: expected integers or strings, not {kind}")
    with name_scope(name, "string_to_index"):
        with name_scope(None, "hash_table"):
            filler = TextFileIdTableInitializer(
                vocabulary_file, key_column_index, value_column_index, vocab_size, delimiter, "table_init",
                dtypes.int64 if kind.is_integer else kind,
            )  # fmt: skip
            table = StaticHashTable(filler, default_value)
        return _with_buckets(table, num_oov_buckets, hasher_spec, kind)


def _check_file(vocabulary_file: Any, num_oov_buckets: int = 0) -> None:
    if vocabulary_file is None or (isinstance(vocabulary_file, str) and not vocabulary_file):
        raise UsageError("vocabulary_file: expected the name of a file")
    if num_oov_buckets < 0:
        raise UsageError(f"num_oov_buckets {num_oov_buckets}: expected 0 or more")


def _with_buckets(table: StaticHashTable, count: int, spec: Any, dtype: Any) -> Any:
    return IdTableWithHashBuckets(table, count, spec, key_dtype=dtype) if count else table


def index_table_from_tensor(
    mapping: Any,
    num_oov_buckets: int = 0,
    default_value: int = -1,
    hasher_spec: Any = FastHashSpec,
    dtype: DTypeLike = dtypes.string,
    name: str | None = None,
) -> Any:
    """From the elements of a vector to their places.

    Raises:
        UsageError: nothing is given, fewer than no buckets, elements of another type.
    """
    if mapping is None:
        raise UsageError("mapping: expected a list of words")
    _check_file("-", num_oov_buckets)
    kind = as_dtype(dtype)
    with name_scope(name, "string_to_index"):
        keys = convert_to_tensor(mapping)
        if keys.dtype.is_integer != kind.is_integer or (not kind.is_integer and keys.dtype.base is not kind):
            raise UsageError(f"the words are of {keys.dtype}, expected {kind}")
        values = math_ops.cast(math_ops.range(array_ops.size(keys)), dtypes.int64)
        with name_scope(None, "hash_table"):
            words = math_ops.cast(keys, dtypes.int64) if keys.dtype.is_integer else keys
            filler = KeyValueTensorInitializer(words, values, words.dtype.base, dtypes.int64, "table_init")
            table = StaticHashTable(filler, default_value)
        return _with_buckets(table, num_oov_buckets, hasher_spec, kind)


def index_to_string_table_from_file(
    vocabulary_file: Any,
    vocab_size: int | None = None,
    default_value: str = "UNK",
    name: str | None = None,
    key_column_index: int = TextFileIndex.LINE_NUMBER,
    value_column_index: int = TextFileIndex.WHOLE_LINE,
    delimiter: str = "\t",
) -> StaticHashTable:
    """From numbers to the lines of a file.

    Raises:
        UsageError: no file.
    """
    _check_file(vocabulary_file)
    with name_scope(name, "index_to_string"):
        filler = TextFileStringTableInitializer(
            vocabulary_file, key_column_index, value_column_index, vocab_size, delimiter, "table_init"
        )
        return StaticHashTable(filler, default_value)


def index_to_string_table_from_tensor(
    mapping: Any, default_value: str = "UNK", name: str | None = None
) -> StaticHashTable:
    """From places to the elements of a vector.

    Raises:
        UsageError: nothing is given.
    """
    if mapping is None:
        raise UsageError("mapping: expected a list of words")
    with name_scope(name, "index_to_string"):
        words = convert_to_tensor(mapping, dtypes.string)
        keys = math_ops.cast(math_ops.range(array_ops.size(words)), dtypes.int64)
        filler = KeyValueTensorInitializer(keys, words, dtypes.int64, dtypes.string, "table_init")
        return StaticHashTable(filler, default_value)


def string_to_index(tensor: Any, mapping: Any, default_value: int = -1, name: str | None = None) -> Any:
    """The places of words in a list."""
    return index_table_from_tensor(mapping, default_value=default_value, name=name).lookup(tensor)


def index_to_string(tensor: Any, mapping: Any, default_value: str = "UNK", name: str | None = None) -> Any:
    """The words at places of a list."""
    return index_to_string_table_from_tensor(mapping, default_value, name).lookup(tensor)


def string_to_index_table_from_file(
    vocabulary_file: Any = None,
    num_oov_buckets: int = 0,
    vocab_size: int | None = None,
    default_value: int = -1,
    hasher_spec: Any = FastHashSpec,
    name: str | None = None,
) -> Any:
    """`index_table_from_file` by its older name."""
    return index_table_from_file(
        vocabulary_file, num_oov_buckets, vocab_size, default_value, hasher_spec, dtypes.string, name
    )


def string_to_index_table_from_tensor(
    mapping: Any,
    num_oov_buckets: int = 0,
    default_value: int = -1,
    hasher_spec: Any = FastHashSpec,
    name: str | None = None,
) -> Any:
    """`index_table_from_tensor` by its older name."""
    return index_table_from_tensor(mapping, num_oov_buckets, default_value, hasher_spec, dtypes.string, name)
