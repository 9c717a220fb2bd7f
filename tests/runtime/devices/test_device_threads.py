"""Threads of devices: one for each part at once, the same ones from step to step."""

from __future__ import annotations

import os
import threading

import pytest

from toolkit.runtime.device_threads import start


def test_parts_that_wait_for_each_other_have_threads_of_their_own() -> None:
    together = threading.Barrier(5)
    threads: list[set[int]] = []
    for _ in range(3):
        found: list[tuple[int, str]] = []

        def part(found: list[tuple[int, str]] = found) -> None:
            together.wait()
            found.append((threading.get_ident(), threading.current_thread().name))

        waits = [start(f"part {number}", part) for number in range(4)]
        together.wait()
        for wait in waits:
            wait()
        assert len(found) == 4 and {name for _, name in found} == {f"graphmill part {number}" for number in range(4)}
        threads.append({ident for ident, _ in found})
    assert threads[0] == threads[1] == threads[2] and threading.get_ident() not in threads[0]


@pytest.mark.filterwarnings("ignore::pytest.PytestUnhandledThreadExceptionWarning")
def test_a_thread_that_something_ended_is_not_used_again() -> None:
    ended: list[threading.Thread] = []

    def ends() -> None:
        ended.append(threading.current_thread())
        raise SystemExit  # as what is raised in a thread at a deadline

    start("ends", ends)()
    ended[0].join()
    found: list[int] = []
    start("goes on", lambda: found.append(threading.get_ident()))()
    assert len(found) == 1


def test_a_child_has_threads_of_its_own() -> None:
    start("before", lambda: None)()
    child = os.fork()
    if not child:
        found: list[int] = []
        start("after", lambda: found.append(1))()
        os._exit(0 if found else 1)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
