"""Servers load a model, run it, and fork: steps of the children are as those of the parent, and wait for nobody."""

from __future__ import annotations

import builtins
import gc
import importlib
import os
import subprocess
import sys
import threading
import time
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tests.forks import child_says
from tests.one_product import one_product
from tests.patience import HUNG
from toolkit import client as gm
from toolkit import forks
from toolkit.forks import free_in_children, held_over_forks
from toolkit.graph import opdefs
from toolkit.graph.garbage import no_collection
from toolkit.kernels.cpu.native.compiler import INT64, JitCompiler, compiler
from toolkit.runtime.executors import planned
from toolkit.runtime.session import Session

ops = gm.ops
X = np.linspace(-1, 1, 12, dtype=np.float32).reshape(3, 4)
#: of a product that is worth several threads
_SIZE = 512
_MODULE = "define i64 @run(ptr %at) {\n  ret i64 NUMBER\n}\n"


def test_locks_that_others_hold_are_free_in_a_child() -> None:
    class Holder:
        def __init__(self) -> None:
            self.lock, self.again = threading.Lock(), threading.RLock()
            free_in_children(self, "lock", "again")

    holder, held, over = Holder(), threading.Event(), threading.Event()

    def hold() -> None:
        with holder.lock, holder.again:
            held.set()
            over.wait(HUNG)

    thread = threading.Thread(target=hold)
    thread.start()
    assert held.wait(HUNG)
    assert child_says(lambda: holder.lock.acquire(blocking=False) and holder.again.acquire(blocking=False))
    assert not holder.lock.acquire(blocking=False)  # here nothing has changed
    over.set()
    thread.join()


def test_a_fork_waits_until_nobody_is_within_a_lock_that_is_held_over_forks() -> None:
    """Whoever holds one may wait for another; what they guard is whole in the child."""
    first, second = held_over_forks(), held_over_forks()
    begun, tables = threading.Barrier(3), ([0, 0], [0, 0])

    def change(mine: Any, table: list[int]) -> None:
        with mine:
            table[0] += 1
            begun.wait(HUNG)
            time.sleep(0.1)  # by then the other thread has begun to fork; if it had not waited, there would be a child
            table[1] += 1
        with second, first:  # in one order, or the two would wait for each other
            table[0] += 1
            table[1] += 1

    threads = [
        threading.Thread(target=change, args=(first, tables[0])),
        threading.Thread(target=change, args=(second, tables[1])),
    ]
    for thread in threads:
        thread.start()
    begun.wait(HUNG)

    def is_whole() -> bool:
        return all(a == b for a, b in tables) and first.acquire(blocking=False) and second.acquire(blocking=False)

    assert child_says(is_whole)
    for thread in threads:
        thread.join()
    assert tables == ([2, 2], [2, 2]) and first.acquire(blocking=False) and second.acquire(blocking=False)


def test_whoever_holds_a_lock_may_fork() -> None:
    lock = held_over_forks()

    def is_mine() -> bool:
        lock.release()
        found: list[bool] = []
        thread = threading.Thread(target=lambda: found.append(lock.acquire(blocking=False)))
        thread.start()
        thread.join()
        return found == [True]

    lock.acquire()
    assert child_says(is_mine)
    lock.release()
    assert child_says(lambda: lock.acquire(blocking=False))


def test_a_fork_does_not_wait_for_ever(monkeypatch: pytest.MonkeyPatch) -> None:
    """The holder may wait for the forking thread itself; the lock is free in the child, and here it is as before."""
    monkeypatch.setattr(forks, "_LONGEST_WAIT", 0.01)
    lock, others = held_over_forks(), held_over_forks()
    held, over = threading.Event(), threading.Event()

    def hold() -> None:
        with lock:
            held.set()
            over.wait(HUNG)

    thread = threading.Thread(target=hold)
    thread.start()
    assert held.wait(HUNG)
    assert child_says(lambda: lock.acquire(blocking=False) and others.acquire(blocking=False))
    assert not lock.acquire(blocking=False) and others.acquire(blocking=False)
    others.release()
    over.set()
    thread.join()
    assert lock.acquire(blocking=False)


def test_a_child_collects_garbage_though_another_thread_makes_a_program() -> None:
    begun, over = threading.Event(), threading.Event()

    def make() -> None:
        with no_collection():
            begun.set()
            over.wait(HUNG)

    def collects() -> bool:
        is_on = gc.isenabled()
        with no_collection():
            is_off = not gc.isenabled()
        return is_on and is_off and gc.isenabled()

    thread = threading.Thread(target=make)
    thread.start()
    assert begun.wait(HUNG)
    assert not gc.isenabled()
    assert child_says(collects)
    with no_collection():
        assert child_says(lambda: not gc.isenabled())
    over.set()
    thread.join()
    assert gc.isenabled()


def test_children_that_are_forked_while_threads_load_and_compile_run_models(tmp_path: Path) -> None:
    """In a process that has imported and compiled nothing yet."""
    draw = np.random.default_rng(0)
    with gm.Graph().as_default() as graph:
        x = ops.placeholder(np.float32, [2, 8, 8, 4], name="x")
        y = ops.tanh(gm.conv2d(x, gm.constant(draw.uniform(-1, 1, (3, 3, 4, 8)).astype(np.float32)), 1, "SAME"))
        y = gm.matmul(ops.reshape(y, [2, -1]), gm.constant(draw.uniform(-1, 1, (512, 16)).astype(np.float32)))
        ops.identity(ops.square(y) * 2.0 + 1.0, name="y")
    model = tmp_path / "model.pb"
    model.write_bytes(graph.as_graph_def().SerializeToString())
    command = [sys.executable, "-m", "tests.runtime.fork_while_loading", str(model), "1"]
    ended = subprocess.run(command, capture_output=True, text=True, check=False)
    assert ended.returncode == 0, ended.stdout + ended.stderr


def test_a_child_knows_ops_that_another_thread_was_decoding(monkeypatch: pytest.MonkeyPatch) -> None:
    registry, begun, over, parent = opdefs._Registry(), threading.Event(), threading.Event(), os.getpid()
    unpacked = opdefs.unpacked

    def slow(name: str) -> bytes:
        if os.getpid() == parent:
            begun.set()
            over.wait(HUNG)
        return unpacked(name)

    monkeypatch.setattr(opdefs, "unpacked", slow)
    thread = threading.Thread(target=registry.protos)
    thread.start()
    assert begun.wait(HUNG)
    assert child_says(lambda: "MatMul" in registry.protos())
    over.set()
    thread.join()


def test_a_fork_waits_until_another_thread_has_imported_a_module(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "slow_to_import.py").write_text("import time\nBEGUN.set()\ntime.sleep(0.3)\nVALUE = 7\n")
    begun = threading.Event()
    monkeypatch.setattr(forks, "_IMPORTED_LATE", frozenset({"slow_to_import"}))
    monkeypatch.setattr(builtins, "BEGUN", begun, raising=False)
    monkeypatch.setattr(sys, "path", [str(tmp_path), *sys.path])
    thread = threading.Thread(target=lambda: importlib.import_module("slow_to_import"))
    thread.start()
    assert begun.wait(HUNG)
    assert child_says(lambda: importlib.import_module("slow_to_import").VALUE == 7)
    thread.join()
    del sys.modules["slow_to_import"]


def test_a_child_compiles_what_another_thread_was_compiling(monkeypatch: pytest.MonkeyPatch) -> None:
    with gm.Graph().as_default() as graph:
        x = ops.placeholder(np.float32, [None, 4], name="x")
        ops.identity(ops.tanh(x) * 2.0 + ops.square(x), name="y")
    build, parent = planned.build, os.getpid()
    begun, over = threading.Event(), threading.Event()

    def slow(*given: Any, **settings: Any) -> Any:
        if os.getpid() == parent:
            begun.set()
            over.wait(HUNG)
        return build(*given, **settings)

    with Session(graph, precision="exact", threads=1) as session:
        wanted = session.run("y:0", {"x:0": X})
        monkeypatch.setattr(planned, "build", slow)
        found: list[Any] = []
        thread = threading.Thread(target=lambda: found.append(session.run("y:0", {"x:0": X[:2]})))
        thread.start()
        assert begun.wait(HUNG)
        assert child_says(lambda: np.array_equal(session.run("y:0", {"x:0": X[:2]}), wanted[:2]))
        over.set()
        thread.join()
        np.testing.assert_array_equal(found[0], wanted[:2])


@pytest.mark.skipif(compiler() is None, reason="llvmlite is not installed")
def test_a_fork_waits_for_who_is_within_llvm(monkeypatch: pytest.MonkeyPatch) -> None:
    machine = JitCompiler()
    emit, begun = machine._object, threading.Event()  # pyright: ignore[reportPrivateUsage]

    def slow(text: str) -> bytes:
        begun.set()
        time.sleep(0.2)  # by then the other thread has begun to fork; if it had not waited, there would be a child
        return emit(text)

    monkeypatch.setattr(machine, "_object", slow)

    def number(value: int) -> int:
        return machine.function(_MODULE.replace("NUMBER", str(value)), {}, INT64).call(None)

    found: list[int] = []
    thread = threading.Thread(target=lambda: found.append(number(1)))
    thread.start()
    assert begun.wait(HUNG)
    assert child_says(lambda: number(1) == 1 and number(2) == 2)
    thread.join()
    assert found == [1] and number(3) == 3


def test_children_run_the_session_that_their_parent_has_run() -> None:
    """By several threads, which the parent keeps for its next step, and a child has not."""
    graph, value, bound = one_product(_SIZE)
    with Session(graph, threads=2) as session:
        expected = session.run("y:0", {"x:0": value})

        def runs() -> bool:
            return bool(np.all(np.abs(session.run("y:0", {"x:0": value}) - expected) <= bound))

        def runs_in_a_thread() -> bool:
            found: list[bool] = []
            thread = threading.Thread(target=lambda: found.append(runs()))
            thread.start()
            thread.join()
            return found == [True] and runs()

        for _ in range(2):
            assert child_says(runs)
            assert child_says(runs_in_a_thread)
            assert child_says(lambda: runs() and child_says(runs) and runs())
            assert runs()


def test_children_compile_and_close_sessions() -> None:
    graph, value, bound = one_product(_SIZE)

    def fresh(threads: int) -> bool:
        with Session(graph, threads=threads) as session:
            found: Any = session.run("y:0", {"x:0": value})
            return bool(np.all(np.abs(found - expected) <= bound))

    with Session(graph, threads=2) as session:
        expected = session.run("y:0", {"x:0": value})
        for threads in (1, 2):
            assert child_says(lambda threads=threads: fresh(threads))

        def close() -> bool:
            session.close()
            return fresh(2)

        assert child_says(close)
        assert bool(np.all(np.abs(session.run("y:0", {"x:0": value}) - expected) <= bound))
