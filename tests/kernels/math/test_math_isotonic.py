"""Isotonic regression against TensorFlow."""

from __future__ import annotations

from collections.abc import Iterator
from types import ModuleType
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as arrays

from tests.kernels.op_suite import FLOATS, Case, check, sample, suite

pytestmark = pytest.mark.tensorflow

RESULTS = {name: name for name in FLOATS} | {
    "int8": "float32", "int16": "float32", "int32": "float64", "int64": "float64",
}  # fmt: skip
EXACT = {"exact": True}


def rows() -> Iterator[Case]:
    for dtype, result in RESULTS.items():
        for shape in ((5,), (3, 9), (2, 3, 40), (0, 3), (2, 0), (4, 1)):
            yield Case("IsotonicRegression", [sample(dtype, shape)], {"output_dtype": result}, **EXACT)
        ends = [np.sort(sample(dtype, (9,))), np.sort(sample(dtype, (9,)))[::-1].copy(), np.ones(9, dtype)]
        for number, value in enumerate(ends if dtype != "bfloat16" else ()):
            yield Case("IsotonicRegression", [value], {"output_dtype": result}, **EXACT, id=f"{dtype}-{number}")


@suite(list(rows()))
def test_isotonic_regression(case: Case, device: str, tf: ModuleType) -> None:
    check(case, device)


@settings(max_examples=30, deadline=None, print_blob=True)
@given(
    arrays.arrays(
        np.float64, arrays.array_shapes(min_dims=1, max_dims=2, max_side=12), elements=st.floats(-9, 9, width=16)
    )
)
def test_any_sequence(values: Any) -> None:
    check(Case("IsotonicRegression", [values], {"output_dtype": "float64"}, **EXACT))
