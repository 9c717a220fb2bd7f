"""What Winograd's algorithm makes of zeros in programs that learn: exact zeros, as the definition does."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from tests import perturbation
from tests.compiler.compare import explained
from tests.compiler.targets import changed
from tests.runtime.oracle import Both
from toolkit import Session
from toolkit import client as gm
from toolkit.kernels.cpu.native import interpolation
from toolkit.kernels.cpu.native.compiler import compiler
from toolkit.kernels.cpu.onednn.library import library

pytestmark = pytest.mark.skipif(
    library() is None or compiler() is None, reason="its products are oneDNN's, its transformations LLVM's"
)
_SHAPE = (4, 14, 13, 32)
_WINDOWS = [(3, 3), (5, 5), (3, 5), (1, 7), (3, 1)]


#: small convolutions too
_ALWAYS = changed(winograd={"gain": 1e9, "least_work": 0})


@pytest.fixture(autouse=True)
def _strict(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("GRAPHMILL_SEGMENTS", "strict")


class _Forward:
    """A convolution with bias in a program that learns."""

    target = _ALWAYS

    def __init__(self, window: tuple[int, int], padding: str, filters: int = 16, *, adds: bool = False):
        self.window, self.padding = window, padding
        random = np.random.default_rng(sum(window))
        self.b = random.normal(size=filters).astype(np.float32)
        self.w = random.normal(size=(*window, _SHAPE[-1], filters)).astype(np.float32)
        cut = (0, 0) if padding == "SAME" else (window[0] - 1, window[1] - 1)
        self.shape = (_SHAPE[0], _SHAPE[1] - cut[0], _SHAPE[2] - cut[1], filters)
        self.added = random.normal(size=self.shape).astype(np.float32)
        with gm.Graph().as_default() as self.graph:
            x, w = (
                gm.placeholder(gm.float32, list(_SHAPE), name="x"),
                gm.placeholder(gm.float32, self.w.shape, name="w"),
            )
            y = gm.bias_add(gm.conv2d(x, w, 1, padding), gm.placeholder(gm.float32, [filters], name="b"))
            r = gm.placeholder(gm.float32, list(self.shape), name="r")
            y = y + gm.ops.neg(gm.ops.neg(r)) if adds else y
            gm.identity(y, name="y")
            gm.identity(gm.gradients.gradients(y, [w])[0], name="dw")
        self.adds = adds

    def run(self, x: Any, w: Any = None, threads: int = 1) -> Any:
        feeds = {"x:0": x, "w:0": self.w if w is None else w, "b:0": self.b, "r:0": self.added}
        text = explained(self.graph, ["y:0", "dw:0"], feeds, threads=threads, processor=self.target)
        assert " winograd " in text and "Conv2D + BiasAdd" in text
        with Session(self.graph, threads=threads, processor=self.target) as session:
            session.run(["y:0", "dw:0"], feeds)
            return session.run(["y:0", "dw:0"], feeds)[0]

    def windows(self, x: Any) -> Any:
        """What each output sees, float64[images, rows, columns, channels, height, width]."""
        height, width = self.window
        padded: Any = x.astype(np.float64)
        if self.padding == "SAME":
            pads = [(0, 0), *(((n - 1) // 2, n // 2) for n in self.window), (0, 0)]
            padded = np.pad(padded, pads)
        return np.lib.stride_tricks.sliding_window_view(padded, (height, width), (1, 2))

    def check(self, x: Any, threads: int = 1) -> None:
        """Exact where nothing is seen, near enough elsewhere, NaN where it must be."""
        windows = self.windows(x)
        rest = np.broadcast_to(self.b, self.shape) + (self.added if self.adds else 0)
        with np.errstate(invalid="ignore"):
            wanted = np.einsum("nhwcij,ijcf->nhwf", windows, self.w.astype(np.float64)) + rest
        blank = ~(windows != 0).any((3, 4, 5))
        got = self.run(x, threads=threads)
        np.testing.assert_array_equal(got[blank], rest[blank].astype(np.float32))
        finite = np.isfinite(got)
        assert not np.isfinite(wanted[~finite]).all() or finite.all()
        assert not finite[~np.isfinite(wanted)].any()
        # what `graphmill help numerics` says of Winograd's algorithm
        assert np.abs(got[finite] - wanted[finite]).max() <= 1e-5 * np.abs(wanted[finite]).max()


def _images(*, special: float = 0.0) -> Any:
    """With a border of zeros; with rectangles, some of -0; nothing but one channel of one pixel; nothing at all."""
    x = np.random.default_rng(1).normal(size=_SHAPE).astype(np.float32)
    x[0, :4] = x[0, -5:] = x[0, :, :6] = x[0, :, -3:] = 0
    x[1, 2:9, 3:10] = -0.0
    x[1, 6:, :5] = 0
    x[2:] = 0
    x[2, 5, 6, 17] = special or 1e-3
    if special:
        x[1, 1, 11, 3] = x[0, 6, 8, 30] = special
    return x


@pytest.mark.parametrize("window", _WINDOWS)
@pytest.mark.parametrize("padding", ["SAME", "VALID"])
@pytest.mark.parametrize("threads", [1, 2, 3])
@pytest.mark.parametrize("tile", [4, 2])
def test_zeros_make_zeros(
    monkeypatch: pytest.MonkeyPatch, window: tuple[int, int], padding: str, threads: int, tile: int
) -> None:
    for size in (3, 5, 7):
        monkeypatch.setitem(interpolation.TILES, size, (tile,))
    _Forward(window, padding).check(_images(), threads)


@pytest.mark.parametrize("window", _WINDOWS)
@pytest.mark.parametrize("special", [np.nan, np.inf, -np.inf])
def test_what_is_not_finite_does_not_get_there(window: tuple[int, int], special: float) -> None:
    _Forward(window, "SAME").check(_images(special=special))


@pytest.mark.parametrize("threads", [1, 2])
def test_with_something_added_and_short_blocks(threads: int) -> None:
    for case in (_Forward((3, 3), "SAME", 48, adds=True), _Forward((5, 5), "SAME", 48)):
        case.target = changed(_ALWAYS, winograd={"block": 7})
        case.check(_images(), threads)


def test_the_smallest_numbers_are_not_zeros() -> None:
    case = _Forward((3, 3), "SAME")
    case.b[:] = 0
    x = np.zeros(_SHAPE, np.float32)
    x[0, 5, 5, 0] = 1e-30
    y = case.run(x)
    assert y[0, 4:7, 4:7].all() and not y[1:].any()


def test_filters_that_are_not_finite_are_seen() -> None:
    case = _Forward((3, 3), "SAME")
    case.w[1, 1, 3] = np.nan
    assert np.isnan(case.run(np.zeros(_SHAPE, np.float32))).all()
    assert np.isnan(case.run(np.ones(_SHAPE, np.float32))).all()


_STEPS, _BATCH = 12, 8


def _network(v1: Any, optimizer: str) -> None:
    """A small LeNet whose biases begin at 0."""
    x = v1.placeholder("float32", (_BATCH, 20, 20, 1), name="x")
    labels = v1.placeholder("int64", (_BATCH,), name="labels")
    random = np.random.default_rng(0)

    def variable(name: str, *shape: int) -> Any:
        scale = 0.0 if len(shape) == 1 else float(np.prod(shape[:-1])) ** -0.5
        value = (random.normal(size=shape) * scale).astype(np.float32)
        return v1.get_variable(name, initializer=value, use_resource=True)

    y = x
    for layer, (depth, width) in enumerate(((1, 16), (16, 32))):
        y = v1.nn.conv2d(y, variable(f"w{layer}", 5, 5, depth, width), 1, "SAME")
        y = v1.nn.relu(v1.nn.bias_add(y, variable(f"b{layer}", width)))
        y = v1.nn.max_pool2d(y, 2, 2, "VALID")
    y = v1.matmul(v1.reshape(y, (_BATCH, -1)), variable("w2", 5 * 5 * 32, 10)) + variable("b2", 10)
    losses = v1.nn.sparse_softmax_cross_entropy_with_logits(labels=labels, logits=y)
    loss = v1.reduce_mean(losses, name="loss")
    made = {"SGD": v1.train.GradientDescentOptimizer(0.2), "Adam": v1.train.AdamOptimizer(1e-3)}[optimizer]
    made.minimize(loss, name="train")
    for layer in range(3):
        for kind in "wb":
            v1.identity(v1.get_default_graph().get_tensor_by_name(f"{kind}{layer}/Read/ReadVariableOp:0"),
                        name=f"{kind}{layer}_now")  # fmt: skip
    v1.group(v1.global_variables_initializer(), name="init")


@pytest.mark.parametrize("optimizer", ["SGD", "Adam"])
@pytest.mark.parametrize("threads", [1, 2])
def test_digits_with_black_borders(tf: Any, optimizer: str, threads: int) -> None:
    """Losses and variables of training are TensorFlow's."""
    both = Both(tf, lambda v1: _network(v1, optimizer))
    random = np.random.default_rng(5)
    steps: list[dict[str, Any]] = []
    for _ in range(_STEPS):
        x = np.zeros((_BATCH, 20, 20, 1), np.float32)
        # the second convolution sees it in 6 of 10 rows and columns: that ends in the middle of a tile
        x[:, 1:6, 2:6] = random.uniform(size=(_BATCH, 5, 4, 1))
        x[-1] = 0
        steps.append({"x:0": x, "labels:0": random.integers(0, 10, _BATCH)})
    names = [f"{kind}{layer}_now:0" for layer in range(3) for kind in "wb"]
    # Adam divides gradients by their size: the rounding of those that are 0 makes steps as well
    names = [name for name in names if optimizer == "SGD" or name[0] == "b"]

    def work(running: Any) -> list[Any]:
        running.run("init")
        losses = [running.run(["loss:0", "train"], feeds)[0] for feeds in steps]
        return [*losses, *running.run(names)]

    with (
        both.v1.Session(graph=both.tf_graph) as theirs,
        Session(both.graph, threads=threads, processor=_ALWAYS) as ours,
    ):
        assert sum(" winograd " in line for line in ours.explain(["loss:0", "train"], steps[0])) == 2
        results = [work(ours), work(theirs)]
    perturbation.assert_agree(results, lambda: perturbation.of_work(both.graph, work))
