"""Threads, cancellation, closing, errors in the middle, and machines without oneDNN."""

from __future__ import annotations

import os
import subprocess
import sys
import threading
import time
from typing import Any

import numpy as np
import pytest

from tests import perturbation, tolerance
from tests.compiler.modes import session
from tests.compiler.operations.rows import numbers
from tests.patience import HUNG
from toolkit import client as gm
from toolkit.errors import CancelledError, DeadlineExceededError, GraphmillError, InvalidArgumentError, UsageError
from toolkit.runtime.session import Session

ops = gm.ops
COMPILED = ("compiled", "compiled without oneDNN")


def _endless(kind: str) -> tuple[Any, Any]:
    """A loop of so many turns as are fed, and something else to run."""
    with gm.Graph().as_default() as graph:
        x = gm.placeholder(gm.float32, [64, 64], name="x")
        limit = gm.placeholder(gm.int64, [], name="limit")

        def body(i: Any, state: Any) -> list[Any]:
            y = ops.tanh(ops.mat_mul(state, x) * 0.1) if kind == "products" else ops.tanh(state)
            if kind == "inner":
                y = gm.while_loop(lambda k, _: k < 3, lambda k, z: [k + 1, ops.tanh(z + 0.1)], [gm.constant(0), y])[1]
            return [i + 1, y]

        start = gm.constant(0, gm.int64)
        looped = gm.while_loop(lambda i, _: i < limit, body, [start, x])[1]
        gm.identity(looped, name="looped")
        gm.identity(ops.relu(ops.mat_mul(x, x)), name="plain")
    return graph, {"x:0": numbers(64, 64), "limit:0": np.int64(1 << 60)}


@pytest.mark.parametrize("mode", COMPILED)
@pytest.mark.parametrize("kind", ["products", "small", "inner"])
def test_a_timeout_ends_a_compiled_loop_and_nothing_else(kind: str, mode: str) -> None:
    graph, feeds = _endless(kind)
    few = {**feeds, "limit:0": np.int64(3)}
    with session(graph, mode) as running:
        wanted = running.run(["looped:0", "plain:0"], few)
        for _ in range(3):
            with pytest.raises(DeadlineExceededError):
                running.run("looped:0", feeds, timeout_ms=50)
            for got, value in zip(running.run(["looped:0", "plain:0"], few), wanted, strict=True):
                np.testing.assert_array_equal(got, value)


@pytest.mark.parametrize("mode", COMPILED)
def test_close_ends_a_compiled_loop(mode: str) -> None:
    graph, feeds = _endless("products")
    with session(graph, mode) as running:
        wanted = running.run("looped:0", {**feeds, "limit:0": np.int64(2)})
        assert wanted.shape == (64, 64)
        outcome: list[Any] = []
        started = threading.Event()

        def work() -> None:
            started.set()
            try:
                outcome.append(running.run("looped:0", feeds))
            except GraphmillError as error:
                outcome.append(error)

        thread = threading.Thread(target=work)
        thread.start()
        started.wait()
        time.sleep(0.1)
        running.close()
        thread.join(HUNG)
        assert not thread.is_alive()
        assert isinstance(outcome[0], CancelledError | UsageError), outcome
        with pytest.raises(UsageError, match="closed"):
            running.run("looped:0", feeds)


@pytest.mark.parametrize("mode", COMPILED)
def test_an_error_in_the_middle_leaves_nothing_behind(mode: str) -> None:
    with gm.Graph().as_default() as graph:
        x = gm.placeholder(gm.float32, [64, 64], name="x")
        i = gm.placeholder(gm.int32, [], name="i")
        v = gm.get_variable("v", [64, 64], initializer=gm.initializers.Constant(numbers(64, 64)), use_resource=True)
        y = ops.relu(ops.mat_mul(x, v.read_value()))
        with gm.control_dependencies([y.op]):
            row = ops.gather_v2(y, ops.fill([64], i), 0, name="pick")
        made = ops.tanh(ops.mat_mul(row, y) * 0.01)
        with gm.control_dependencies([made.op]):
            write = ops.assign_add_variable_op(v.handle, made)
        image = ops.reshape(made, [1, 16, 16, 16])
        out = ops.max_pool(image, ksize=[1, 2, 2, 1], strides=[1, 2, 2, 1], padding="SAME")
    feeds = {"x:0": numbers(64, 64), "i:0": np.int32(5)}
    with session(graph, mode) as plain, session(graph, mode) as running:
        for each in (plain, running):
            each.run(v.initializer)
        for _ in range(4):
            with pytest.raises(InvalidArgumentError, match="pick"):
                running.run([out, write], {**feeds, "i:0": np.int32(64)})
            np.testing.assert_array_equal(running.run([out, write], feeds)[0], plain.run([out, write], feeds)[0])


@pytest.mark.parametrize("mode", COMPILED)
def test_threads_with_shapes_of_their_own(mode: str) -> None:
    with gm.Graph().as_default() as graph:
        x = gm.placeholder(gm.float32, [None, 13, 14, 8], name="x")
        n = gm.placeholder(gm.int32, [], name="n")
        y = ops.relu(ops.conv2d(x, numbers(3, 3, 8, 8), strides=[1, 1, 1, 1], padding="SAME") * 0.1)
        y = gm.while_loop(lambda i, _: i < n, lambda i, z: [i + 1, ops.tanh(z + x)], [gm.constant(0), y])[1]
        z = gm.cond(n > 1, lambda: ops.softmax(y), lambda: ops.sigmoid(y) * 2.0)
        fetches = [z, ops.mean(z, [1, 2]), ops.transpose(y, [3, 0, 1, 2]), ops.concat_v2([y, x], 3)]
    failures: list[Any] = []
    with session(graph, mode) as running:
        cases = [{"x:0": numbers(1 + i % 5, 13, 14, 8, seed=i), "n:0": np.int32(i % 4)} for i in range(10)]
        wanted = [running.run(fetches, case) for case in cases]

        def work(start: int) -> None:
            try:
                for turn in range(40):
                    index = (start * 3 + turn) % len(cases)
                    for got, value in zip(running.run(fetches, cases[index]), wanted[index], strict=True):
                        np.testing.assert_array_equal(got, value)
            except Exception as error:
                failures.append(error)

        threads = [threading.Thread(target=work, args=(i,)) for i in range(5)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    assert not failures, failures[0]


@pytest.mark.parametrize("mode", COMPILED)
def test_threads_that_write_one_variable_lose_no_update(mode: str) -> None:
    with gm.Graph().as_default() as graph:
        v = gm.get_variable("v", [64, 65], initializer=gm.initializers.Constant(0.0), use_resource=True)
        m = gm.get_variable("m", [64, 65], initializer=gm.initializers.Constant(0.0), use_resource=True)
        x = gm.placeholder(gm.float32, [64, 65], name="x")
        update = ops.resource_apply_gradient_descent(v.handle, 1.0, ops.relu(x))
        add = ops.assign_add_variable_op(m.handle, ops.relu(x))
        values = [v.read_value(), m.read_value()]
    failures: list[Any] = []
    with session(graph, mode) as running:
        running.run([v.initializer, m.initializer])

        def work() -> None:
            try:
                for _ in range(50):
                    running.run([update, add], {"x:0": np.ones((64, 65), np.float32)})
            except Exception as error:
                failures.append(error)

        threads = [threading.Thread(target=work) for _ in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert not failures, failures[0]
        down, up = running.run(values)
    np.testing.assert_array_equal(down, np.full((64, 65), -200, np.float32))
    np.testing.assert_array_equal(up, np.full((64, 65), 200, np.float32))


@pytest.mark.parametrize("mode", COMPILED)
def test_feeds_that_lie_oddly_in_memory(mode: str) -> None:
    with gm.Graph().as_default() as graph:
        x = gm.placeholder(gm.float32, [64, 128], name="x")
        fetches = [
            ops.relu(ops.mat_mul(x, numbers(128, 64))), ops.tanh(x), ops.reshape(x, [-1]), ops.transpose(x, [1, 0]),
            ops.mean(x, [1]), ops.softmax(x), ops.concat_v2([x, x], 1), x,
        ]  # fmt: skip
    dense = numbers(64, 128)
    buffer = bytearray(dense.nbytes + 1)
    unaligned = np.frombuffer(buffer, np.float32, dense.size, 1).reshape(dense.shape)
    unaligned[:] = dense
    fixed = dense.copy()
    fixed.flags.writeable = False
    lying = [
        np.asfortranarray(dense), dense[::-1][::-1], np.repeat(dense, 2, 1)[:, ::2], unaligned, fixed,
        dense.astype(">f4"), np.ascontiguousarray(dense.T).T, np.broadcast_to(dense[:1], dense.shape),
    ]  # fmt: skip
    with session(graph, mode) as running:
        for value in lying:
            plain = np.array(value, np.float32, order="C")
            results = [running.run(fetches, {"x:0": each}) for each in (value, plain)]
            perturbation.assert_close(graph, fetches, {"x:0": plain}, results)


@pytest.mark.parametrize("library", ["off", "/nowhere/libdnnl.so.3", ""])
def test_without_onednn_the_results_are_there(library: str, tmp_path: Any) -> None:
    """In a process of its own, because the library is loaded once."""
    script = tmp_path / "run.py"
    script.write_text(
        "import numpy as np\n"
        "from toolkit import client as gm\n"
        "from toolkit.runtime.session import Session\n"
        "with gm.Graph().as_default() as graph:\n"
        "    x = gm.placeholder(gm.float32, [2, 16, 16, 8], name='x')\n"
        "    y = gm.relu(gm.conv2d(x, np.ones((3, 3, 8, 8), np.float32)) + 1.0)\n"
        "    y = gm.max_pool(y, 2, 2)\n"
        "    gm.softmax(gm.matmul(gm.reshape(y, [2, -1]), np.full((512, 4), 1e-3, np.float32)), name='out')\n"
        "with Session(graph, threads=1) as session:\n"
        "    print(session.run('out:0', {'x:0': np.ones((2, 16, 16, 8), np.float32)}).sum())\n",
        encoding="utf8",
    )
    environment = {key: value for key, value in os.environ.items() if key != "GRAPHMILL_ONEDNN"}
    if library:
        environment["GRAPHMILL_ONEDNN"] = library
    done = subprocess.run([sys.executable, str(script)], env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    # each of eight numbers is 1/4, an exponential's 8 roundings and those of two sums off; then they are added
    assert float(done.stdout) == pytest.approx(2.0, rel=tolerance.gamma(8 + 2 * 4 + 8))
    assert done.stderr == ""


def test_threads_of_one_primitive() -> None:
    graph, feeds = _endless("products")
    few = {**feeds, "limit:0": np.int64(3)}
    with session(graph, "compiled") as running:
        wanted = running.run(["plain:0"], few)
    for threads in (1, 2, 7):  # more than there are processors is allowed
        with Session(graph, threads=threads) as running:
            perturbation.assert_close(graph, ["plain:0"], few, [running.run(["plain:0"], few), wanted])
