"""Floats of 8 bits: conversions to the bit, factors of tensors, products of them, and what ptxas takes."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import ml_dtypes
import numpy as np
import pytest

from toolkit.errors import UsageError
from toolkit.kernels.cuda.device import device
from toolkit.kernels.cuda.driver import choose
from toolkit.kernels.cuda.driver.fake import FakeDriver
from toolkit.kernels.cuda.float8 import multiply_float8, quantized
from toolkit.kernels.cuda.libraries.base import EIGHT_BITS, LibraryError, Product
from toolkit.kernels.cuda.nn.float8 import BLOCK, MOST_SHARES, TOGETHER, maxima_kernel, quantize_kernel
from toolkit.kernels.cuda.simt import machine, ptx
from toolkit.kernels.cuda.simt.builder import KernelBuilder
from toolkit.kernels.cuda.simt.ir import SimtKernel
from toolkit.kernels.tensors import BF16, F8, F32

pytest.importorskip("llvmlite")
E4M3 = ml_dtypes.float8_e4m3fn
#: half of the distance from 1 to the next number, and of that between the smallest two: 3 bits of mantissa, and
#: exponents down to -6
UNIT, TINY = 2.0**-4, 2.0**-10


@pytest.fixture(autouse=True)
def _fake() -> Iterator[None]:
    with choose.using(FakeDriver()):
        yield


def _pack() -> SimtKernel:
    k = KernelBuilder("pack", 64)
    x, y = k.buffer("x", "float"), k.buffer("y", "i16", written=True)
    count = k.scalar("count", "i32")
    i = k.global_thread()
    with k.when(k.compare("slt", i, count)):
        two = k.mul(i, k.number(2, "i32"))
        k.store(y, i, k.pack_e4m3(k.load(x, two), k.load(x, k.add(two, k.number(1, "i32")))))
    return k.finish()


def _packed(x: np.ndarray) -> np.ndarray:
    made = np.zeros(x.size // 2, np.int16)
    machine.run(_pack(), -(-made.size // 64), [np.ascontiguousarray(x, np.float32), made, made.size], races=False)
    return made.view(np.uint8)


def _nearest(x: np.ndarray) -> np.ndarray:
    """By search among all 127 magnitudes: the nearest, of two the even one; beyond the largest that; NaN is 0x7f."""
    every = np.arange(127, dtype=np.uint8).view(E4M3).astype(np.float64)
    with np.errstate(invalid="ignore"):
        size = np.abs(x.astype(np.float64))
    above = np.clip(np.searchsorted(every, size), 1, 126)
    low, high = every[above - 1], every[above]
    up = (size - low > high - size) | ((size - low == high - size) & (above % 2 == 0))
    bits = np.where(up, above, above - 1).astype(np.uint8) | np.where(np.signbit(x), 0x80, 0).astype(np.uint8)
    return np.where(np.isnan(x), np.uint8(0x7F), bits)


@pytest.mark.parametrize("kind", ["float16", "bfloat16", "random"])
def test_bits(kind: str) -> None:
    """All numbers of 16 bits and many of 32, with ties, subnormal ones and what is too large."""
    if kind == "random":
        x = np.random.default_rng(0).integers(0, 2**32, 1 << 17, dtype=np.uint32).view(np.float32)
        x = np.concatenate([x, np.random.default_rng(1).normal(size=1 << 15, scale=30).astype(np.float32)])
    else:
        every = np.arange(2**16, dtype=np.uint16).view(getattr(ml_dtypes, kind, None) or kind)
        with np.errstate(invalid="ignore"):
            x = every.astype(np.float32)
    found = _packed(x)
    np.testing.assert_array_equal(found, _nearest(x))
    with np.errstate(over="ignore", invalid="ignore"):
        theirs = x.astype(E4M3).view(np.uint8)
    # what rounds to more than 448 is NaN there
    same = np.abs(x) < 464
    np.testing.assert_array_equal(found[same], theirs[same])
    assert (found[np.abs(x) >= 464] & 0x7F == 0x7E).all()


@pytest.mark.parametrize("capability", [(8, 9), (9, 0), (10, 0)], ids=str)
@pytest.mark.parametrize("type", ["float", "half", "bfloat"])
def test_ptxas_takes_them(type: str, capability: tuple[int, int]) -> None:
    from tests.kernels.cuda.assembler import assembled

    for kernel in (maxima_kernel(type, "i32"), quantize_kernel(type, "i32"), quantize_kernel(type, "i64")):
        text = ptx.write(kernel, capability)
        assert ("cvt.rn.satfinite.e4m3x2.f32" in text) is ("quantize" in kernel.name)
        assert assembled(text, capability).spills == 0
    # 16 numbers of a thread are loaded, and stored, 16 bytes at a time
    assert "st.global.v4.b32" in text and "ld.global.v4" in text.replace(".nc", "").replace("ld.global.L1", "ld.global")


def test_others_refuse_them() -> None:
    with pytest.raises(UsageError, match=r"kernel quantize_float: the GPU has compute capability 8\.0; .* need 8\.9"):
        ptx.write(quantize_kernel("float", "i32"), (8, 0))


@pytest.mark.parametrize("dtype", [np.float32, np.float16, ml_dtypes.bfloat16], ids=["f32", "fp16", "bf16"])
@pytest.mark.parametrize("shape", [(16,), (3, 48), (5, 7, 2 * BLOCK * TOGETHER // 64)])
def test_a_tensor_and_its_factor(shape: tuple[int, ...], dtype: Any) -> None:
    gpu = device(0)
    x = (np.random.default_rng(2).normal(size=shape) * 3).astype(dtype)
    made, factor = (gpu.to_host(each) for each in quantized(gpu, gpu.to_device(x), turned=False))
    wide = x.astype(np.float32)
    share = np.float32(np.abs(wide).max()) * np.float32(1 / 448)
    assert factor == share and made.dtype == F8 and made.shape == shape
    np.testing.assert_array_equal(made.view(np.uint8), _nearest(wide * (np.float32(1) / share)))
    # to the nearest: half a unit of the number, or of the smallest that there are; the rest is float32's
    apart = np.abs(made.astype(np.float64) * share - wide)
    assert (apart <= (UNIT * np.abs(wide) + TINY * share) * (1 + 2.0**-20)).all()


def test_more_shares_than_blocks() -> None:
    """Blocks of the first launch go on where others began: the largest number may be anywhere."""
    gpu = device(0)
    count = (MOST_SHARES + 3) * BLOCK * TOGETHER
    for place in (0, count // 2 + 5, count - 1):
        x = np.full(count, 0.25, np.float16)
        x[place] = -7
        made, factor = (gpu.to_host(each) for each in quantized(gpu, gpu.to_device(x), turned=False))
        assert factor == np.float32(7) * np.float32(1 / 448) and made.astype(np.float32)[place] == -448


@pytest.mark.parametrize("rows", [1, BLOCK, 3 * BLOCK + 1])
def test_maxima_that_are_known(rows: int) -> None:
    """Any number of them, without a first launch; the bits are the same."""
    gpu = device(0)
    x = np.random.default_rng(rows).normal(size=(rows, 16)).astype(np.float32)
    maxima = gpu.to_device(np.max(np.abs(x), axis=1))
    known, found = (quantized(gpu, gpu.to_device(x), turned=False, maxima=each) for each in (maxima, None))
    for one, other in zip(known, found, strict=True):
        np.testing.assert_array_equal(*(gpu.to_host(each).view(np.uint8) for each in (one, other)))


def test_tensors_of_zeros_and_of_tiny_numbers() -> None:
    gpu = device(0)
    for size in (0.0, 1e-45, 1e-38, 1e-30):
        made, factor = quantized(gpu, gpu.to_device(np.full(32, size, np.float32)), turned=False)
        back = gpu.to_host(made).astype(np.float64) * gpu.to_host(factor)
        assert np.isfinite(back).all() and (back <= 2 * size).all()


@pytest.mark.parametrize("wrong", [np.nan, np.inf, -np.inf])
def test_what_is_not_finite_is_seen(wrong: float) -> None:
    """It makes the factor so, and so all that is multiplied by it."""
    gpu = device(0)
    x = np.ones((4, 16), np.float32)
    x[2, 3] = wrong
    _, factor = quantized(gpu, gpu.to_device(x), turned=False)
    assert not np.isfinite(gpu.to_host(factor)).any()


def test_turned() -> None:
    gpu = device(0)
    x = np.random.default_rng(3).normal(size=(48, 80)).astype(np.float32)
    straight, turned = (quantized(gpu, gpu.to_device(x), turned=each)[0] for each in (False, True))
    np.testing.assert_array_equal(gpu.to_host(straight).view(np.uint8).T, gpu.to_host(turned).view(np.uint8))


@pytest.mark.parametrize("made", ["float32", "bfloat16"])
@pytest.mark.parametrize("name", ["Identity", "Relu", "GeluApproximate", "Tanh"])
def test_products(name: str, made: str) -> None:
    """Within what both factors' roundings allow, and those of the sums, the bias and the result."""
    gpu = device(0)
    rng = np.random.default_rng(4)
    a, b = rng.normal(size=(5, 64)).astype(np.float32), rng.normal(size=(64, 48)).astype(np.float32)
    bias = rng.normal(size=48).astype(BF16)
    out = gpu.empty((5, 48), F32 if made == "float32" else BF16)
    left, right = quantized(gpu, gpu.to_device(a), turned=False), quantized(gpu, gpu.to_device(b), turned=True)
    product = Product(5, 48, 64, EIGHT_BITS, "N", "T", made=made)
    multiply_float8(
        gpu, product, left[0], right[0], (left[1], right[1]), out, bias=gpu.to_device(bias), name=name
    )  # fmt: skip
    inner = a.astype(np.float64) @ b + bias.astype(np.float64)
    functions: dict[str, Any] = {
        "Identity": lambda x: x, "Relu": lambda x: np.maximum(x, 0), "Tanh": np.tanh,
        "GeluApproximate": lambda x: 0.5 * x * (1 + np.tanh(np.sqrt(2 / np.pi) * (x + 0.044715 * x**3))),
    }  # fmt: skip
    # each factor is off by half a unit of itself, or of the smallest number of its tensor
    off = [UNIT * np.abs(each) + TINY * np.abs(each).max() / 448 for each in (a, b)]
    far = off[0] @ np.abs(b) + np.abs(a) @ off[1] + off[0] @ off[1]
    far += 66 * 2.0**-24 * (np.abs(a) @ np.abs(b) + np.abs(bias.astype(np.float64)))
    # gelu's slope is below 1.13 everywhere, the others' at most 1; a bfloat16 is off by half of 2**-7 of itself
    wanted = functions[name](inner)
    near = 1.13 * far + (2.0**-8 * (np.abs(wanted) + 1.13 * far) if made == "bfloat16" else 2.0**-20)
    assert (np.abs(gpu.to_host(out).astype(np.float64) - wanted) <= near).all()


def test_the_library_takes_rows_that_are_aligned() -> None:
    """As cuBLASLt's manual says of narrow precisions, and for no card without them."""
    blas = device(0).context.blas
    fits = Product(5, 48, 64, EIGHT_BITS, "N", "T", made="bfloat16")
    assert blas.supports(fits)
    wrong: list[dict[str, Any]] = [
        {"n": 40}, {"k": 72}, {"turn_b": "N"}, {"turn_a": "T"}, {"made": ""}, {"made": "float16"}, {"lead_a": 72},
        {"epilogue": "relu keep bias"}, {"beta": 1.0},
    ]  # fmt: skip
    import dataclasses

    for each in wrong:
        assert not blas.supports(dataclasses.replace(fits, **each)), each
    assert not FakeDriver(capability=(8, 0)).open(0).blas.supports(fits)


def test_factors_are_given_where_they_are_needed() -> None:
    gpu = device(0)
    span = gpu.zeros((16, 16), np.float32)
    blas = gpu.context.blas
    with pytest.raises(LibraryError, match="was given no factors"):
        blas.matmul(Product(16, 16, 16, EIGHT_BITS, "N", "T", made="float32"), span, span, span, gpu.compute)
    with pytest.raises(LibraryError, match="float32 was given factors"):
        blas.matmul(Product(16, 16, 16, "float32"), span, span, span, gpu.compute, factors=(span, span))
