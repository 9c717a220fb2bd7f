# TensorFlow's arguments may be anything, so what they are is for tests to say, not for types.
# pyright: basic
"""Functions of an op or two with TensorFlow 1's arguments: quantization, strings, statistics."""

from __future__ import annotations

import collections
from typing import Any

import numpy as np

from toolkit.client import ops
from toolkit.client.arrays import array_ops
from toolkit.client.construction.convert import as_dtype, constant, convert_to_tensor
from toolkit.client.construction.scopes import name_scope
from toolkit.client.construction.tensor import Tensor
from toolkit.client.linalg import linalg_ops
from toolkit.client.math import statistics
from toolkit.client.nn import ctc_ops
from toolkit.client.structures import nest
from toolkit.graph import dtypes
from toolkit.tensorflow.families.arguments import needed, renamed

_Quantized = collections.namedtuple("QuantizeV2", ["output", "output_min", "output_max"])


def decode_raw(
    input_bytes: Any = None, out_type: Any = None, little_endian: bool = True, name: Any = None, bytes: Any = None
) -> Tensor:
    given = needed("input_bytes", renamed("input_bytes", input_bytes, "bytes", bytes))
    kind = as_dtype(needed("out_type", out_type))
    return ops.decode_raw(given, out_type=kind, little_endian=little_endian, name=name)


def dequantize(
    input: Any, min_range: Any, max_range: Any, mode: str = "MIN_COMBINED", name: Any = None, axis: Any = None,
    narrow_range: bool = False, dtype: Any = dtypes.float32,
) -> Tensor:  # fmt: skip
    return ops.dequantize(
        input, min_range, max_range, mode=mode, name=name, axis=-1 if axis is None else axis,
        narrow_range=narrow_range, dtype=as_dtype(dtype),
    )  # fmt: skip


def quantize(
    input: Any, min_range: Any, max_range: Any, T: Any, mode: str = "MIN_COMBINED",
    round_mode: str = "HALF_AWAY_FROM_ZERO", name: Any = None, narrow_range: bool = False, axis: Any = None,
    ensure_minimum_range: float = 0.01,
) -> Any:  # fmt: skip
    return _Quantized(
        *ops.quantize_v2(
            input,
            min_range,
            max_range,
            T=as_dtype(T),
            mode=mode,
            round_mode=round_mode,
            narrow_range=narrow_range,
            axis=-1 if axis is None else axis,
            ensure_minimum_range=ensure_minimum_range,
            name=name,
        )
    )


def quantize_v2(
    input: Any, min_range: Any, max_range: Any, T: Any, mode: str = "MIN_COMBINED", name: Any = None,
    round_mode: str = "HALF_AWAY_FROM_ZERO", narrow_range: bool = False, axis: Any = None,
    ensure_minimum_range: float = 0.01,
) -> Any:  # fmt: skip
    return quantize(
        input, min_range, max_range, T, mode, round_mode, name, narrow_range, axis, ensure_minimum_range
    )  # fmt: skip


def _there_and_back(op: str, x: Any, low: Any, high: Any, axis: Any, **attrs: Any) -> Tensor:
    return ops.function(op)(x, low, high, axis=-1 if axis is None else axis, **attrs)


def quantize_and_dequantize(
    input: Any, input_min: Any, input_max: Any, signed_input: bool = True, num_bits: int = 8, range_given: bool = False,
    round_mode: str = "HALF_TO_EVEN", name: Any = None, narrow_range: bool = False, axis: Any = None,
) -> Tensor:  # fmt: skip
    return _there_and_back(
        "QuantizeAndDequantizeV2", input, input_min, input_max, axis, signed_input=signed_input, num_bits=num_bits,
        range_given=range_given, round_mode=round_mode, narrow_range=narrow_range, name=name,
    )  # fmt: skip


def quantize_and_dequantize_v2(
    input: Any, input_min: Any, input_max: Any, signed_input: bool = True, num_bits: int = 8, range_given: bool = False,
    round_mode: str = "HALF_TO_EVEN", name: Any = None, narrow_range: bool = False, axis: Any = None,
) -> Tensor:  # fmt: skip
    return _there_and_back(
        "QuantizeAndDequantizeV4", input, input_min, input_max, axis, signed_input=signed_input, num_bits=num_bits,
        range_given=range_given, round_mode=round_mode, narrow_range=narrow_range, name=name,
    )  # fmt: skip


def regex_full_match(input: Any, pattern: Any, name: Any = None) -> Tensor:
    if isinstance(pattern, str | bytes):
        return ops.static_regex_full_match(input, pattern=pattern, name=name)
    return ops.regex_full_match(input, pattern, name=name)


def regex_replace(input: Any, pattern: Any, rewrite: Any, replace_global: bool = True, name: Any = None) -> Tensor:
    if isinstance(pattern, str | bytes) and isinstance(rewrite, str | bytes):
        return ops.static_regex_replace(
            input, pattern=pattern, rewrite=rewrite, replace_global=replace_global, name=name
        )
    return ops.regex_replace(input, pattern, rewrite, replace_global=replace_global, name=name)


def to_hash_bucket(string_tensor: Any = None, num_buckets: Any = None, name: Any = None, input: Any = None) -> Tensor:
    given = needed("input", renamed("input", input, "string_tensor", string_tensor))
    return ops.string_to_hash_bucket(given, num_buckets=num_buckets, name=name)


def to_number(string_tensor: Any = None, out_type: Any = dtypes.float32, name: Any = None, input: Any = None) -> Tensor:
    given = needed("input", renamed("input", input, "string_tensor", string_tensor))
    return ops.string_to_number(given, out_type=as_dtype(out_type), name=name)


def reduce_join(
    inputs: Any, axis: Any = None, keep_dims: Any = None, separator: str = "", name: Any = None,
    reduction_indices: Any = None, keepdims: Any = None,
) -> Tensor:  # fmt: skip
    keep = renamed("keepdims", keepdims, "keep_dims", keep_dims)
    axis = renamed("axis", axis, "reduction_indices", reduction_indices)
    with name_scope(None, "ReduceJoin", [inputs, axis]):
        tensor = convert_to_tensor(inputs, dtypes.string)
        if axis is None:
            rank = tensor.static_shape.rank
            if rank is None:
                count = array_ops.rank(tensor)
                axis = ops.range(count - 1, -1, -1)
            else:
                axis = constant(np.arange(rank - 1, -1, -1), dtypes.int32)
        return ops.reduce_join(tensor, axis, keep_dims=bool(keep), separator=separator, name=name)


def substr(input: Any, pos: Any, len: Any, name: Any = None, unit: str = "BYTE") -> Tensor:
    return ops.substr(input, pos, len, unit=unit, name=name)


def roll(input: Any, shift: Any, axis: Any, name: Any = None) -> Tensor:
    return ops.roll(input, shift, axis, name=name)


def norm(
    tensor: Any, ord: Any = "euclidean", axis: Any = None, keepdims: Any = None, name: Any = None, keep_dims: Any = None
) -> Tensor:
    keep = renamed("keepdims", keepdims, "keep_dims", keep_dims)
    return linalg_ops.norm(tensor, ord, axis, bool(keep), name)


def silu(features: Any, beta: Any = 1.0) -> Tensor:
    """x * sigmoid(beta * x)."""
    with name_scope(None, "swish", [features]):
        features = convert_to_tensor(features, name="features")
        beta = convert_to_tensor(beta, features.dtype.base, name="beta")
        return features * ops.sigmoid(beta * features)


def normalize_moments(counts: Any, mean_ss: Any, variance_ss: Any, shift: Any, name: Any = None) -> Any:
    return statistics.normalize_moments(counts, mean_ss, variance_ss, shift, name)


def sufficient_statistics(
    x: Any, axes: Any, shift: Any = None, keep_dims: Any = None, name: Any = None, keepdims: Any = None
) -> Any:
    return statistics.sufficient_statistics(
        x, axes, shift, bool(renamed("keepdims", keepdims, "keep_dims", keep_dims)), name
    )


def weighted_moments(
    x: Any, axes: Any, frequency_weights: Any, name: Any = None, keep_dims: Any = None, keepdims: Any = None
) -> Any:
    keep = bool(renamed("keepdims", keepdims, "keep_dims", keep_dims))
    return statistics.weighted_moments(x, axes, frequency_weights, keep, name)


def ctc_loss(
    labels: Any, inputs: Any = None, sequence_length: Any = None, preprocess_collapse_repeated: bool = False,
    ctc_merge_repeated: bool = True, ignore_longer_outputs_than_inputs: bool = False, time_major: bool = True,
    logits: Any = None,
) -> Tensor:  # fmt: skip
    given = needed("inputs", renamed("logits", logits, "inputs", inputs))
    return ctc_ops.ctc_loss(
        labels, given, sequence_length, preprocess_collapse_repeated, ctc_merge_repeated,
        ignore_longer_outputs_than_inputs, time_major,
    )  # fmt: skip


def is_nested(seq: Any) -> bool:
    return nest.is_nested(seq)
