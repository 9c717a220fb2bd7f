"""Activations that are taken out of oneDNN's primitives, and the quick sigmoid behind them."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from tests import tolerance
from tests.compiler.compare import check, compiled, explained, node_by_node
from tests.kernels.native.harness import run_nest
from toolkit import client as gm
from toolkit.kernels.cpu.native import functions
from toolkit.kernels.cpu.native.compiler import compiler
from toolkit.kernels.cpu.onednn.library import library, multiplies_bfloat16

_machine = compiler()
pytestmark = pytest.mark.skipif(
    library() is None or _machine is None or not _machine.has_avx512(), reason="needs LLVM, oneDNN and AVX-512"
)


@pytest.fixture(autouse=True)
def _strict(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("GRAPHMILL_SEGMENTS", "strict")


def _numbers(seed: int, *shape: int) -> Any:
    return np.random.default_rng(seed).normal(size=shape).astype(np.float32)


def _graph(activation: Any, size: int) -> tuple[Any, dict[str, Any]]:
    with gm.Graph().as_default() as graph:
        x = gm.placeholder(gm.float32, [1, size, size, 24], name="x")
        y = activation(gm.bias_add(gm.conv2d(x, _numbers(1, 3, 3, 24, 40) / 8, 2), _numbers(2, 40)))
        gm.conv2d(y, _numbers(3, 3, 3, 40, 8) / 8, 2, name="out")
    return graph, {"x:0": _numbers(0, 1, size, size, 24)}


_SWISH = {"swish": lambda y: y * gm.sigmoid(y), "sigmoid": gm.sigmoid}


@pytest.mark.parametrize("name", list(_SWISH))
@pytest.mark.parametrize("threads", [1, 2])
def test_behind_a_convolution(name: str, threads: int) -> None:
    graph, feeds = _graph(_SWISH[name], 57)
    check(graph, ["out:0"], feeds, threads=threads)
    assert " activate " in explained(graph, ["out:0"], feeds, threads=threads)


def test_small_outputs_and_other_functions_stay() -> None:
    for activation, size in ((_SWISH["swish"], 21), (gm.tanh, 57)):
        graph, feeds = _graph(activation, size)
        check(graph, ["out:0"], feeds)
        assert " activate " not in explained(graph, ["out:0"], feeds)


@pytest.mark.skipif(not multiplies_bfloat16(), reason="needs a processor with bfloat16")
@pytest.mark.parametrize("threads", [1, 2])
def test_bfloat16(threads: int) -> None:
    graph, feeds = _graph(_SWISH["swish"], 57)
    lines = explained(graph, ["out:0"], feeds, precision="bf16", threads=threads).splitlines()
    assert any(" activate " in line and "bfloat16" in line for line in lines)
    (got,) = compiled(graph, ["out:0"], feeds, precision="bf16", threads=threads)
    (wanted,) = node_by_node(graph, ["out:0"], feeds)
    assert np.sqrt(np.mean((got - wanted) ** 2)) < 0.01 * np.sqrt(np.mean(wanted**2))


def test_quick_sigmoid() -> None:
    random = np.random.default_rng(0)
    x = np.concatenate([random.normal(0, scale, 5000) for scale in (1e-3, 1, 10, 60)]).astype(np.float32)
    x = np.concatenate([x, np.array([0, -0.0, 87, -87, 88, 100, 1e30, np.inf], np.float32)])
    wanted = 1 / (1 + np.exp(-x.astype(np.float64)))
    (got,) = run_nest([x], ["float32"], lambda code, lanes: [functions.quick_sigmoid(code, lanes[0])])
    inside = x >= -87
    # ten roundings: six of exp (reduction, last terms of its series, scaling), one of the sum, three of a reciprocal
    # that starts from the processor's approximation, which Intel and AMD make differently
    np.testing.assert_allclose(got[inside], wanted[inside], rtol=tolerance.gamma(10))
    assert not got[~inside].any() and (got >= 0).all() and (got <= 1).all()
    (far,) = run_nest(
        [np.array([np.nan, -np.inf, -1e30], np.float32)], ["float32"],
        lambda code, lanes: [functions.quick_sigmoid(code, lanes[0])],
    )  # fmt: skip
    assert np.isnan(far[0]) and not far[1:].any()


def test_swish_of_large_numbers() -> None:
    """Each by itself: a convolution of ones with one channel."""
    numbers = np.array([-3e38, -1e30, -90, -87, 3e38, 1e30, np.inf, np.nan], np.float32)
    x = np.zeros((1, 64, 64, 16), np.float32)
    x[0, 0, : len(numbers), 0] = numbers
    with gm.Graph().as_default() as graph:
        given = gm.placeholder(gm.float32, x.shape, name="x")
        y = gm.conv2d(given, np.eye(16, dtype=np.float32).reshape(1, 1, 16, 16), 2)
        gm.identity(y * gm.sigmoid(y), name="out")
    x = x.repeat(2, axis=2)[:, :, :64]
    (got,) = compiled(graph, ["out:0"], {"x:0": x})
    (wanted,) = node_by_node(graph, ["out:0"], {"x:0": x})
    # swish beside a convolution is good to 1e-6 of itself (`graphmill help numerics`); where its sigmoid is smaller
    # than a number with all of its digits it is 0, and of -104 in any case
    small = np.minimum(np.abs(np.nan_to_num(numbers)), 104) * tolerance.SMALLEST
    wanted = wanted[0, 0, :8, 0]
    tolerance.assert_within(got[0, 0, :8, 0], wanted, np.nan_to_num(1e-6 * np.abs(wanted), posinf=0.0) + small)


def test_error_function_of_floats() -> None:
    from toolkit.kernels.cpu.math.special_error import erf

    x = np.concatenate([np.linspace(-6, 6, 100001), [0.0, 1e-30, -np.inf, np.inf]]).astype(np.float32)
    (got,) = run_nest([x], ["float32"], lambda code, lanes: [functions.erf_float(code, lanes[0])])
    np.testing.assert_allclose(got, erf(x.astype(np.float64)), rtol=tolerance.gamma(10))  # as exp's and a quotient
