"""Products of matrices by the threads of a warp: who has what, how it is rounded, and that ptxas takes it."""

from __future__ import annotations

import functools

import numpy as np
import pytest

from tests.kernels.cuda.assembler import assembled
from toolkit.errors import InternalError
from toolkit.kernels.cuda.simt import machine, matrix, ptx
from toolkit.kernels.cuda.simt.arithmetic import DTYPES
from toolkit.kernels.cuda.simt.builder import KernelBuilder
from toolkit.kernels.cuda.simt.ir import WARP, SimtKernel
from toolkit.kernels.cuda.simt.memory import KernelFaultError
from toolkit.kernels.types import Array

pytest.importorskip("llvmlite")
KINDS = list(matrix.MATRIX_KINDS)
CAPABILITIES = [(8, 0), (9, 0), (10, 0)]
_WARPS = 3


@functools.cache
def _product(name: str, is_wrong: bool = False) -> SimtKernel:
    """Each warp multiplies its own matrices, whose registers lie thread by thread."""
    kind = matrix.MATRIX_KINDS[name]
    k = KernelBuilder(f"product_{name}", block=_WARPS * WARP)
    a, b = k.buffer("a", kind.register), k.buffer("b", kind.register)
    c, d = k.buffer("c", "float"), k.buffer("d", "float", written=True)
    counts = (matrix.LEFT, matrix.RIGHT, matrix.SUMS)
    threads = k.number(5 if is_wrong else _WARPS * WARP, "i32")
    with k.when(k.compare("slt", k.thread, threads)):
        a_, b_, c_ = (
            [k.load(buffer, k.add(k.mul(k.thread, k.number(count, "i32")), k.number(i, "i32"))) for i in range(count)]
            for buffer, count in zip((a, b, c), counts, strict=True)
        )
        if name == "tf32":
            a_, b_ = [k.round_tf32(each) for each in a_], [k.round_tf32(each) for each in b_]
        for i, value in enumerate(k.multiply_matrices(name, a_, b_, c_)):
            k.store(d, k.add(k.mul(k.thread, k.number(matrix.SUMS, "i32")), k.number(i, "i32")), value)
    return k.finish()


def _registers(name: str, left: Array, right: Array, sums: Array) -> list[Array]:
    """What the threads of a warp have of matrices, by the tables of the PTX ISA (9.7.14, figures of fragments)."""
    found: list[list[float]] = [[], [], []]
    for lane in range(WARP):
        group, inside = lane >> 2, lane % 4
        if name == "tf32":  # m16n8k8
            a_places = [(group, inside), (group + 8, inside), (group, inside + 4), (group + 8, inside + 4)]
            b_places = [(inside, group), (inside + 4, group)]
        else:  # m16n8k16: row by i, depth by i
            a_places = [
                (group if i in (0, 1, 4, 5) else group + 8, inside * 2 + (i & 1) + (8 if i >= 4 else 0))
                for i in range(8)
            ]
            b_places = [(inside * 2 + (i & 1) + (8 if i >= 2 else 0), group) for i in range(4)]
        c_places = [(group if i < 2 else group + 8, inside * 2 + (i & 1)) for i in range(4)]
        for values, whole, places in zip(found, (left, right, sums), (a_places, b_places, c_places), strict=True):
            values += [whole[place] for place in places]
    register = DTYPES[matrix.MATRIX_KINDS[name].register]
    dtype = np.dtype(np.float32) if name == "tf32" else DTYPES[name]
    a, b = (np.asarray(values, dtype).view(register) for values in found[:2])
    return [a, b, np.asarray(found[2], np.float32)]


@pytest.mark.parametrize("name", KINDS)
def test_a_product_of_each_kind(name: str) -> None:
    kind, rng = matrix.MATRIX_KINDS[name], np.random.default_rng(1)
    dtype = np.dtype(np.float32) if name == "tf32" else DTYPES[name]
    given: list[list[Array]] = []
    wanted: list[Array] = []
    for _ in range(_WARPS):
        left, right = rng.normal(size=(16, kind.depth)).astype(dtype), rng.normal(size=(kind.depth, 8)).astype(dtype)
        sums = rng.normal(size=(16, 8)).astype(np.float32)
        given.append(_registers(name, left, right, sums))
        if name == "tf32":
            left, right = matrix.round_tf32(left), matrix.round_tf32(right)
        wide = left.astype(np.float64), right.astype(np.float64)
        exact = wide[0] @ wide[1] + sums
        # every addend is cut off, and so is the sum
        reach = (kind.depth + 2) * matrix.MMA_ROUNDING * (np.abs(wide[0]) @ np.abs(wide[1]) + np.abs(sums))
        wanted += [exact, reach]
    out = np.zeros(_WARPS * WARP * 4, np.float32)
    arrays = [np.concatenate([each[i] for each in given]) for i in range(3)]
    statistics = machine.run(_product(name), 1, [*arrays, out])
    assert statistics.flops == _WARPS * 2 * 16 * 8 * kind.depth
    for warp, made in enumerate(out.reshape(_WARPS, -1)):
        none = np.zeros((16, 16))
        exact, reach = (_registers(name, none, none, each)[2] for each in wanted[2 * warp :][:2])
        assert (np.abs(made - exact) <= reach).all()


def test_sums_are_cut_off_and_not_rounded() -> None:
    c = np.float32(1)
    left, right = np.zeros((16, 8), np.float32), np.zeros((8, 8), np.float32)
    left[0, 0], right[0, 0] = 1, 1.5 * 2**-23  # a place and a half beyond 1
    arrays = _registers("tf32", left, right, np.full((16, 8), c, np.float32))
    out = np.zeros(_WARPS * WARP * 4, np.float32)
    machine.run(_product("tf32"), 1, [*(np.tile(each, _WARPS) for each in arrays), out])
    assert out[0] == 1 + 2**-23 and out[1] == 1


def test_tf32_is_rounded_to_the_nearest() -> None:
    step = 2**-10
    given = np.asarray([1 + step / 2, -1 - step / 2, 1 + step * 0.4999, 1 + step * 1.5, np.inf, 0, 65519], np.float32)
    np.testing.assert_array_equal(
        matrix.round_tf32(given), np.asarray([1 + step, -1 - step, 1, 1 + 2 * step, np.inf, 0, 65536 - 32], np.float32)
    )
    assert np.isnan(matrix.round_tf32(np.asarray([np.nan], np.float32))).all()


def test_powers_of_two_end_at_normal_numbers() -> None:
    given = np.asarray([-np.inf, -127, -126, 0, 3, np.inf, np.nan], np.float32)
    np.testing.assert_array_equal(
        matrix.exp2_approximate(given), np.asarray([0, 0, 2**-126, 1, 8, np.inf, np.nan], np.float32)
    )


def test_a_warp_that_is_not_whole_is_refused() -> None:
    arrays = [np.zeros(_WARPS * WARP * count, np.float32) for count in (4, 2, 4, 4)]
    with pytest.raises(KernelFaultError, match="a product of matrices is reached by some threads of a warp only"):
        machine.run(_product("tf32", is_wrong=True), 1, arrays)


def test_registers_of_another_kind_are_refused() -> None:
    k = KernelBuilder("wrong", block=32)
    zero, word = k.number(0.0, "float"), k.number(0, "i32")
    with pytest.raises(InternalError, match="a product of bfloat matrices was given"):
        k.multiply_matrices("bfloat", [zero] * 4, [zero] * 2, [zero] * 4)
    with pytest.raises(InternalError, match="tf32 of a i32"):
        k.round_tf32(word)


@pytest.mark.parametrize("capability", CAPABILITIES, ids=str)
@pytest.mark.parametrize("name", KINDS)
def test_ptxas_takes_products(name: str, capability: tuple[int, int]) -> None:
    kernel = _product(name)
    text = ptx.write(kernel, capability)
    assert f"mma.sync.aligned.m16n8k{matrix.MATRIX_KINDS[name].depth}.row.col.f32" in text
    assert "mma bfloat" in kernel.text or name != "bfloat"
    assert assembled(text, capability).spills == 0


def test_ptxas_takes_powers_of_two() -> None:
    k = KernelBuilder("powers", block=32)
    x = k.buffer("x", "float", written=True)
    k.store(x, k.thread, k.exp2_approximate(k.load(x, k.thread)))
    text = ptx.write(k.finish(), (9, 0))
    assert "ex2.approx.ftz.f32" in text and assembled(text, (9, 0)).spills == 0
