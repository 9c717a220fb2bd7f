"""Kernels of ops that have one kernel each, as PTX: NVIDIA's assembler takes them for each kind of GPU."""

from __future__ import annotations

import pytest

from tests.kernels.cuda.assembler import assembled
from toolkit.kernels.cuda.simt import ptx
from toolkit.kernels.gpu.linalg import tridiagonal
from toolkit.kernels.gpu.math import cross
from toolkit.kernels.gpu.nn import pool_places

pytest.importorskip("llvmlite")


@pytest.mark.parametrize("capability", [(8, 0), (9, 0), (10, 0)], ids=str)
def test_they_are_assembled(capability: tuple[int, int]) -> None:
    kernels = [*map(cross.cross_kernel, ("float32", "float16", "int64", "uint8"))]
    kernels += [*map(tridiagonal.product_kernel, ("float64", "complex64")), pool_places.place_kernel()]
    for kernel in kernels:
        assert assembled(ptx.write(kernel, capability), capability).spills == 0, kernel.name
