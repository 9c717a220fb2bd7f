"""Elementwise ops quantized as they are computed: the bits of those that are stored in between."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

from toolkit.kernels.cuda.device import device
from toolkit.kernels.cuda.driver import choose
from toolkit.kernels.cuda.driver.fake import FakeDriver
from toolkit.kernels.cuda.float8 import quantized
from toolkit.kernels.cuda.simt import ptx
from toolkit.kernels.gpu.elementwise.float8_nests import Given, launch_quantized_nest, nest_kernels
from toolkit.kernels.gpu.elementwise.nests import NestOperand, NestStep, fused
from toolkit.kernels.tensors import BF16, F8, F32

pytest.importorskip("llvmlite")
_TRUNCATE = (("Truncate", False),)
#: gelu by erf, of bfloat16 in float32
GELU = (
    NestStep("Cast", (0,), "float32", _TRUNCATE), NestStep("Mul", (3, 1), "float32"), NestStep("Erf", (4,), "float32"),
    NestStep("AddV2", (5, 2), "float32"), NestStep("Mul", (3, 6), "float32"),
    NestStep("Cast", (7,), "bfloat16", _TRUNCATE),
)  # fmt: skip
GIVEN = (Given("bfloat16", False), Given("float32", True), Given("float32", True))
_OUTPUT = 8


@pytest.fixture(autouse=True)
def _fake() -> Iterator[None]:
    with choose.using(FakeDriver()):
        yield


@pytest.mark.parametrize("shape", [(8,), (3, 40), (5, 7, 16)])
def test_bits(shape: tuple[int, ...]) -> None:
    gpu = device(0)
    x: Any = (np.random.default_rng(0).normal(size=shape) * 2).astype(BF16)
    arrays = [gpu.to_device(each) for each in (x, np.float32(0.5**0.5), np.float32(1.0))]
    operands = [NestOperand("bfloat16", (1,)), *[NestOperand("float32", (0,))] * 2]
    whole = fused(GELU, operands, [_OUTPUT], [x.size])
    stored = gpu.empty(shape, BF16)
    gpu.launch(whole.kernel, whole.blocks, *arrays, stored, *whole.numbers)
    made, factor = gpu.empty(shape, F8), gpu.empty((1,), F32)
    launch_quantized_nest(gpu, GELU, GIVEN, _OUTPUT, arrays, made, factor)
    if x.size % 16 == 0:
        wanted, known = (gpu.to_host(each) for each in quantized(gpu, stored, turned=False))
        np.testing.assert_array_equal(gpu.to_host(made).view(np.uint8), wanted.view(np.uint8))
        np.testing.assert_array_equal(gpu.to_host(factor), known)
    largest = np.max(np.abs(gpu.to_host(stored).astype(np.float32)))
    assert gpu.to_host(factor)[0] == largest * np.float32(1 / 448)


@pytest.mark.parametrize("capability", [(8, 9), (9, 0), (10, 0)], ids=str)
def test_ptxas_takes_them(capability: tuple[int, int]) -> None:
    from tests.kernels.cuda.assembler import assembled

    for kernel in nest_kernels(GELU, GIVEN, _OUTPUT, "i32"):
        assert assembled(ptx.write(kernel, capability), capability).spills == 0
