"""Random numbers on a GPU: the CPU's, bit by bit where no logarithm is taken."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from tests import tolerance
from tests.kernels.cuda.assembler import assembled
from toolkit.graph import dtypes
from toolkit.kernels.cpu.random.basic import FILLS, fill_integers, multinomial
from toolkit.kernels.cuda.device import device
from toolkit.kernels.cuda.simt import ptx
from toolkit.kernels.gpu.random import philox
from toolkit.kernels.gpu.random.multinomial import draw_classes
from toolkit.kernels.gpu.random.philox import fill_random
from toolkit.kernels.random.philox import Philox

#: the counter's lower half overflows within the tensor
GENERATOR = Philox(0xFEDCBA9876543210, (7 << 64) | (1 << 64) - 3)
SIZES = [(1,), (3,), (4,), (1025,), (3, 1000)]


def run(shape: tuple[int, ...], dtype: Any, distribution: str, *bounds: int) -> Any:
    gpu = device(0)
    made = fill_random(gpu, GENERATOR, shape, dtype, distribution, *bounds)
    key = gpu.to_device(np.array([GENERATOR.key], np.uint64))
    words = [GENERATOR.counter & (1 << 64) - 1, GENERATOR.counter >> 64]
    counter = gpu.to_device(np.array(words, np.uint64))
    again = fill_random(gpu, (key, counter), shape, dtype, distribution, *bounds)
    found = gpu.to_host(made)
    np.testing.assert_array_equal(found, gpu.to_host(again))
    return found


@pytest.mark.parametrize("shape", SIZES)
@pytest.mark.parametrize("name", ["float32", "float64", "float16", "bfloat16"])
def test_uniform_numbers_are_the_cpus(shape: tuple[int, ...], name: str) -> None:
    dtype = dtypes.from_name(name).numpy
    np.testing.assert_array_equal(run(shape, dtype, "Uniform"), FILLS["Uniform"](GENERATOR, shape, dtype))


@pytest.mark.parametrize("shape", SIZES)
@pytest.mark.parametrize("dtype", [np.int32, np.int64, np.uint32, np.uint64])
def test_integers_are_the_cpus(shape: tuple[int, ...], dtype: Any) -> None:
    np.testing.assert_array_equal(
        run(shape, np.dtype(dtype), "FullInt"), FILLS["FullInt"](GENERATOR, shape, np.dtype(dtype))
    )
    info = np.iinfo(dtype)
    for low, high in ((2, 12), (int(info.min), int(info.max))):
        wanted = fill_integers(GENERATOR, shape, np.array(low, dtype), np.array(high, dtype))
        np.testing.assert_array_equal(run(shape, np.dtype(dtype), "Integers", low, high), wanted)


@pytest.mark.parametrize("distribution", ["Normal", "TruncatedNormal"])
@pytest.mark.parametrize("name", ["float32", "float64", "float16", "bfloat16"])
def test_normal_numbers_are_the_cpus_but_for_the_last_digit(distribution: str, name: str) -> None:
    """Those of the C library and ours are both within a unit of the exact ones, twice, and their product is rounded."""
    dtype = dtypes.from_name(name).numpy
    for shape in SIZES:
        wanted = FILLS[distribution](GENERATOR, shape, dtype).astype(np.float64)
        found = run(shape, dtype, distribution).astype(np.float64)
        tolerance.assert_within(found, wanted, tolerance.gamma(6, dtype) * np.abs(wanted), distribution)
        if name == "float32" and wanted.size > 1000:
            assert np.mean(found == wanted) > 0.9  # most are the same number


def test_nothing_is_nothing() -> None:
    assert fill_random(device(0), GENERATOR, (0, 3), np.dtype(np.float32), "Uniform").shape == (0, 3)


@pytest.mark.parametrize("distribution", philox.DISTRIBUTIONS)
def test_ptxas_takes_each_distribution(distribution: str) -> None:
    types = ("int32", "uint64") if distribution in ("FullInt", "Integers") else ("float32", "float64", "bfloat16")
    for dtype in types:
        kernel = philox.kernel_of(distribution, dtype, is_tensor=True)
        assert assembled(ptx.write(kernel, (9, 0)), (9, 0)).spills == 0


def test_classes_of_many_rows_and_more_than_a_block() -> None:
    gpu = device(0)
    logits = np.random.default_rng(0).normal(size=(3, 1000)).astype(np.float32)
    logits[1, :999] = -np.inf
    made = draw_classes(gpu, GENERATOR, gpu.to_device(logits), 501, np.dtype(np.int64))
    wanted = multinomial(GENERATOR, logits, 501, np.dtype(np.int64))
    np.testing.assert_array_equal(gpu.to_host(made), wanted)
