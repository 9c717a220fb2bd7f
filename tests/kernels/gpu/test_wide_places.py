"""Tensors of more than 2^31 elements: kernels that number places in 64 bits give the same, tried on small ones."""

from __future__ import annotations

import pytest

from tests.kernels import beside_cpu
from tests.kernels.gpu.without_libraries import without_libraries
from toolkit.kernels.cuda.nn import common

OPS = (
    "MatMul", "Einsum", "Conv2D", "Conv2DBackpropInput", "Conv2DBackpropFilter", "DepthwiseConv2dNative",
    "DepthwiseConv2dNativeBackpropInput", "DepthwiseConv2dNativeBackpropFilter", "MaxPool", "MaxPoolGrad",
    "MaxPoolWithArgmax", "AvgPool", "AvgPoolGrad", "FusedBatchNormV3", "FusedBatchNormGradV3", "BiasAdd", "LRN",
    "LRNGrad",
)  # fmt: skip


@pytest.mark.parametrize("op", OPS)
def test_places_in_64_bits(op: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(common, "_MOST_IN_32_BITS", -1)
    with without_libraries():
        problems = [each for each in beside_cpu.run_op(beside_cpu.Work(op, "GPU", 6)) if each.problem]
    assert not problems, "\n".join(f"{each.label}: {each.problem}" for each in problems)
