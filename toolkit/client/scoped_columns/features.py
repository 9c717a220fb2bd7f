"""Features for columns of tf.contrib.layers: read from examples, transformed, as placeholders; columns of features."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from typing import Any, cast

from toolkit.client.arrays import array_ops
from toolkit.client.inputs.parsing import (
    FixedLenFeature,
    FixedLenSequenceFeature,
    VarLenFeature,
    parse_example,
    parse_single_sequence_example,
)
from toolkit.client.scoped_columns.base import Features, InsertedFeatures, ScopedColumn, checked_columns
from toolkit.client.scoped_columns.numeric import RealValuedColumn, real_valued_column
from toolkit.client.sparse import sparse_ops
from toolkit.client.sparse.tensor import SparseTensor


def create_feature_spec_for_parsing(feature_columns: Any) -> dict[str, Any]:
    """How `parse_example` reads the features that columns need.

    Raises:
        TypeError: one is none of these columns.
    """
    found: dict[str, Any] = {}
    by_name = isinstance(feature_columns, Mapping)
    columns: Iterable[Any] = cast("Any", feature_columns).values() if by_name else feature_columns
    for column in columns:
        if not isinstance(column, ScopedColumn):
            raise TypeError(f"feature_columns holds {column!r}; expected columns of tf.contrib.layers")
        found.update(column.config)
    return found


def parse_feature_columns_from_examples(
    serialized: Any, feature_columns: Any, name: Any = None, example_names: Any = None
) -> Features:
    """Features by name out of serialized examples, and what columns make of them by column."""
    columns = checked_columns(feature_columns)
    features: Features = dict(
        parse_example(serialized, create_feature_spec_for_parsing(columns), example_names=example_names, name=name)
    )
    for column in columns:
        InsertedFeatures(features).get(column)
    return features


def parse_feature_columns_from_sequence_examples(
    serialized: Any, context_feature_columns: Any, sequence_feature_columns: Any, name: Any = None,
    example_name: Any = None,
) -> Any:  # fmt: skip
    """The context and the steps of one serialized SequenceExample, by name."""
    serialized = array_ops.reshape(serialized, [])
    context = create_feature_spec_for_parsing(checked_columns(context_feature_columns or []))
    steps = create_feature_spec_for_parsing(checked_columns(sequence_feature_columns or []))
    return parse_single_sequence_example(
        serialized, context, {key: _of_steps(each) for key, each in steps.items()}, example_name, name
    )


def _of_steps(feature: Any) -> Any:
    if isinstance(feature, VarLenFeature):
        return feature
    return FixedLenSequenceFeature(feature.shape, feature.dtype, feature.default_value is not None)


def transform_features(features: Mapping[Any, Any], feature_columns: Any) -> Features:
    """What columns make of features, by column."""
    found: Features = dict(features)
    wanted = list(feature_columns)
    for column in checked_columns(wanted):
        InsertedFeatures(found).get(column)
    return {column: value for column, value in found.items() if column in wanted}


def make_place_holder_tensors_for_base_features(feature_columns: Any) -> dict[str, Any]:
    """A placeholder for each feature that columns need."""
    found: dict[str, Any] = {}
    for key, feature in create_feature_spec_for_parsing(feature_columns).items():
        if isinstance(feature, VarLenFeature):
            found[key] = sparse_ops.placeholder(feature.dtype, name=f"Placeholder_{key}")
        else:
            assert isinstance(feature, FixedLenFeature | FixedLenSequenceFeature)
            found[key] = array_ops.placeholder(feature.dtype, [None, feature.shape[0]], name=f"Placeholder_{key}")
    return found


def check_feature_columns(feature_columns: Any) -> None:
    """Raises ValueError: they are a dict, or two have one key."""
    checked_columns(feature_columns)


def infer_real_valued_columns(features: Any) -> list[RealValuedColumn]:
    """A column of numbers for each feature; one called "" for features that are one tensor.

    Raises:
        ValueError: a feature is sparse, or holds no numbers.
    """
    if not isinstance(features, Mapping):
        return [_column_of("", features)]
    return [_column_of(str(key), value) for key, value in cast("Mapping[Any, Any]", features).items()]


def _column_of(name: str, tensor: Any) -> RealValuedColumn:
    if isinstance(tensor, SparseTensor):
        raise ValueError(f"the feature '{name}' is sparse; write its column yourself")
    if not (tensor.dtype.is_integer or tensor.dtype.is_floating):
        raise ValueError(f"the feature '{name}' is of {tensor.dtype}, not of numbers; write its column yourself")
    sizes = [*tensor.static_shape][1:]
    if None in sizes:
        raise ValueError(f"the feature '{name}' is of shape {tensor.static_shape}; write its column yourself")
    return real_valued_column(name, math.prod(sizes), dtype=tensor.dtype)
