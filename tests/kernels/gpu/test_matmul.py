"""Products on a GPU: how batches are laid out, and the same numbers by the library and by our own kernels."""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np
import pytest

from tests.kernels import beside_cpu
from tests.kernels.gpu.without_libraries import without_libraries
from toolkit.kernels.cuda.device import device
from toolkit.kernels.cuda.libraries import precision
from toolkit.kernels.cuda.libraries.base import Product
from toolkit.kernels.cuda.nn.products import product_kernel
from toolkit.kernels.cuda.products import batches, multiply
from toolkit.kernels.cuda.simt import machine

OPS = ("MatMul", "BatchMatMul", "BatchMatMulV2", "Einsum", "_FusedMatMul")


@pytest.mark.parametrize("op", OPS)
def test_without_a_library(op: str) -> None:
    with without_libraries():
        problems = [each for each in beside_cpu.run_op(beside_cpu.Work(op, "GPU", 12)) if each.problem]
    assert not problems, "\n".join(f"{each.label}: {each.problem}" for each in problems)


LEADS = [(), (1,), (3,), (2, 3), (1, 3), (2, 1), (4, 1, 3), (1, 2, 1), (4, 2, 3)]


@pytest.mark.parametrize(("a", "b"), list(itertools.product(LEADS, LEADS)), ids=str)
def test_batches_name_each_pair_of_matrices_once(a: tuple[int, ...], b: tuple[int, ...]) -> None:
    try:
        wanted = np.broadcast_arrays(np.arange(np.prod(a)).reshape(a), np.arange(np.prod(b)).reshape(b))
    except ValueError:
        return  # such shapes are refused before
    shape, found = batches(a, b)
    assert shape == wanted[0].shape
    pairs: dict[int, tuple[int, int]] = {}
    for each in found:
        for i in range(each.count):
            first, second, out = (start + i * step for start, step in zip(each.firsts, each.steps, strict=True))
            assert out not in pairs
            pairs[out] = first, second
    assert pairs == dict(enumerate(zip(*(one.ravel().tolist() for one in wanted), strict=True)))


def test_a_batch_that_broadcasts_evenly_is_one_call() -> None:
    assert len(batches((2, 3), (2, 3))[1]) == len(batches((2, 3), ())[1]) == len(batches((1, 1), (4, 5))[1]) == 1
    assert len(batches((2, 1), (1, 3))[1]) == 2


def test_places_in_64_bits_are_the_same_product() -> None:
    """Kernels for tensors of more than 2^31 elements, on small ones."""
    a, b = np.arange(12, dtype=np.float64), np.arange(20, dtype=np.float64)
    out = np.zeros(15)
    kernel = product_kernel("double", 1, (False, False), "i64")
    machine.run(kernel, 1, [a, b, out, 3, 5, 4, 0, 0, 4, 1, 0, 0, 5, 1, 0, 0, 5])
    np.testing.assert_array_equal(out.reshape(3, 5), a.reshape(3, 4) @ b.reshape(4, 5))


def test_tf32_is_off_until_it_is_allowed() -> None:
    gpu = device(0)
    x = gpu.to_device(np.ones((2, 2), np.float32))
    blas: Any = gpu.context.blas
    blas.plans.clear()
    multiply(gpu, x, x, gpu.empty((2, 2), np.float32), (2, 2, 2))
    precision.allow_tf32(True)
    try:
        multiply(gpu, x, x, gpu.empty((2, 2), np.float32), (2, 2, 2))
    finally:
        precision.allow_tf32(False)
    assert blas.plans == {Product(2, 2, 2, "float32"), Product(2, 2, 2, "float32", tf32=True)}
