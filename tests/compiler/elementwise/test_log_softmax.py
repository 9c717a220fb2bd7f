"""Logarithms of softmax in compiled code: as many digits as TensorFlow's have, and what is not finite."""

from __future__ import annotations

import math
import re

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from toolkit import client as gm
from toolkit.kernels.cpu.native.code import LANES
from toolkit.kernels.cpu.native.compiler import compiler
from toolkit.runtime.session import Session

_UNITS = 3.0  # in the last place of exp and log, as `graphmill help numerics` promises


def _computed(x: np.ndarray, threads: int | None = None) -> np.ndarray:
    with gm.Graph().as_default() as graph:
        given = gm.placeholder(x.dtype, x.shape)
        result = gm.log_softmax(given)
    with Session(graph, threads=threads) as session:
        return np.asarray(session.run(result, {given: x}))


def _bounds(x: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """The result in twice the digits, and how far rounding may take one in the type of x from it.

    x - max is rounded by half a unit; so are the powers' exponents, which weighs e^-d d, at most 1/e, in the sum; the
    sum goes over lanes and then their chains; its logarithm is units off, and moved by what the sum is off.
    """
    wide = x.astype(np.longdouble)
    shifted = wide - wide.max(-1, keepdims=True)
    logarithm = np.log(np.exp(shifted).sum(-1, keepdims=True))
    result = shifted - logarithm
    added = math.ceil(x.shape[-1] / LANES) + math.log2(LANES)
    relative = _UNITS + 0.5 / math.e * min(x.shape[-1], LANES) + added / 2
    error = np.abs(shifted) / 2 + relative + _UNITS * np.abs(logarithm) + np.abs(result) / 2
    return result, error * np.finfo(x.dtype).eps


@settings(max_examples=30, deadline=None)
@given(
    rows=st.integers(1, 300), columns=st.integers(1, 70), scale=st.sampled_from([0.01, 1.0, 30.0]),
    dtype=st.sampled_from([np.float32, np.float64]), threads=st.sampled_from([1, 2]), seed=st.integers(0, 2**32 - 1),
)  # fmt: skip
def test_digits(rows: int, columns: int, scale: float, dtype: type, threads: int, seed: int) -> None:
    x = (np.random.default_rng(seed).normal(size=(rows, columns)) * scale).astype(dtype)
    result, bound = _bounds(x)
    assert (np.abs(_computed(x, threads) - result) <= bound).all()


@pytest.mark.parametrize("shape", [(2000, 10), (16, 8000), (3, 5, 100)])
def test_large(shape: tuple[int, ...]) -> None:
    """oneDNN's are four times as far off as this lets them be, where rows are short and numbers about 1."""
    x = np.random.default_rng(1).normal(size=shape).astype(np.float32)
    result, bound = _bounds(x)
    assert (np.abs(_computed(x) - result) <= bound).all()


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_not_finite(dtype: type) -> None:
    """A row with NaN or +inf is NaN, -inf stays beside finite numbers, and what is large does not overflow."""
    kinds = [[1, 2, 3], [1, np.nan, 2], [np.inf, 1, 2], [-np.inf, 0, 0], [-np.inf] * 3, [1e38, -1e38, 0]]
    rows = np.tile(np.array(kinds, dtype), (100, 1))
    half = dtype(-np.log(dtype(2)))
    with np.errstate(invalid="ignore"):
        computed = _computed(rows).reshape(100, 6, 3)
    assert np.isfinite(computed[:, 0]).all()
    assert np.isnan(computed[:, [1, 2, 4]]).all()
    assert (computed[:, 3, 0] == -np.inf).all()
    np.testing.assert_array_max_ulp(computed[:, 3, 1:], np.full((100, 2), half), maxulp=int(_UNITS))
    assert (computed[:, 5] == rows[5] - rows[5, 0]).all()


@pytest.mark.skipif(compiler() is None, reason="compiled loops need llvmlite")
def test_in_loops() -> None:
    """Loops whose bodies have one stay machine code, which calls no kernels of NumPy's."""
    start = np.random.default_rng(2).normal(size=(3, 10)).astype(np.float32)
    with gm.Graph().as_default() as graph:
        x = gm.placeholder(np.float32, start.shape)
        last = gm.while_loop(lambda i, y: i < 4, lambda i, y: (i + 1, gm.log_softmax(y * 2.0)), (gm.constant(0), x))[1]
    with Session(graph) as session:
        computed = session.run(last, {x: start})
        text = "\n".join(session.explain([last], {x: start}))
    expected = start.astype(np.float64)
    for _ in range(4):
        expected = _bounds(expected * 2)[0]
    assert re.search(r"loop .*machine code", text)
    assert re.search(r"log_softmax .*LogSoftmax", text)
    # errors double in every iteration; each adds the bound of one
    assert (np.abs(computed - expected) <= sum(2.0**k for k in range(4)) * 2 * _bounds(start * 2)[1].max()).all()
