"""Loops that learn, as machine code: products added up over turns, weights packed before them, what is joined."""

# functions over tensors of TensorFlow, which have no types
# pyright: reportUnknownVariableType=false, reportUnknownMemberType=false, reportUnknownArgumentType=false
# pyright: reportUnknownLambdaType=false, reportUnknownParameterType=false, reportMissingParameterType=false

from __future__ import annotations

import threading
from collections.abc import Callable
from types import ModuleType
from typing import Any

import numpy as np
import pytest

from tests import perturbation
from tests.compiler.loops.loop_cases import loop
from tests.compiler.loops.test_loops_native import COMPILES, MULTIPLIES, fetches_of, loops_of
from tests.runtime.oracle import Both
from toolkit.compiler.backends.cpu.loops import accumulation
from toolkit.runtime.session import Session

pytestmark = pytest.mark.tensorflow


def _fetch(v1: Any, *tensors: Any) -> None:
    for index, tensor in enumerate(tensors):
        v1.identity(tensor, name=f"out{index}")


def _both_ways(both: Both, steps: list[dict[str, Any]], before: tuple[str, ...] = ()) -> list[str]:
    """Run steps in TensorFlow, compiled and by the interpreter, in one session each; our explanation of the last."""
    fetches = fetches_of(both.graph)

    def work(running: Any) -> list[Any]:
        for name in before:
            running.run(name)
        return [value for feeds in steps for value in running.run(fetches, feeds)]

    outcomes: list[list[Any]] = []
    lines: list[str] = []
    for native in ("on", "off"):
        with pytest.MonkeyPatch.context() as patch:
            patch.setenv("GRAPHMILL_NATIVE", native)
            with Session(both.graph) as running:
                outcomes.append(work(running))
                lines = lines or running.explain(fetches, steps[-1])
    config = both.tf.compat.v1.ConfigProto()
    config.graph_options.rewrite_options.disable_meta_optimizer = True
    with both.v1.Session(graph=both.tf_graph, config=config) as theirs:
        outcomes.append(work(theirs))
    labels = [f"{label} of {feeds.get('n:0')}" for feeds in steps for label in fetches]
    perturbation.assert_agree(outcomes, lambda: perturbation.of_work(both.graph, work), labels)
    return lines


@pytest.fixture
def made(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """How many iterations the accumulations that are found put together."""
    found: list[int] = []
    find = accumulation.accumulation_for

    def noted(*args: Any) -> Any:
        total = find(*args)
        if total is not None:
            found.append(total.iterations)
        return total

    monkeypatch.setattr(accumulation, "accumulation_for", noted)
    return found


def _cell(v1: Any, x: Any, h: Any, w: Any, b: Any) -> Any:
    i, j = v1.split(v1.matmul(v1.concat([x, h], 1), w) + b, 2, axis=1)
    return v1.sigmoid(i) * v1.tanh(j) + 0.5 * h


def _learning(rows: int, inputs: int, hidden: int) -> Callable[[Any], None]:
    """A layer over n turns, with gradients of everything, in a step that changes its variables."""

    def build(v1: Any) -> None:
        random = np.random.default_rng(hidden)
        n, x = v1.placeholder("int32", [], name="n"), v1.placeholder("float32", [rows, inputs], name="x")
        start = random.normal(size=(inputs + hidden, 2 * hidden)).astype(np.float32) * 0.5 / (inputs + hidden) ** 0.5
        w = v1.get_variable("w", initializer=start, use_resource=True)
        b = v1.get_variable("b", [2 * hidden], initializer=v1.zeros_initializer(), use_resource=True)
        h = loop(v1, n, lambda i, h: (_cell(v1, x * 0.5, h, w.read_value(), b.read_value()),), v1.zeros([rows, hidden]))
        loss = v1.reduce_mean(v1.square(h[0] - 1.0))
        gradients = v1.gradients(loss, [w, b])
        v1.group(w.initializer, b.initializer, name="init")
        with v1.control_dependencies(gradients):
            _fetch(v1, loss, *gradients, w.assign_sub(gradients[0] * 0.1), b.assign_sub(gradients[1] * 0.1))

    return build


@pytest.mark.parametrize("v2", [False, True], ids=["v1", "v2"])
@pytest.mark.parametrize(("rows", "inputs", "hidden"), [(40, 30, 64), (64, 16, 96), (7, 3, 16), (300, 5, 8), (1, 4, 4)])
def test_layers_learn(rows: int, inputs: int, hidden: int, v2: bool, tf: ModuleType, made: list[int]) -> None:
    both = Both(tf, _learning(rows, inputs, hidden), control_flow_v2=v2)
    random = np.random.default_rng(rows)
    steps = [
        {"n:0": n, "x:0": random.normal(size=(rows, inputs)).astype(np.float32)} for n in (3, 0, 1, 8, 16, 25, 7, 100)
    ]
    lines = _both_ways(both, steps, before=("init",))
    if MULTIPLIES:
        assert loops_of(lines) == [True, True]
        few = rows * (inputs + 3 * hidden) <= (inputs + hidden) * 2 * hidden
        assert [turns > 1 for turns in made[:1]] == [True] * (few and rows <= 256)
        assert all(turns * rows <= 512 for turns in made)


@pytest.mark.parametrize("v2", [False, True], ids=["v1", "v2"])
@pytest.mark.parametrize("seed", range(6))
def test_random_totals(seed: int, v2: bool, tf: ModuleType) -> None:
    """States to which products are added that others use too, or change, or that are tested, or come first."""
    random = np.random.default_rng(seed)
    rows, k, m = int(random.integers(1, 9)), int(random.integers(8, 40)), int(random.integers(8, 40))

    def build(v1: Any) -> None:
        n = v1.placeholder("int32", [], name="n")
        a, b = v1.placeholder("float32", [rows, k], name="a"), v1.placeholder("float32", [rows, m], name="b")
        start = v1.placeholder("float32", [k, m], name="start")

        def body(i: Any, p: Any, q: Any, first: Any, second: Any, third: Any, fourth: Any) -> Any:
            product = v1.matmul(p, q, transpose_a=True)
            turned = v1.matmul(q, p, transpose_a=True)
            used = first + product if seed % 2 else product + first
            more = v1.add_n([third, product * 0.5, product]) if seed % 3 == 0 else third + turned
            left = p * 0.9 + (v1.reduce_sum(second) * 1e-4 if seed % 3 == 1 else 0.0)
            return left, v1.tanh(q) + 0.1, used, second + v1.matmul(p * 2.0, q + 1.0, transpose_a=True), (
                more), (fourth if seed % 2 else used) + product  # fmt: skip

        third = start if seed % 3 == 0 else v1.transpose(start)
        _fetch(v1, *loop(v1, n, body, a, b, start, start * 2.0, third, start))

    both = Both(tf, build, control_flow_v2=v2)
    steps = [
        {"n:0": n, "a:0": random.normal(size=(rows, k)).astype(np.float32) * 0.3,
         "b:0": random.normal(size=(rows, m)).astype(np.float32),
         "start:0": random.normal(size=(k, m)).astype(np.float32)}
        for n in (0, 5, 1, 70)
    ]  # fmt: skip
    lines = _both_ways(both, steps)
    assert loops_of(lines) == [MULTIPLIES], lines


@pytest.mark.parametrize("v2", [False, True], ids=["v1", "v2"])
def test_joined(v2: bool, tf: ModuleType) -> None:
    """Parts that one nest computes, several compute, that stand twice, are used elsewhere, come from outside."""

    def build(v1: Any) -> None:
        n = v1.placeholder("int32", [], name="n")
        a, b = v1.placeholder("float32", [4, 6], name="a"), v1.placeholder("float32", [4, 3], name="b")
        w = v1.placeholder("float32", [15, 6], name="w")

        def body(i: Any, p: Any, q: Any, r: Any, s: Any, t: Any) -> Any:
            u, v = v1.tanh(p), p * 0.5
            whole = v1.concat([u, q, v], 1)
            twice = v1.concat([u, u], 0)
            again = v1.concat([v1.exp(-p * p), v1.concat([b, q], 1), twice[2:6]], 1)
            square = v1.concat([v1.tanh(s[2:]), s[:2] * 0.5], 0)
            below = v1.concat([v1.sigmoid(t), v1.exp(-q * q)], 0)[2:6]
            return v1.matmul(whole, w) * 0.1, v1.tanh(q) + again[:, 7:10], v1.concat([again, again[:, 3:]], 1)[
                :, 2:8] + v, square, below  # fmt: skip

        _fetch(v1, *loop(v1, n, body, a, b, a * 2.0, a * 3.0, b + 1.0))

    both = Both(tf, build, control_flow_v2=v2)
    random = np.random.default_rng(3)
    shapes = {"a:0": (4, 6), "b:0": (4, 3), "w:0": (15, 6)}
    steps = [
        {"n:0": n, **{name: random.normal(size=shape).astype(np.float32) for name, shape in shapes.items()}}
        for n in (0, 4, 1, 9)
    ]
    lines = _both_ways(both, steps)
    assert loops_of(lines) == [MULTIPLIES], lines


@pytest.mark.parametrize("v2", [False, True], ids=["v1", "v2"])
def test_some_columns_of_a_product(v2: bool, tf: ModuleType) -> None:
    def build(v1: Any) -> None:
        n, a = v1.placeholder("int32", [], name="n"), v1.placeholder("float32", [5, 8], name="a")
        w, t = v1.placeholder("float32", [8, 20], name="w"), v1.placeholder("float32", [20, 8], name="t")

        def body(i: Any, p: Any, q: Any, r: Any, s: Any) -> Any:
            one, other = v1.matmul(p, w), v1.matmul(q, t, transpose_b=True)
            several = v1.matmul(r, w)
            biased = v1.matmul(s, w) + v1.reduce_sum(t)
            return v1.tanh(one[:, 5:13]), v1.tanh(other[:, 12:]) + other[:, 12:], v1.tanh(
                several[:, 1:9] - several[:, 12:]), v1.tanh(biased[:, 3:11])  # fmt: skip

        _fetch(v1, *loop(v1, n, body, a, a + 0.1, a + 0.2, a + 0.3))

    both = Both(tf, build, control_flow_v2=v2)
    random = np.random.default_rng(4)
    shapes = {"a:0": (5, 8), "w:0": (8, 20), "t:0": (20, 8)}
    steps = [
        {"n:0": n, **{name: random.normal(size=shape).astype(np.float32) for name, shape in shapes.items()}}
        for n in (0, 1, 6)
    ]
    lines = _both_ways(both, steps)
    assert loops_of(lines) == [MULTIPLIES], lines


@pytest.mark.parametrize("v2", [False, True], ids=["v1", "v2"])
def test_an_irregular_turn_behind_totals(v2: bool, tf: ModuleType) -> None:
    """The gradient of one element that every iteration reads is set twice: the interpreter starts over."""

    def build(v1: Any) -> None:
        rows = v1.placeholder("float32", [5, 2, 16], name="rows")
        n, w = v1.placeholder("int32", [], name="n"), v1.placeholder("float32", [16, 16], name="w")
        ta = v1.TensorArray("float32", 5, clear_after_read=False, element_shape=[2, 16]).unstack(rows)
        out = loop(v1, n, lambda i, a: (v1.tanh(v1.matmul(a, w)) + ta.read(v1.minimum(i, 2)),), rows[0])[0]
        _fetch(v1, out, *v1.gradients(out, [rows, w]))

    both = Both(tf, build, control_flow_v2=v2)
    random = np.random.default_rng(5)
    steps = [
        {"n:0": n, "rows:0": random.normal(size=(5, 2, 16)).astype(np.float32),
         "w:0": random.normal(size=(16, 16)).astype(np.float32) * 0.3} for n in (3, 5, 2, 4, 0, 9, 9, 3)
    ]  # fmt: skip
    _both_ways(both, steps)


def test_gates_of_gradients_stand_between_a_state_and_its_exit(tf: ModuleType) -> None:
    """As optimizers ask for them: an Identity that waits for all gradients of an op, in the loop of the gradient."""

    def build(v1: Any) -> None:
        n, x = v1.placeholder("int32", [], name="n"), v1.placeholder("float32", [4, 3], name="x")
        w = v1.placeholder("float32", [3, 3], name="w")
        out = loop(v1, n, lambda i, h: (v1.tanh(v1.matmul(h, w)),), v1.tanh(x))[0]
        _fetch(v1, out, *v1.gradients(out, [x, w], gate_gradients=True))

    both = Both(tf, build, control_flow_v2=False)
    random = np.random.default_rng(7)
    steps = [
        {"n:0": n, "x:0": random.normal(size=(4, 3)).astype(np.float32),
         "w:0": random.normal(size=(3, 3)).astype(np.float32)} for n in (3, 0, 5)
    ]  # fmt: skip
    lines = _both_ways(both, steps)
    assert not any("node by node" in line for line in lines), lines


@pytest.mark.parametrize("v2", [False, True], ids=["v1", "v2"])
def test_threads_learn_from_one_session(v2: bool, tf: ModuleType) -> None:
    def build(v1: Any) -> None:
        n = v1.placeholder("int32", [], name="n")
        x, w = v1.placeholder("float32", [8, 24], name="x"), v1.placeholder("float32", [48, 48], name="w")
        out = loop(v1, n, lambda i, h: (_cell(v1, x, h, w, 0.1),), v1.zeros([8, 24]))[0]
        _fetch(v1, out, *v1.gradients(out, [x, w]))

    both = Both(tf, build, control_flow_v2=v2)
    fetches = fetches_of(both.graph)
    random = np.random.default_rng(6)
    steps = [
        {"n:0": n, "x:0": random.normal(size=(8, 24)).astype(np.float32),
         "w:0": random.normal(size=(48, 48)).astype(np.float32) * 0.2} for n in (70, 3, 130)
    ]  # fmt: skip
    failures: list[Any] = []
    with Session(both.graph) as running:
        wanted = [running.run(fetches, feeds) for feeds in steps]

        def work(start: int) -> None:
            try:
                for turn in range(20):
                    index = (start + turn) % len(steps)
                    for got, value in zip(running.run(fetches, steps[index]), wanted[index], strict=True):
                        np.testing.assert_array_equal(got, value)
            except Exception as error:
                failures.append(error)

        threads = [threading.Thread(target=work, args=(index,)) for index in range(2)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    assert not failures, failures[0]
    _both_ways(both, steps)


def test_lists_of_one_tensor(tf: ModuleType) -> None:
    """What every iteration pushes is counted; whoever looks at the list later finds it there, in every run its own."""

    def build(v1: Any) -> None:
        raw = v1.raw_ops
        n, x = v1.placeholder("int32", [], name="n"), v1.placeholder("float32", [3, 4], name="x")
        outside = v1.tanh(x) + 1.0

        def filled(start: Any, value: Any) -> Any:
            push = lambda i, a, l: (a * 0.5, raw.TensorListPushBack(input_handle=l, tensor=value))  # noqa: E731
            return loop(v1, n, push, x, start)[1]

        empty = raw.EmptyTensorList(element_shape=[3, 4], max_num_elements=-1, element_dtype=v1.float32)
        made = filled(empty, outside)
        more = filled(filled(made, v1.ones([3, 4])), outside * 2.0)

        def pop(i: Any, total: Any, held: Any) -> Any:
            rest, top = raw.TensorListPopBack(input_handle=held, element_shape=[3, 4], element_dtype=v1.float32)
            return total * 0.5 + top, rest

        total, rest = loop(v1, n * 2, pop, x, more)
        for index, held in enumerate((made, more, rest)):
            stacked = raw.TensorListStack(input_handle=held, element_shape=[3, 4], element_dtype=v1.float32)
            v1.identity(stacked, name=f"out{index}")
        v1.identity(total, name="out3")

    both = Both(tf, build, control_flow_v2=True)
    random = np.random.default_rng(7)
    steps = [{"n:0": n, "x:0": random.normal(size=(3, 4)).astype(np.float32)} for n in (3, 0, 20, 1, 20)]
    lines = _both_ways(both, steps)
    assert loops_of(lines) == [COMPILES] * 4
