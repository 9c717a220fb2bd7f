"""Steps of many callers take turns: first come, first served, as many processors as they use, never for ever."""

from __future__ import annotations

import gc
import os
import signal
import subprocess
import sys
import threading
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import pytest

from tests.models import ROOT
from tests.one_product import one_product
from tests.patience import HUNG, until
from toolkit.compiler.backends.cpu.threads import THREADS
from toolkit.compiler.turn import Turn
from toolkit.errors import CancelledError
from toolkit.formats.arrays.tensor import from_array
from toolkit.graph import dtypes
from toolkit.graph.graph import Graph
from toolkit.graph.shape import Shape
from toolkit.runtime.executors import planned
from toolkit.runtime.session import Session
from toolkit.runtime.steps import turns
from toolkit.runtime.steps.turns import TURNS, Turns


class Step:
    """A step that may be cancelled."""

    is_cancelled = False

    def check_cancelled(self) -> None:
        if self.is_cancelled:
            raise CancelledError("it is over")


class Plan:
    """Notes when it runs, and runs until it is let go."""

    def __init__(self, line: Line, busy: float | None = None):
        self.turn: Turn | None = Turn()
        self.turn.busy = busy
        self.line = line

    def run(self, arguments: Sequence[Any], running: Any) -> list[Any]:
        self.line.begun.append(arguments[0])
        self.line.let_go[arguments[0]].wait()
        return list(arguments)


class Line:
    """Two processors, and threads that stand in line for them in the order in which they are started."""

    def __init__(self) -> None:
        self.turns = Turns(count=lambda: 2)
        self.begun: list[int] = []
        self.let_go: dict[int, threading.Event] = {}
        self.threads: list[threading.Thread] = []
        self.errors: dict[int, BaseException] = {}

    def start(self, number: int, plan: Plan, step: Any = None) -> None:
        self.let_go[number] = threading.Event()

        def run() -> None:
            try:
                assert self.turns.run(plan, [number], step or Step()) == [number]
            except BaseException as error:
                self.errors[number] = error

        seen = self.turns.waiting + len(self.begun)
        self.threads.append(threading.Thread(target=run))
        self.threads[-1].start()
        until(lambda: self.turns.waiting + len(self.begun) > seen, "the line")

    def end(self, *numbers: int) -> None:
        for number in numbers:
            self.let_go[number].set()
        for thread in self.threads if len(self.let_go) == len(numbers) else ():
            thread.join()

    def runs(self, *numbers: int) -> bool:
        until(lambda: len(self.begun) >= len(numbers), "the line")
        return self.begun == list(numbers)


def test_one_after_the_other_in_the_order_in_which_they_came() -> None:
    line = Line()
    plan = Plan(line)
    for number in range(5):
        line.start(number, plan)
    assert line.begun == [0]
    for number in range(4):
        line.let_go[number].set()
        assert line.runs(*range(number + 2))
    line.end(*range(5))
    assert not line.errors


def test_those_that_use_one_processor_run_beside_each_other() -> None:
    line = Line()
    for number in range(3):
        line.start(number, Plan(line, busy=1.1))
    assert line.runs(0, 1)
    line.start(3, Plan(line, busy=2.0))
    line.let_go[0].set()
    assert line.runs(0, 1, 2)
    line.let_go[1].set()
    line.let_go[2].set()
    assert line.runs(0, 1, 2, 3)
    line.end(*range(4))


def test_who_wants_more_than_there_is_runs_alone() -> None:
    line = Line()
    line.start(0, Plan(line, busy=9.0))
    line.start(1, Plan(line, busy=9.0))
    assert line.begun == [0]
    line.let_go[0].set()
    assert line.runs(0, 1)
    line.end(0, 1)


def test_who_is_cancelled_leaves_the_line(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(turns, "_LOOK", 0.001)
    line = Line()
    plan, step = Plan(line), Step()
    line.start(0, plan)
    line.start(1, plan, step)
    line.start(2, plan)
    step.is_cancelled = True
    until(lambda: line.turns.waiting == 1, "the line")
    line.let_go[0].set()
    assert line.runs(0, 2)
    line.end(0, 1, 2)
    assert isinstance(line.errors[1], CancelledError) and len(line.errors) == 1


def test_nobody_waits_for_ever(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(turns, "_LOOK", 0.001)
    monkeypatch.setattr(turns, "MOST_WAITED", 0.0)
    line = Line()
    plan = Plan(line)
    line.start(0, plan)
    line.start(1, plan)  # goes on without its turn
    assert line.runs(0, 1)
    line.end(0, 1)
    line = Line()
    line.start(0, plan := Plan(line))
    line.end(0)
    assert line.turns.run(plan, [0], Step()) == [0]  # and the line is as it was


def test_a_step_in_a_step_and_a_short_one_do_not_wait() -> None:
    line = Line()
    inner, short = Plan(line), Plan(line)
    assert short.turn is not None
    short.turn.seconds = turns.LEAST / 2
    line.let_go = {number: threading.Event() for number in range(3)}
    line.let_go[1].set()
    line.let_go[2].set()

    class Outer(Plan):
        def run(self, arguments: Sequence[Any], running: Any) -> list[Any]:
            return line.turns.run(inner, [1], running)

    assert line.turns.run(Outer(line), [0], Step()) == [1]
    line.start(0, Plan(line))
    assert line.turns.run(short, [2], Step()) == [2]
    line.end(0)
    for thread in line.threads:
        thread.join()


def test_a_short_step_takes_a_turn_where_other_threads_run_some() -> None:
    """A lone caller's takes none, once it is known what it uses, and all processors are a step's again."""
    seen = Turns(lambda: 2)
    taken: list[int] = []
    take: Callable[..., None] = seen._take  # pyright: ignore[reportPrivateUsage]
    seen._take = lambda *given: (taken.append(given[1]), take(*given))[1]  # pyright: ignore[reportPrivateUsage]

    def takes_turn(measured: int = 99) -> bool:
        line = Line()
        line.let_go[0] = threading.Event()
        line.let_go[0].set()
        plan = Plan(line, busy=1.0)
        assert plan.turn is not None
        plan.turn.seconds, plan.turn.seen = (turns.SHORT + turns.LEAST) / 2, measured
        taken.clear()
        assert seen.run(plan, [0], Step()) == [0]
        return bool(taken)

    assert [takes_turn(measured) for measured in (0, 1, 99, 99)] == [True, True, False, False]
    found: list[bool] = []
    other = threading.Thread(target=lambda: found.append(takes_turn()))
    other.start()
    other.join()
    assert found == [True]
    assert [takes_turn() for _ in range(3)] == [True, False, False]
    seen.threads = 1
    assert takes_turn() and seen.threads is None


def test_a_step_of_one_processor_waits_a_few_times_as_long_as_the_line_should_take() -> None:
    """Then whoever has its turn was pushed off; it goes on beside them, and nobody else's turn is lost."""
    line = Line()
    for number in range(2):
        line.start(number, Plan(line, busy=1.0))
    assert line.runs(0, 1)
    patient = Plan(line, busy=2.0)
    line.start(2, patient)
    hasty = Plan(line, busy=1.0)
    assert hasty.turn is not None
    hasty.turn.seconds = turns.SHORT
    line.let_go[3] = threading.Event()
    line.let_go[3].set()
    assert line.turns.run(hasty, [3], Step()) == [3]
    assert line.turns.waiting == 1
    line.let_go[0].set()
    line.let_go[1].set()
    assert line.runs(0, 1, 3, 2)
    line.end(0, 1, 2, 3)
    for thread in line.threads:
        thread.join()
    assert not line.errors and not line.turns.waiting


def test_an_error_gives_the_turn_back() -> None:
    line = Line()

    class Fails(Plan):
        def run(self, arguments: Sequence[Any], running: Any) -> list[Any]:
            raise ValueError("no")

    for _ in range(3):
        with pytest.raises(ValueError, match="no"):
            line.turns.run(Fails(line), [0], Step())


def interrupt_everywhere() -> int:
    """Interrupt a step at each place in turn, let others have theirs then, and return how many places there are."""
    turns.MOST_WAITED = 1e9
    line = Line()
    line.let_go = {number: threading.Event() for number in (0, 1)}
    line.let_go[0].set()
    seen, at, events = 0, 0, ("call", "c_return")

    def interrupt(frame: Any, event: str, _: Any) -> None:
        """Where signals are handled: as a function begins, and when one of the interpreter's own has ended."""
        nonlocal seen
        if event in events and frame.f_code.co_filename == turns.__file__:
            seen += 1
            if seen == at:
                raise KeyboardInterrupt

    while seen >= at:
        at, seen = at + 1, 0
        try:
            sys.setprofile(interrupt)
            line.turns.run(Plan(line), [0], Step())
        except KeyboardInterrupt:
            pass
        finally:
            sys.setprofile(None)
        assert line.turns.run(Plan(line), [0], Step()) == [0]
        line.begun.clear()
        line.start(1, Plan(line))
        assert line.runs(1)
        line.end(1)
        line.threads[-1].join()
        line.begun.clear()
        line.let_go[1].clear()
    assert not line.errors
    return at


def test_an_interrupt_anywhere_leaves_the_line_as_it_was() -> None:
    """Ctrl-C before a step, in it, or behind it: the thread's next step begins at once, and so does another's then.

    A process of its own is interrupted, in which nothing else goes on.
    """
    code = "from tests.runtime.turns.test_turns import interrupt_everywhere; print(interrupt_everywhere())"
    done = subprocess.run(
        [sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, timeout=HUNG, check=False
    )
    assert done.returncode == 0, done.stderr
    assert int(done.stdout) > 10  # more places than that


@pytest.mark.parametrize("is_inside", [False, True])
def test_a_child_waits_for_none_of_its_parents_threads(is_inside: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    """Whoever forks may be within a step, too, which the child goes on with."""
    monkeypatch.setattr(turns, "MOST_WAITED", 1e9)
    line = Line()
    line.turns = TURNS

    def fork(child: Callable[[], int]) -> int:
        pid = os.fork()
        if not pid:
            signal.alarm(int(HUNG))  # what waits for ever ends, and is seen to
            code = 1
            try:
                code = child()
            finally:
                os._exit(code)
        return os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])

    class Forking(Plan):
        def run(self, arguments: Sequence[Any], running: Any) -> list[Any]:
            return [fork(lambda: 0 if TURNS.run(Plan(line), [1], Step()) == [1] else 2)]

    def step() -> int:
        line.let_go[3] = threading.Event()
        line.let_go[3].set()
        return 0 if TURNS.run(Plan(line), [3], Step()) == [3] else 3

    line.let_go[1] = threading.Event()
    line.let_go[1].set()
    if is_inside:
        assert TURNS.run(Forking(line), [0], Step()) == [0]
    else:
        line.start(0, Plan(line))
        line.start(2, Plan(line))
        until(lambda: TURNS.waiting == 1, "the line")
        assert fork(step) == 0
        assert TURNS.waiting == 1
        for number in (0, 2):
            line.let_go[number].set()
    for thread in line.threads:
        thread.join()
    assert step() == 0


def test_what_a_step_takes_is_measured_while_it_is_alone() -> None:
    clock = iter(range(0, 100, 1))
    spent = iter([0.0, 1.9, 10.0, 10.9])
    alone = Turns(lambda: 2, lambda: float(next(clock)), lambda: next(spent))
    line = Line()
    line.let_go[0] = threading.Event()
    line.let_go[0].set()
    plan = Plan(line)
    assert plan.turn is not None and plan.turn.share(2) == 2  # nothing is known
    alone.run(plan, [0], Step())
    assert plan.turn.busy == 1.9 and plan.turn.share(8) == 2 and plan.turn.share(1) == 1
    turn = Turn()
    for _ in range(9):
        turn.add(1.0, 0.9)
    turn.add(1.0, None)  # others ran, too
    assert turn.busy is not None and turn.share(2) == 1


def test_many_callers_use_fewer_threads_each_and_a_lone_one_all_again() -> None:
    """However many processors there are: half as many threads again and again, until all steps have their own."""
    for count, callers, least in ((2, 8, 1), (2, 2, 1), (8, 3, 4), (8, 4, 2), (6, 40, 1), (1, 8, None), (8, 1, None)):
        seen = Turns(lambda count=count: count)
        turn = Turn()
        turn.add(1.0, 99.0)
        run = [Ticket(seen) for _ in range(callers)]
        for number in range(400):
            run[number % callers].leave()
            run[number % callers].come()
        assert seen.threads == least == seen.narrower(turn)
        for each in run:
            each.leave()
        for _ in range(200):
            run[0].come()
            run[0].leave()
        assert seen.threads is None and seen.narrower(turn) is None


class Ticket:
    """A caller's step, which takes no processor so that all can be there at once."""

    def __init__(self, turns_: Turns):
        self._turns, self._is_there = turns_, False

    def come(self) -> None:
        self._turns._take(id(self), 0, Step())  # pyright: ignore
        self._is_there = True

    def leave(self) -> None:
        if self._is_there:
            self._turns._give(id(self))  # pyright: ignore
        self._is_there = False


def test_steps_that_are_short_or_use_one_processor_stay_as_they_are() -> None:
    seen = Turns(lambda: 4)
    seen.threads = 2
    short, alone, unknown, long = Turn(), Turn(), Turn(), Turn()
    short.add(turns.LEAST / 2, turns.LEAST * 2)
    alone.add(1.0, 1.1)
    long.add(1.0, 3.9)
    assert [seen.narrower(turn) for turn in (short, alone, unknown, None, long)] == [None, None, None, None, 2]


@pytest.mark.parametrize("threads", [None, 1])
def test_callers_of_one_session_get_their_own_results(threads: int | None, monkeypatch: pytest.MonkeyPatch) -> None:
    graph = Graph()
    x = graph.add("Placeholder", "x", attrs={"dtype": dtypes.float32, "shape": Shape([4, 300])})
    weights = np.random.default_rng(1).standard_normal((300, 300)).astype(np.float32)
    for number in range(4):
        w = graph.add("Const", f"w{number}", attrs={"dtype": dtypes.float32, "value": from_array(weights / 20)})
        product = graph.add("MatMul", f"p{number}", [x, w], attrs={"T": dtypes.float32})
        x = graph.add("Relu", f"y{number}", [product], attrs={"T": dtypes.float32})
    monkeypatch.setattr(turns, "SHORT", 0.0)
    monkeypatch.setattr(turns, "LEAST", 0.0)
    monkeypatch.setattr(TURNS, "_see", lambda: None)  # all steps by one plan, so results are equal bit for bit
    taken: list[int] = []
    take: Callable[..., None] = TURNS._take  # pyright: ignore[reportPrivateUsage]
    monkeypatch.setattr(TURNS, "_take", lambda *given: (taken.append(given[1]), take(*given)))
    values = np.random.default_rng(2).standard_normal((8, 4, 300)).astype(np.float32)
    with Session(graph, threads=threads) as session:
        step = session.make_callable("y3:0", ["x:0"])
        expected = [step(value) for value in values]
        found: dict[int, list[Any]] = {}

        def call(number: int) -> None:
            found[number] = [step(values[number]) for _ in range(5)]

        threads_ = [threading.Thread(target=call, args=(number,)) for number in range(8)]
        for each in threads_:
            each.start()
        for each in threads_:
            each.join()
    assert len(taken) == 48
    for number in range(8):
        for result in found[number]:
            np.testing.assert_array_equal(result, expected[number])
    assert not TURNS.waiting


def all_of(turn: Turn, most: int) -> int:
    """The share of a step that keeps all processors busy."""
    return most


def test_beside_other_callers_there_is_a_plan_for_fewer_threads(monkeypatch: pytest.MonkeyPatch) -> None:
    """It is made by one of them, while the others go on with the plan for all threads."""
    built: list[int | None] = []
    build: Callable[..., Any] = planned.build

    def noted(program: Any, arguments: Any, running: Any, settings: Any, **options: Any) -> Any:
        built.append(settings.threads)
        return build(program, arguments, running, settings, **options)

    for name in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setattr(planned, "build", noted)
    monkeypatch.setattr(THREADS, "look", lambda: None)
    monkeypatch.setattr(THREADS, "free", None)
    monkeypatch.setattr(THREADS, "is_chosen", False)
    monkeypatch.setattr(turns, "LEAST", 0.0)
    monkeypatch.setattr(TURNS, "_see", lambda: None)
    monkeypatch.setattr(TURNS, "_count", lambda: 4)
    monkeypatch.setattr(TURNS, "threads", None)
    graph, value, bound = one_product()
    with Session(graph) as session:
        step = session.make_callable("y:0", ["x:0"])
        expected = step(value)
        monkeypatch.setattr(Turn, "share", all_of)
        monkeypatch.setattr(TURNS, "threads", 2)
        for _ in range(3):
            assert np.all(np.abs(step(value) - expected) <= bound)
        assert built == [None, 2]
        monkeypatch.setattr(TURNS, "threads", 1)
        objects: list[Any] = gc.get_objects()
        making: list[Any] = [each._making_another for each in objects if isinstance(each, planned.CompiledExecutor)]
        for each in making:
            each.acquire()
        step(value)
        assert built == [None, 2]
        for each in making:
            each.release()
        step(value)
        monkeypatch.setattr(THREADS, "free", 1)  # other processes leave one: so many is the plan's
        step(value)
        monkeypatch.setattr(THREADS, "free", None)
        monkeypatch.setattr(TURNS, "threads", None)
        step(value)
        assert built == [None, 2, 1]
        for each in making:
            each.acquire()
        monkeypatch.setattr(THREADS, "free", 3)  # another caller makes the plan for what other processes leave now
        assert np.all(np.abs(step(value) - expected) <= bound)
        assert built == [None, 2, 1]
        for each in making:
            each.release()
        assert np.all(np.abs(step(value) - expected) <= bound)
        assert built == [None, 2, 1, 3]
    THREADS.use(None)
