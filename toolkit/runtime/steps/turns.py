"""Steps of many callers take turns on the processors.

Eight threads that call one session would each start as many threads as there are processors: they push each other off,
wait for threads that do not run, and use eight arenas whose tensors no cache holds. Here a step takes as many
processors as it has been seen to keep busy, and waits in line while these are taken; so all of the machine works for
one step at a time where steps use all of it, and steps that use one processor run beside each other. There is one line
for all sessions of the process.

As long as several callers' steps are there at once, each had better use a part of the processors: threads of one step
wait for each other, steps do not. `threads` says how many that are, and is followed by plans for so many
(`planned`); a lone caller's steps have all processors again soon.

Short steps take turns as soon as several threads run some: the interpreter's lock and the system's slices of time are
no line, and of eight threads some would wait a hundred times as long as others.

Only what cannot wait for another step takes turns (`importer/waits`). A step that waits in line ends when it is
cancelled.
"""

from __future__ import annotations

import os
import threading
import time
from collections import deque
from collections.abc import Callable, Sequence
from typing import Any, Protocol, TypeAlias

from toolkit.compiler.context import RunningStep
from toolkit.compiler.turn import Turn
from toolkit.target.load import processors

#: seconds below which a step takes a turn only when other threads run steps, too: a turn made a lone caller's steps of
#: 250 microseconds 15 microseconds longer, several times what its code takes by itself; why is not known
SHORT = 0.002
#: seconds that a step must take for a turn: steps of 0.25 milliseconds gain by the line (tests/bench/README.md), those
#: that are shorter were not measured in it, and the lock that is handed on would be more and more of them
LEAST = 0.0002
#: seconds from which on a step with loops takes no turn: others had better run beside it than wait for its end
LONGEST = 1.0
#: seconds after which a step goes on without its turn, whatever keeps the others
MOST_WAITED = 10.0
#: how many times as long as the line should take a step of one processor waits, and how long at least: then whoever it
#: waits for was pushed off by another program, which takes milliseconds, and what is had meanwhile is better used
PATIENCE, _LEAST_PATIENCE = 3.0, 0.001
#: seconds between two looks of who waits whether its step is over
_LOOK = 0.1
#: seconds for which the number of processors is taken for what it was: asking for it takes as long as a turn
_KNOWN = 0.05
#: of so many steps one has its processors' time measured, once a plan's first ones have: what was measured when they
#: packed weights counts for nothing then (0.75 ** 16 is a hundredth)
_MEASURED, _FIRST = 8, 16
#: weight of what a step sees when it comes, in the average of how many steps are there
_NEW_SEEN = 0.125
#: how many times the machine's processors the steps that are there would take, from which each takes half as many, and
#: how many at most if each took twice as many; far enough apart that a step more or less does not change it
NARROWER, WIDER = 1.75, 1.25
#: steps on average below which a step that finds no other changes nothing: less than what one more adds to it
_ALONE = 1 + _NEW_SEEN / 2


#: the thread of a step that stands in line, the processors that it wants, and what is released when it has them
_Waiting: TypeAlias = tuple[int, int, threading.Lock]


class Runs(Protocol):
    """A plan."""

    turn: Turn | None

    def run(self, arguments: Sequence[Any], running: RunningStep) -> list[Any]: ...


class Recent:
    """A number that is asked for again when it was asked for some time ago.

    Args:
        ask: finds it out.
        seconds: for which it holds.
    """

    def __init__(self, ask: Callable[[], int], seconds: float):
        self._ask, self._seconds = ask, seconds
        self._known, self._until = 0, -float("inf")

    def __call__(self) -> int:
        now = time.perf_counter()
        if now >= self._until:
            self._known, self._until = self._ask(), now + self._seconds
        return self._known


class Turns:
    """The line in which steps wait for processors: first come, first served.

    Attributes:
        threads: how many a step of many callers should use, whose plan would use more; None for all.

    Args:
        count: how many processors there are now.
        clock, spent: seconds that have passed, and that all threads have spent on processors.
    """

    def __init__(
        self,
        count: Callable[[], int] = processors,
        clock: Callable[[], float] = time.perf_counter,
        spent: Callable[[], float] = time.process_time,
    ):
        self._count, self._clock, self._spent = count, clock, spent
        self._lock = threading.Lock()
        self._line: deque[_Waiting] = deque()
        # processors that steps have taken, by their threads: where one was interrupted as it ended, its next step finds
        # what is left there
        self._steps: dict[int, int] = {}
        self._begun = 0
        self._last = 0  # the thread that ran a short step last, where that was asked for
        self._present = 1.0  # steps, on average; no more than processors
        self.threads: int | None = None
        self._inside = threading.local()

    @property
    def waiting(self) -> int:
        """How many steps stand in line."""
        return len(self._line)

    def narrower(self, turn: Turn | None) -> int | None:
        """How many threads steps of this plan should use instead of the plan's; None where they need not change."""
        threads = self.threads
        if threads is None or turn is None or turn.seconds is None or turn.seconds < LEAST:
            return None
        return threads if turn.share(self._count()) > threads else None

    def run(self, plan: Runs, arguments: Sequence[Any], running: RunningStep) -> list[Any]:
        """Run a step when it is its turn.

        Raises:
            CancelledError: the step is over before its turn has come.
        """
        turn = plan.turn
        if turn is None or (turn.seconds is not None and turn.seconds < LEAST):
            return plan.run(arguments, running)
        if self._is_alone(turn) or self._held():
            return plan.run(arguments, running)
        if turn.loops and (turn.seconds is None or turn.seconds > LONGEST):
            start = self._clock()
            results = plan.run(arguments, running)
            turn.add(self._clock() - start, None)
            return results
        share, thread = turn.share(self._count()), threading.get_ident()
        try:
            self._take(thread, share, running, turn.seconds)
            self._inside.held = share
            begun = self._begun
            looks = len(self._steps) == 1 and (turn.seen < _FIRST or not begun % _MEASURED)
            spent = self._spent() if looks else 0.0
            start = self._clock()
            results = plan.run(arguments, running)
            seconds = self._clock() - start
            turn.add(seconds, self._spent() - spent if looks and self._begun == begun else None)
            return results
        finally:
            self._inside.held = 0
            self._give(thread)

    def _is_alone(self, turn: Turn) -> bool:
        """Whether a step is short, and nobody but its thread has run such steps lately, so it takes no turn.

        The first steps of a plan take turns, so that what they use is known when others come.
        """
        if turn.seconds is None or turn.seconds >= SHORT:
            return False
        thread = threading.get_ident()
        if thread == self._last and turn.seen >= _FIRST and not (self._line or self._steps or self.threads):
            return True
        self._last = thread
        return False

    def forget_others(self) -> None:
        """Take steps of other threads for over: a child of this process has none of these threads."""
        self._lock = threading.Lock()
        self._line.clear()
        self._steps = {threading.get_ident(): held} if (held := self._held()) else {}
        self._present, self.threads = 1.0, None

    def _held(self) -> int:
        """The processors that this thread's step has taken; steps within it take no others."""
        return getattr(self._inside, "held", 0)

    def _take(self, thread: int, share: int, running: RunningStep, seconds: float | None = None) -> None:
        with self._lock:
            steps = self._steps
            steps.pop(thread, None)  # of a step that was interrupted as it ended
            if not steps and not self._line and self.threads is None and self._present < _ALONE:
                steps[thread] = share
                self._begun += 1
                return
            self._see()
            if not self._line and self._fits(share):
                self._begin(thread, share)
                return
            mine = threading.Lock()
            mine.acquire()  # released by whoever hands the turn on
            waiting = (thread, share, mine)
            self._line.append(waiting)
            patience = self._patience(share, seconds)
        end = self._clock() + patience
        try:
            while not mine.acquire(timeout=min(_LOOK, patience)):
                running.check_cancelled()
                if self._clock() > end:
                    self._leave(waiting, goes_on=True)
                    return
        except BaseException:
            self._leave(waiting, goes_on=False)
            raise

    def _patience(self, share: int, seconds: float | None) -> float:
        """How long the last in line waits for its turn."""
        if share > 1 or seconds is None:
            return MOST_WAITED
        return min(MOST_WAITED, max(_LEAST_PATIENCE, PATIENCE * len(self._line) * seconds / self._count()))

    def _leave(self, waiting: _Waiting, *, goes_on: bool) -> None:
        """Out of the line without one's turn; it may have come this very moment, or as the wait was interrupted."""
        with self._lock:
            if waiting in self._line:
                self._line.remove(waiting)
                if goes_on:
                    self._begin(waiting[0], waiting[1])
            elif not goes_on:
                self._steps.pop(waiting[0], None)
            self._hand_on()

    def _give(self, thread: int) -> None:
        with self._lock:
            self._steps.pop(thread, None)
            if self._line:
                self._hand_on()

    def _see(self) -> None:
        """A step has come: find out how many there are, and how many threads each should use."""
        count = self._count()
        self._present += _NEW_SEEN * (min(count, len(self._steps) + len(self._line) + 1) - self._present)
        used = self.threads or count
        more = min(count, 2 * used)
        if used > 1 and self._present * used >= NARROWER * count:
            used //= 2
        elif self._present * more <= WIDER * count:
            used = more
        self.threads = used if used < count else None

    def _fits(self, share: int) -> bool:
        return not self._steps or sum(self._steps.values()) + share <= self._count()

    def _begin(self, thread: int, share: int) -> None:
        self._steps[thread] = share
        self._begun += 1

    def _hand_on(self) -> None:
        while self._line and self._fits(self._line[0][1]):
            thread, share, lock = self._line.popleft()
            self._begin(thread, share)
            lock.release()


TURNS = Turns(Recent(processors, _KNOWN))
os.register_at_fork(after_in_child=TURNS.forget_others)
