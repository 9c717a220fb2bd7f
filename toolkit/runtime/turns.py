"""Steps of many callers take turns on the processors.

Eight threads that call one session would each start as many threads as there are processors: they push each other off,
wait for threads that do not run, and use eight arenas whose tensors no cache holds. Here a step takes as many
processors as it has been seen to keep busy, and waits in line while these are taken; so all of the machine works for
one step at a time where steps use all of it, and steps that use one processor run beside each other. There is one line
for all sessions of the process.

Only what cannot wait for another step takes turns: plans without effects. A step that waits in line ends when it is
cancelled.
"""

from __future__ import annotations

import threading
import time
from collections import deque
from collections.abc import Callable, Sequence
from typing import Any, Protocol

from toolkit.compiler.context import RunningStep
from toolkit.compiler.turn import Turn
from toolkit.target.load import processors

#: seconds that a step must take for its turn to be worth a lock that is handed on
LEAST = 0.0005
#: seconds after which a step goes on without its turn, whatever keeps the others
MOST_WAITED = 10.0
#: seconds between two looks of who waits whether its step is over
_LOOK = 0.1


class Runs(Protocol):
    """A plan."""

    turn: Turn | None

    def run(self, arguments: Sequence[Any], running: RunningStep) -> list[Any]: ...


class Turns:
    """The line in which steps wait for processors: first come, first served.

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
        self._line: deque[tuple[int, threading.Lock]] = deque()
        self._taken = self._running = self._begun = 0
        self._inside = threading.local()

    @property
    def waiting(self) -> int:
        """How many steps stand in line."""
        return len(self._line)

    def run(self, plan: Runs, arguments: Sequence[Any], running: RunningStep) -> list[Any]:
        """Run a step when it is its turn.

        Raises:
            CancelledError: the step is over before its turn has come.
        """
        turn = plan.turn
        if turn is None or (turn.seconds is not None and turn.seconds < LEAST) or getattr(self._inside, "held", False):
            return plan.run(arguments, running)
        share = turn.share(self._count())
        self._take(share, running)
        self._inside.held = True
        begun, alone = self._begun, self._running == 1
        start, spent = self._clock(), self._spent()
        try:
            results = plan.run(arguments, running)
            seconds, spent = self._clock() - start, self._spent() - spent
            turn.add(seconds, spent if alone and self._begun == begun else None)
            return results
        finally:
            self._inside.held = False
            self._give(share)

    def _take(self, share: int, running: RunningStep) -> None:
        with self._lock:
            if not self._line and self._fits(share):
                self._begin(share)
                return
            mine = threading.Lock()
            mine.acquire()  # released by whoever hands the turn on
            waiting = (share, mine)
            self._line.append(waiting)
        end = self._clock() + MOST_WAITED
        try:
            while not mine.acquire(timeout=_LOOK):
                running.check_cancelled()
                if self._clock() > end:
                    self._leave(waiting, share, goes_on=True)
                    return
        except BaseException:
            self._leave(waiting, share, goes_on=False)
            raise

    def _leave(self, waiting: tuple[int, threading.Lock], share: int, *, goes_on: bool) -> None:
        """Out of the line without one's turn; it may have come this very moment, or as the wait was interrupted."""
        with self._lock:
            has_turn = waiting not in self._line
            if not has_turn:
                self._line.remove(waiting)
                if goes_on:
                    self._begin(share)
            elif not goes_on:
                self._end(share)
            self._hand_on()

    def _give(self, share: int) -> None:
        with self._lock:
            self._end(share)
            self._hand_on()

    def _fits(self, share: int) -> bool:
        return not self._running or self._taken + share <= self._count()

    def _begin(self, share: int) -> None:
        self._taken += share
        self._running += 1
        self._begun += 1

    def _end(self, share: int) -> None:
        self._taken -= share
        self._running -= 1

    def _hand_on(self) -> None:
        while self._line and self._fits(self._line[0][0]):
            share, lock = self._line.popleft()
            self._begin(share)
            lock.release()


TURNS = Turns()
