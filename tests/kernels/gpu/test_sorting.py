"""Sorting on a GPU: tiles, runs that are merged, records of both widths."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from tests.kernels.op_suite import Case, build, compare_outputs, from_device, prepare, run_ours, to_device
from toolkit.kernels import registry

TYPES = ["float32", "float64", "int32", "float16", "uint32", "uint64", "int8", "uint8", "int64"]


def _agrees(op: str, inputs: list[Any], attrs: dict[str, Any] | None = None) -> list[Any]:
    case = Case(op, inputs, attrs or {})
    ready = prepare(case)
    got = run_ours(case, "GPU", ready=ready)
    compare_outputs(case, got, run_ours(case, ready=ready, defining=True), ready)
    return got


@pytest.mark.parametrize("dtype", TYPES)
@pytest.mark.parametrize("shape", [(5, 3), (3, 999), (2, 5000), (1, 20000)], ids=str)
def test_the_largest_of_rows(shape: tuple[int, int], dtype: str) -> None:
    """Few and many of them; many equal ones, whose places rise."""
    x = (100 * np.random.default_rng(1).normal(size=shape)).astype(dtype)
    for k in {1, min(100, shape[1]), shape[1]}:
        _agrees("TopKV2", [x, np.int32(k)])


def test_zeros_and_nans() -> None:
    """-0 is 0; NaN is the largest of all."""
    for dtype in (np.float32, np.float16, np.float64):
        x = np.array([[0.0, -0.0, np.nan, 1, -np.inf, np.inf, -0.0, 0.0, np.nan, -1]]).astype(dtype)
        _agrees("TopKV2", [x, np.int32(10)])


def test_k_may_be_an_attribute() -> None:
    x = np.random.default_rng(2).normal(size=(4, 30)).astype(np.float32)
    case = Case("TopK", [x], {"k": 7})
    ready = prepare(case)
    node = build(case, ready)
    node.device = "/device:GPU:0"
    compute = registry.get(node, "GPU").factory(registry.KernelNode(node))
    values, indices = (from_device("GPU", each) for each in compute(to_device("GPU", x)))
    np.testing.assert_array_equal(indices, np.argsort(-x, axis=1)[:, :7])
    np.testing.assert_array_equal(values, np.take_along_axis(x, indices, 1))
