"""Which of a library's ways to compute something is fastest on this GPU: a few are recorded, replayed and timed.

Heuristics know sizes and types, and are a tenth to a third off for many of them; TensorFlow and XLA measure, too. Each
way is recorded several times in one graph, so that what is compared is the GPU's time, as a recorded step has it, and
not the host's time for a call. Replays go through the stream in which the result is wanted, for whatever else is there
uses the library's workspace as well. Results are the same within rounding, and not bit by bit, so nothing is measured
where a device is deterministic.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable
from typing import Any, NamedTuple

from toolkit.kernels.cuda.driver.base import Context, DriverError, Span, Stream
from toolkit.kernels.cuda.libraries.base import LibraryError

#: how many of a library's proposals are looked at: the fastest is seldom behind the first few
MOST_WAYS = 8
#: seconds for one configuration after which no other way is begun, and for all of a context: plans that a library
#: compiles take a third of a second each
SECONDS, ALL_SECONDS = 0.3, 20.0
CALLS = 5  # in a recording: the gaps between launches of a graph are those of a step
REPLAYS = 5  # of which the shortest counts
_HOPELESS = 3.0  # what takes so many times the best one's time is replayed once only


class Way(NamedTuple):
    """Attributes:
    key: what is chosen.
    run: puts the work into a stream, with the same memory each time.
    """

    key: Any
    run: Callable[[Stream], None]


def is_repeatable(written: Iterable[Span | None], read: Iterable[Span | None]) -> bool:
    """Whether a call may be done again and again: it reads nothing that it writes."""
    ranges = [(span.address, span.address + span.nbytes) for span in read if span is not None]
    return not any(
        span.address < end and start < span.address + span.nbytes
        for span in written
        if span is not None
        for start, end in ranges
    )


class Choosing:
    """Of one library in one context.

    Attributes:
        seconds: that measuring has taken so far.
        measured: configurations that were decided.
    """

    def __init__(self, context: Context):
        self._context = context
        self._stream: Stream = None
        self.seconds = 0.0
        self.measured = 0

    @property
    def is_over(self) -> bool:
        """Whether nothing is measured here any more, or never was."""
        return not self._context.measures or self.seconds >= ALL_SECONDS

    def is_recorded(self, stream: Stream) -> bool:
        """Whether nothing can be measured now, for what is put into the stream is recorded."""
        return self._context.is_recorded(stream)

    def fastest(self, ways: Iterable[Way], stream: Stream) -> Any:
        """The key of the way that takes least time; None if none of them works.

        Args:
            ways: the heuristics' choice first. They are asked for one by one, for making one may take its time.
        """
        begun = time.perf_counter()
        best, least = None, float("inf")
        for number, way in enumerate(ways):
            taken = self.milliseconds(way, stream, least)
            if taken is not None and taken < least:
                best, least = way.key, taken
            if time.perf_counter() - begun > SECONDS or number + 1 >= MOST_WAYS:
                break
        self.seconds += time.perf_counter() - begun
        self.measured += 1
        return best

    def milliseconds(self, way: Way, stream: Stream, least: float = float("inf")) -> float | None:
        """What so many calls of a way take; None where the library cannot do it so after all.

        Args:
            least: of the best one so far; what takes far more is replayed once, and counts as endless.
        """
        context = self._context
        if self._stream is None:
            self._stream = context.stream()
        try:
            way.run(stream)  # loads code, which a recording may refuse to do
            context.begin_capture(self._stream)
            try:
                for _ in range(CALLS):
                    way.run(self._stream)
            except LibraryError:
                context.free_graph(context.end_capture(self._stream))
                raise
            graph = context.end_capture(self._stream)
        except (LibraryError, DriverError) as error:
            if isinstance(error, DriverError) and error.is_sticky:
                raise
            return None
        try:
            start, end = context.event(timing=True), context.event(timing=True)
            found = float("inf")
            for replay in range(1 + REPLAYS):
                context.record(start, stream)
                context.replay(graph, stream)
                context.record(end, stream)
                context.synchronize(end)
                taken = context.elapsed(start, end)
                if replay:  # the first one brings the graph to the GPU
                    found = min(found, taken)
                if taken > _HOPELESS * least:
                    break
            return found
        finally:
            context.free_graph(graph)
