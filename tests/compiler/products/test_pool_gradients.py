"""Max pools that are compiled loops, and their gradients in one go with what follows them, beside TensorFlow's."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from tests.compiler.compare import assert_close, explained
from tests.compiler.targets import changed
from tests.runtime.oracle import Both
from toolkit import Session
from toolkit import client as gm
from toolkit.kernels.cpu.native.compiler import compiler
from toolkit.kernels.cpu.onednn.library import library

pytestmark = pytest.mark.skipif(
    library() is None or compiler() is None, reason="the loop is LLVM's, its threads oneDNN's"
)
_KIND = "tiled_pool_gradient"
#: small ones too
_SMALL = changed(pools={"least": 0})


@pytest.fixture(autouse=True)
def _strict(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("GRAPHMILL_SEGMENTS", "strict")


def _check(tf: Any, shape: tuple[int, ...], *, threads: int, relu: bool, bias: bool, window: Any = 2, stride: Any = 2,
           padding: str = "VALID", keep: bool = False) -> str:  # fmt: skip
    """Both gradients; what is explained."""
    random = np.random.default_rng(sum(shape))
    feeds = {"x:0": random.integers(-3, 4, shape).astype(np.float32), "b:0": random.normal(size=shape[-1:]).astype("f")}
    feeds["b:0"] = np.round(feeds["b:0"])  # there are equal numbers in a window
    fetches: list[str] = []

    def make(v1: Any) -> None:
        x, b = v1.placeholder("float32", shape, name="x"), v1.placeholder("float32", shape[-1:], name="b")
        y = v1.nn.bias_add(x, b)
        y = v1.nn.relu(y) if relu else y
        z = v1.nn.max_pool2d(y, window, stride, padding)
        wanted = [x, *([b] if bias else []), *([y] if keep else [])]
        for index, value in enumerate(v1.gradients(v1.sin(z) + z, wanted)):
            fetches.append(v1.identity(value, name=f"d{index}").name)

    both = Both(tf, make)
    both.check(fetches, feeds, threads=threads, processor=_SMALL)
    return explained(both.graph, fetches, feeds, threads=threads, processor=_SMALL)


@pytest.mark.parametrize("relu", [False, True])
@pytest.mark.parametrize("bias", [False, True])
@pytest.mark.parametrize("threads", [1, 2, 3])
@pytest.mark.parametrize("window", [(2, 2), (3, 3), (1, 2), (3, 1)])
def test_tiled(tf: Any, relu: bool, bias: bool, threads: int, window: tuple[int, int]) -> None:
    shape = (3, 4 * window[0], 5 * window[1], 32)
    text = _check(tf, shape, threads=threads, relu=relu, bias=bias, window=window, stride=window)
    assert _KIND in text and " relu_gradient" not in text


def test_the_gradient_before_relu_is_wanted_too(tf: Any) -> None:
    assert _KIND in _check(tf, (2, 8, 8, 16), threads=2, relu=True, bias=True, keep=True)


@pytest.mark.parametrize("shape,window,stride,padding", [
    ((2, 9, 8, 16), 2, 2, "VALID"), ((2, 8, 8, 16), 3, 2, "SAME"), ((2, 8, 8, 24), 2, 2, "VALID"),
    ((2, 8, 8, 16), 2, 1, "VALID"),
])  # fmt: skip
def test_others(tf: Any, shape: tuple[int, ...], window: int, stride: int, padding: str) -> None:
    text = _check(tf, shape, threads=2, relu=True, bias=True, window=window, stride=stride, padding=padding)
    assert _KIND not in text


def test_many_numbers_are_added_without_growing_errors() -> None:
    with gm.Graph().as_default() as graph:
        x, b = gm.placeholder(gm.float32, [8, 64, 64, 16], name="x"), gm.placeholder(gm.float32, [16], name="b")
        y = gm.relu(gm.bias_add(x, b))
        dx, db = gm.gradients.gradients(gm.max_pool(y, 2, 2, "VALID"), [x, b])
        gm.identity(dx * np.float32(np.pi), name="dx")
        gm.identity(db, name="db")
    feeds = {"x:0": np.random.default_rng(0).normal(size=(8, 64, 64, 16)).astype("f"), "b:0": np.zeros(16, "f")}
    with Session(graph, threads=2, processor=_SMALL) as session:
        dx, db = session.run(["dx:0", "db:0"], feeds)
    # ones and zeros: their sums are exact, whatever the order; the products with pi are rounded
    np.testing.assert_array_equal(db, (dx / np.pi).round().sum((0, 1, 2)))


class _Writing:
    """relu and a pool in a program that changes a variable, with what else looks at relu's output."""

    def __init__(self, window: tuple[int, int] = (2, 2), *, relu: bool = True, gradients: bool = True,
                 keep: bool = False, shape: tuple[int, ...] = (),
                 stride: tuple[int, ...] = ()):  # fmt: skip
        self.shape = shape or (4, 8 * window[0], 5 * window[1], 32)  # enough for primitives
        with gm.Graph().as_default() as self.graph:
            x = gm.placeholder(gm.float32, list(self.shape), name="x")
            given = gm.ops.neg(x)
            y = gm.relu(given) if relu else given
            z = gm.max_pool(y, list(window), list(stride or window), "VALID")
            made: list[Any] = [
                z,
                *(gm.gradients.gradients(z * z, [given]) if gradients else []),
                *([y] if keep else []),
            ]
            self.fetches = [gm.identity(each, name=f"out{index}").name for index, each in enumerate(made)]
            counter = gm.get_variable("n", [], initializer=gm.initializers.Constant(0.0), use_resource=True)
            self.step = gm.ops.assign_add_variable_op(counter.handle, 1.0)
            self.init = counter.initializer

    def check(self, x: Any, threads: int = 2) -> str:
        """Exactly what node by node gives; what is explained."""
        feeds = {"x:0": x}
        with Session(self.graph, threads=threads, processor=_SMALL) as session:
            session.run(self.init)
            for _ in range(2):
                *got, _ = session.run([*self.fetches, self.step], feeds)
                assert_close(self.graph, self.fetches, feeds, got)
            return "\n".join(session.explain([*self.fetches, self.step], feeds))

    def numbers(self, *special: float) -> Any:
        random = np.random.default_rng(0)
        x = random.normal(size=self.shape).astype(np.float32)
        for number in special:
            x.reshape(-1)[random.integers(0, x.size, x.size // 50)] = number
        return x


@pytest.mark.parametrize("threads", [1, 2, 3])
@pytest.mark.parametrize("window", [(2, 2), (3, 3), (1, 2), (3, 1), (1, 1)])
@pytest.mark.parametrize("relu", [False, True])
def test_pools_in_programs_that_write(window: tuple[int, int], relu: bool, threads: int) -> None:
    case = _Writing(window, relu=relu)
    text = case.check(case.numbers(0.0, -0.0), threads)
    assert " tiled_pool " in text and (not relu or "Relu + MaxPool " in text)


@pytest.mark.parametrize("relu", [False, True])
def test_a_window_with_nan_gives_nan(relu: bool) -> None:
    case = _Writing(relu=relu, gradients=False)
    x = case.numbers(np.nan)
    assert " tiled_pool " in case.check(x)
    assert np.isnan(x).any() and not np.isnan(x).all()
    case.check(np.full(case.shape, np.nan, np.float32))


def test_relus_output_that_somebody_wants_is_made() -> None:
    case = _Writing(keep=True)
    text = case.check(case.numbers())
    assert " tiled_pool " in text and "Relu + MaxPool " not in text


def test_pools_that_overlap_are_onednns() -> None:
    case = _Writing((3, 3), stride=(2, 2), shape=(2, 9, 9, 32), gradients=False)
    assert " tiled_pool " not in case.check(case.numbers(np.nan))


def test_pools_in_programs_that_only_compute_are_onednns(tf: Any) -> None:
    assert "tiled_pool " not in _check(tf, (2, 8, 8, 16), threads=2, relu=False, bias=False)
