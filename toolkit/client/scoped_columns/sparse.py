"""Columns of categories: words or numbers as ids, with weights."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, ClassVar, NamedTuple, cast

from toolkit.client import ops
from toolkit.client.arrays import array_ops
from toolkit.client.construction.convert import as_dtype, convert_to_tensor
from toolkit.client.construction.scopes import name_scope
from toolkit.client.feature_columns.base import CategoricalColumn, FeatureCache, IdWeightPair
from toolkit.client.inputs.parsing import VarLenFeature
from toolkit.client.lookup.vocabularies import index_table_from_file, index_table_from_tensor
from toolkit.client.math import math_ops
from toolkit.client.scoped_columns.base import Lookup, ScopedColumn, with_rank
from toolkit.client.sparse import sparse_ops
from toolkit.client.sparse.tensor import SparseTensor
from toolkit.client.variables import initializers
from toolkit.graph import dtypes
from toolkit.graph.dtypes import DType


class LookupConfig(NamedTuple):
    """A vocabulary: words, or the file that has them."""

    vocabulary_file: str | None = None
    keys: tuple[Any, ...] | None = None
    num_oov_buckets: int = 0
    vocab_size: int | None = None
    default_value: int = -1


def sparse_of_dense(tensor: Any, ignored: Any = None) -> SparseTensor:
    """A dense feature without what stands for nothing: `ignored`, or "" and 0."""
    with name_scope("DenseToSparseTensor"):
        tensor = convert_to_tensor(tensor)
        dtype = tensor.dtype.base
        if ignored is None:
            ignored = "" if dtype is dtypes.string else dtype.numpy.type()
        nothing = math_ops.cast(ignored, dtype, name="ignore_value")
        indices = array_ops.where(math_ops.not_equal(tensor, nothing), name="indices")
        values = array_ops.gather_nd(tensor, indices, name="values")
        return SparseTensor(
            indices, values, array_ops.shape(tensor, out_type=dtypes.int64, name="dense_shape")
        )  # fmt: skip


class IdColumn(ScopedColumn, CategoricalColumn):
    """What gives ids below `length`; neither it nor its weights are numbers for a deep model."""

    combiner: str

    @property
    def length(self) -> int:
        raise NotImplementedError

    @property
    def num_buckets(self) -> int:
        return self.length

    def id_tensor(self, transformed: Any) -> SparseTensor:
        return transformed

    def weight_tensor(self, transformed: Any) -> SparseTensor | None:
        del transformed
        return None

    def ids(self, features: FeatureCache) -> IdWeightPair:
        transformed = features.get(self)
        return IdWeightPair(self.id_tensor(transformed), self.weight_tensor(transformed))

    def wide_lookup(self, transformed: Any) -> Lookup | None:
        return Lookup(
            self.id_tensor(transformed), self.weight_tensor(transformed), self.length, initializers.Zeros(),
            self.combiner,
        )  # fmt: skip

    def deep_input(self, transformed: Any, output_rank: int = 2) -> Any:
        raise ValueError(
            f"the column '{self.name}' is of categories; a deep model takes an embedding_column or a one_hot_column "
            "around it"
        )


@dataclass(frozen=True)
class SparseColumn(IdColumn):
    """Categories of one feature: by number, by hash, by a vocabulary."""

    column_name: str
    is_integerized: bool = False
    bucket_size: int | None = None
    lookup_config: LookupConfig | None = None
    combiner: str = "sum"
    dtype: DType = dtypes.string

    def __post_init__(self) -> None:
        if self.dtype is not dtypes.string and not self.dtype.is_integer:
            raise ValueError(f"dtype of '{self.column_name}' must be string or an integer type; got {self.dtype}")
        if self.is_integerized and not self.dtype.is_integer:
            raise ValueError(f"dtype of '{self.column_name}' must be an integer type; got {self.dtype}")
        if self.lookup_config is None and (self.bucket_size is None or self.bucket_size < 1):
            raise ValueError(f"'{self.column_name}' needs a bucket size of at least 1; got {self.bucket_size}")

    @property
    def name(self) -> str:
        return self.column_name

    @property
    def length(self) -> int:
        if self.lookup_config is None:
            return cast("int", self.bucket_size)
        return cast("int", self.lookup_config.vocab_size) + self.lookup_config.num_oov_buckets

    @property
    def config(self) -> dict[str, Any]:
        return {self.column_name: VarLenFeature(self.dtype)}

    def transform(self, features: FeatureCache) -> SparseTensor:
        given = features.get(self.column_name)
        if not isinstance(given, SparseTensor):
            nothing = "" if given.dtype.base is dtypes.string else -1
            given = sparse_of_dense(with_rank(given, 2, self.name), nothing)
        return self.ids_of(given)

    def ids_of(self, given: SparseTensor) -> SparseTensor:
        """The ids of a sparse feature."""
        raise NotImplementedError

    def is_compatible(self, other_column: Any) -> bool:
        """Whether both may share a table."""
        if self.lookup_config and other_column.lookup_config:
            return self.lookup_config == other_column.lookup_config
        both = self.dtype.is_integer and other_column.dtype.is_integer
        return self.length == other_column.length and (self.dtype == other_column.dtype or both)


@dataclass(frozen=True)
class IntegerizedSparseColumn(SparseColumn):
    """Integers that are ids, modulo the number of buckets."""

    kind: ClassVar[str] = "_SparseColumnIntegerized"

    def ids_of(self, given: SparseTensor) -> SparseTensor:
        ids = ops.floor_mod(given.values, cast("int", self.bucket_size), name="mod")
        return SparseTensor(given.indices, ids, given.dense_shape)


@dataclass(frozen=True)
class HashedSparseColumn(SparseColumn):
    """Words by one hash of them, or by several."""

    kind: ClassVar[str] = "_SparseColumnHashed"
    unkeyed: ClassVar[tuple[str, ...]] = ("hash_keys",)
    hash_keys: tuple[tuple[int, int], ...] | None = field(default=None, compare=False)

    def ids_of(self, given: SparseTensor) -> SparseTensor:
        words = ops.as_string(given.values) if self.dtype.is_integer else given.values
        count = cast("int", self.bucket_size)
        if not self.hash_keys:
            ids = ops.string_to_hash_bucket_fast(words, num_buckets=count, name="lookup")
            return SparseTensor(given.indices, ids, given.dense_shape)
        found: list[SparseTensor] = []
        for key in self.hash_keys:
            ids = ops.string_to_hash_bucket_strong(words, num_buckets=count, key=list(key))
            found.append(SparseTensor(given.indices, ids, given.dense_shape))
        return sparse_ops.concat(1, found, name="lookup")


@dataclass(frozen=True)
class KeysSparseColumn(SparseColumn):
    """Words by their places in a list."""

    kind: ClassVar[str] = "_SparseColumnKeys"

    def ids_of(self, given: SparseTensor) -> SparseTensor:
        words = cast("LookupConfig", self.lookup_config)
        table = index_table_from_tensor(words.keys, 0, words.default_value, dtype=self.dtype, name="lookup")
        return table.lookup(given)


@dataclass(frozen=True)
class VocabularySparseColumn(SparseColumn):
    """Words by their lines in a file."""

    kind: ClassVar[str] = "_SparseColumnVocabulary"

    def ids_of(self, given: SparseTensor) -> SparseTensor:
        words = cast("LookupConfig", self.lookup_config)
        if self.dtype.is_integer:
            given = SparseTensor(given.indices, ops.as_string(given.values), given.dense_shape)
        table = index_table_from_file(
            words.vocabulary_file, words.num_oov_buckets, words.vocab_size, words.default_value,
            name=f"{self.name}_lookup",
        )  # fmt: skip
        return table.lookup(given)


@dataclass(frozen=True)
class WeightedSparseColumn(IdColumn):
    """Categories that count as much as another feature says."""

    kind: ClassVar[str] = "_WeightedSparseColumn"
    sparse_id_column: SparseColumn
    weight_column_name: str
    dtype: DType

    @property
    def name(self) -> str:
        return f"{self.sparse_id_column.name}_weighted_by_{self.weight_column_name}"

    @property
    def combiner(self) -> str:  # pyright: ignore[reportIncompatibleVariableOverride]  # it is the other column's
        return self.sparse_id_column.combiner

    @property
    def length(self) -> int:
        return self.sparse_id_column.length

    @property
    def lookup_config(self) -> LookupConfig | None:
        return self.sparse_id_column.lookup_config

    @property
    def config(self) -> dict[str, Any]:
        return {**self.sparse_id_column.config, self.weight_column_name: VarLenFeature(self.dtype)}

    @property
    def parents(self) -> tuple[ScopedColumn, ...]:
        return (self.sparse_id_column,)

    def id_tensor(self, transformed: Any) -> SparseTensor:
        return transformed[0]

    def weight_tensor(self, transformed: Any) -> SparseTensor | None:
        return transformed[1]

    def transform(self, features: FeatureCache) -> tuple[SparseTensor, SparseTensor]:
        ids = features.get(self.sparse_id_column)
        weights = features.get(self.weight_column_name)
        if not isinstance(weights, SparseTensor):
            weights = sparse_of_dense(weights)
        if not self.dtype.is_floating:
            weights = cast("SparseTensor", math_ops.cast(cast("Any", weights), dtypes.float32))
        return ids, weights

    def is_compatible(self, other_column: Any) -> bool:
        """Whether both may share a table."""
        other = getattr(other_column, "sparse_id_column", other_column)
        return self.sparse_id_column.is_compatible(other)


def sparse_column_with_integerized_feature(
    column_name: str, bucket_size: int, combiner: str = "sum", dtype: Any = dtypes.int64
) -> SparseColumn:
    """Raises ValueError: fewer than one bucket, or a type that is none of integers."""
    return IntegerizedSparseColumn(column_name, True, bucket_size, None, combiner, as_dtype(dtype))


def sparse_column_with_hash_bucket(
    column_name: str, hash_bucket_size: int, combiner: str = "sum", dtype: Any = dtypes.string, hash_keys: Any = None
) -> SparseColumn:
    """Args: hash_keys: pairs of integers, a hash for each.

    Raises:
        ValueError: fewer than one bucket, another type, or keys that are no such pairs.
    """
    pairs: tuple[tuple[int, int], ...] | None = None
    if hash_keys is not None:
        given = cast("list[Any]", hash_keys) if isinstance(hash_keys, list) else []
        if not given or not all(isinstance(each, list) and len(cast("list[Any]", each)) == 2 for each in given):
            raise ValueError(f"hash_keys of '{column_name}' must be a list of pairs of integers; got {hash_keys}")
        pairs = tuple((int(one), int(other)) for one, other in given)
    return HashedSparseColumn(column_name, False, hash_bucket_size, None, combiner, as_dtype(dtype), pairs)


def sparse_column_with_keys(
    column_name: str, keys: Any, default_value: int = -1, combiner: str = "sum", dtype: Any = dtypes.string
) -> SparseColumn:
    """Words by their places in `keys`; others get `default_value`."""
    words = tuple(keys)
    config = LookupConfig(keys=words, vocab_size=len(words), default_value=default_value)
    return KeysSparseColumn(column_name, False, None, config, combiner, as_dtype(dtype))


def sparse_column_with_vocabulary_file(
    column_name: str, vocabulary_file: str, num_oov_buckets: int = 0, vocab_size: int | None = None,
    default_value: int = -1, combiner: str = "sum", dtype: Any = dtypes.string,
) -> SparseColumn:  # fmt: skip
    """Raises ValueError: it is not said how many lines count."""
    if vocab_size is None:
        raise ValueError(f"vocab_size of '{column_name}' is missing; say how many lines of the file count")
    config = LookupConfig(vocabulary_file, None, num_oov_buckets, vocab_size, default_value)
    return VocabularySparseColumn(column_name, False, None, config, combiner, as_dtype(dtype))


def weighted_sparse_column(
    sparse_id_column: SparseColumn, weight_column_name: str, dtype: Any = dtypes.float32
) -> WeightedSparseColumn:
    """Raises ValueError: weights that are no numbers."""
    kind = as_dtype(dtype)
    if not (kind.is_integer or kind.is_floating):
        raise ValueError(f"the weights '{weight_column_name}' must be numbers; they are of {kind}")
    return WeightedSparseColumn(sparse_id_column, weight_column_name, kind)
