"""Cases made of the op suite's on a GPU beside the CPU: a sample, and what such cases have found."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from tests.kernels import beside_cpu
from tests.kernels.op_suite import Case, from_device, run_ours, sample

OPS = beside_cpu.ops_of("GPU")
#: every so many ops have a case of their own in every run; the others with `-m long`
FEW = 4
#: of the numbers that cases are made with
SEED = 3
#: what says little of other cases than the suite's, and why
NOT_VARIED = {
    "IFFT3D": "beside what is not finite nothing says how far roundings go",
    "IRFFT3D": "two dozen runs say too little of roundings in sums of sums of sums",
    "LowerBound": "rows that are not in order have any place",
    "UpperBound": "rows that are not in order have any place",
}


def _ones(*shape: int, dtype: str = "float32") -> Any:
    return np.ones(shape, dtype)


def _with(x: Any, place: tuple[int, ...], value: float) -> Any:
    x = x.copy()
    x[place] = value
    return x


_GLOBAL = {"variance_epsilon": 0.01, "scale_after_normalization": True}
_TRIANGLE = np.float32([[2, 0, 0], [1, 3, 0], [3, 4, 5]])
_PATCHES = {"ksizes": [1, 2, 2, 1], "strides": [1, 1, 1, 1], "rates": [1, 1, 1, 1], "padding": "VALID"}
FOUND = [
    Case("ConcatV2", [[_ones(0, 3), _ones(0, 2)], np.int32(1)]),
    Case("Concat", [np.int32(0), [_ones(2, 3, 0), _ones(1, 3, 0)]]),
    Case("BiasAddGrad", [_ones(0, 3, 2, 2)], {"data_format": "NCHW"}),
    Case("BiasAddGrad", [_ones(2, 3, 0, 2)], {"data_format": "NCHW"}),
    Case("Sum", [_ones(0, 3, 2), np.int32([0, 2])]),
    Case("BatchNormWithGlobalNormalizationGrad", [_ones(2, 0, 2, 0), *[_ones(0)] * 3, _ones(2, 0, 2, 0)], _GLOBAL),
    Case("BatchNormWithGlobalNormalizationGrad", [_ones(9, 3, 2, 3), *[_ones(3)] * 3, _ones(2, 3, 2, 3)], _GLOBAL),
    Case("ExtractImagePatches", [sample("bool", (1, 4, 5, 2))], _PATCHES),
    Case("Svd", [_with(_ones(2, 2), (0, 1), np.nan)]),
    Case("MatrixTriangularSolve", [_with(_TRIANGLE, (1, 1), np.nan), _ones(3, 2)]),
    Case("MatrixTriangularSolve", [_with(_TRIANGLE, (2, 0), np.inf), _ones(3, 2)]),
    Case("SparseTensorDenseMatMul", [np.int64([[0, 0]]), _ones(1), np.int64([-3, 4]), _ones(4, 2)]),
    Case("MatMul", [_ones(4, 3), _ones(4, 5)], {"transpose_b": True}),
    Case("Zeta", [np.float64([1.5, 2, 3]), np.float64([np.inf, np.inf, 1])]),
    Case("LSTMBlockCell", [_ones(1, 3, 4), *[_ones(1, 3, 5)] * 2, _ones(9, 20), *[_ones(5)] * 3, _ones(20)]),
    *(Case(op, [np.complex64([800j, 1 + 800j, -800j, 800, -800])]) for op in ("Sin", "Cos", "Sinh", "Cosh")),
    Case("HistogramFixedWidth", [np.float32([1, np.inf, -np.inf]), np.float32([0, 5]), np.int32(5)]),
    Case("AdjustContrast", [sample("float32", (1, 2, 2, 1)), np.float32(1), np.float32("nan"), np.float32(5)]),
]


def _assert_agree(op: str, count: int) -> None:
    work = beside_cpu.Work(op, "GPU", varied=count, seed=SEED)
    problems = [each for each in beside_cpu.run_op(work) if each.problem]
    assert not problems, "\n".join(f"{each.label}: {each.problem}" for each in problems)


@pytest.mark.parametrize("op", [op for op in OPS[::FEW] if op not in NOT_VARIED])
def test_a_case_of_some_ops(op: str) -> None:
    _assert_agree(op, 1)


@pytest.mark.long
@pytest.mark.parametrize("op", [op for op in OPS if op not in NOT_VARIED])
def test_a_case_of_each_op(op: str) -> None:
    _assert_agree(op, 1)


@pytest.mark.parametrize("case", FOUND, ids=lambda case: case.label)
def test_found(case: Case) -> None:
    beside_cpu.check(case, "GPU", texts=True)


@pytest.mark.parametrize("with_batch", [False, True])
@pytest.mark.parametrize("dtype", ["float32", "float64", "float16", "bfloat16"])
def test_second_gradients_by_places(dtype: str, with_batch: bool) -> None:
    attrs = {"ksize": [1, 2, 3, 1], "strides": [1, 2, 2, 1], "padding": "SAME", "include_batch_in_index": with_batch}
    image, ddx = sample(dtype, (2, 5, 7, 3)), sample(dtype, (2, 5, 7, 3), seed=1)
    _, places = run_ours(Case("MaxPoolWithArgmax", [image], {**attrs, "Targmax": "int64"}))
    for given in (
        [image, ddx, places],
        [image, ddx[:1], places],
        [image, ddx, places[:1]],
        [image[:0], ddx[:0], places[:0]],
    ):
        beside_cpu.check(Case("MaxPoolGradGradWithArgmax", given, attrs), "GPU", texts=True)
    outside = run_ours(Case("MaxPoolGradGradWithArgmax", [image, ddx, places + image.size], attrs), "GPU")
    assert not from_device("GPU", outside[0]).any()


@pytest.mark.parametrize("seed", range(8))
def test_proposals(seed: int) -> None:
    """Anchors whose sizes are powers of two, moved by none: what overlaps does not depend on roundings."""
    random = np.random.default_rng(seed)
    corners = random.integers(0, 64, (4, 3, 5, 2)).astype(np.float32)
    anchors = np.concatenate([corners, corners + 2.0 ** random.integers(0, 6, (4, 3, 5, 2))], axis=-1).astype(
        np.float32
    )
    scores = random.permutation(2 * 60).reshape(2, 4, 3, 5).astype(np.float32)
    info = np.float32([[50, 60, 1, 50, 60], [40, 30, 2, 40, 30]])
    deltas = np.zeros((2, 4, 3, 20), np.float32)
    if seed % 2:
        deltas[..., :2] = random.integers(-2, 3, (2, 4, 3, 2)) / 4
    for most, least, threshold, count in (
        (40, 1.0, 0.5, 6),
        (7, 15.0, 0.0, 80),
        (500, 0.0, 1.0, 500),
        (1, 99.0, 0.3, 1),
    ):
        given = [
            scores,
            deltas,
            info,
            anchors.reshape(4, 3, 20),
            np.float32(threshold),
            np.int32(most),
            np.float32(least),
        ]
        beside_cpu.check(Case("GenerateBoundingBoxProposals", given, {"post_nms_topn": count}), "GPU", texts=True)
    scores[0, 1, 1, 1] = np.nan if seed % 2 else -np.inf
    given = [scores, deltas, info, anchors.reshape(4, 3, 20), np.float32(0.5), np.int32(30), np.float32(1)]
    beside_cpu.check(Case("GenerateBoundingBoxProposals", given, {"post_nms_topn": 20}), "GPU", texts=True)
