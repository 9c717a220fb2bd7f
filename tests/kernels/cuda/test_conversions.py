"""Tensors in another floating-point type: the bits of NumPy's rounding, for any number of tensors of any size."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import ml_dtypes
import numpy as np
import pytest

from toolkit.kernels.cuda.conversions import MOST_TOGETHER, converted
from toolkit.kernels.cuda.device import device
from toolkit.kernels.cuda.driver import choose
from toolkit.kernels.cuda.driver.fake import FakeDriver

pytest.importorskip("llvmlite")


@pytest.fixture(autouse=True)
def _fake() -> Iterator[None]:
    with choose.using(FakeDriver()):
        yield


@pytest.mark.parametrize("narrow", [ml_dtypes.bfloat16, np.float16], ids=["bf16", "fp16"])
def test_bits_are_those_of_numpy(narrow: Any) -> None:
    """Ties, numbers too large and too small, infinities; more tensors than a kernel has arguments for."""
    gpu = device(0)
    special = [
        0.0,
        -0.0,
        np.inf,
        -np.inf,
        65504.0,
        65519.9,
        65520.0,
        3e38,
        1e-8,
        -6e-8,
        1 + 2**-8,
        1 + 3 * 2**-8,
        1e-42,
    ]
    random = np.random.default_rng(0)
    arrays = [random.normal(size=1 + 7 * at).astype(np.float32) for at in range(MOST_TOGETHER + 3)]
    arrays += [np.array(special, np.float32), np.zeros((0, 3), np.float32), random.normal(size=(5, 321)).astype("f")]
    with np.errstate(over="ignore"):
        wanted = [each.astype(narrow) for each in arrays]
    found = [gpu.to_host(each) for each in converted(gpu, [gpu.to_device(each) for each in arrays], narrow)]
    for one, other in zip(found, wanted, strict=True):
        assert one.shape == other.shape
        np.testing.assert_array_equal(one.view(np.uint16), other.view(np.uint16))
    back = [gpu.to_host(each) for each in converted(gpu, [gpu.to_device(each) for each in wanted], np.float32)]
    for one, other in zip(back, wanted, strict=True):
        np.testing.assert_array_equal(one, other.astype(np.float32))


def test_nan_stays_and_what_has_the_type_is_handed_on() -> None:
    gpu = device(0)
    (made,) = converted(gpu, [gpu.to_device(np.array([np.nan, 1.0], np.float32))], np.float16)
    assert np.isnan(gpu.to_host(made)[0])
    assert converted(gpu, [made], made.dtype)[0] is made
