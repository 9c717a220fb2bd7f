"""Arguments of ever new shapes: TensorFlow's numbers, whatever was run before, and little made anew for each."""

# numpy's overloads answer arrays typed Any with Unknown
# pyright: reportUnknownVariableType=false, reportUnknownMemberType=false, reportUnknownArgumentType=false

from __future__ import annotations

import gc
import threading
from collections.abc import Callable, Mapping
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tests.bench.workloads import WORKLOADS, varying
from tests.bench.workloads.base import Workload
from tests.models import builder
from tests.runtime.networks.network_case import relative_error
from toolkit import client as gm
from toolkit import read_model
from toolkit.compiler.backends.cpu.emission import interning
from toolkit.compiler.importer import facts
from toolkit.errors import DeadlineExceededError, OpError
from toolkit.kernels.cpu.native.compiler import JitCompiler, compiler
from toolkit.kernels.cpu.onednn.library import library
from toolkit.runtime.session import Session

_NAMES = [name for name, workload in WORKLOADS.items() if workload.suite == "shapes"]
_FROZEN = [name for name in _NAMES if not name.startswith("train")]
_DRAWN = 9


def _feeds(workload: Workload, count: int = _DRAWN) -> list[dict[str, Any]]:
    random = np.random.default_rng(21)
    return [workload.feeds(random) for _ in range(count)]


@builder(Path(varying.__file__))
def answers(folder: Path, name: str) -> dict[str, Any]:
    """What TensorFlow answers to feeds of many shapes, in turn; a model that trains, from its initial values on."""
    from tests.bench.engines.tensorflow_session import Loaded

    workload = WORKLOADS[name]
    built = workload.model()
    engine = Loaded(workload, built, 1, "f32")
    given = [[feed[label] for label in built.info["inputs"]] for feed in _feeds(workload)]
    outputs = [engine.step(values)[0] for values in given]
    named: Any = {str(index): np.asarray(output) for index, output in enumerate(outputs)}
    np.savez(folder / "answers.npz", **named)
    return {"main": "answers.npz"}


def _run(session: Session, workload: Workload, feed: Mapping[str, Any]) -> Any:
    """The first output of a step."""
    info = workload.model().info
    fetches = [*info["outputs"].values(), *([info["train"]] if "train" in info else [])]
    given = {info["inputs"][label]: value for label, value in feed.items()}
    return np.asarray(session.run(fetches, given)[0])


def _opened(workload: Workload, **options: Any) -> Session:
    built = workload.model()
    session = Session(read_model(str(built.path)), **options)
    if "init" in built.info:
        session.run(built.info["init"])
    return session


@pytest.mark.tensorflow
@pytest.mark.parametrize("name", _NAMES)
def test_steps_of_many_shapes_are_tensorflows(name: str) -> None:
    workload = WORKLOADS[name]
    workload.model()  # before its answers are: what builds these may not have processes of its own
    wanted = answers(name).arrays("answers.npz")
    with _opened(workload) as session:
        for index, feed in enumerate(_feeds(workload)):
            got, expected = _run(session, workload, feed), wanted[str(index)]
            assert got.shape == expected.shape
            assert relative_error(got, expected) <= workload.rtol  # which two engines may be apart: workloads.base


@pytest.mark.tensorflow
@pytest.mark.parametrize("name", _FROZEN)
def test_a_shape_has_the_same_bits_whatever_was_run_before(name: str) -> None:
    """In another order, in another session, and when it comes again."""
    workload = WORKLOADS[name]
    feeds = _feeds(workload, 5)
    with _opened(workload) as first, _opened(workload) as second:
        found = [_run(first, workload, feed) for feed in feeds]
        for feed, known in reversed(list(zip(feeds, found, strict=True))):
            np.testing.assert_array_equal(_run(second, workload, feed), known)
            np.testing.assert_array_equal(_run(first, workload, feed), known)


@pytest.fixture
def made(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The texts that are compiled, as if the process had compiled none before."""
    machine = compiler()
    assert machine is not None
    texts: list[str] = []
    compile_text: Callable[..., Any] = JitCompiler._compile  # pyright: ignore[reportPrivateUsage]

    def noted(self: Any, text: str, *given: Any) -> Any:
        texts.append(text)
        return compile_text(self, text, *given)

    monkeypatch.setattr(JitCompiler, "_compile", noted)
    monkeypatch.setattr(machine, "_functions", type(machine._functions)())  # pyright: ignore[reportPrivateUsage]
    return texts


def _chain(x: Any) -> Any:
    """Elementwise operations, with numbers that follow from sizes and sums over what was fed."""
    size = gm.cast(gm.size(x), gm.float32)
    y = gm.tanh(x * 0.5 + 1.0) / size - gm.exp(x) / 8.0
    return gm.reduce_sum(gm.maximum(y, 0.25 - size) * x, axis=1)


@pytest.mark.skipif(compiler() is None, reason="needs LLVM")
def test_machine_code_is_made_for_all_sizes_at_once(made: list[str]) -> None:
    with gm.Graph().as_default() as graph:
        x = gm.placeholder(gm.float32, [None, None, 24], name="x")
        gm.identity(_chain(x), name="y")
    with Session(graph, threads=1) as session:

        def run(*shape: int) -> None:
            given = np.random.default_rng(3).normal(size=shape).astype(np.float32)
            size = np.float32(given.size)
            y = np.tanh(given * np.float32(0.5) + 1) / size - np.exp(given) / 8
            exact = (np.maximum(y, np.float32(0.25) - size) * given).astype(np.float64).sum(1)
            most = np.abs(y * given).sum(1) * np.float32(2.0**-18)  # sums of 40 numbers, and functions good to 3 units
            assert (np.abs(session.run("y:0", {"x:0": given}) - exact) <= most).all()

        run(5, 17, 24)
        known = len(made)
        assert known
        for shape in ((7, 33, 24), (3, 9, 24), (40, 25, 24)):  # all with one row more than whole chains of eight
            run(*shape)
        assert made[known:] == []


def test_of_small_graphs_with_lists_the_graph_is_walked_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """What handles hold does not depend on what is fed."""
    walked: list[Any] = []
    demand = facts.ShapeMap._demand  # pyright: ignore[reportPrivateUsage]

    def noted(self: Any, node: Any) -> None:
        walked.append(node)
        demand(self, node)

    monkeypatch.setattr(facts.ShapeMap, "_demand", noted)
    with gm.Graph().as_default() as graph:
        x = gm.placeholder(gm.float32, [None, 3], name="x")
        gm.identity(gm.map_fn(lambda row: row * 2.0, x), name="y")
    with Session(graph) as session:
        for rows in (2, 5, 4):
            before = len(walked)
            given = np.ones((rows, 3), np.float32)
            np.testing.assert_array_equal(session.run("y:0", {"x:0": given}), given * 2)
            if rows != 2:
                assert len(walked) == before


def _product(width: int = 96) -> tuple[gm.Graph, Any]:
    with gm.Graph().as_default() as graph:
        x = gm.placeholder(gm.float32, [None, width], name="x")
        w = gm.Variable(gm.constant(np.eye(width, dtype=np.float32)), name="w")
        new = gm.placeholder(gm.float32, [width, width], name="new")
        gm.identity(gm.ops.mat_mul(x, w), name="y")
        gm.group([w.assign(new)], name="set")
        gm.group([w.assign_add(new)], name="add")
        init = gm.global_variables_initializer()
    return graph, init


def test_weights_that_change_are_packed_anew() -> None:
    """Also where they change in their own array, while another session has equal ones packed."""
    graph, init = _product()
    x = np.random.default_rng(4).normal(size=(64, 96)).astype(np.float32)
    weights = np.eye(96, dtype=np.float32)
    with Session(graph) as session, Session(graph) as other:
        session.run(init)
        other.run(init)
        for turn in range(6):
            for rows in (64 - turn, 32 - turn, 16 + turn):
                np.testing.assert_array_equal(other.run("y:0", {"x:0": x[:rows]}), x[:rows])
                np.testing.assert_array_equal(session.run("y:0", {"x:0": x[:rows]}), x[:rows] @ weights)
            step = np.diag(np.full(96, 2.0**turn, np.float32))  # whatever the order, sums of one product are exact
            session.run("add" if turn % 2 else "set", {"new:0": step})
            weights = weights + step if turn % 2 else step


@pytest.mark.skipif(library() is None, reason="needs oneDNN")
def test_what_was_packed_goes_with_the_session() -> None:
    graph, init = _product(160)
    gc.collect()
    before = set(interning._PACKINGS)  # pyright: ignore[reportPrivateUsage]
    with Session(graph) as session:
        session.run(init)
        for rows in (48, 64, 80):
            session.run("y:0", {"x:0": np.ones((rows, 160), np.float32)})
    del session
    gc.collect()
    assert set(interning._PACKINGS) <= before  # pyright: ignore[reportPrivateUsage]


def test_what_is_kept_of_shapes_is_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(facts, "_MOST_KEPT", 40)
    kept: list[facts.Facts] = []
    of: Callable[..., facts.Facts] = facts.Facts.of
    monkeypatch.setattr(facts.Facts, "of", lambda program: kept.append(of(program)) or kept[-1])
    with gm.Graph().as_default() as graph:
        x = gm.placeholder(gm.float32, [None, None], name="x")
        gm.identity(gm.reduce_sum(x, axis=1) * 2.0, name="y")
    with Session(graph) as session:
        for columns in range(1, 60):
            given = np.ones((2, columns), np.float32)
            np.testing.assert_array_equal(session.run("y:0", {"x:0": given}), [2.0 * columns] * 2)
    assert 1 < len(set(map(id, kept))) < len(kept)
    assert all(len(each._shapes) < 80 for each in kept)  # pyright: ignore[reportPrivateUsage]


def test_what_is_kept_of_constants_is_bounded_within_a_plan_too(monkeypatch: pytest.MonkeyPatch) -> None:
    size, count = 4000, 12
    monkeypatch.setattr(facts, "_MOST_BYTES", 2 * size)
    kept: list[facts.Facts] = []
    of: Callable[..., facts.Facts] = facts.Facts.of
    monkeypatch.setattr(facts.Facts, "of", lambda program: kept.append(of(program)) or kept[-1])
    with gm.Graph().as_default() as graph:
        x = gm.placeholder(gm.float32, [None, size // 4], name="x")
        for number in range(count):
            x = x + gm.constant(np.full(size // 4, number, np.float32)) * 2.0
        gm.identity(x, name="y")
    with Session(graph) as session:
        for rows in (2, 3):
            given = np.ones((rows, size // 4), np.float32)
            np.testing.assert_array_equal(session.run("y:0", {"x:0": given}), given + count * (count - 1))
    most = 2 * size + 2 * size  # the last that there was room for, and what it was made of
    assert all(size <= each._bytes <= most for each in kept)  # pyright: ignore[reportPrivateUsage]


@pytest.mark.tensorflow
@pytest.mark.parametrize("name", ["translator with attention, any size", "transformer encoder 4 x 256, any size"])
def test_many_callers_each_with_shapes_of_their_own(name: str) -> None:
    """Some of them with words that are not there, or with no time left; the others never notice."""
    workload = WORKLOADS[name]
    feeds = _feeds(workload, 6)
    label = next(iter(workload.model().info["inputs"]))
    with _opened(workload) as alone:
        wanted = [_run(alone, workload, feed) for feed in feeds]
    wrong: list[Any] = []

    def call(session: Session, number: int) -> None:
        order = np.random.default_rng(number).permutation(len(feeds))
        try:
            for index in order:
                bad = dict(feeds[index])
                bad[label] = np.full_like(bad[label], varying.WORDS + 1)
                if number % 2:
                    with pytest.raises(OpError):
                        _run(session, workload, bad)
                if number % 3 == 1:
                    with suppress(DeadlineExceededError):  # whether it is late is the machine's business
                        _hurry(session, workload, feeds[index])
                np.testing.assert_array_equal(_run(session, workload, feeds[index]), wanted[index])
        except BaseException as error:
            wrong.append(error)

    with _opened(workload) as session:
        threads = [threading.Thread(target=partial(call, session, number)) for number in range(5)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    assert wrong == []


def _hurry(session: Session, workload: Workload, feed: Mapping[str, Any]) -> None:
    info = workload.model().info
    given = {info["inputs"][each]: value for each, value in feed.items()}
    session.run(list(info["outputs"].values()), given, timeout_ms=1)
