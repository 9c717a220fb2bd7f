"""Winograd's algorithm beside the definition, and where it must not be used."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from tests import tolerance
from tests.compiler.compare import explained
from tests.compiler.targets import changed
from tests.runtime.oracle import Both
from toolkit import Session
from toolkit.compiler.backends.cpu.networks import windows
from toolkit.kernels.cpu.native import interpolation
from toolkit.kernels.cpu.native.compiler import compiler
from toolkit.kernels.cpu.native.interpolation import algorithms
from toolkit.kernels.cpu.onednn.library import library
from toolkit.target import rows

pytestmark = pytest.mark.skipif(
    library() is None or compiler() is None, reason="its products are oneDNN's, its transformations LLVM's"
)
Build = Callable[[Any, Any, Any], Any]
#: Of the largest output, where there is no bound for each number (`tolerance.of_winograd`): more than twice what is
#: found here, and what others than the algorithm are far below. Its errors are mostly those of its transformations,
#: which add in the same order on every processor.
_ERROR = 1e-5
#: the root of the mean square, of the largest output, as `interpolation` promises
_TYPICAL = 5e-6
#: small convolutions too
_ALWAYS = changed(winograd={"gain": 1e9, "least_work": 0})


@pytest.fixture(autouse=True)
def _strict(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("GRAPHMILL_SEGMENTS", "strict")


def _chosen(monkeypatch: pytest.MonkeyPatch, threads: int, *, by_filters: bool) -> None:
    """Have every convolution of a 3x3 window shared like this."""
    schedule = windows.WinogradSchedule(next(algorithms((3, 3))), threads, by_filters, 0.0)

    def choose(operation: Any, threads: int, sizes: Any) -> windows.WinogradSchedule:
        return schedule

    monkeypatch.setattr(windows, "_schedule", choose)


@pytest.fixture(params=[4, 2])
def tile(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> int:
    """Outputs of a tile along each axis, where there is a choice."""
    for window in (3, 5, 7):
        monkeypatch.setitem(interpolation.TILES, window, (request.param,))
    return request.param


def _pads(x: tuple[int, ...], window: tuple[int, ...], padding: Any) -> list[Any]:
    """As numbers, of a convolution of stride 1."""
    if isinstance(padding, list):
        return padding
    same = [((size - 1) // 2, size // 2) if padding == "SAME" else (0, 0) for size in window]
    return [(0, 0), *same, (0, 0)]


def _as_it_is(v1: Any, y: Any, x: Any) -> Any:
    return y


class _Case:
    """A convolution in TensorFlow's graph and ours; the reference is float64."""

    target = _ALWAYS

    def __init__(self, tf: Any, x: tuple[int, ...], w: tuple[int, ...], build: Build | None = None, seed: int = 0,
                 padding: Any = "SAME", **attributes: Any):  # fmt: skip
        self.random = np.random.default_rng(seed)
        self.x = self.random.normal(size=x).astype(np.float32)
        self.w = (self.random.normal(size=w) * 0.2).astype(np.float32)
        self.build: Build = build or _as_it_is
        self.attributes = {"strides": 1, "padding": padding, **attributes}

        def make(v1: Any) -> None:
            given = v1.placeholder("float32", x, name="x")
            v1.identity(self._output(v1, given, v1.constant(self.w)), name="out")
            v1.identity(
                self._output(v1, v1.cast(given, "float64"), v1.constant(self.w.astype(np.float64))), name="exact"
            )

        self.both = Both(tf, make)

    def _output(self, v1: Any, x: Any, w: Any) -> Any:
        return self.build(v1, v1.nn.conv2d(x, w, **self.attributes), x)

    def exact(self, x: Any = None) -> Any:
        with self.both.v1.Session(graph=self.both.tf_graph) as session:
            return session.run("exact:0", {"x:0": self.x if x is None else x})

    def check(self, threads: int = 1, *, used: bool = True, times: int = 2) -> None:
        wanted = self.exact()
        with Session(self.both.graph, threads=threads, processor=self.target) as session:
            for _ in range(times):
                got = session.run("out:0", {"x:0": self.x})
                assert got.dtype == np.float32 and got.shape == wanted.shape
                tolerance.assert_within(got, wanted, self.allowed(wanted, used))
                tolerance.assert_within(np.sqrt(np.mean(np.square(got - wanted))), 0.0, _TYPICAL * np.abs(wanted).max())
        assert self.is_used(threads) == used

    def allowed(self, wanted: Any, used: bool) -> Any:
        """How far each number may be from the exact one."""
        window = self.w.shape[:2]
        if not used or self.build is not _as_it_is:
            return _ERROR * np.abs(wanted).max()
        pads = _pads(self.x.shape, window, self.attributes["padding"])
        bounds = [tolerance.of_winograd(self.x, self.w, pads, axes) for axes in algorithms((window[0], window[1]))]
        return np.maximum.reduce(bounds)

    def is_used(self, threads: int = 1) -> bool:
        return " winograd " in explained(
            self.both.graph, ["out:0"], {"x:0": self.x}, threads=threads, processor=self.target
        )


@pytest.mark.parametrize("window", [(3, 3), (5, 5), (3, 5), (5, 3), (1, 3), (3, 1), (1, 5), (5, 1), (1, 7), (7, 1)])
@pytest.mark.parametrize("padding", ["SAME", "VALID"])
def test_windows(tf: Any, tile: int, window: tuple[int, int], padding: str) -> None:
    _Case(tf, (2, 11, 9, 32), (*window, 32, 16), padding=padding).check()


@pytest.mark.parametrize("seed", range(12))
def test_random_geometry(tf: Any, tile: int, seed: int) -> None:
    random = np.random.default_rng(seed)
    window = [(3, 3), (5, 5), (1, 7), (3, 1)][seed % 4]
    size = random.integers(max(window), 20, 2)
    channels, filters = 16 * random.integers(1, 5, 2)
    pads = [[0, 0], *([int(n) for n in random.integers(0, 3, 2)] for _ in range(2)), [0, 0]]
    x = (int(random.integers(1, 4)), *map(int, size), int(channels))
    _Case(tf, x, (*window, int(channels), int(filters)), seed=seed, padding=pads).check(int(random.integers(1, 4)))


_EPILOGUES: dict[str, Build] = {
    "bias": lambda v1, y, x: y + v1.constant(np.linspace(-1, 1, 32), y.dtype),
    "relu": lambda v1, y, x: v1.nn.relu(y + v1.constant(np.linspace(-1, 1, 32), y.dtype)),
    "relu6": lambda v1, y, x: v1.nn.relu6(y),
    "residual": lambda v1, y, x: v1.nn.relu(y + x),
    "a residual without range": lambda v1, y, x: y + x,
    "a residual that was computed": lambda v1, y, x: v1.nn.relu(y + v1.nn.avg_pool2d(x, 3, 1, "SAME")),
    "followed by itself": lambda v1, y, x: v1.nn.conv2d(
        v1.nn.relu(y), v1.constant(np.random.default_rng(3).normal(size=(3, 3, 32, 32)) * 0.1, y.dtype), 1, "SAME"
    ),
}  # fmt: skip


@pytest.mark.parametrize("build", list(_EPILOGUES.values()), ids=list(_EPILOGUES))
@pytest.mark.parametrize("threads", [1, 2])
def test_epilogues(tf: Any, build: Build, threads: int) -> None:
    _Case(tf, (1, 13, 10, 32), (3, 3, 32, 32), build).check(threads)


@pytest.mark.parametrize("threads", [2, 3, 4])
@pytest.mark.parametrize("by_filters", [False, True])
def test_shares(tf: Any, monkeypatch: pytest.MonkeyPatch, threads: int, by_filters: bool) -> None:
    _chosen(monkeypatch, threads, by_filters=by_filters)
    _Case(tf, (2, 9, 9, 16), (3, 3, 16, 16 * threads)).check(threads)


def test_more_than_one_block(tf: Any) -> None:
    case = _Case(tf, (3, 17, 19, 16), (3, 3, 16, 48))
    case.target = changed(_ALWAYS, winograd={"block": 5})
    case.check()
    case.check(3)


def test_shares_of_a_batch(tf: Any) -> None:
    case = _Case(tf, (8, 12, 12, 16), (3, 3, 16, 32))
    case.target = changed(_ALWAYS, batches={"least_work": 0})
    case.check(2, times=3)
    assert "shares" in explained(case.both.graph, ["out:0"], {"x:0": case.x}, threads=2, processor=case.target)


def test_several_threads_run_one_session(tf: Any) -> None:
    case = _Case(tf, (1, 16, 16, 32), (3, 3, 32, 32), _EPILOGUES["residual"])
    inputs = [case.random.normal(size=case.x.shape).astype(np.float32) for _ in range(4)]
    wanted = [case.exact(x) for x in inputs]
    errors: list[float] = []
    with Session(case.both.graph, threads=2, processor=_ALWAYS) as session:

        def work(index: int) -> None:
            for _ in range(20):
                got = session.run("out:0", {"x:0": inputs[index]})
                errors.append(float(np.abs(got - wanted[index]).max()))

        workers = [threading.Thread(target=work, args=(index,)) for index in range(4)]
        for worker in workers:
            worker.start()
        for worker in workers:
            worker.join()
    assert len(errors) == 80 and max(errors) <= _ERROR * max(np.abs(each).max() for each in wanted)


_WINDOWS = [(3, 3), (5, 5), (3, 5), (1, 7), (3, 1)]


class _Learning:
    """A convolution whose filter is fed, and its gradients, in float32 and float64."""

    target = _ALWAYS

    def __init__(self, tf: Any, x: tuple[int, ...], w: tuple[int, ...], padding: str, seed: int = 0):
        random = np.random.default_rng(seed)
        cut = (0, 0) if padding == "SAME" else (w[0] - 1, w[1] - 1)
        self.shapes = {"x": x, "w": w, "b": w[-1:], "dy": (x[0], x[1] - cut[0], x[2] - cut[1], w[-1])}
        self.feeds = {f"{name}:0": random.normal(size=shape).astype(np.float32) for name, shape in self.shapes.items()}
        self.fetches = ["y:0", "dx:0", "dw:0"]

        def make(v1: Any) -> None:
            given = {name: v1.placeholder("float32", shape, name=name) for name, shape in self.shapes.items()}
            for dtype, suffix in (("float32", ""), ("float64", "_exact")):
                x, w, b, dy = (v1.cast(each, dtype) for each in given.values())
                y = v1.nn.bias_add(v1.nn.conv2d(x, w, 1, padding), b)
                dx, dw = v1.gradients(y, [x, w], dy)
                for value, name in ((y, "y"), (dx, "dx"), (dw, "dw")):
                    v1.identity(value, name=name + suffix)

        self.both = Both(tf, make)

    def check(self, threads: int, *, times: int = 2) -> None:
        with self.both.v1.Session(graph=self.both.tf_graph) as session:
            wanted = session.run([name.replace(":", "_exact:") for name in self.fetches], self.feeds)
        with Session(self.both.graph, threads=threads, processor=self.target) as session:
            for _ in range(times):
                for got, right in zip(session.run(self.fetches, self.feeds), wanted, strict=True):
                    assert got.shape == right.shape
                    tolerance.assert_within(got, right, _ERROR * np.abs(right).max())

    def kinds(self, threads: int) -> list[str]:
        text = explained(self.both.graph, self.fetches, self.feeds, threads=threads, processor=self.target)
        return [word for line in text.splitlines() for word in line.split()[1:2] if "winograd" in word]


@pytest.mark.parametrize("window", _WINDOWS)
@pytest.mark.parametrize("padding", ["SAME", "VALID"])
@pytest.mark.parametrize("threads", [1, 2])
def test_training(tf: Any, tile: int, window: tuple[int, int], padding: str, threads: int) -> None:
    """Forward, by the input (a convolution with the filter turned round) and by the filter."""
    case = _Learning(tf, (3, 11, 10, 16), (*window, 16, 32), padding)
    case.check(threads)
    assert sorted(case.kinds(threads)) == ["winograd", "winograd", "winograd_filter"]


@pytest.mark.parametrize("window", _WINDOWS)
@pytest.mark.parametrize("threads", [1, 2])
def test_filters_that_are_fed(tf: Any, window: tuple[int, int], threads: int) -> None:
    case = _Learning(tf, (3, 11, 10, 16), (*window, 16, 32), "SAME")
    case.fetches = ["y:0"]
    case.check(threads)
    assert case.kinds(threads) == ["winograd"]


@pytest.mark.parametrize("batch,block,threads", [(1, 64, 3), (5, 7, 1), (5, 7, 2), (2, 1, 4), (1, 5, 4)])
def test_gradients_over_blocks(tf: Any, monkeypatch: pytest.MonkeyPatch, batch: int, block: int, threads: int) -> None:
    """The last block is shorter than the others, and there may be fewer of them than threads."""
    _chosen(monkeypatch, threads, by_filters=False)
    case = _Learning(tf, (batch, 9, 7, 16), (3, 3, 16, 16), "SAME")
    case.target = changed(_ALWAYS, winograd={"block": block})
    case.check(threads, times=3)


def test_large_sums_of_gradients_are_left_to_the_definition(tf: Any) -> None:
    case = _Learning(tf, (3, 11, 10, 16), (3, 3, 16, 32), "SAME")
    case.target = changed(_ALWAYS, winograd={"most_sums": 4 * 16 * 16 * 32 - 1})
    assert sorted(case.kinds(1)) == ["winograd"] * 2


def test_training_sees_what_is_not_finite(tf: Any) -> None:
    case = _Learning(tf, (2, 12, 12, 16), (3, 3, 16, 16), "SAME")
    case.feeds["x:0"][0, 4, 4, 2] = np.nan
    with Session(case.both.graph, processor=_ALWAYS) as session:
        y, _, dw = session.run(case.fetches, case.feeds)
    assert np.isnan(y[0, 3:6, 3:6]).all() and np.isnan(dw[:, :, 2]).all() and np.isfinite(y[1]).all()


_OTHERS: dict[str, tuple[tuple[int, ...], dict[str, Any]]] = {
    "a stride": ((3, 3, 32, 32), {"strides": 2}),
    "dilations": ((3, 3, 32, 32), {"dilations": 2}),
    "groups": ((3, 3, 16, 32), {}),
    "few channels": ((3, 3, 32, 24), {}),
    "a window of 2": ((2, 2, 32, 32), {}),
    "a window of 1": ((1, 1, 32, 32), {}),
}


@pytest.mark.parametrize("name", list(_OTHERS))
def test_other_convolutions_keep_to_the_definition(tf: Any, name: str) -> None:
    w, attributes = _OTHERS[name]
    _Case(tf, (1, 12, 12, 32), w, **attributes).check(used=False)


def test_it_can_be_switched_off(tf: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("GRAPHMILL_WINOGRAD", "off")
    _Case(tf, (1, 12, 12, 32), (3, 3, 32, 32)).check(used=False)


def test_an_activation_that_is_no_range_keeps_to_the_definition(tf: Any) -> None:
    _Case(tf, (1, 12, 12, 32), (3, 3, 32, 32), lambda v1, y, x: v1.nn.swish(y)).check(used=False)


def test_a_bias_and_a_computed_shift_keep_to_the_definition(tf: Any) -> None:
    def build(v1: Any, y: Any, x: Any) -> Any:
        return v1.nn.relu(y + v1.constant(np.linspace(-1, 1, 32), y.dtype) + v1.reduce_mean(x, [0, 1, 2]))

    _Case(tf, (1, 12, 12, 32), (3, 3, 32, 32), build).check(used=False)


def test_huge_weights_keep_to_the_definition(tf: Any) -> None:
    case = _Case(tf, (1, 12, 12, 32), (3, 3, 32, 32))
    case.w[0, 0, 0, 0] = 1e38
    other = _Case.__new__(_Case)
    other.__dict__.update(case.__dict__)

    def make(v1: Any) -> None:
        x = v1.placeholder("float32", case.x.shape, name="x")
        v1.identity(v1.nn.conv2d(x, v1.constant(case.w), 1, "SAME"), name="out")

    other.both = Both(tf, make)
    assert case.is_used() and not other.is_used()


@pytest.mark.parametrize("number", [np.nan, np.inf])
def test_what_is_not_finite_is_seen(tf: Any, number: float) -> None:
    """Every output that the definition cannot compute is NaN or infinite; the rest of its tile may be as well."""
    case = _Case(tf, (1, 12, 12, 16), (3, 3, 16, 16))
    case.x[0, 5, 6, 3] = number
    with Session(case.both.graph, processor=_ALWAYS) as session:
        got = session.run("out:0", {"x:0": case.x})
    wanted = case.exact()
    broken = ~np.isfinite(wanted)
    assert broken.any() and not np.isfinite(got[broken]).any()
    kept = np.isfinite(got)
    assert kept.any() and np.abs(got[kept] - wanted[kept]).max() <= _ERROR * np.abs(wanted[kept]).max()


@pytest.mark.parametrize(
    "x,w,pays", [((1, 4, 4, 256), (3, 3, 256, 256), False), ((2, 56, 56, 64), (3, 3, 64, 64), True)]
)
def test_small_work_is_left_to_the_definition(tf: Any, x: tuple[int, ...], w: tuple[int, ...], pays: bool) -> None:
    case = _Case(tf, x, w)
    case.target = rows.AVX512
    assert case.is_used() == pays
