"""Quantized convolution, pooling, normalization and resizing against TensorFlow."""

from __future__ import annotations

from types import ModuleType
from typing import Any

import numpy as np
import pytest

from tests.kernels.op_suite import Case, check, sample, suite

pytestmark = pytest.mark.tensorflow

BAD = "INVALID_ARGUMENT"
F = np.float32


def numbers(kind: str, *shape: int, seed: int = 0) -> Any:
    info = np.iinfo(np.uint8 if kind == "quint8" else np.int8 if kind == "qint8" else np.int16)
    made = sample(info.dtype, shape, info.min, info.max, seed)
    return made.astype(np.int32) if kind == "qint32" else made


CONV = {"Tinput": "quint8", "Tfilter": "quint8"}
RANGES = [(-1, 2, -3, 1.5), (0, 1, 0, 6), (-4, -1, 2, 3), (-1, 1, 0, 0)]

CASES = [
    *(
        Case(
            "QuantizedConv2D",
            [numbers("quint8", 2, 7, 6, 3), numbers("quint8", k, k, 3, 4, seed=1), *map(F, ranges)],
            {**CONV, "strides": [1, s, s, 1], "padding": padding},
        )
        for ranges in RANGES
        for k in (1, 3)
        for s in (1, 2)
        for padding in ("SAME", "VALID")
        if not (ranges[2] == ranges[3] and k == 3)
    ),
    Case(
        "QuantizedConv2D",
        [numbers("quint8", 1, 4, 4, 2), numbers("quint8", 2, 2, 3, 1), *map(F, RANGES[0])],
        {**CONV, "strides": [1, 1, 1, 1], "padding": "SAME"},
        error=BAD,
        id="depths",
    ),
    Case(
        "QuantizedConv2D",
        [numbers("quint8", 1, 4, 4), numbers("quint8", 2, 2, 3, 1), *map(F, RANGES[0])],
        {**CONV, "strides": [1, 1, 1, 1], "padding": "SAME"},
        error=BAD,
        id="rank",
    ),
    Case(
        "QuantizedConv2D",
        [numbers("quint8", 1, 4, 4, 2), numbers("quint8", 2, 2, 2, 1), F([0, 1]), *map(F, RANGES[0][1:])],
        {**CONV, "strides": [1, 1, 1, 1], "padding": "SAME"},
        error=BAD,
        id="range",
    ),
    *(
        Case(
            "QuantizedConv2D",
            [np.zeros(x, np.uint8), np.zeros(w, np.uint8), *map(F, RANGES[0])],
            {**CONV, "strides": [1, 1, 1, 1], "padding": "SAME"},
            error=BAD,
            id="empty",
        )
        for x, w in (
            ((2, 4, 4, 3), (0, 3, 3, 4)),
            ((2, 4, 4, 3), (3, 0, 3, 4)),
            ((0, 4, 4, 3), (3, 3, 3, 4)),
            ((2, 0, 4, 3), (3, 3, 3, 4)),
            ((2, 4, 0, 3), (3, 3, 3, 4)),
            ((2, 4, 4, 0), (3, 3, 0, 4)),
        )
    ),
    *(
        Case(
            op,
            [numbers(kind, 2, 7, 6, 3), F(-1), F(2)],
            {"T": kind, "ksize": [1, k, k, 1], "strides": [1, s, s, 1], "padding": padding},
        )
        for op in ("QuantizedMaxPool", "QuantizedAvgPool")
        for kind in ("quint8", "qint8")
        for k in (2, 3)
        for s in (1, 2)
        for padding in ("SAME", "VALID")
    ),
    *(
        Case("QuantizedInstanceNorm", [numbers("quint8", *shape), F(a), F(b)], {"T": "quint8", **attrs})
        for shape in ((1, 4, 4, 2), (3, 5, 2, 4), (2, 16, 8, 3))
        for a, b in ((-1, 2), (0, 6))
        for attrs in ({}, {"output_range_given": True, "given_y_min": -2.0, "given_y_max": 1.5})
    ),
    Case("QuantizedInstanceNorm", [numbers("quint8", 1, 4, 4, 2), F(2), F(2)], {"T": "quint8"}, error=BAD),
    *(
        Case(
            "QuantizedResizeBilinear",
            [numbers(kind, 2, 5, 4, 3), np.int32(size), F(-1), F(2)],
            {"T": kind, "align_corners": corners, "half_pixel_centers": half},
        )
        for kind in ("quint8", "qint32")
        for size in ([3, 3], [9, 10], [5, 4])
        for corners, half in ((False, False), (True, False), (False, True))
    ),
]


@suite(CASES)
def test_quantized_nn(case: Case, device: str, tf: ModuleType) -> None:
    check(case, device)
