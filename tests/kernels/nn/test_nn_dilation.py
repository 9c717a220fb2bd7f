"""Dilation and its gradients against TensorFlow."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import product
from types import ModuleType

import numpy as np
import pytest

from tests.kernels.op_suite import REALS, Case, check, run_ours, sample, suite
from tests.kernels.op_types import taken

pytestmark = pytest.mark.tensorflow

BAD = "INVALID_ARGUMENT"


def cases() -> Iterator[Case]:
    geometry = [((3, 2), (1, 1), (1, 1)), ((2, 2), (2, 1), (1, 2)), ((1, 3), (2, 3), (2, 1))]
    for (window, strides, rates), padding in product(geometry, ("SAME", "VALID")):
        attrs = {"strides": [1, *strides, 1], "rates": [1, *rates, 1], "padding": padding}
        dtypes = taken("Dilation2D", REALS) if window == (3, 2) else ("float32", "int32")
        for dtype in dtypes:
            x, w = sample(dtype, (2, 6, 7, 3)), sample(dtype, (*window, 3), -2, 2)
            tag = f"{dtype}-{window}-{padding}"
            case = Case("Dilation2D", [x, w], attrs, id=tag)
            yield case
            dy = sample(dtype, run_ours(case)[0].shape, seed=3)
            yield Case("Dilation2DBackpropInput", [x, w, dy], attrs, id=tag)
            yield Case("Dilation2DBackpropFilter", [x, w, dy], attrs, id=tag)
    attrs = {"strides": [1, 1, 1, 1], "rates": [1, 1, 1, 1], "padding": "VALID"}
    x, w = sample("float32", (2, 6, 7, 3)), sample("float32", (2, 2, 3))
    ones = np.ones((1, 4, 4, 1), np.float32), np.zeros((2, 2, 1), np.float32), sample("float32", (1, 3, 3, 1))
    for op in ("Dilation2DBackpropInput", "Dilation2DBackpropFilter"):
        yield Case(op, [*ones], attrs, id="ties")
        yield Case(op, [x, w, sample("float32", (2, 4, 6, 3))], attrs, error=BAD)
    yield Case("Dilation2D", [x[:0], w], attrs, id="empty")
    yield Case("Dilation2D", [x[0], w], attrs, error=BAD)
    yield Case("Dilation2D", [x, w[0]], attrs, error=BAD)
    yield Case("Dilation2D", [x, w[..., :2]], attrs, error=BAD)
    yield Case("Dilation2D", [x, sample("float32", (9, 9, 3))], attrs, error=BAD)
    yield Case("Dilation2D", [x, w], attrs | {"strides": [1, 1, 1]}, error=BAD)
    yield Case("Dilation2D", [x, w], attrs | {"strides": [1, 0, 1, 1]}, error=BAD)


CASES = list(cases())


@suite(CASES)
def test_dilation(case: Case, device: str, tf: ModuleType) -> None:
    check(case, device)
