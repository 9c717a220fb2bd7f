# TensorFlow's arguments may be anything, so what they are is for tests to say, not for types.
# pyright: basic
"""tf.feature_column: columns of features and the layers made of them."""

from __future__ import annotations

from typing import Any

from toolkit.client.construction.convert import as_dtype
from toolkit.client.feature_columns import categorical, layers, numeric
from toolkit.client.feature_columns import embedding as embeddings
from toolkit.client.feature_columns.base import FeatureColumn
from toolkit.client.feature_columns.sequence import SequenceCategoricalColumn
from toolkit.client.feature_columns.sequence import sequence_numeric_column as make_sequence_numeric_column
from toolkit.graph import dtypes

bucketized_column = numeric.bucketized_column
indicator_column = embeddings.indicator_column
embedding_column = embeddings.embedding_column
shared_embedding_columns = embeddings.shared_embedding_columns
crossed_column = categorical.crossed_column
categorical_column_with_identity = categorical.identity_column
linear_model = layers.linear_model


def numeric_column(
    key: Any, shape: Any = (1,), default_value: Any = None, dtype: Any = dtypes.float32, normalizer_fn: Any = None
) -> Any:
    return numeric.numeric_column(key, shape, default_value, as_dtype(dtype), normalizer_fn)


def categorical_column_with_hash_bucket(key: Any, hash_bucket_size: Any, dtype: Any = dtypes.string) -> Any:
    return categorical.hash_column(key, hash_bucket_size, as_dtype(dtype))


def categorical_column_with_vocabulary_file(
    key: Any, vocabulary_file: Any, vocabulary_size: Any = None, num_oov_buckets: Any = 0, default_value: Any = None,
    dtype: Any = dtypes.string,
) -> Any:  # fmt: skip
    return categorical.file_column(
        key, vocabulary_file, vocabulary_size, num_oov_buckets, default_value, as_dtype(dtype)
    )


def categorical_column_with_vocabulary_list(
    key: Any, vocabulary_list: Any, dtype: Any = None, default_value: Any = -1, num_oov_buckets: Any = 0
) -> Any:
    kind = None if dtype is None else as_dtype(dtype)
    return categorical.list_column(key, vocabulary_list, kind, default_value, num_oov_buckets)


def weighted_categorical_column(categorical_column: Any, weight_feature_key: Any, dtype: Any = dtypes.float32) -> Any:
    return categorical.weighted_column(
        categorical_column, weight_feature_key, None if dtype is None else as_dtype(dtype)
    )


def sequence_categorical_column_with_hash_bucket(key: Any, hash_bucket_size: Any, dtype: Any = dtypes.string) -> Any:
    return SequenceCategoricalColumn(categorical_column_with_hash_bucket(key, hash_bucket_size, dtype))


def sequence_categorical_column_with_identity(key: Any, num_buckets: Any, default_value: Any = None) -> Any:
    return SequenceCategoricalColumn(categorical_column_with_identity(key, num_buckets, default_value))


def sequence_categorical_column_with_vocabulary_file(
    key: Any, vocabulary_file: Any, vocabulary_size: Any = None, num_oov_buckets: Any = 0, default_value: Any = None,
    dtype: Any = dtypes.string,
) -> Any:  # fmt: skip
    return SequenceCategoricalColumn(
        categorical_column_with_vocabulary_file(
            key, vocabulary_file, vocabulary_size, num_oov_buckets, default_value, dtype
        )
    )


def sequence_categorical_column_with_vocabulary_list(
    key: Any, vocabulary_list: Any, dtype: Any = None, default_value: Any = -1, num_oov_buckets: Any = 0
) -> Any:
    return SequenceCategoricalColumn(
        categorical_column_with_vocabulary_list(key, vocabulary_list, dtype, default_value, num_oov_buckets)
    )


def sequence_numeric_column(
    key: Any, shape: Any = (1,), default_value: Any = 0.0, dtype: Any = dtypes.float32, normalizer_fn: Any = None
) -> Any:
    return make_sequence_numeric_column(key, shape, default_value, as_dtype(dtype), normalizer_fn)


def input_layer(
    features: Any, feature_columns: Any, weight_collections: Any = None, trainable: bool = True,
    cols_to_vars: Any = None, cols_to_output_tensors: Any = None,
) -> Any:  # fmt: skip
    return layers.input_layer(
        features, feature_columns, weight_collections, trainable, cols_to_vars, cols_to_output_tensors
    )


def make_parse_example_spec(feature_columns: Any) -> Any:
    """How `parse_example` reads all features that columns need.

    Raises:
        ValueError: one is no feature column, or two read one feature in different ways.
    """
    spec: dict[str, Any] = {}
    for column in feature_columns:
        if not isinstance(column, FeatureColumn):
            raise ValueError(f"feature_columns holds {column!r}; expected feature columns")
        for key, value in column.parse_example_spec.items():
            if key in spec and spec[key] != value:
                raise ValueError(f"columns read '{key}' in different ways: {spec[key]} and {value}")
            spec[key] = value
    return spec
