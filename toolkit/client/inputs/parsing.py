"""Example and SequenceExample messages taken apart, by a description of each feature."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple, cast

import numpy as np

from toolkit.client import ops
from toolkit.client.arrays import array_ops
from toolkit.client.construction.convert import as_dtype, as_shape, constant, convert_to_tensor
from toolkit.client.construction.scopes import name_scope
from toolkit.client.construction.tensor import Tensor, TensorLike
from toolkit.client.math import math_ops
from toolkit.client.sparse.tensor import SparseTensor
from toolkit.errors import UsageError
from toolkit.graph import dtypes
from toolkit.graph.dtypes import DType
from toolkit.graph.shape import Shape


class FixedLenFeature(NamedTuple):
    """A feature with as many values in every example."""

    shape: Any
    dtype: Any
    default_value: Any = None


class FixedLenSequenceFeature(NamedTuple):
    """A feature of steps, all of one shape, as many as there are."""

    shape: Any
    dtype: Any
    allow_missing: bool = False
    default_value: Any = None


class VarLenFeature(NamedTuple):
    """A feature with any number of values: a sparse tensor."""

    dtype: Any


class SparseFeature(NamedTuple):
    """A sparse tensor of two features, one of which says where the values of the other stand."""

    index_key: Any
    value_key: Any
    dtype: Any
    size: Any
    already_sorted: bool = False


@dataclass
class _Parts:
    """Features by kind, in the order in which the op takes them.

    Attributes:
        sparse: keys to types.
        dense: keys to (type, shape, default, whether steps may be missing).
        steps: keys of dense features in Examples that have any number of steps.
    """

    sparse: dict[str, DType] = field(default_factory=dict[str, DType])
    dense: dict[str, tuple[DType, Shape, Any, bool]] = field(default_factory=dict[str, Any])
    steps: set[str] = field(default_factory=set[str])


def _parts(features: Mapping[str, Any], *, sequences: bool = False) -> _Parts:
    """Features sorted by key and told apart by their kind.

    Raises:
        UsageError: a description is of no kind there is, or has no type.
    """
    if not features:
        raise UsageError("parsing examples needs at least one feature")
    parts = _Parts()
    for key in sorted(features):
        feature = features[key]
        if isinstance(feature, VarLenFeature):
            _add_sparse(parts, key, as_dtype(feature.dtype))
        elif isinstance(feature, SparseFeature):
            given: Any = feature.index_key
            keys = list(cast("Sequence[str]", given)) if isinstance(given, list | tuple) else [given]
            for index_key in sorted(keys):
                _add_sparse(parts, index_key, dtypes.int64)
            _add_sparse(parts, feature.value_key, as_dtype(feature.dtype))
        elif isinstance(feature, FixedLenFeature):
            shape = as_shape(feature.shape)
            parts.dense[key] = (as_dtype(feature.dtype), shape, feature.default_value, False)
        elif isinstance(feature, FixedLenSequenceFeature):
            shape = as_shape(feature.shape)
            if not sequences:
                if not feature.allow_missing:
                    raise UsageError(f"the feature '{key}' of steps in an Example needs allow_missing=True")
                shape = Shape([None]).concatenate(shape)
                parts.steps.add(key)
            parts.dense[key] = (as_dtype(feature.dtype), shape, feature.default_value, bool(feature.allow_missing))
        else:
            raise UsageError(
                f"the feature '{key}' is described by {feature!r}; expected FixedLenFeature, VarLenFeature, "
                "FixedLenSequenceFeature or SparseFeature"
            )
    return parts


def _add_sparse(parts: _Parts, key: str, dtype: DType) -> None:
    known = parts.sparse.setdefault(key, dtype)
    if known is not dtype:
        raise UsageError(f"the key '{key}' is used with two types, {known} and {dtype}")


def _defaults(parts: _Parts) -> list[Tensor]:
    """What stands for dense features that an example lacks; empty where there is no such value."""
    found: list[Tensor] = []
    for key, (dtype, shape, default, _) in parts.dense.items():
        if key in parts.steps:
            value = _zero(dtype) if default is None else default
            found.append(constant(value, dtype))
            continue
        if default is None:
            found.append(constant(np.empty(0, dtype.numpy), dtype))
            continue
        tensor = default
        if not isinstance(tensor, Tensor):
            label = "key_" + "".join(c if c.isalnum() or c in "_.\\-/" else "_" for c in key)
            tensor = convert_to_tensor(default, dtype, name=label)
        found.append(array_ops.reshape(tensor, shape.as_list()))
    return found


def _texts(values: Any) -> Any:
    """Texts as an array that is one of texts even where there are none."""
    return values if isinstance(values, Tensor) else np.array(list(values), object)


def _zero(dtype: DType) -> Any:
    return "" if dtype.kind == "s" else dtype.numpy.type(0)


def parse_example(
    serialized: TensorLike, features: Mapping[str, Any], name: str | None = None, example_names: Any = None
) -> dict[str, Any]:
    """The features of a batch of serialized Example messages, by key.

    Args:
        serialized: texts [n], or one text.

    Raises:
        UsageError: a feature is not described, or in a way that Examples do not know.
    """
    parts = _parts(features)
    with name_scope(name, "ParseExample", [serialized, example_names]):
        found = _parsed(serialized, parts, name or "ParseExampleV2", example_names)
    return _with_sparse_features(features, found)


def _parsed(serialized: TensorLike, parts: _Parts, name: str, example_names: Any) -> dict[str, Any]:
    defaults = _defaults(parts)
    with name_scope(name) as scope:
        texts = convert_to_tensor(serialized, dtypes.string, name="serialized")
        names = convert_to_tensor(_texts([] if example_names is None else example_names), dtypes.string, name="names")
        keys = [
            convert_to_tensor(_texts(chosen), dtypes.string, name=label)
            for label, chosen in (("sparse_keys", parts.sparse), ("dense_keys", parts.dense), ("ragged_keys", ()))
        ]
        results = ops.parse_example_v2(
            texts, names, *keys, defaults, num_sparse=len(parts.sparse), sparse_types=list(parts.sparse.values()),
            ragged_value_types=[], ragged_split_types=[],
            dense_shapes=[shape for _, shape, _, _ in parts.dense.values()], name=scope,
        )  # fmt: skip
    indices, values, shapes, dense = results[:4]
    return _by_key(parts, indices, values, shapes, dense)


def _by_key(parts: _Parts, indices: Any, values: Any, shapes: Any, dense: Any) -> dict[str, Any]:
    triples = zip(indices, values, shapes, strict=True)
    found: dict[str, Any] = {key: SparseTensor(*triple) for key, triple in zip(parts.sparse, triples, strict=True)}
    found.update(zip(parts.dense, dense, strict=True))
    return found


def parse_single_example(
    serialized: TensorLike, features: Mapping[str, Any], name: str | None = None, example_names: Any = None
) -> dict[str, Any]:
    """The features of one serialized Example message, by key."""
    parts = _parts(features)
    with name_scope(name, "ParseSingleExample", [serialized, example_names]):
        text = convert_to_tensor(serialized, dtypes.string, name="serialized")
        with name_scope("ParseExample"):
            found = _parsed(text, parts, "ParseExampleV2", example_names)
    return _with_sparse_features(features, found)


def _with_sparse_features(features: Mapping[str, Any], found: dict[str, Any]) -> dict[str, Any]:
    """Sparse tensors made of an index and a value feature; other keys that were only parsed for them go."""
    for key in sorted(features):
        feature = features[key]
        if isinstance(feature, SparseFeature):
            if isinstance(feature.index_key, list | tuple):
                raise UsageError(f"the feature '{key}' has several index keys; give one")
            where = found[feature.index_key]
            found[key] = _sparse_merge(where, found[feature.value_key], feature.size, feature.already_sorted)
    return {key: found[key] for key in features}


def _sparse_merge(places: SparseTensor, values: SparseTensor, size: Any, already_sorted: bool) -> SparseTensor:
    """Values in the columns that `places` holds."""
    with name_scope("SparseMerge"):
        columns = array_ops.expand_dims(places.values, 1)
        width = math_ops.cast(size, dtypes.int64)
        indices = array_ops.concat([places.indices[:, :-1], columns], 1)
        shape = array_ops.concat([places.dense_shape[:-1], [width]], 0)
        merged = SparseTensor(indices, values.values, shape)
        if already_sorted:
            return merged
        where, ordered = ops.sparse_reorder(merged.indices, merged.values, merged.dense_shape)
        return SparseTensor(where, ordered, array_ops.identity(merged.dense_shape))


def parse_single_sequence_example(
    serialized: TensorLike, context_features: Mapping[str, Any] | None = None,
    sequence_features: Mapping[str, Any] | None = None, example_name: Any = None, name: str | None = None,
) -> tuple[dict[str, Any], dict[str, Any]]:  # fmt: skip
    """The features of one serialized SequenceExample: those of the whole, and those of its steps."""
    with name_scope(name, "ParseSingleSequenceExample", [serialized]):
        text = convert_to_tensor(serialized, dtypes.string, name="serialized")
        context, steps, _ = _parsed_sequences(text, context_features, sequence_features, example_name, None)
        return context, steps


def parse_sequence_example(
    serialized: TensorLike, context_features: Mapping[str, Any] | None = None,
    sequence_features: Mapping[str, Any] | None = None, example_names: Any = None, name: str | None = None,
) -> tuple[dict[str, Any], dict[str, Any], dict[str, Any]]:  # fmt: skip
    """The features of a batch of SequenceExamples: of the whole, of the steps, and how many steps there are."""
    with name_scope(name, "ParseSequenceExample", [serialized]):
        return _parsed_sequences(serialized, context_features, sequence_features, example_names, name)


def _parsed_sequences(
    serialized: TensorLike, context_features: Any, sequence_features: Any, names: Any, name: str | None
) -> tuple[dict[str, Any], dict[str, Any], dict[str, Any]]:
    if not context_features and not sequence_features:
        raise UsageError("parsing sequence examples needs context_features or sequence_features")
    whole = _parts(context_features) if context_features else _Parts()
    steps = _parts(sequence_features, sequences=True) if sequence_features else _Parts()
    with name_scope(name, "ParseSequenceExample", [serialized]):
        defaults = _defaults(whole)
        with name_scope(name or "ParseSequenceExampleV2") as scope:
            texts = convert_to_tensor(serialized, dtypes.string, name="serialized")
            debug = convert_to_tensor(_texts([] if names is None else names), dtypes.string, name="debug_name")
            keys = [
                convert_to_tensor(_texts(chosen), dtypes.string, name=label)
                for label, chosen in (
                    ("context_sparse_keys", whole.sparse), ("context_dense_keys", whole.dense),
                    ("context_ragged_keys", ()), ("feature_list_sparse_keys", steps.sparse),
                    ("feature_list_dense_keys", steps.dense), ("feature_list_ragged_keys", ()),
                )
            ]  # fmt: skip
            missing = np.array([entry[3] for entry in steps.dense.values()], bool)
            assumed = convert_to_tensor(missing, name="feature_list_dense_missing_assumed_empty")
            out = ops.parse_sequence_example_v2(
                texts, debug, *keys, assumed, defaults,
                Ncontext_sparse=len(whole.sparse), context_sparse_types=list(whole.sparse.values()),
                context_ragged_value_types=[], context_ragged_split_types=[],
                context_dense_shapes=[entry[1] for entry in whole.dense.values()],
                Nfeature_list_sparse=len(steps.sparse), Nfeature_list_dense=len(steps.dense),
                feature_list_dense_types=[entry[0] for entry in steps.dense.values()],
                feature_list_sparse_types=list(steps.sparse.values()),
                feature_list_ragged_value_types=[], feature_list_ragged_split_types=[],
                feature_list_dense_shapes=[entry[1] for entry in steps.dense.values()], name=scope,
            )  # fmt: skip
    context = _by_key(whole, *out[:4])
    found = _by_key(steps, *out[6:10])
    lengths = out[10]
    if context_features:
        context = _with_sparse_features(context_features, context)
    if sequence_features:
        found = _with_sparse_features(sequence_features, found)
    return context, found, dict(zip(steps.dense, lengths, strict=True))
