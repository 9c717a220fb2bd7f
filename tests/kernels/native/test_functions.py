"""exp, log, tanh, ... against the same in higher precision, in units in the last place."""

# numpy's overloads answer arrays typed Any with Unknown
# pyright: reportUnknownVariableType=false, reportUnknownMemberType=false, reportUnknownArgumentType=false

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from tests.kernels.native.harness import apply, run_nest
from toolkit.kernels.cpu.native import functions

WIDE = np.longdouble
_COUNT = 200_000


def _sigmoid(x: Any) -> Any:
    return 1 / (1 + np.exp(-x))


def _softplus(x: Any) -> Any:
    return np.maximum(x, 0) + np.log1p(np.exp(-np.abs(x)))


#: function: what it should be, and how many units in the last place it may be off
FUNCTIONS: dict[str, tuple[Callable[[Any], Any], float]] = {
    "exp": (np.exp, 1.5), "log": (np.log, 1.5), "expm1": (np.expm1, 3), "log1p": (np.log1p, 3),
    "softplus": (_softplus, 3), "tanh": (np.tanh, 3), "sigmoid": (_sigmoid, 3),
}  # fmt: skip


def special(dtype: Any) -> Any:
    """Zeros, infinities, NaN, denormal and huge numbers, and the neighbours of what the functions treat apart."""
    info = np.finfo(dtype)
    edges = [0.0, 1.0, 0.5, 2.0, 88.72, 88.8, 89.0, 103.9, 104.0, 709.7, 709.8, 710.0, 745.1, 745.2, 746.0, 10.0, 22.0,
             50.0, np.log(2), np.log(2) / 2, np.sqrt(0.5), np.sqrt(2), 0.25, 1e-3, 1e-5, 1e-8, 1e-16, 3.0,
             float(info.max), float(info.tiny), float(info.smallest_subnormal), float(info.eps), np.inf]  # fmt: skip
    with np.errstate(over="ignore"):
        values = np.array(edges, dtype)
        near = [np.nextafter(values, dtype(way)) for way in (-np.inf, np.inf)]
        around = np.array([1 + step * float(info.eps) for step in range(-9, 10)], dtype)
    whole = np.concatenate([values, *near, around, np.arange(1, 40).astype(dtype) * info.smallest_subnormal])
    return np.concatenate([whole, -whole, np.array([np.nan], dtype)])


def samples(dtype: Any, seed: int) -> Any:
    """Numbers of every exponent, numbers of ordinary size, and the special ones."""
    random = np.random.default_rng(seed)
    unsigned = np.uint32 if dtype is np.float32 else np.uint64
    bits = random.integers(0, np.iinfo(unsigned).max, _COUNT, unsigned, endpoint=True).view(dtype)
    plain = [random.normal(0, scale, _COUNT // 4).astype(dtype) for scale in (0.1, 1, 10, 40, 300)]
    return np.concatenate([bits, *plain, 1 + plain[0] * dtype(1e-2), special(dtype)])


def check(name: str, got: Any, x: Any, dtype: Any) -> None:
    """Within the bound wherever the right value is finite, the same infinities and NaNs elsewhere."""
    right, bound = FUNCTIONS[name]
    with np.errstate(all="ignore"):
        wide = right(x.astype(WIDE))
        wanted = wide.astype(dtype)
        finite = np.isfinite(wanted)
        unit = np.maximum(np.spacing(np.abs(wanted[finite])), np.finfo(dtype).smallest_subnormal)
        error = np.abs(got[finite].astype(WIDE) - wide[finite]) / unit
    if name == "sigmoid":  # as 1 / (1 + e^-x) it is 0 where e^-x is infinite: small numbers are right as sums are
        error[np.abs(wanted[finite].astype(np.float64)) < 1e-37] = 0
        # and e^-x is infinite from 3.4e38 on, whose inverse is 3e-39: both are well below
        tiny = np.abs(wanted[finite]) < 1e-37
        assert np.all(np.abs(got[finite][tiny]) < 2e-37)  # as small as what is right, and at most a step more
    worst = int(np.argmax(error))
    assert error[worst] <= bound, f"{name}({x[finite][worst]!r}) = {got[finite][worst]!r}: {error[worst]} units off"
    # a number at the very end of the range may round either way
    odd = ~finite & ~((got == wanted) | (np.isnan(got) & np.isnan(wanted)))
    assert not odd.any(), f"{name}({x[odd][:5]}) = {got[odd][:5]}, not {wanted[odd][:5]}"


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("name", FUNCTIONS)
def test_accuracy(name: str, dtype: Any) -> None:
    x = samples(dtype, 1)
    check(name, apply(getattr(functions, name), x), x, dtype)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("name", FUNCTIONS)
def test_zeros_keep_their_sign_where_the_function_has_them(name: str, dtype: Any) -> None:
    x = np.array([0.0, -0.0], dtype)
    got = apply(getattr(functions, name), x)
    with np.errstate(all="ignore"):
        wanted = FUNCTIONS[name][0](x)
    np.testing.assert_array_equal(np.signbit(got), np.signbit(wanted))


@pytest.mark.parametrize("name", FUNCTIONS)
def test_a_call_gives_what_the_function_written_out_gives(name: str) -> None:
    x = samples(np.float32, 2)[-5000:]
    write = getattr(functions, name)
    called = run_nest([x], [x.dtype], lambda code, given: [write(code, given[0])], calls=True)[0]
    check(name, called, x, np.float32)


@pytest.mark.long
@pytest.mark.parametrize("name", FUNCTIONS)
def test_every_float32(name: str) -> None:
    """All 2^32 bit patterns, a piece at a time; higher precision by float64 is enough here."""
    write = getattr(functions, name)
    step = 1 << 22
    for start in range(0, 1 << 32, step * 16):  # every sixteenth piece
        x = np.arange(start, start + step, dtype=np.uint64).astype(np.uint32).view(np.float32)
        check(name, apply(write, x), x, np.float32)
