"""How many threads are used beside what else the machine does."""

from __future__ import annotations

import inspect
import os
from pathlib import Path

import numpy as np
import pytest

from tests.one_product import one_product
from toolkit.compiler.backends.cpu.threads import THREADS, Threads
from toolkit.kernels.cpu.onednn import library
from toolkit.runtime.session import Session
from toolkit.target import load
from toolkit.target.load import INTERVAL, PATIENCE, Load, Usage

PROCESSORS = 4


class Machine:
    """Others take so many processors, and this process the rest of what it wants."""

    def __init__(self) -> None:
        self.processors = PROCESSORS  # that it may use
        self.now = Usage(0.0, 0.0, 0.0, PROCESSORS)
        self.limit = float("inf")
        self.load = Load(lambda: self.now, lambda: self.limit, lambda: self.now.clock)

    def run(self, seconds: float, *, others: float, own: float = 1.0) -> int:
        """So long; the threads that are used then."""
        count = self.load.threads(PROCESSORS)
        for _ in range(round(seconds / INTERVAL)):
            now = self.now
            self.now = Usage(
                now.clock + INTERVAL, now.busy + (others + own) * INTERVAL, now.own + own * INTERVAL, self.processors
            )
            count = self.load.threads(PROCESSORS)
        return count


def test_all_where_nobody_else_runs() -> None:
    machine = Machine()
    assert machine.run(10, others=0.0) == PROCESSORS
    assert machine.run(10, others=0.4, own=3.6) == PROCESSORS  # a little of everything is always there


@pytest.mark.parametrize(("others", "left"), [(1.0, 3), (2.2, 2), (3.0, 1), (4.0, 1), (9.0, 1)])
def test_as_many_as_are_left(others: float, left: int) -> None:
    machine = Machine()
    assert machine.run(PATIENCE + INTERVAL, others=others) == left
    assert machine.run(3, others=others) == left
    assert machine.run(2 * INTERVAL, others=0.0) == PROCESSORS  # they have gone


def test_a_moment_changes_nothing() -> None:
    machine = Machine()
    for _ in range(5):
        assert machine.run(INTERVAL, others=3.0) == PROCESSORS
        assert machine.run(INTERVAL, others=0.0) == PROCESSORS


def test_between_two_numbers_it_does_not_go_back_and_forth() -> None:
    machine = Machine()
    assert machine.run(2, others=0.6) == 3
    assert machine.run(2, others=0.4) == 3  # one more would have 0.6 of a processor
    assert machine.run(2, others=0.1) == PROCESSORS


def test_what_was_while_it_waited_is_no_sign() -> None:
    machine = Machine()
    assert machine.run(10, others=4.0, own=0.0) == PROCESSORS


def test_a_quota_is_kept() -> None:
    machine = Machine()
    machine.limit = 2.0
    assert machine.run(1, others=0.0) == 2
    machine.limit = 0.5
    assert machine.run(1, others=0.0) == 1
    machine.limit = float("inf")
    assert machine.run(1, others=0.0) == PROCESSORS


def test_what_it_may_use_is_followed_at_once() -> None:
    machine = Machine()
    assert machine.run(INTERVAL, others=0.0) == PROCESSORS
    machine.processors = 2
    assert machine.run(INTERVAL, others=0.0, own=0.0) == 2  # even while it waits
    machine.processors = PROCESSORS
    assert machine.run(INTERVAL, others=0.0) == PROCESSORS
    machine.limit = 3.0
    assert machine.run(INTERVAL, others=0.0) == 3
    assert machine.run(1, others=2.0) == 2
    machine.limit = 1.0
    assert machine.run(INTERVAL, others=0.0) == 1
    machine.limit = float("inf")
    assert machine.run(2 * INTERVAL, others=0.0) == PROCESSORS


def test_without_proc_nothing_is_adapted() -> None:
    found = Load(lambda: None, lambda: 1.0, iter(range(100)).__next__)
    assert {found.threads(8) for _ in range(20)} == {8}


def test_what_the_system_tells(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    now = load.usage()
    assert now is None or (now.processors >= 1 and now.busy >= 0 and now.own >= 0)
    stat = tmp_path / "stat"
    monkeypatch.setattr(load, "_STAT", stat)
    allowed = {0, 2}

    def affinity(_: int) -> set[int]:
        return allowed

    monkeypatch.setattr(load.os, "sched_getaffinity", affinity)
    stat.write_text(
        "cpu 9 9 9 9 9 9 9 9 0 0\ncpu0 1 2 3 100 50 4 5 6 0 0\ncpu1 7 7 7 7 7 7 7 7 0 0\ncpu2 1 1 1 1 1 1 1 1 0 0\n"
    )
    ticks = load.os.sysconf("SC_CLK_TCK")
    priority = 0

    def own_priority(*_: int) -> int:
        return priority

    monkeypatch.setattr(load.os, "getpriority", own_priority)
    found = load.usage()
    assert found is not None and found.processors == 2 and found.busy == (19 + 5) / ticks  # without who is nicer
    priority = 5
    found = load.usage()
    assert found is not None and found.busy == (21 + 6) / ticks
    for text in ("", "cpu0 1 2\n", "cpu0 a b c d e f g h i\n"):
        stat.write_text(text)
        found = load.usage()
        assert found is None or found.busy == 0
    stat.unlink()
    assert load.usage() is None


@pytest.mark.parametrize(
    ("groups", "files", "expected"),
    [
        ("0::/a/b", {"a/b/cpu.max": "150000 100000\n"}, 1.5),
        ("0::/a/b", {"a/b/cpu.max": "max 100000\n"}, float("inf")),
        ("4:cpu,cpuacct:/x\n0::/", {"cpu/x/cpu.cfs_quota_us": "50000\n", "cpu/x/cpu.cfs_period_us": "100000\n"}, 0.5),
        ("4:cpu:/x", {"cpu/x/cpu.cfs_quota_us": "-1\n", "cpu/x/cpu.cfs_period_us": "100000\n"}, float("inf")),
        ("4:memory:/x", {}, float("inf")),
        ("0::/a/b", {"a/cpu.max": "100000 100000\n", "a/b/cpu.max": "max 100000\n"}, 1.0),
        ("0::/", {"cpu.max": "250000 100000\n"}, 2.5),
        ("4:cpu:/docker/x", {"cpu/cpu.cfs_quota_us": "50000\n", "cpu/cpu.cfs_period_us": "100000\n"}, 0.5),
        ("0::/../../elsewhere", {"../elsewhere/cpu.max": "1 100000\n"}, float("inf")),
        ("nonsense", {}, float("inf")),
        ("0::/a", {"a/cpu.max": "much\n"}, float("inf")),
    ],
)
def test_quotas_of_control_groups(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, groups: str, files: dict[str, str], expected: float
) -> None:
    tmp_path = tmp_path / "root"
    tmp_path.mkdir()
    (tmp_path / "groups").write_text(groups)
    for name, text in files.items():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(text)
    monkeypatch.setattr(load, "_GROUPS", tmp_path / "groups")
    monkeypatch.setattr(load, "_MOUNT", tmp_path)
    load.limit_files.cache_clear()
    try:
        assert load.quota() == expected
        (tmp_path / "groups").write_text("0::/moved")
        (tmp_path / "moved").mkdir()
        (tmp_path / "moved" / "cpu.max").write_text("700000 100000")
        assert load.quota() in (7.0, 2.5)  # it is another group's now; 2.5 where the root has a limit
    finally:
        load.limit_files.cache_clear()


def test_a_session_changes_its_plans_with_the_threads(monkeypatch: pytest.MonkeyPatch) -> None:
    """There is a plan for each number, and what one gives the other gives."""
    monkeypatch.setattr(THREADS, "look", lambda: None)
    graph, value, bound = one_product()
    with Session(graph) as session:
        step = session.make_callable("y:0", ["x:0"])
        expected = step(value)
        for count in (2, 1, None, 2, 1):
            monkeypatch.setattr(THREADS, "free", count)
            assert np.all(np.abs(step(value) - expected) <= bound)
    THREADS.use(None)


def test_who_says_how_many_is_given_them(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[int] = []

    def threads(most: int) -> int:
        asked.append(most)
        return 1

    monkeypatch.setattr("toolkit.compiler.backends.cpu.threads.LOAD.threads", threads)
    monkeypatch.setattr("toolkit.compiler.backends.cpu.threads.LOAD.due", 0.0)
    monkeypatch.setenv("OMP_NUM_THREADS", "3")
    chosen = Threads()
    chosen.look()
    assert chosen.free is None and not asked
    monkeypatch.delenv("OMP_NUM_THREADS")
    monkeypatch.delenv("OPENBLAS_NUM_THREADS", raising=False)
    monkeypatch.setattr("toolkit.compiler.backends.cpu.threads.threads", lambda: 3)
    monkeypatch.setattr("toolkit.kernels.cpu.openblas.threads", lambda: 2)
    monkeypatch.setattr("toolkit.compiler.backends.cpu.threads.processors", lambda: 2)
    monkeypatch.setattr("os.cpu_count", lambda: 4)
    adapted = Threads()
    adapted.look()
    assert adapted.free == 1 and asked == [3]


def test_more_processors_than_when_libraries_were_loaded_are_used(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS"):
        monkeypatch.delenv(name, raising=False)
    module = "toolkit.compiler.backends.cpu.threads"
    monkeypatch.setattr(f"{module}.LOAD.due", 0.0)
    monkeypatch.setattr(f"{module}.LOAD.threads", int)  # all that it is asked about
    monkeypatch.setattr(f"{module}.threads", lambda: 1)
    monkeypatch.setattr("toolkit.kernels.cpu.openblas.threads", lambda: 1)
    monkeypatch.setattr("os.cpu_count", lambda: 4)
    for allowed, free in ((1, None), (4, 4), (1, None)):
        monkeypatch.setattr(f"{module}.processors", lambda count=allowed: count)
        adapted = Threads()
        adapted.look()
        assert adapted.free == free


def test_threads_sleep_soon_unless_the_user_says_how_long_they_wait(monkeypatch: pytest.MonkeyPatch) -> None:
    told: list[str | None] = []

    def load_library(path: str) -> None:
        told.append(os.environ.get("GOMP_SPINCOUNT"))
        raise OSError(path)

    monkeypatch.setattr(library, "Library", load_library)
    monkeypatch.setattr(library, "candidates", lambda: ["libdnnl.so.3"])
    for name in ("OMP_WAIT_POLICY", "GOMP_SPINCOUNT"):
        monkeypatch.delenv(name, raising=False)
    find = inspect.unwrap(library.library)  # past what the process has already
    find()
    assert "GOMP_SPINCOUNT" not in os.environ  # children have the user's environment
    monkeypatch.setenv("OMP_WAIT_POLICY", "active")
    find()
    monkeypatch.setenv("GOMP_SPINCOUNT", "7")
    find()
    assert told == [str(library.LOOKS), None, "7"]
