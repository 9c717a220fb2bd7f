"""Loops as machine code when something goes wrong: errors, threads, time limits, cancellation."""

# functions over tensors of TensorFlow, which have no types
# pyright: reportUnknownVariableType=false, reportUnknownMemberType=false, reportUnknownArgumentType=false
# pyright: reportUnknownLambdaType=false

from __future__ import annotations

import threading
from collections.abc import Callable
from types import ModuleType
from typing import Any

import numpy as np
import pytest

from tests import perturbation
from tests.compiler.loops.loop_cases import CASES, ROWS, X, loop
from tests.compiler.loops.test_loops_native import COMPILES, MULTIPLIES, fetches_of, loops_of
from tests.runtime.oracle import Both
from toolkit import client as gm
from toolkit.errors import DeadlineExceededError, GraphmillError
from toolkit.runtime.session import Session

ops = gm.ops
pytestmark = pytest.mark.tensorflow


def _read_out_of_range(v1: Any, n: Any, rows: Any) -> Any:
    ta = v1.TensorArray("float32", 5, element_shape=[3]).unstack(rows)
    return loop(v1, n, lambda i, a: (a + ta.read(i),), rows[0])[0]


def _read_twice(v1: Any, n: Any, rows: Any) -> Any:
    ta = v1.TensorArray("float32", 5, element_shape=[3]).unstack(rows)
    return loop(v1, n, lambda i, a: (a + ta.read(v1.minimum(i, 2)),), rows[0])[0]


def _read_negative(v1: Any, n: Any, rows: Any) -> Any:
    ta = v1.TensorArray("float32", 5, element_shape=[3]).unstack(rows)
    return loop(v1, n, lambda i, a: (a + ta.read(3 - i),), rows[0])[0]


def _written_twice(v1: Any, n: Any, rows: Any) -> Any:
    ta = v1.TensorArray("float32", 5, element_shape=[3])
    return loop(v1, n, lambda i, a, t: (a * 2.0, t.write(v1.minimum(i, 2), a)), rows[0], ta)[1].gather([0])


def _written_out_of_range(v1: Any, n: Any, rows: Any) -> Any:
    ta = v1.TensorArray("float32", 5, element_shape=[3])
    return loop(v1, n, lambda i, a, t: (a * 2.0, t.write(i, a)), rows[0], ta)[1].gather([0])


def _popped_when_empty(v1: Any, n: Any, rows: Any) -> Any:
    raw = v1.raw_ops
    items = raw.TensorListFromTensor(tensor=rows, element_shape=[3])

    def body(i: Any, a: Any, items: Any) -> Any:
        items, top = raw.TensorListPopBack(input_handle=items, element_shape=[3], element_dtype=v1.float32)
        top.set_shape([3])
        return a * 0.5 + top, items

    return loop(v1, n, body, rows[0], items)[0]


def _got_out_of_range(v1: Any, n: Any, rows: Any) -> Any:
    raw = v1.raw_ops
    items = raw.TensorListFromTensor(tensor=rows, element_shape=[3])

    def body(i: Any, a: Any) -> Any:
        return (a * 0.5 + raw.TensorListGetItem(input_handle=items, index=i, element_shape=[3],
                                                element_dtype=v1.float32),)  # fmt: skip

    return loop(v1, n, body, rows[0])[0]


#: a loop, and the number of turns from which on it fails
FAILING: dict[str, tuple[Callable[..., Any], int]] = {
    "read out of range": (_read_out_of_range, 6), "read twice": (_read_twice, 4), "read negative": (_read_negative, 5),
    "written twice": (_written_twice, 4), "written out of range": (_written_out_of_range, 6),
    "popped when empty": (_popped_when_empty, 6), "got out of range": (_got_out_of_range, 6),
}  # fmt: skip


@pytest.mark.parametrize("v2", [False, True], ids=["v1", "v2"])
@pytest.mark.parametrize("name", FAILING)
def test_errors_are_those_of_the_interpreter(name: str, v2: bool, tf: ModuleType) -> None:
    make, least = FAILING[name]

    def build(v1: Any) -> None:
        v1.identity(make(v1, v1.placeholder("int32", [], name="n"), v1.placeholder("float32", [5, 3], name="rows")),
                    name="out")  # fmt: skip

    both = Both(tf, build, control_flow_v2=v2)
    outcomes: list[list[Any]] = []
    for native in ("on", "off"):
        with pytest.MonkeyPatch.context() as patch:
            patch.setenv("GRAPHMILL_NATIVE", native)
            with Session(both.graph) as running:
                outcomes.append([_outcome(running, {"n:0": n, "rows:0": ROWS}) for n in (least - 1, least, 1, least)])
                if native == "on":
                    assert loops_of(running.explain(["out:0"], {"n:0": 1, "rows:0": ROWS})) == [COMPILES]
    compiled, interpreted = outcomes
    assert [isinstance(each, tuple) for each in interpreted] == [False, True, False, True] or v2
    for n, mine, wanted in zip((least - 1, least, 1, least), compiled, interpreted, strict=True):
        if isinstance(wanted, tuple):
            assert mine == wanted
        else:
            perturbation.assert_close(both.graph, ["out:0"], {"n:0": n, "rows:0": ROWS}, [[mine], [wanted]])
    config = tf.compat.v1.ConfigProto()
    config.graph_options.rewrite_options.disable_meta_optimizer = True
    with tf.compat.v1.Session(graph=both.tf_graph, config=config) as theirs:
        for n, mine in zip((least - 1, least), compiled[:2], strict=True):
            if isinstance(mine, tuple):
                with pytest.raises(tf.errors.OpError) as caught:
                    theirs.run("out:0", {"n:0": n, "rows:0": ROWS})
                assert caught.value.error_code == mine[0]
            else:
                feeds = {"n:0": n, "rows:0": ROWS}
                perturbation.assert_close(both.graph, ["out:0"], feeds, [[mine], theirs.run(["out:0"], feeds)])


def _outcome(running: Session, feeds: dict[str, Any]) -> Any:
    """A result, or (status, text) of an error without the counted names of arrays."""
    try:
        return running.run("out:0", feeds)
    except GraphmillError as error:
        text = "".join(letter for letter in str(error) if not letter.isdigit())
        return (getattr(error, "code", None), text)


@pytest.mark.parametrize("name", ["gradients", "an array that is written", "map", "large tensors from outside"])
def test_threads_on_one_session(name: str, tf: ModuleType) -> None:
    case = CASES[name]
    both = Both(tf, case.build, control_flow_v2=False)
    fetches = fetches_of(both.graph)
    failures: list[Any] = []
    with Session(both.graph) as running:
        steps = [step for step in case.steps() if step.get("n:0", 0) < 100]
        wanted = [running.run(fetches, feeds) for feeds in steps]

        def work(start: int) -> None:
            try:
                for turn in range(25):
                    index = (start + turn) % len(steps)
                    for got, value in zip(running.run(fetches, steps[index]), wanted[index], strict=True):
                        np.testing.assert_array_equal(got, value)
            except Exception as error:
                failures.append(error)

        threads = [threading.Thread(target=work, args=(index,)) for index in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    assert not failures, failures[0]


def test_threads_whose_loops_fall_back(tf: ModuleType) -> None:
    """The interpreter's turn is compiled once, whoever needs it first."""

    def build(v1: Any) -> None:
        n, rows = v1.placeholder("int32", [], name="n"), v1.placeholder("float32", [5, 3], name="rows")
        v1.identity(_written_twice(v1, n, rows), name="out")

    both = Both(tf, build)
    outcomes: list[Any] = []
    barrier = threading.Barrier(6)
    with Session(both.graph) as running:
        running.run("out:0", {"n:0": 2, "rows:0": ROWS})

        def work() -> None:
            barrier.wait()
            for n in (5, 3, 5):
                outcomes.append((n, _outcome(running, {"n:0": n, "rows:0": ROWS})))

        threads = [threading.Thread(target=work) for _ in range(6)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    assert len(outcomes) == 18
    for n, outcome in outcomes:
        if n == 5:
            assert isinstance(outcome, tuple) and "has already been written" in outcome[1], outcome
        else:
            np.testing.assert_array_equal(outcome, ROWS[:1])


@pytest.mark.parametrize("size", [4, 256])
def test_a_timeout_ends_a_loop_soon(size: int) -> None:
    with gm.Graph().as_default() as graph:
        x = gm.placeholder(gm.float32, [size, size], name="x")
        made = gm.while_loop(
            lambda i, _: i < (1 << 60), lambda i, a: [i + 1, ops.tanh(ops.mat_mul(a, x))], [gm.constant(0, gm.int64), x]
        )
        gm.identity(made[1], name="out")
    feeds = {"x:0": np.full((size, size), 0.01, np.float32)}
    with Session(graph) as running:
        assert loops_of(running.explain(["out:0"], feeds)) == [MULTIPLIES]
        for _ in range(2):
            with pytest.raises(DeadlineExceededError):
                running.run("out:0", feeds, timeout_ms=100)


def test_lists_that_a_step_gave_keep_their_values(tf: ModuleType) -> None:
    """A list is stacked only after the next loop has run over the same buffers."""

    def build(v1: Any) -> None:
        raw = v1.raw_ops
        x = v1.placeholder("float32", [3, 4], name="x")

        def filled(start: Any, n: int) -> Any:
            empty = raw.EmptyTensorList(element_shape=[3, 4], max_num_elements=-1, element_dtype=v1.float32)
            push = lambda i, a, l: (v1.tanh(a) + 0.1, raw.TensorListPushBack(input_handle=l, tensor=a))  # noqa: E731
            return loop(v1, n, push, start, empty)

        a, first = filled(x, 40)
        _, second = filled(a * 2.0, 3)
        emptied, third = loop(
            v1, 30,
            lambda i, s, l: (lambda made: (s * 0.5 + made[1], made[0]))(
                raw.TensorListPopBack(input_handle=l, element_shape=[3, 4], element_dtype=v1.float32)),
            x, first,
        )  # fmt: skip
        grown = loop(v1, 20, lambda i, s, l: (s + 1.0, raw.TensorListPushBack(input_handle=l, tensor=s)), x, third)[1]
        for index, made in enumerate((first, second, third, grown)):
            stacked = raw.TensorListStack(input_handle=made, element_shape=[3, 4], element_dtype=v1.float32)
            v1.identity(stacked, name=f"out{index}")
        v1.identity(emptied, name="out4")

    both = Both(tf, build, control_flow_v2=True)
    names = [f"out{index}:0" for index in range(5)]
    with Session(both.graph) as running:
        assert sum(loops_of(running.explain(names, {"x:0": X}))) == 4 * COMPILES
        earlier = running.run(names, {"x:0": X})
        copies = [value.copy() for value in earlier]
        running.run(names, {"x:0": -X})
        for value, copied in zip(earlier, copies, strict=True):
            np.testing.assert_array_equal(value, copied)
    both.check(names, {"x:0": X}, grappler=False)


def test_nan_is_seen_in_the_loops_of_programs_that_train(tf: ModuleType) -> None:
    """oneDNN's relu of NaN is 0; a program that changes variables must notice."""

    def build(v1: Any) -> None:
        x, w = v1.placeholder("float32", [3, 4], name="x"), v1.placeholder("float32", [4, 4], name="w")
        total = v1.get_variable("total", [3, 4], initializer=v1.zeros_initializer(), use_resource=True)
        out = loop(v1, 2, lambda i, a: (v1.nn.relu(v1.matmul(a, w)),), x)[0]
        v1.group(total.initializer, name="init")
        v1.identity(total.assign_add(out), name="out")

    x = X.copy()
    x[0, 0] = np.nan
    both = Both(tf, build)
    got = both.check(["out:0"], {"x:0": x, "w:0": np.eye(4, dtype=np.float32)}, before=["init"])[0]
    assert np.isnan(got[0]).all()
    with Session(both.graph) as running:
        running.run("init")
        lines = running.explain(["out:0"], {"x:0": x, "w:0": np.eye(4, dtype=np.float32)})
    assert loops_of(lines) == [MULTIPLIES]
