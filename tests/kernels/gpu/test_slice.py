"""Slices, joins and paddings on a GPU: what shares memory, what is copied, and arguments in host memory."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from tests.kernels.cuda.assembler import assembled
from tests.kernels.op_suite import Case, run_ours
from toolkit.errors import GraphError, InternalError
from toolkit.kernels import registry
from toolkit.kernels.cuda.simt import ptx
from toolkit.kernels.gpu.elementwise import nests
from toolkit.kernels.gpu.elementwise.nests import NestOperand
from toolkit.kernels.gpu.primitives.layout import layout_of, stand_in
from toolkit.kernels.gpu.registering import known_types

_RNG = np.random.default_rng(5)


def _agree(case: Case) -> None:
    for got, wanted in zip(run_ours(case, "GPU"), run_ours(case), strict=True):
        np.testing.assert_array_equal(got, wanted)
        assert got.dtype == wanted.dtype


@pytest.mark.parametrize("dtype", [np.uint8, np.float16, np.float32, np.complex128])
@pytest.mark.parametrize("axis", [0, 1, 2, -1])
def test_joins_of_many(dtype: Any, axis: int) -> None:
    values = [_RNG.integers(0, 99, (3, 4, 5)).astype(dtype) for _ in range(4)]
    values += [np.zeros(np.where(np.arange(3) == axis % 3, 0, [3, 4, 5]), dtype)]
    _agree(Case("ConcatV2", [values, np.int32(axis)]))


@pytest.mark.parametrize("dtype", [np.float16, np.float32, np.float64, np.complex64, np.complex128])
@pytest.mark.parametrize("count", [2, 3, 4, 16, 17])
def test_parts_of_one_shape_are_copied_bit_by_bit(dtype: Any, count: int) -> None:
    """One kernel copies them, at whatever multiple of an element they begin; NaN stays the NaN that it was."""
    bits = _RNG.integers(0, 256, (3, count * 5, 2 * np.dtype(dtype).itemsize), np.uint8)
    x = bits.view(dtype)
    cases = [
        Case("Split", [np.int32(1), x], {"num_split": count}),
        Case("SplitV", [x, np.full(count, 5), np.int32(1)], {"num_split": count}),
        Case("Unpack", [x[:, :count].copy()], {"axis": 1, "num": count}),
        Case("ConcatV2", [np.split(x, count, 1), np.int32(1)]),
        Case("Pack", [list(x.transpose(1, 0, 2)[:count].copy())], {"axis": 1}),
    ]
    for case in cases:
        for got, wanted in zip(run_ours(case, "GPU"), run_ours(case), strict=True):
            assert got.tobytes() == wanted.tobytes() and got.shape == wanted.shape and got.dtype == wanted.dtype


@pytest.mark.parametrize("count", [3, 16])
def test_their_kernels_are_assembled(count: int) -> None:
    made = nests.fused([], [NestOperand("int32", (20, 1))] * count, range(count), (4, 5), aligned=False,
                       placed=[(5, 1)] * count)  # fmt: skip
    assert assembled(ptx.write(made.kernel, (9, 0)), (9, 0)).spills == 0


@pytest.mark.parametrize("mode", ["REFLECT", "SYMMETRIC"])
@pytest.mark.parametrize("pads", [[[0, 0], [2, 1], [0, 0], [3, 3]], [[1, 1], [4, 4], [0, 2], [2, 0]]])
def test_mirrors_and_their_gradients(mode: str, pads: list[list[int]]) -> None:
    shape, paddings = (3, 5, 4, 6), np.array(pads, np.int32)
    x = _RNG.integers(-9, 9, shape).astype(np.float32)  # sums of which are exact
    _agree(Case("MirrorPad", [x, paddings], {"mode": mode}))
    dy = _RNG.integers(-9, 9, np.array(shape) + paddings.sum(1)).astype(np.float32)
    _agree(Case("MirrorPadGrad", [dy, paddings], {"mode": mode}))


@pytest.mark.parametrize("dtype", [np.bool_, np.float16, np.float32, np.complex64, np.complex128])
@pytest.mark.parametrize("pads", [[[1, 0], [0, 0], [2, 2]], [[0, 0], [3, 1], [0, 0]], [[0, 0], [0, 0], [2, 4]]])
def test_paddings_by_words(dtype: Any, pads: list[list[int]]) -> None:
    """Numbers next to each other are padded as one word where they can be."""
    x = _RNG.integers(0, 2, (2, 3, 8)).astype(dtype)
    _agree(Case("PadV2", [x, np.array(pads, np.int32), np.asarray(1, dtype)]))


def test_slices_of_zeros_and_scalars() -> None:
    _agree(Case("Slice", [np.float32(3), np.zeros(0, np.int32), np.zeros(0, np.int32)]))
    _agree(Case("Slice", [np.zeros((0, 4), np.float32), np.int32([0, 1]), np.int32([0, 2])]))
    attributes = {"shrink_axis_mask": 3, "ellipsis_mask": 0}
    x = _RNG.normal(size=(4, 5))
    _agree(Case("StridedSlice", [x, np.int32([-1, 2]), np.int32([0, 3]), np.int32([1, 1])], attributes))


def test_integers_of_32_bits_stay_with_the_host() -> None:
    (y,) = run_ours(Case("StridedSlice", [np.arange(6, dtype=np.int32), *(np.int32([v]) for v in (1, 5, 2))]), "GPU")
    np.testing.assert_array_equal(y, [1, 3])


@pytest.mark.parametrize("dtype", [np.float16, np.float32, np.int64, np.complex128])
@pytest.mark.parametrize("counts", [[1, 1], [2, 3], [4, 1]])
def test_gradients_of_copies(dtype: Any, counts: list[int]) -> None:
    dy = _RNG.integers(-9, 9, (8, 6)).astype(dtype)  # sums of which are exact
    _agree(Case("TileGrad", [dy, np.array(counts, np.int32)]))


def test_what_is_no_view_is_found() -> None:
    base = stand_in((2, 3), np.float32)
    with pytest.raises(InternalError, match="was copied on the host"):
        layout_of(np.ones((2, 3), np.float32), base)


def test_types_are_tensorflows() -> None:
    assert {str(t) for t in known_types("OneHot")["TI"]} == {"int8", "int32", "int64", "uint8"}
    assert registry.candidates("Slice", "GPU")[0].device_type == "GPU"
    with pytest.raises(GraphError, match="no kernel for UnravelIndex on GPUs"):
        known_types("UnravelIndex")
