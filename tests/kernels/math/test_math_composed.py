"""Chains of ops as one against TensorFlow."""

from __future__ import annotations

from collections.abc import Iterator
from types import ModuleType

import numpy as np
import pytest

from tests.kernels.op_suite import INTS, UINTS, Case, check, sample, special, suite

pytestmark = pytest.mark.tensorflow

NAMES = (
    "Abs", "Acos", "Acosh", "Asin", "Asinh", "Atan", "Atanh", "Ceil", "Cos", "Cosh", "Elu", "Exp", "Expm1", "Floor",
    "Inv", "Log", "Log1p", "Neg", "Reciprocal", "Relu", "Relu6", "Rint", "Round", "Rsqrt", "Selu", "Sigmoid", "Sin",
    "Sinh", "Sqrt", "Square", "Tan", "Tanh",
)  # fmt: skip


def chains() -> Iterator[Case]:
    attrs = {"graph": True}
    for dtype in ("float32", "float64", "float16"):
        chained = [[name] for name in NAMES if dtype == "float32"]
        for names in [*chained, ["Sqrt", "Exp", "Tanh"], ["Square", "Neg", "Abs", "Log1p"]]:
            fused = {"op_names": [name.encode() for name in names]}
            values = sample(dtype, (3, 4), 0.1, 0.9)
            yield Case("_UnaryOpsComposition", [values], fused, **attrs)
        yield Case("_UnaryOpsComposition", [sample(dtype, (0, 4))], {"op_names": [b"Tanh"]}, **attrs)
    for names in ([], [b"Tanh", b"Sign"]):
        yield Case("_UnaryOpsComposition", [np.float32([1])], {"op_names": names}, **attrs, error="INVALID_ARGUMENT")
    for dtype in UINTS:
        yield Case(
            "_TensorToHashBucketFast", [sample(dtype, (3,))], {"num_buckets": 9}, **attrs, error="INVALID_ARGUMENT"
        )
    for dtype in INTS:
        for value in (sample(dtype, (3, 4), -99, 99), special(dtype), np.zeros((0,), dtype), np.array(7, dtype)):
            yield Case("_TensorToHashBucketFast", [value], {"num_buckets": 1000}, **attrs)
    yield Case("_TensorToHashBucketFast", [np.arange(9)], {"num_buckets": 2**40}, **attrs)


@suite(list(chains()))
def test_composed(case: Case, device: str, tf: ModuleType) -> None:
    check(case, device)
