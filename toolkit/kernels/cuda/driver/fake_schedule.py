"""The streams and events of fake GPUs: work waits, and is done in an order that is random but for what is promised.

Promised is the order within a stream, that what waits for an event comes behind what was in the event's stream when it
was recorded, and that everything is done behind a synchronisation. Nothing else: a copy may be as late as that, and the
work of one stream far ahead of another's.
"""

from __future__ import annotations

import itertools
import random
import threading
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field

from toolkit.kernels.cuda.driver.base import DriverError

#: how often putting work into a stream lets some be done: one time in so many
_PROGRESS = 4
#: the most operations of a stream that are done at once
_BURST = 4
#: of the body of a conditional node: a million kernels take some seconds on a GPU, and hours here
_MOST_ITERATIONS = 1 << 20


@dataclass(slots=True, eq=False)
class Work:
    """One operation of a stream.

    Attributes:
        call: the driver's call that asked for it.
        run: does it.
        before: done when it is put into a stream, for each time that it is.
        ready: whether it may be done.
        inside: of a conditional node, the body.
    """

    call: str
    run: Callable[[], None]
    before: Callable[[], None] | None = None
    ready: Callable[[], bool] | None = None
    inside: Capture | None = None


class FakeEvent:
    """Attributes:
    recorded: how often it was recorded.
    passed: of these, how many the streams have come by.
    time: milliseconds when it was passed last.
    captured: the recording and what it stands for there, if it was recorded into one last.
    """

    _handles = itertools.count(0x7E00, 16)

    def __init__(self, *, timing: bool):
        self.handle = next(self._handles)
        self.timing = timing
        self.recorded = self.passed = 0
        self.time = 0.0
        self.captured: tuple[Capture, frozenset[int]] | None = None

    @property
    def is_done(self) -> bool:
        return self.passed >= self.recorded


class FakeStream:
    """Attributes:
    device: the number of its GPU.
    queue: what is not done yet.
    capture: the recording that it is part of.
    on_error: told what its work raised.
    """

    _handles = itertools.count(0x5700, 16)

    def __init__(self, device: int, on_error: Callable[[str, Exception], None]):
        self.handle = next(self._handles)
        self.device = device
        self.queue: deque[Work] = deque()
        self.capture: Capture | None = None
        self.on_error = on_error


@dataclass(slots=True, eq=False)
class Capture:
    """Work being recorded.

    Attributes:
        origin: the stream in which it began.
        thread: the one that began it.
        works: with the numbers of those that must be done before each.
        last: for each stream, what its next work comes behind.
        invalid: why nothing can become of it any more.
        outer: of a body, the recording that its conditional node is in.
        conditions: those of it; True where a node hangs on it.
        open: bodies of it that are being recorded.
    """

    origin: FakeStream
    thread: int
    works: list[tuple[Work, frozenset[int]]] = field(default_factory=list[tuple[Work, frozenset[int]]])
    last: dict[FakeStream, frozenset[int]] = field(default_factory=dict[FakeStream, frozenset[int]])
    invalid: str = ""
    outer: Capture | None = None
    conditions: dict[int, bool] = field(default_factory=dict[int, bool])
    open: int = 0

    def add(self, stream: FakeStream, work: Work) -> None:
        """Record work of a stream."""
        self.works.append((work, self.last[stream]))
        self.last[stream] = frozenset({len(self.works) - 1})

    def unjoined(self) -> bool:
        """Whether a stream's work is not waited for by the origin."""
        reached: set[int] = set()
        todo = list(self.last[self.origin])
        while todo:
            number = todo.pop()
            if number not in reached:
                reached.add(number)
                todo += self.works[number][1]
        return len(reached) < len(self.works)


class FakeGraph:
    """Recorded work that can be done again."""

    def __init__(self, works: list[tuple[Work, frozenset[int]]], conditions: Iterable[int] = ()):
        self.works = works
        self.conditions = {*conditions, *(one for work in self.all() if work.inside for one in work.inside.conditions)}
        self.is_alive = True

    @property
    def operations(self) -> int:
        return len(self.works)

    def all(self) -> Iterator[Work]:
        """The work, and that of bodies."""
        waiting = [self.works]
        while waiting:
            for work, _ in waiting.pop():
                yield work
                if work.inside is not None:
                    waiting.append(work.inside.works)


class Schedule:
    """Does the work of all streams of a driver, one operation at a time.

    Args:
        seed: of the order.
    """

    def __init__(self, seed: int):
        self.lock = threading.RLock()
        self._random = random.Random(seed)
        self._busy: list[FakeStream] = []  # those with work
        self.clock = 0.0
        self.conditions: dict[int, int] = {}  # of the graph that is being done
        self._handles = itertools.count(0x0C00, 16)

    def put(self, stream: FakeStream, work: Work) -> None:
        """Put work into a stream, or into what it records."""
        with self.lock:
            if stream.capture is not None:
                stream.capture.add(stream, work)
                return
            if work.before is not None:
                work.before()
            if not stream.queue:
                self._busy.append(stream)
            stream.queue.append(work)
            if self._random.randrange(_PROGRESS) == 0:
                self.advance()

    def advance(self) -> bool:
        """Do some of the work of one stream; whether there was any that can be done."""
        with self.lock:
            able = [one for one in self._busy if _is_ready(one)]
            if not able:
                return False
            stream = self._random.choice(able)
            for _ in range(self._random.randint(1, _BURST)):
                if not stream.queue or not _is_ready(stream):
                    break
                work = stream.queue.popleft()
                self.clock += 0.001
                try:
                    work.run()
                except Exception as error:  # told by the next call
                    stream.on_error(work.call, error)
            if not stream.queue and stream in self._busy:
                self._busy.remove(stream)
            return True

    def drop(self, device: int) -> None:
        """Forget the work of a GPU whose context is lost; what waits for its events need not any more."""
        for stream in [one for one in self._busy if one.device == device]:
            while stream.queue:
                work = stream.queue.popleft()
                if work.call == "cuEventRecord":
                    work.run()
            self._busy.remove(stream)

    def is_busy(self, device: int) -> bool:
        """Whether a GPU has work."""
        return any(one.device == device for one in self._busy)

    def until(self, is_done: Callable[[], bool], call: str) -> None:
        """Do work until something holds.

        Raises:
            DriverError: it never will.
        """
        with self.lock:
            while not is_done():
                if not self.advance():
                    raise DriverError(call, "CUDA_ERROR_NOT_READY", "streams wait for each other forever")

    def record(self, event: FakeEvent, stream: FakeStream) -> None:
        """Put an event into a stream."""
        with self.lock:
            if stream.capture is not None:
                event.captured = (stream.capture, stream.capture.last[stream])
                return
            event.captured = None
            event.recorded += 1
            number = event.recorded

            def passed() -> None:
                event.passed = max(event.passed, number)
                event.time = self.clock

            self.put(stream, Work("cuEventRecord", passed))

    def wait(self, stream: FakeStream, event: FakeEvent) -> None:
        """What comes next in a stream waits for an event.

        Raises:
            DriverError: it is being recorded, and the event is outside of that.
        """
        with self.lock:
            if event.captured is not None:
                capture, behind = event.captured
                if stream.capture is None:
                    stream.capture = capture
                    capture.last[stream] = frozenset()
                if stream.capture is not capture:
                    capture.invalid = "it met another one"
                    raise DriverError("cuStreamWaitEvent", "CUDA_ERROR_STREAM_CAPTURE_MERGE", "of another recording")
                capture.last[stream] |= behind
            elif stream.capture is not None:
                stream.capture.invalid = "it waited for an event from outside"
                raise DriverError(
                    "cuStreamWaitEvent", "CUDA_ERROR_STREAM_CAPTURE_ISOLATION", "the event is from outside of the graph"
                )
            else:
                number = event.recorded
                if event.passed < number:
                    self.put(stream, Work("cuStreamWaitEvent", lambda: None, ready=lambda: event.passed >= number))

    def replay(self, graph: FakeGraph, stream: FakeStream) -> None:
        """Put recorded work into a stream, in any order that its streams and events allowed."""

        def before() -> None:
            for work in graph.all():
                if work.before is not None:
                    work.before()

        def run() -> None:
            # what no kernel has set is anything
            self.conditions = {condition: self._random.randrange(2) for condition in graph.conditions}
            try:
                self._do(graph.works)
            finally:
                self.conditions = {}

        self.put(stream, Work("cuGraphLaunch", run, before))

    def _do(self, works: list[tuple[Work, frozenset[int]]]) -> None:
        """Recorded work, in any order that is allowed."""
        waiting = list(range(len(works)))
        done: set[int] = set()
        while waiting:
            able = [number for number in waiting if works[number][1] <= done]
            number = self._random.choice(able)
            works[number][0].run()
            waiting.remove(number)
            done.add(number)

    # -- conditional nodes ---------------------------------------------------------------------------------------

    def condition(self, capture: Capture) -> int:
        """A new condition of a graph that is recorded."""
        with self.lock:
            made = next(self._handles)
            capture.conditions[made] = False
            return made

    def set_condition(self, condition: int, value: int) -> None:
        """
        Raises:
            DriverError: no graph that is being done has it.
        """
        if condition not in self.conditions:
            raise DriverError(
                "cudaGraphSetConditional", "CUDA_ERROR_ILLEGAL_ADDRESS", "the graph has no such condition"
            )
        self.conditions[condition] = value

    def begin_body(self, capture: Capture, stream: FakeStream, condition: int, body: FakeStream, repeats: bool) -> None:
        """Record the body of a conditional node.

        Raises:
            DriverError: there is no such condition in the graph, another node hangs on it, or the body's stream is
                being recorded.
        """
        call = "cuGraphAddNode"
        with self.lock:
            owner: Capture | None = capture
            while owner is not None and condition not in owner.conditions:
                owner = owner.outer
            if owner is None or owner.conditions[condition]:
                what = "has no such condition" if owner is None else "has another node for the condition"
                raise DriverError(call, "CUDA_ERROR_INVALID_VALUE", f"the graph {what}")
            if body.capture is not None:
                raise DriverError("cuStreamBeginCaptureToGraph", "CUDA_ERROR_ILLEGAL_STATE", "it is being recorded")
            owner.conditions[condition] = True
            capture.open += 1
            body.capture = inside = Capture(body, capture.thread, outer=capture)
            inside.last[body] = frozenset()

            def run() -> None:
                for _ in range(_MOST_ITERATIONS):
                    if not self.conditions[condition]:
                        return
                    self._do(inside.works)
                    if not repeats:
                        return
                raise DriverError(call, "CUDA_ERROR_LAUNCH_TIMEOUT", f"no end after {_MOST_ITERATIONS} iterations")

            capture.add(stream, Work(call, run, inside=inside))


def _is_ready(stream: FakeStream) -> bool:
    ready = stream.queue[0].ready
    return ready is None or ready()
