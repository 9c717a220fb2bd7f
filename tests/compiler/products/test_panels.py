"""Products with constant weights by compiled kernels, beside NumPy's and beside float64."""

from __future__ import annotations

import functools
import math
import threading
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests import tolerance
from tests.compiler import compare
from tests.compiler.targets import changed
from toolkit import client as gm
from toolkit.compiler.backends.cpu.networks import panels
from toolkit.kernels.cpu.native.compiler import compiler
from toolkit.kernels.cpu.native.panels import Tile, kernel, pack
from toolkit.kernels.cpu.onednn.library import library
from toolkit.runtime.session import Session
from toolkit.target import rows
from toolkit.target.target import Target

pytestmark = pytest.mark.skipif(library() is None or compiler() is None, reason="needs LLVM and oneDNN")


#: small products too; other processors compute the same with the instructions that they have
_ALWAYS = changed(
    rows.AVX512, packed_gemm={"least_work": 1, "least_rows": 1}, threads={"product": 1},
    primitives={"product": 0, "library": 1},
)  # fmt: skip
check, compiled, explained = (
    functools.partial(each, processor=_ALWAYS) for each in (compare.check, compare.compiled, compare.explained)
)


@pytest.fixture(autouse=True)
def _strict(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("GRAPHMILL_SEGMENTS", "strict")


def _numbers(seed: int, *shape: int) -> Any:
    return np.random.default_rng(seed).normal(size=shape).astype(np.float32)


def _is_used(graph: Any, feeds: dict[str, Any], **session: Any) -> bool:
    return " packed_gemm " in explained(graph, ["out:0"], feeds, **session)


def _product(rows: int, inner: int, columns: int, seed: int = 0) -> tuple[Any, Any, Any]:
    x, w = _numbers(seed, rows, inner), _numbers(seed + 1, inner, columns)
    with gm.Graph().as_default() as graph:
        gm.matmul(gm.placeholder(gm.float32, [rows, inner], name="x"), w, name="out")
    return graph, x, w


def _is_exact(graph: Any, x: Any, w: Any, threads: int = 1, target: Target = _ALWAYS) -> None:
    """Within the rounding of sums in float32."""
    (got,) = compiled(graph, ["out:0"], {"x:0": x}, threads=threads, processor=target)
    tolerance.assert_within(got, x.astype(np.float64) @ w, tolerance.of_product(x, w))
    assert _is_used(graph, {"x:0": x}, threads=threads, processor=target)


@settings(max_examples=40, deadline=None)
@given(
    rows=st.integers(2, 70) | st.sampled_from([96, 240, 241, 250, 500]),
    inner=st.integers(9, 70) | st.sampled_from([577, 600, 1030]),
    columns=st.integers(9, 140) | st.sampled_from([192, 256]),
    threads=st.integers(1, 4),
    seed=st.integers(0, 1000),
)
def test_any_size(rows: int, inner: int, columns: int, threads: int, seed: int) -> None:
    graph, x, w = _product(rows, inner, columns, seed)
    _is_exact(graph, x, w, threads)


@pytest.mark.parametrize("tile", [(8, 3), (6, 4), (8, 2), (8, 1)])
@pytest.mark.parametrize("by_rows", [False, True])
def test_every_tile_and_split(monkeypatch: pytest.MonkeyPatch, tile: tuple[int, int], by_rows: bool) -> None:
    rows, inner, columns = 53, 75, 150
    count = -(-columns // (16 * tile[1]))
    shares = ((0, 24, 0, count), (24, 53, 0, count)) if by_rows else ((0, 53, 0, 1), (0, 53, 1, count))

    def choose(work: Any, threads: int, sizes: Any) -> panels.GemmSplit:
        return panels.GemmSplit(*tile, shares, 0.0)

    monkeypatch.setattr(panels, "_split", choose)
    graph, x, w = _product(rows, inner, columns)
    _is_exact(graph, x, w, 2)


def test_blocks_of_rows_and_parts_of_panels() -> None:
    small = changed(_ALWAYS, packed_gemm={"depth": 20, "most_depth": 20, "block": 24})
    for inner in (19, 20, 21, 81):
        graph, x, w = _product(101, inner, 65)
        _is_exact(graph, x, w, target=small)
    graph, x, w = _product(101, 64, 200)
    _is_exact(graph, x, w, 3, changed(small, packed_gemm={"large": 0}))  # one tile's rows of the output at a time


_EPILOGUES: dict[str, Callable[[Any, Any], Any]] = {
    "bias": lambda y, x: gm.bias_add(y, _numbers(5, 40)),
    "relu": lambda y, x: gm.relu(gm.bias_add(y, _numbers(5, 40))),
    "relu6": lambda y, x: gm.ops.relu6(y),
    "leaky": lambda y, x: gm.ops.leaky_relu(y),
    "elu": lambda y, x: gm.ops.elu(y),
    "sigmoid": lambda y, x: gm.sigmoid(y),
    "tanh": lambda y, x: gm.tanh(y),
    "swish": lambda y, x: y * gm.sigmoid(y),
    "hard swish": lambda y, x: y * gm.ops.relu6(y + 3.0) * (1.0 / 6.0),
    "gelu": lambda y, x: 0.5 * y * (1.0 + gm.ops.erf(y * math.sqrt(0.5))),
    "gelu by erfc": lambda y, x: 0.5 * y * gm.ops.erfc(-y * math.sqrt(0.5)),
    "gelu by tanh": lambda y, x: 0.5 * y * (1.0 + gm.tanh(math.sqrt(2 / math.pi) * (y + 0.044715 * y * y * y))),
    "square": lambda y, x: gm.ops.square(y),
    "root": lambda y, x: gm.ops.sqrt(gm.ops.abs(y)),
    "residual": lambda y, x: gm.relu(gm.bias_add(y, _numbers(5, 40)) + x),
    "residual that was computed": lambda y, x: y + gm.tanh(x),
    "scaled after relu": lambda y, x: gm.relu(y) * _numbers(6, 40),
    "minus": lambda y, x: gm.relu(y) - x,
    "a chain": lambda y, x: gm.relu((gm.tanh(gm.bias_add(y, _numbers(5, 40))) + x) * _numbers(7, 40)),
}  # fmt: skip


@pytest.mark.parametrize("build", list(_EPILOGUES.values()), ids=list(_EPILOGUES))
@pytest.mark.parametrize("shape", [(37, 40), (3, 21, 40)], ids=["matrix", "batch"])
def test_epilogues(build: Callable[[Any, Any], Any], shape: tuple[int, ...]) -> None:
    feeds = {"x:0": _numbers(0, *shape)}
    with gm.Graph().as_default() as graph:
        x = gm.placeholder(gm.float32, shape, name="x")
        flat = gm.reshape(x, [-1, 40])
        y = gm.reshape(gm.matmul(flat, _numbers(1, 40, 40)), shape)
        gm.identity(build(gm.identity(y), x), name="out")
    check(graph, ["out:0"], feeds, threads=2)
    assert _is_used(graph, feeds, threads=2)


@pytest.mark.parametrize("name", ["gelu", "gelu by erfc", "gelu by tanh", "swish", "relu"])
def test_activations_are_part_of_the_product(name: str) -> None:
    """As TensorFlow spells them: gelu was written with erf, and is with erfc since."""
    feeds = {"x:0": _numbers(0, 128, 40)}
    with gm.Graph().as_default() as graph:
        x = gm.placeholder(gm.float32, [128, 40], name="x")
        gm.identity(_EPILOGUES[name](gm.matmul(x, _numbers(1, 40, 40)), x), name="out")
    steps = [line for line in explained(graph, ["out:0"], feeds).splitlines() if "[machine code" in line]
    assert len(steps) == 1 and " packed_gemm " in steps[0]


@pytest.mark.parametrize("name", ["relu", "residual", "swish", "bias"])
def test_convolutions(name: str) -> None:
    feeds = {"x:0": _numbers(0, 2, 9, 7, 40)}
    with gm.Graph().as_default() as graph:
        x = gm.placeholder(gm.float32, [2, 9, 7, 40], name="x")
        y = gm.conv2d(x, _numbers(1, 1, 1, 40, 40))
        z = gm.conv2d(_EPILOGUES[name](y, x), _numbers(2, 1, 1, 40, 24), 2)
        gm.tanh(z, name="out")
    check(graph, ["out:0"], feeds, threads=2)
    assert _is_used(graph, feeds, threads=2)


def test_transposed_weights() -> None:
    feeds = {"x:0": _numbers(0, 33, 48)}
    with gm.Graph().as_default() as graph:
        x = gm.placeholder(gm.float32, [33, 48], name="x")
        gm.matmul(x, _numbers(1, 20, 48), transpose_b=True, name="out")
    check(graph, ["out:0"], feeds)
    assert _is_used(graph, feeds)


def test_numbers_that_are_not_finite_stay_in_their_rows() -> None:
    graph, x, _ = _product(50, 64, 40)
    x[7, 3], x[20, 5], x[21] = np.nan, np.inf, 0.0
    got, wanted = (compiled(graph, ["out:0"], {"x:0": given})[0] for given in (x, np.where(np.isfinite(x), x, 0.0)))
    plain = [row for row in range(50) if row not in (7, 20)]
    np.testing.assert_array_equal(got[plain], wanted[plain])
    assert np.isnan(got[7]).all() and not np.isfinite(got[20]).any() and not got[21].any()


def test_relu_lets_nan_through() -> None:
    with gm.Graph().as_default() as graph:
        gm.relu(gm.matmul(gm.placeholder(gm.float32, [20, 16], name="x"), _numbers(1, 16, 16)), name="out")
    x = _numbers(0, 20, 16)
    x[3, 3] = np.nan
    (got,) = compiled(graph, ["out:0"], {"x:0": x})
    assert np.isnan(got[3]).all() and np.isfinite(got[:3]).all()


def test_threads_of_a_session_do_not_disturb_each_other() -> None:
    graph, _, w = _product(64, 96, 96)
    inputs = [_numbers(seed, 64, 96) for seed in range(4)]
    wrong: list[int] = []
    with Session(graph, threads=2, processor=_ALWAYS) as session:

        def work(index: int) -> None:
            wanted = inputs[index].astype(np.float64) @ w
            for _ in range(50):
                got = session.run("out:0", {"x:0": inputs[index]})
                if np.abs(got - wanted).max() > 1e-3:
                    wrong.append(index)

        running = [threading.Thread(target=work, args=(index,)) for index in range(4)]
        for thread in running:
            thread.start()
        for thread in running:
            thread.join()
    assert not wrong


def test_switched_off(monkeypatch: pytest.MonkeyPatch) -> None:
    graph, x, w = _product(32, 32, 32)
    monkeypatch.setenv("GRAPHMILL_PANELS", "off")
    assert not _is_used(graph, {"x:0": x})
    (got,) = compiled(graph, ["out:0"], {"x:0": x})
    tolerance.assert_within(got, x.astype(np.float64) @ w, tolerance.of_product(x, w))


def test_packed_weights() -> None:
    w = _numbers(0, 5, 20)
    made = pack(w, 16)
    assert made.shape == (2, 5, 16) and made.ctypes.data % 64 == 0
    np.testing.assert_array_equal(np.concatenate(list(made), axis=1)[:, :20], w)
    assert not made[1, :, 4:].any()


@pytest.mark.skipif(rows.current().vectors.registers < 32, reason="there are 16 registers, and no kernels for them")
@pytest.mark.parametrize("tile", [(8, 3), (6, 4), (8, 2)])
def test_kernels_keep_their_sums_in_registers(tile: tuple[int, int]) -> None:
    """With vectors on the stack they would be half as fast."""
    machine = compiler()
    assert machine is not None
    assembly = machine.assembly(kernel(Tile(*tile, 1, _ALWAYS.packed_gemm.unrolled)))
    assert "zmm" in assembly and not any("zmm" in line and "rsp" in line for line in assembly.splitlines())
