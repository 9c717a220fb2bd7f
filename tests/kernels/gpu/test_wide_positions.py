"""Positions of 64 bits, which tensors of 2^31 elements and more have: the same kernels, made for small tensors here."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.kernels import beside_cpu
from toolkit.kernels.gpu.primitives import copying, indexing

#: an op for each kernel that has positions
OPS = [
    "AdjustContrastv2", "ConcatV2", "CropAndResize", "CropAndResizeGradBoxes", "CropAndResizeGradImage",
    "ConjugateTranspose", "Dilation2D", "Dilation2DBackpropFilter", "Dilation2DBackpropInput",
    "FakeQuantWithMinMaxVarsGradient", "Gather", "GatherNd", "GatherV2", "HSVToRGB", "ImageProjectiveTransformV3",
    "MatrixBandPart", "MirrorPad", "MirrorPadGrad", "OneHot", "PadV2", "QuantizeAndDequantizeV2", "ResizeBilinear",
    "ResizeBilinearGrad", "ResizeNearestNeighbor", "ReverseSequence", "ScatterNd", "SparseTensorDenseMatMul",
    "TensorScatterUpdate", "Transpose",
]  # fmt: skip


@pytest.fixture
def wide(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.setattr(indexing, "MOST_32", 0)
    copying.plan.cache_clear()
    yield
    copying.plan.cache_clear()


@pytest.mark.parametrize("op", OPS)
def test_positions_of_64_bits(op: str, wide: None) -> None:
    assert indexing.index_type(1) == "i64"
    results = beside_cpu.run_op(beside_cpu.Work(op, "GPU", 4))
    problems = [f"{each.label}: {each.problem}" for each in results if each.problem]
    assert results and not problems, "\n".join(problems)
