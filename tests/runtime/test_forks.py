"""Children of a process whose other threads were compiling when it forked: they wait for nobody."""

from __future__ import annotations

import os
import signal
import threading
import time
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from tests.patience import HUNG
from toolkit import client as gm
from toolkit.kernels.cpu.native.compiler import INT64, JitCompiler, compiler
from toolkit.kernels.forks import free_in_children
from toolkit.runtime import planned
from toolkit.runtime.session import Session

ops = gm.ops
X = np.linspace(-1, 1, 12, dtype=np.float32).reshape(3, 4)
_MODULE = "define i64 @run(ptr %at) {\n  ret i64 NUMBER\n}\n"


def in_child(work: Callable[[], bool]) -> bool:
    """What `work` returns in a forked child; false where it waits for ever."""
    pid = os.fork()
    if not pid:
        signal.alarm(int(HUNG))  # what waits for ever ends, and is seen to
        code = 1
        try:
            code = 0 if work() else 1
        finally:
            os._exit(code)
    return os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == 0


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
    assert in_child(lambda: holder.lock.acquire(blocking=False) and holder.again.acquire(blocking=False))
    assert not holder.lock.acquire(blocking=False)  # here nothing has changed
    over.set()
    thread.join()


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
        assert in_child(lambda: np.array_equal(session.run("y:0", {"x:0": X[:2]}), wanted[:2]))
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
    assert in_child(lambda: number(1) == 1 and number(2) == 2)
    thread.join()
    assert found == [1] and number(3) == 3
