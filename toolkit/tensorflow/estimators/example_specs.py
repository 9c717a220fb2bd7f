# TensorFlow's arguments may be anything, so what they are is for tests to say, not for types.
# pyright: basic
"""What serialized examples of a classifier, or of a regressor, hold: features, label and weight."""

from __future__ import annotations

from typing import Any

from toolkit.client.feature_columns.numeric import NumericColumn, numeric_column
from toolkit.client.inputs.parsing import FixedLenFeature
from toolkit.graph import dtypes
from toolkit.tensorflow.families.layers.feature_columns import make_parse_example_spec


def classifier_parse_example_spec(
    feature_columns: Any, label_key: str, label_dtype: Any = dtypes.int64, label_default: Any = None,
    weight_column: Any = None,
) -> dict[str, Any]:  # fmt: skip
    """For `tf.parse_example`: what columns take, one label, and the weight where there is one.

    Raises:
        ValueError: label or weight are features, too, or the weight is no numeric column.
    """
    label = FixedLenFeature((1,), label_dtype, label_default)
    return _with_label(make_parse_example_spec(feature_columns), label_key, label, weight_column)


def regressor_parse_example_spec(
    feature_columns: Any, label_key: str, label_dtype: Any = dtypes.float32, label_default: Any = None,
    label_dimension: int = 1, weight_column: Any = None,
) -> dict[str, Any]:  # fmt: skip
    """As `classifier_parse_example_spec`, with `label_dimension` numbers as label."""
    label = FixedLenFeature((label_dimension,), label_dtype, label_default)
    return _with_label(make_parse_example_spec(feature_columns), label_key, label, weight_column)


def _with_label(spec: dict[str, Any], key: str, label: Any, weight_column: Any) -> dict[str, Any]:
    if key in spec:
        raise ValueError(f"label_key: '{key}' is a feature, too; features are {', '.join(sorted(spec))}")
    spec[key] = label
    if weight_column is None:
        return spec
    column = numeric_column(weight_column) if isinstance(weight_column, str) else weight_column
    if not isinstance(column, NumericColumn):
        raise ValueError(f"weight_column: expected a name or a numeric_column, got {weight_column!r}")
    if column.key in spec:
        raise ValueError(f"weight_column: '{column.key}' is a feature, or the label, too")
    spec.update(column.parse_example_spec)
    return spec
