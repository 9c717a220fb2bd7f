"""Quantized numbers: elementwise operations, pools, joins. What is fed as uint8 or int8 is cast bit by bit."""

# lambdas over tensors of the client, whose parameters have no types
# pyright: reportUnknownVariableType=false, reportUnknownMemberType=false, reportUnknownArgumentType=false
# pyright: reportUnknownLambdaType=false, reportUnknownParameterType=false, reportMissingParameterType=false

from __future__ import annotations

from typing import Any

import numpy as np

from tests.compiler.operations.rows import Table
from toolkit import client as gm
from toolkit.graph import dtypes

ops: Any = gm.ops
F, I = np.float32, np.int32
QUINT8, QINT8, QINT32 = (dtypes.from_name(name) for name in ("quint8", "qint8", "qint32"))
_PLAIN = {"quint8": dtypes.uint8, "qint8": dtypes.int8, "qint32": dtypes.int32}
ROWS = Table()

_IMAGE = (2, 14, 15, 12)


def any_of(kind: str, *shape: int, seed: int = 0) -> Any:
    """Numbers all over a type."""
    random = np.random.default_rng((seed, *shape))
    if kind == "qint32":
        return random.integers(-300000, 300000, shape).astype(np.int32)
    ends = (0, 256) if kind == "quint8" else (-128, 128)
    return random.integers(*ends, shape).astype(np.uint8 if kind == "quint8" else np.int8)


def cast(x: Any, dtype: Any) -> Any:
    """A quantized tensor of what was fed."""
    return ops.bitcast(x, dtype)


def plain(tensors: Any) -> list[Any]:
    """Results that can be compared."""
    flat = list(tensors) if isinstance(tensors, list | tuple) else [tensors]
    return [ops.bitcast(t, _PLAIN[t.dtype.name]) if t.dtype.name in _PLAIN else t for t in flat]


for _kind, _dtype in (("quint8", QUINT8), ("qint8", QINT8)):
    _x = any_of(_kind, *_IMAGE)
    for _mode in ("MIN_COMBINED", "MIN_FIRST", "SCALED"):
        ROWS.add(
            f"quantize {_kind} {_mode}", [_IMAGE, F(-1.7), F(2.3)],
            lambda x, low, high, t=_dtype, m=_mode: [
                *plain(ops.quantize_v2(x, F(-1.5), F(2.5), t, mode=m)),
                *plain(ops.quantize_v2(x, low, high, t, mode=m, ensure_minimum_range=0.5)),
                *plain(ops.quantize_v2(x[:1, :2], low, high, t, mode=m)),
            ],
        )  # fmt: skip
        ROWS.add(
            f"dequantize {_kind} {_mode}", [_x, F(-1.7), F(2.3)],
            lambda x, low, high, t=_dtype, m=_mode: [
                ops.dequantize(cast(x, t), F(-1.5), F(2.5), mode=m), ops.dequantize(cast(x, t), low, high, mode=m),
                ops.dequantize(*ops.quantized_relu(cast(x, t), F(-1.5), F(2.5), out_type=t), mode=m),
            ], exact=True,
        )  # fmt: skip
    ROWS.add(
        f"quantized relu {_kind}", [_x, F(-1.7), F(9.0)],
        lambda x, low, high, t=_dtype: [
            *plain(ops.quantized_relu(cast(x, t), low, high, out_type=t)),
            *plain(ops.quantized_relu6(cast(x, t), F(-3), F(9), out_type=t)),
        ],
    )  # fmt: skip
    ROWS.add(
        f"quantized pools {_kind}", [_x, F(-1.7), F(9.0)],
        lambda x, low, high, t=_dtype: [
            made
            for padding in ("SAME", "VALID")
            for size, step in ((2, 2), (3, 1))
            for pool in (ops.quantized_max_pool, ops.quantized_avg_pool)
            for made in plain(pool(cast(x, t), low, high, ksize=[1, size, size, 1], strides=[1, step, step, 1],
                                   padding=padding))
        ],
    )  # fmt: skip
    ROWS.add(
        f"quantized joins {_kind}", [_x, any_of(_kind, *_IMAGE, seed=1)],
        lambda x, y, t=_dtype: [
            *plain(ops.quantized_concat(3, [cast(x, t), cast(y, t)], [F(-1), F(-1)], [F(2), F(2)])),
            *plain(ops.quantized_concat(1, [cast(x, t), cast(y, t)], [F(-1), F(-3)], [F(2), F(1)])),
            *plain(ops.quantized_concat(-1, [cast(x, t), cast(y, t)], [F(0.5), F(1)], [F(2), F(1.5)])),
            *plain(ops.quantized_reshape(
                ops.quantized_relu(cast(x, t), F(-1), F(1), out_type=t)[0], [-1, 12], F(-1), F(1))),
        ],
    )  # fmt: skip
    ROWS.add(
        f"quantized bias {_kind}", [_x, F(-1.7), F(2.3)],
        lambda x, low, high, t=_dtype, bias=any_of(_kind, 12): [
            *plain(ops.quantized_bias_add(cast(x, t), cast(bias, t), F(-1), F(2), F(-1), F(1), out_type=QINT32)),
            *plain(ops.quantized_bias_add(cast(x, t), cast(bias, t), low, high, F(-1), F(1), out_type=QINT32)),
        ],
    )  # fmt: skip

ROWS.add(
    "quantized sum", [any_of("quint8", *_IMAGE), any_of("quint8", *_IMAGE, seed=1)],
    lambda x, y: [
        *plain(ops.quantized_add(cast(x, QUINT8), cast(y, QUINT8), F(-1), F(2), F(0), F(3), Toutput=QINT32)),
        *plain(ops.quantized_add(cast(x, QUINT8), cast(y[0, 0, 0], QUINT8), F(-1), F(2), F(0), F(3), Toutput=QINT32)),
    ],
)  # fmt: skip
ROWS.add(
    "requantize", [any_of("qint32", *_IMAGE), F(-99), F(99)],
    lambda x, low, high: [
        made
        for t in (QUINT8, QINT8)
        for ends in ((F(-0.01), F(0.02)), ops.requantization_range(cast(x, QINT32), low, high))
        for made in plain(ops.requantize(cast(x, QINT32), low, high, *ends, out_type=t))
    ],
)  # fmt: skip
ROWS.add(
    "requantize by channels", [any_of("qint32", *_IMAGE), np.linspace(1, 99, 12).astype(F)],
    lambda x, high: [
        made
        for t, low in ((QUINT8, F(0)), (QINT8, F(-0.02)))
        for ends in ((high * -1.0, high), (np.linspace(-9, -1, 12).astype(F), np.linspace(9, 1, 12).astype(F)))
        for made in plain(ops.requantize_per_channel(cast(x, QINT32), *ends, low, F(0.02), out_type=t))
    ],
)  # fmt: skip

# -- uniform quantization -----------------------------------------------------------------------------------------

_SCALES, _ZEROS = np.linspace(0.01, 0.2, 12).astype(F), np.arange(-6, 6).astype(I)
_SMALL: dict[str, Any] = {"quantization_min_val": -128, "quantization_max_val": 127}


def side(name: str, axis: int = -1, low: int = -128, high: int = 127) -> dict[str, Any]:
    """The attributes of one operand."""
    return {
        f"{name}_quantization_axis": axis,
        f"{name}_quantization_min_val": low,
        f"{name}_quantization_max_val": high,
    }


WHOLE = (-(1 << 31), (1 << 31) - 1)
ROWS.add(
    "uniform quantize", [_IMAGE, F(0.02), I(3)],
    lambda x, scale, zero: [
        *plain(ops.uniform_quantize(x, scale, zero, Tout=QINT8, **_SMALL)),
        *plain(ops.uniform_quantize(x, _SCALES, _ZEROS, Tout=QINT8, quantization_axis=3, **_SMALL)),
        *plain(ops.uniform_quantize(x, _SCALES[:2], _ZEROS[:2], Tout=QINT8, quantization_axis=0, **_SMALL)),
        ops.uniform_dequantize(ops.uniform_quantize(x, F(0.03), I(-9), Tout=QINT8, **_SMALL), F(0.03), I(-9),
                               Tout=dtypes.float32, **_SMALL),
    ], exact=True,
)  # fmt: skip
ROWS.add(
    "uniform numbers", [any_of("qint8", *_IMAGE), any_of("qint32", *_IMAGE), any_of("qint32", 12), F(0.02), I(3)],
    lambda x, y, bias, scale, zero: [
        ops.uniform_dequantize(cast(x, QINT8), scale, zero, Tout=dtypes.float32, **_SMALL),
        ops.uniform_dequantize(cast(x, QINT8), _SCALES, _ZEROS, Tout=dtypes.float32, quantization_axis=3, **_SMALL),
        *plain(ops.uniform_quantized_clip_by_value(cast(y, QINT32), I(-99), I(5000), scale, zero, **_SMALL)),
        *plain(ops.uniform_requantize(cast(y, QINT32), F(1e-3), I(5), F(0.7), I(-20), Tout=QINT8,
                                      **side("input"), **side("output", low=-20))),
        *plain(ops.uniform_requantize(cast(y, QINT32), _SCALES, _ZEROS, F(9), I(-20), Tout=QINT8,
                                      **side("input", 3), **side("output", low=-20))),
        *plain(ops.uniform_requantize(cast(x, QINT8), scale, zero, F(0.5), I(-20), Tout=QINT8,
                                      **side("input"), **side("output"))),
        *(made for axis in (0, -1) for made in plain(ops.uniform_requantize(
            ops.uniform_quantized_add(
                cast(y, QINT32), cast(bias, QINT32), *([_SCALES, _ZEROS] if axis == 0 else [F(0.2), I(9)]),
                *([_SCALES, _ZEROS] if axis == 0 else [F(0.3), I(1)]), _SCALES, _ZEROS,
                **side("lhs", 3 if axis == 0 else -1, *WHOLE), **side("rhs", axis, *WHOLE), **side("output", 3, *WHOLE),
            ), _SCALES, _ZEROS, F(99), I(0), Tout=QINT8, **side("input", 3), **side("output")))),
        *plain(ops.uniform_quantized_add(
            cast(y, QINT32), cast(y, QINT32), F(0.2), I(9), F(0.3), I(1), F(0.1), I(7),
            **side("lhs", -1, *WHOLE), **side("rhs", -1, *WHOLE), **side("output", -1, *WHOLE))),
    ], exact=True,
)  # fmt: skip
