"""Cases made of the op suite's on a GPU beside the CPU: a sample, and what such cases have found."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from tests.kernels import beside_cpu
from tests.kernels.op_suite import Case, sample

#: ops of one test, so that their processes' start is paid once
TOGETHER = 40
OPS = beside_cpu.ops_of("GPU")


def _ones(*shape: int, dtype: str = "float32") -> Any:
    return np.ones(shape, dtype)


def _with(x: Any, place: tuple[int, ...], value: float) -> Any:
    x = x.copy()
    x[place] = value
    return x


_GLOBAL = {"variance_epsilon": 0.01, "scale_after_normalization": True}
_TRIANGLE = np.float32([[2, 0, 0], [1, 3, 0], [3, 4, 5]])
_PATCHES = {"ksizes": [1, 2, 2, 1], "strides": [1, 1, 1, 1], "rates": [1, 1, 1, 1], "padding": "VALID"}
FOUND = [
    Case("ConcatV2", [[_ones(0, 3), _ones(0, 2)], np.int32(1)]),
    Case("Concat", [np.int32(0), [_ones(2, 3, 0), _ones(1, 3, 0)]]),
    Case("BiasAddGrad", [_ones(0, 3, 2, 2)], {"data_format": "NCHW"}),
    Case("BiasAddGrad", [_ones(2, 3, 0, 2)], {"data_format": "NCHW"}),
    Case("Sum", [_ones(0, 3, 2), np.int32([0, 2])]),
    Case("BatchNormWithGlobalNormalizationGrad", [_ones(2, 0, 2, 0), *[_ones(0)] * 3, _ones(2, 0, 2, 0)], _GLOBAL),
    Case("BatchNormWithGlobalNormalizationGrad", [_ones(9, 3, 2, 3), *[_ones(3)] * 3, _ones(2, 3, 2, 3)], _GLOBAL),
    Case("ExtractImagePatches", [sample("bool", (1, 4, 5, 2))], _PATCHES),
    Case("Svd", [_with(_ones(2, 2), (0, 1), np.nan)]),
    Case("MatrixTriangularSolve", [_with(_TRIANGLE, (1, 1), np.nan), _ones(3, 2)]),
    Case("MatrixTriangularSolve", [_with(_TRIANGLE, (2, 0), np.inf), _ones(3, 2)]),
    Case("AdjustContrast", [sample("float32", (1, 2, 2, 1)), np.float32(1), np.float32("nan"), np.float32(5)]),
]


@pytest.mark.parametrize("case", FOUND, ids=lambda case: case.label)
def test_found(case: Case) -> None:
    beside_cpu.check(case, "GPU", texts=True)
