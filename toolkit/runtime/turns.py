"""Steps of many callers take turns on the processors.

Eight threads that call one session would each start as many threads as there are processors: they push each other off,
wait for threads that do not run, and use eight arenas whose tensors no cache holds. Here a step takes as many
processors as it has been seen to keep busy, and waits in line while these are taken; so all of the machine works for
one step at a time where steps use all of it, and steps that use one processor run beside each other. There is one line
for all sessions of the process.

As long as several callers' steps are there at once, each had better use a part of the processors: threads of one step
wait for each other, steps do not. `threads` says how many that are, and is followed by plans for so many
(`planned`); a lone caller's steps have all processors again soon.

Only what cannot wait for another step takes turns: plans without effects. A step that waits in line ends when it is
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

#: seconds that a step must take for its turn to be worth a lock that is handed on
LEAST = 0.0005
#: seconds after which a step goes on without its turn, whatever keeps the others
MOST_WAITED = 10.0
#: seconds between two looks of who waits whether its step is over
_LOOK = 0.1
#: weight of what a step sees when it comes, in the average of how many steps are there
_NEW_SEEN = 0.125
#: how many times the machine's processors the steps that are there would take, from which each takes half as many, and
#: how many at most if each took twice as many; far enough apart that a step more or less does not change it
NARROWER, WIDER = 1.75, 1.25


#: the thread of a step that stands in line, the processors that it wants, and what is released when it has them
_Waiting: TypeAlias = tuple[int, int, threading.Lock]


class Runs(Protocol):
    """A plan."""

    turn: Turn | None

    def run(self, arguments: Sequence[Any], running: RunningStep) -> list[Any]: ...


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
        if turn is None or (turn.seconds is not None and turn.seconds < LEAST) or self._held():
            return plan.run(arguments, running)
        share, thread = turn.share(self._count()), threading.get_ident()
        try:
            self._take(thread, share, running)
            self._inside.held = share
            begun, alone = self._begun, len(self._steps) == 1
            start, spent = self._clock(), self._spent()
            results = plan.run(arguments, running)
            seconds, spent = self._clock() - start, self._spent() - spent
            turn.add(seconds, spent if alone and self._begun == begun else None)
            return results
        finally:
            self._inside.held = 0
            self._give(thread)

    def forget_others(self) -> None:
        """Take steps of other threads for over: a child of this process has none of these threads."""
        self._lock = threading.Lock()
        self._line.clear()
        self._steps = {threading.get_ident(): held} if (held := self._held()) else {}
        self._present, self.threads = 1.0, None

    def _held(self) -> int:
        """The processors that this thread's step has taken; steps within it take no others."""
        return getattr(self._inside, "held", 0)

    def _take(self, thread: int, share: int, running: RunningStep) -> None:
        with self._lock:
            self._steps.pop(thread, None)  # of a step that was interrupted as it ended
            self._see()
            if not self._line and self._fits(share):
                self._begin(thread, share)
                return
            mine = threading.Lock()
            mine.acquire()  # released by whoever hands the turn on
            waiting = (thread, share, mine)
            self._line.append(waiting)
        end = self._clock() + MOST_WAITED
        try:
            while not mine.acquire(timeout=_LOOK):
                running.check_cancelled()
                if self._clock() > end:
                    self._leave(waiting, goes_on=True)
                    return
        except BaseException:
            self._leave(waiting, goes_on=False)
            raise

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


TURNS = Turns()
os.register_at_fork(after_in_child=TURNS.forget_others)
