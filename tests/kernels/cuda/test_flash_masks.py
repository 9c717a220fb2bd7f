"""What attention's kernels take besides one mask: a bias, choices, dropouts, groups of heads, beside what is the same
without: numbers that are the same bits, or within a sum's roundings."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest

from tests import tolerance
from tests.kernels.cuda.attention_cases import FLOATS, Device, Memory
from toolkit.kernels.cuda.libraries.attention import packed_strides
from toolkit.kernels.cuda.nn.flash_gradient_launch import launch_gradient
from toolkit.kernels.cuda.nn.flash_launch import FlashMasks, launch_flash
from toolkit.kernels.cuda.simt import matrix
from toolkit.kernels.types import Array

pytest.importorskip("llvmlite")
BATCH, HEADS, ROWS, KEYS, SIZE = SIZES = (2, 4, 21, 37, 16)
_RNG = np.random.default_rng(5)
_SCORES = (BATCH, HEADS, ROWS, KEYS)


def _run(dtype: str, given: dict[str, Array], beside: FlashMasks) -> dict[str, Array]:
    """The result and the gradients of an attention, with heads of keys as they are given."""
    values = {name: each.astype(FLOATS[dtype]) for name, each in given.items()}
    made: dict[str, Array] = {
        "out": np.full_like(values["q"], np.nan), **{f"d{name}": np.full_like(values[name], np.nan) for name in "qkv"}
    }  # fmt: skip
    statistics = np.full((BATCH, HEADS, ROWS, 2), np.nan, np.float32)
    sizes = (BATCH, HEADS, ROWS, KEYS, SIZE, SIZE)
    memory = {name: Memory(each.reshape(-1)) for name, each in (*values.items(), *made.items())}
    at: dict[str, Any] = {name: packed_strides(each.shape) for name, each in (*values.items(), *made.items())}
    forward, gradients = ("q", "k", "v", "out"), ("dq", "dk", "dv")
    launch_flash(
        Device(), [memory[name] for name in forward], sizes, [at[name] for name in forward], SIZE**-0.5, beside=beside,
        statistics=Memory(statistics.reshape(-1)), keeps=2,
    )  # fmt: skip
    read = (*forward, "d_out")
    launch_gradient(
        Device(), [memory[name] for name in read], [memory[name] for name in gradients],
        Memory(statistics.reshape(-1)), sizes, [at[name] for name in read], [at[name] for name in gradients],
        SIZE**-0.5, beside=beside, keeps=2,
    )  # fmt: skip
    return {name: memory[name].flat.reshape(made[name].shape) for name in made}


def _given(groups: int = HEADS) -> dict[str, Array]:
    rng = np.random.default_rng(groups)
    heads = {"q": HEADS, "k": groups, "v": groups, "d_out": HEADS}
    rows = {"q": ROWS, "k": KEYS, "v": KEYS, "d_out": ROWS}
    return {name: rng.normal(size=(BATCH, heads[name], rows[name], SIZE)) for name in heads}


def _mask(array: Array) -> tuple[Memory, tuple[int, int, int, int]]:
    """In memory, with strides of 0 where it has one place."""
    steps = [step // array.itemsize if size > 1 else 0 for step, size in zip(array.strides, array.shape, strict=True)]
    return Memory(array.reshape(-1)), (steps[0], steps[1], steps[2], steps[3])


@pytest.mark.parametrize("dtype", ["float32", "bfloat16"])
def test_a_bias_is_a_second_mask(dtype: str) -> None:
    """Of whole numbers their sum is exact."""
    mask = _RNG.integers(-3, 3, (BATCH, 1, 1, KEYS)).astype(np.float32)
    bias = _RNG.integers(-3, 3, (1, HEADS, ROWS, KEYS)).astype(np.float32)
    both = _run(dtype, _given(), FlashMasks(*_mask(mask), *_mask(bias)))
    one = _run(dtype, _given(), FlashMasks(*_mask(np.ascontiguousarray(mask + bias))))
    for name, each in both.items():
        tolerance.assert_within(each.astype(np.float64), one[name].astype(np.float64), _of_sums(dtype, one[name]), name)


def _of_sums(dtype: str, like: Array) -> float:
    """A score and two numbers are added in another order, so that exponentials may be rounded otherwise as factors."""
    unit = matrix.TF32_ROUNDING if dtype == "float32" else tolerance.unit(FLOATS[dtype])
    return 4 * unit * max(1.0, float(np.abs(like.astype(np.float64)).max()))


@pytest.mark.parametrize("dtype", ["float32", "float16"])
def test_what_is_chosen_hides_and_has_no_gradient(dtype: str) -> None:
    """-inf instead of scores is -inf added to them; of a row that is chosen throughout, queries are nothing."""
    there = _RNG.random((BATCH, 1, ROWS, KEYS)) < 0.7
    there[..., 0] = True
    mask = np.where(there, 0, -np.inf).astype(np.float32)
    chosen = _run(dtype, _given(), FlashMasks(*_mask(mask), chosen=True))
    added = _run(dtype, _given(), FlashMasks(*_mask(mask)))
    for name, each in chosen.items():
        np.testing.assert_array_equal(each, added[name], name)
    none = np.full((1, 1, 1, KEYS), 3.0, np.float32)
    alone = _run(dtype, _given(), FlashMasks(*_mask(none), chosen=True))
    assert not alone["dq"].any() and not alone["dk"].any() and alone["dv"].any()


@pytest.mark.parametrize("dtype", ["float32", "bfloat16"])
def test_what_a_dropout_leaves_is_numbers_or_conditions(dtype: str) -> None:
    keep = _RNG.random(_SCORES) < 0.8
    of_conditions = _run(dtype, _given(), FlashMasks(keep=_mask(keep)[0], keep_strides=_mask(keep)[1], kept_scale=1.25))
    numbers = keep.astype(np.float32)
    of_numbers = _run(
        dtype, _given(), FlashMasks(keep=_mask(numbers)[0], keep_strides=_mask(numbers)[1], kept_scale=1.25)
    )
    for name, each in of_conditions.items():
        np.testing.assert_array_equal(each, of_numbers[name], name)
    every = np.ones((1, 1, 1, KEYS), np.float32)
    plain = _run(dtype, _given(), FlashMasks())
    all_kept = _run(dtype, _given(), FlashMasks(keep=_mask(every)[0], keep_strides=_mask(every)[1]))
    for name, each in all_kept.items():
        np.testing.assert_array_equal(each, plain[name], name)


@pytest.mark.parametrize("dtype", ["float32", "bfloat16"])
@pytest.mark.parametrize("group", [2, 4])
def test_groups_read_one_head_of_keys(group: int, dtype: str) -> None:
    """As heads with copies of these; gradients by keys and values are the sums over a group."""
    given = _given(HEADS // group)
    found = _run(dtype, given, FlashMasks(group=group))
    copied = {name: np.repeat(each, group, 1) if name in "kv" else each for name, each in given.items()}
    wanted = _run(dtype, copied, FlashMasks())
    for name in ("out", "dq"):
        np.testing.assert_array_equal(found[name], wanted[name], name)
    for name in ("dk", "dv"):
        parts = wanted[name].astype(np.float64).reshape(BATCH, HEADS // group, group, KEYS, SIZE)
        # the copies' gradients are rounded each, and sums are taken in another order
        u = math.sqrt(ROWS) * tolerance.unit(np.dtype(np.float32)) + tolerance.unit(FLOATS[dtype])
        near = 2 * group * u * (np.abs(parts).sum(2) + np.abs(parts).max())
        tolerance.assert_within(found[name].astype(np.float64), parts.sum(2), near, name)
