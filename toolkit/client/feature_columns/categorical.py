"""Columns of categories: by identity, by hash, by a vocabulary, crossed, weighted."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any, cast

import numpy as np

from toolkit.client import ops
from toolkit.client.arrays import array_ops
from toolkit.client.feature_columns import vocabularies
from toolkit.client.feature_columns.base import (
    CategoricalColumn,
    FeatureCache,
    IdWeightPair,
    as_sparse_feature,
    check_key,
    check_number,
    check_words,
)
from toolkit.client.inputs.parsing import VarLenFeature
from toolkit.client.math import math_ops
from toolkit.client.sparse import sparse_ops
from toolkit.client.sparse.tensor import SparseTensor, convert_to_tensor_or_sparse_tensor
from toolkit.graph import dtypes
from toolkit.graph.dtypes import DType


class _KeyedColumn(CategoricalColumn):
    """A column of one feature of words or numbers."""

    key: str
    dtype: DType

    @property
    def name(self) -> str:
        return self.key

    @property
    def parse_example_spec(self) -> dict[str, Any]:
        return {self.key: VarLenFeature(self.dtype)}

    def _words(self, features: FeatureCache) -> SparseTensor:
        words = as_sparse_feature(features.get(self.key))
        check_words(words.dtype.base, f"the feature '{self.key}'")
        if self.dtype.is_integer != words.dtype.is_integer:
            raise ValueError(f"the column '{self.key}' is of {self.dtype}, its feature of {words.dtype}")
        return words


@dataclass(frozen=True)
class HashedCategoricalColumn(_KeyedColumn):
    """Words by a hash of them."""

    key: str
    hash_bucket_size: int
    dtype: DType

    @property
    def num_buckets(self) -> int:
        return self.hash_bucket_size

    def transform(self, features: FeatureCache) -> SparseTensor:
        words = self._words(features)
        texts = words.values if self.dtype is dtypes.string else ops.as_string(words.values)
        ids = ops.string_to_hash_bucket_fast(texts, num_buckets=self.hash_bucket_size, name="lookup")
        return SparseTensor(words.indices, ids, words.dense_shape)


class _VocabularyColumn(_KeyedColumn):
    def transform(self, features: FeatureCache) -> SparseTensor:
        words = self._words(features)
        if words.dtype.is_integer:
            words = cast("SparseTensor", math_ops.cast(words, dtypes.int64))
        kind = dtypes.int64 if words.dtype.is_integer else self.dtype
        return self._table(kind).lookup(words)

    def _table(self, dtype: DType) -> vocabularies.WordTable:
        raise NotImplementedError


@dataclass(frozen=True)
class VocabularyListCategoricalColumn(_VocabularyColumn):
    """Words by their places in a list."""

    key: str
    vocabulary_list: tuple[Any, ...]
    dtype: DType
    default_value: int
    num_oov_buckets: int

    @property
    def num_buckets(self) -> int:
        return len(self.vocabulary_list) + self.num_oov_buckets

    def _table(self, dtype: DType) -> vocabularies.WordTable:
        return vocabularies.of_words(
            self.vocabulary_list, dtype, self.default_value, self.num_oov_buckets, f"{self.key}_lookup"
        )


@dataclass(frozen=True)
class VocabularyFileCategoricalColumn(_VocabularyColumn):
    """Words by their lines in a file."""

    key: str
    vocabulary_file: str
    vocabulary_size: int
    num_oov_buckets: int
    dtype: DType
    default_value: int

    @property
    def num_buckets(self) -> int:
        return self.vocabulary_size + self.num_oov_buckets

    def _table(self, dtype: DType) -> vocabularies.WordTable:
        return vocabularies.of_file(
            self.vocabulary_file, self.vocabulary_size, dtype, self.default_value, self.num_oov_buckets,
            f"{self.key}_lookup",
        )  # fmt: skip


@dataclass(frozen=True)
class IdentityCategoricalColumn(CategoricalColumn):
    """Integers that are ids."""

    key: str
    number_buckets: int
    default_value: int | None

    @property
    def name(self) -> str:
        return self.key

    @property
    def num_buckets(self) -> int:
        return self.number_buckets

    @property
    def parse_example_spec(self) -> dict[str, Any]:
        return {self.key: VarLenFeature(dtypes.int64)}

    def transform(self, features: FeatureCache) -> SparseTensor:
        given = as_sparse_feature(features.get(self.key))
        if not given.dtype.is_integer:
            raise ValueError(f"the feature '{self.key}' must be of integers; it is of {given.dtype}")
        values = given.values
        if values.dtype.base is not dtypes.int64:
            values = math_ops.cast(values, dtypes.int64, name="values")
        if self.default_value is not None:
            values = self._in_range(math_ops.cast(given.values, dtypes.int64, name="values"))
        return SparseTensor(given.indices, values, given.dense_shape)

    def _in_range(self, values: Any) -> Any:
        count = math_ops.cast(self.number_buckets, dtypes.int64, name="num_buckets")
        zero = math_ops.cast(0, dtypes.int64, name="zero")
        is_strange = ops.logical_or(values < zero, values >= count, name="out_of_range")
        sizes = array_ops.shape(values)
        default = math_ops.cast(cast("int", self.default_value), dtypes.int64)
        filled = array_ops.fill(sizes, default, name="default_values")
        return array_ops.where_v2(is_strange, filled, values)


@dataclass(frozen=True)
class WeightedCategoricalColumn(CategoricalColumn):
    """A column whose ids count as much as another feature says."""

    categorical_column: CategoricalColumn
    weight_feature_key: str
    dtype: DType

    @property
    def name(self) -> str:
        return f"{self.categorical_column.name}_weighted_by_{self.weight_feature_key}"

    @property
    def num_buckets(self) -> int:
        return self.categorical_column.num_buckets

    @property
    def parse_example_spec(self) -> dict[str, Any]:
        spec = self.categorical_column.parse_example_spec
        if self.weight_feature_key in spec:
            raise ValueError(f"the weights '{self.weight_feature_key}' are read as {spec[self.weight_feature_key]}")
        return {**spec, self.weight_feature_key: VarLenFeature(self.dtype)}

    def transform(self, features: FeatureCache) -> tuple[SparseTensor, SparseTensor]:
        weights = convert_to_tensor_or_sparse_tensor(features.get(self.weight_feature_key))
        if weights.dtype.base is not self.dtype:
            raise ValueError(f"the weights '{self.weight_feature_key}' must be of {self.dtype}; got {weights.dtype}")
        if not isinstance(weights, SparseTensor):
            weights = as_sparse_feature(weights, ignored=0.0)
        if not weights.dtype.is_floating:
            weights = cast("SparseTensor", math_ops.cast(weights, dtypes.float32))
        return features.get(self.categorical_column), weights

    def ids(self, features: FeatureCache) -> IdWeightPair:
        return IdWeightPair(*features.get(self))


@dataclass(frozen=True)
class CrossedColumn(CategoricalColumn):
    """Combinations of the words of several features, by a hash of them."""

    keys: tuple[Any, ...]
    hash_bucket_size: int
    hash_key: int | None

    @property
    def name(self) -> str:
        return "_X_".join(sorted(key if isinstance(key, str) else key.name for key in self._leaves()))

    @property
    def num_buckets(self) -> int:
        return self.hash_bucket_size

    @property
    def parse_example_spec(self) -> dict[str, Any]:
        spec: dict[str, Any] = {}
        for key in self.keys:
            spec.update({key: VarLenFeature(dtypes.string)} if isinstance(key, str) else key.parse_example_spec)
        return spec

    def transform(self, features: FeatureCache) -> SparseTensor:
        tensors: list[Any] = []
        for key in self._leaves():
            if isinstance(key, str):
                tensors.append(features.get(key))
                continue
            ids, weights = key.ids(features)
            if weights is not None:
                raise ValueError(f"the column '{key.name}' has weights, and a crossed_column takes none")
            tensors.append(ids)
        return sparse_ops.cross_hashed(tensors, self.hash_bucket_size, self.hash_key)

    def _leaves(self) -> list[Any]:
        found: list[Any] = []
        for key in self.keys:
            found += key._leaves() if isinstance(key, CrossedColumn) else [key]
        return found


def hash_column(key: str, hash_bucket_size: Any, dtype: DType = dtypes.string) -> HashedCategoricalColumn:
    """Raises ValueError: fewer than one bucket, an unusable key or type."""
    if hash_bucket_size is None or hash_bucket_size < 1:
        raise ValueError(f"hash_bucket_size of '{key}' must be at least 1; got {hash_bucket_size}")
    check_key(key)
    check_words(dtype, f"the column '{key}'")
    return HashedCategoricalColumn(key, hash_bucket_size, dtype)


def list_column(
    key: str, vocabulary_list: Any, dtype: DType | None = None, default_value: int = -1, num_oov_buckets: int = 0
) -> VocabularyListCategoricalColumn:
    """Raises ValueError: no words, the same word twice, an unusable type, both a default and further buckets."""
    if vocabulary_list is None or len(vocabulary_list) < 1:
        raise ValueError(f"vocabulary_list of '{key}' is empty")
    words: tuple[Any, ...] = tuple(vocabulary_list)
    if len(set(words)) != len(words):
        raise ValueError(f"vocabulary_list of '{key}' has a word twice: {list(words)}")
    held = dtypes.from_numpy(np.array(words).dtype)
    _check_buckets(key, num_oov_buckets, default_value != -1)
    check_words(held, f"vocabulary_list of '{key}'")
    dtype = dtype or held
    if dtype.is_integer != held.is_integer:
        raise ValueError(f"the column '{key}' is of {dtype}, its vocabulary_list of {held}")
    check_words(dtype, f"the column '{key}'")
    check_key(key)
    return VocabularyListCategoricalColumn(key, words, dtype, default_value, num_oov_buckets)


def file_column(
    key: str, vocabulary_file: Any, vocabulary_size: int | None = None, num_oov_buckets: int = 0,
    default_value: int | None = None, dtype: DType = dtypes.string,
) -> VocabularyFileCategoricalColumn:  # fmt: skip
    """The lines of the file are counted where no size is given.

    Raises:
        ValueError: there is no file, an unusable size, key or type, both a default and further buckets.
    """
    if not vocabulary_file:
        raise ValueError(f"vocabulary_file of '{key}' is missing")
    if vocabulary_size is None:
        path = Path(vocabulary_file)
        if not path.exists():
            raise ValueError(f"vocabulary_file of '{key}' does not exist: {vocabulary_file}")
        with path.open("rb") as file:
            vocabulary_size = sum(1 for _ in file)
    if vocabulary_size < 1:
        raise ValueError(f"vocabulary_size of '{key}' must be at least 1; got {vocabulary_size}")
    _check_buckets(key, num_oov_buckets, default_value is not None)
    check_words(dtype, f"the column '{key}'")
    check_key(key)
    default = -1 if default_value is None else default_value
    return VocabularyFileCategoricalColumn(key, vocabulary_file, vocabulary_size, num_oov_buckets or 0, dtype, default)


def identity_column(key: str, num_buckets: int, default_value: int | None = None) -> IdentityCategoricalColumn:
    """Raises ValueError: fewer than one bucket, an unusable key, a default that is no id."""
    if num_buckets < 1:
        raise ValueError(f"num_buckets of '{key}' must be at least 1; got {num_buckets}")
    if default_value is not None and not 0 <= default_value < num_buckets:
        raise ValueError(f"default_value of '{key}' must be at least 0 and below {num_buckets}; got {default_value}")
    check_key(key)
    return IdentityCategoricalColumn(key, num_buckets, default_value)


def weighted_column(
    categorical_column: Any, weight_feature_key: str, dtype: Any = dtypes.float32
) -> WeightedCategoricalColumn:
    """Raises ValueError: weights that are no numbers."""
    check_number(dtype, f"the weights '{weight_feature_key}'")
    return WeightedCategoricalColumn(categorical_column, weight_feature_key, dtype)


def crossed_column(keys: Any, hash_bucket_size: int, hash_key: int | None = None) -> CrossedColumn:
    """Raises ValueError: fewer than two keys, fewer than one bucket, a key that cannot be crossed."""
    if not hash_bucket_size or hash_bucket_size < 1:
        raise ValueError(f"hash_bucket_size of a crossed_column must be at least 1; got {hash_bucket_size}")
    if not keys or len(keys) < 2:
        raise ValueError(f"a crossed_column takes at least two keys; got {keys}")
    for key in keys:
        if not isinstance(key, str | CategoricalColumn):
            raise ValueError(f"a crossed_column takes names of features and categorical columns; got {key}")
        if isinstance(key, HashedCategoricalColumn):
            raise ValueError(f"'{key.key}' is hashed already, which makes collisions likely; cross the feature's name")
    return CrossedColumn(tuple(keys), hash_bucket_size, hash_key)


def _check_buckets(key: str, num_oov_buckets: int, has_default: bool) -> None:
    if num_oov_buckets and has_default:
        raise ValueError(f"'{key}' has both num_oov_buckets and a default_value; give one of them")
    if num_oov_buckets and num_oov_buckets < 0:
        raise ValueError(f"num_oov_buckets of '{key}' must be at least 0; got {num_oov_buckets}")
