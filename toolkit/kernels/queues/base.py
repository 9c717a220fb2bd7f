"""The queue that all kinds share: elements, waiting attempts, closing, cancellation.

The rules are those of TensorFlow's QueueBase. Enqueues and dequeues wait in two lines. Whenever something happens
both lines are tried in turn until neither gets on; only the head of a line is ever tried, so that operations
finish in the order in which they came. Callbacks run after the lock is released.
"""

from __future__ import annotations

import enum
import threading
from collections import deque
from collections.abc import Callable, Sequence
from typing import Any

from toolkit.errors import CancelledError, InvalidArgumentError, OutOfRangeError
from toolkit.graph.dtypes import DType
from toolkit.graph.shape import Shape
from toolkit.kernels.context import Cancellation, Done
from toolkit.kernels.queues.elements import Element, is_array, own, own_row, shape_of, stack

UNBOUNDED = 2**31 - 1


class Progress(enum.Enum):
    """What trying an attempt brought."""

    NONE = enum.auto()
    SOME = enum.auto()
    COMPLETE = enum.auto()


class Attempt:
    """An operation that waits for its turn.

    Attributes:
        remaining: elements it still has to put in or take out.
        batch: what an enqueue of many puts in.
        taken: what a dequeue has taken out so far.
        result: what `done` gets when the attempt is over: outputs or an error.
    """

    __slots__ = ("batch", "cancellation", "done", "over", "remaining", "result", "run", "taken", "token")

    def __init__(self, run: Callable[[Attempt], Progress], done: Done, remaining: int, batch: Sequence[Any] = ()):
        self.run = run
        self.done = done
        self.remaining = remaining
        self.batch = batch
        self.taken: list[Element] = []
        self.result: Any = None
        self.over = False  # finished or cancelled: nothing may touch it again
        self.cancellation: Cancellation | None = None
        self.token = -1

    def finish(self) -> None:
        """Tell whoever waits; called without the queue's lock."""
        if self.cancellation is not None:
            self.cancellation.deregister(self.token)
        self.done(self.result)


class QueueResource:
    """A first-in-first-out queue of elements; the other kinds change where elements are put and which are taken.

    Args:
        name: for messages.
        types: the type of each component.
        shapes: the shape of each component, or nothing when elements may have any shapes.
        capacity: how many elements fit; negative: any number.
    """

    kind = "FIFOQueue"

    def __init__(self, name: str, types: Sequence[DType], shapes: Sequence[Shape] | None, capacity: int):
        self.name = name
        self.types = list(types)
        self.shapes = list(shapes) if shapes else None
        self.capacity = UNBOUNDED if capacity < 0 else capacity
        self._lock = threading.Lock()
        self._enqueues: deque[Attempt] = deque()
        self._dequeues: deque[Attempt] = deque()
        self._closed = False
        self._elements: deque[Element] = deque()

    # -- where elements are, for the kinds to change; all called with the lock held -------------------------

    def _count(self) -> int:
        return len(self._elements)

    def _put(self, element: Element) -> None:
        self._elements.append(element)

    def _take(self) -> Element:
        return self._elements.popleft()

    def _put_back(self, taken: list[Element]) -> None:
        """Undo the taking of elements, given in the order in which they were taken."""
        self._elements.extendleft(reversed(taken))

    def _available(self) -> int:
        """How many elements may be taken now."""
        return self._count()

    def _available_for_batch(self, remaining: int) -> int:
        """How many elements may be taken now for a batch that still lacks `remaining`."""
        return self._available()

    def _join(self, taken: list[Element]) -> list[Any]:
        """The outputs of a dequeue of many."""
        assert self.shapes is not None
        return [
            stack([element[i] for element in taken], dtype, shape.as_list())
            for i, (dtype, shape) in enumerate(zip(self.types, self.shapes, strict=True))
        ]

    # -- what goes in --------------------------------------------------------------------------------------

    def _fits(self, expected: Shape, shape: Sequence[int]) -> bool:
        return expected.dims == tuple(shape)

    def _check_types(self, values: Sequence[Any]) -> None:
        if len(values) != len(self.types):
            raise InvalidArgumentError(
                f"Wrong number of components in tuple. Expected {len(self.types)}, got {len(values)}"
            )
        for i, (value, dtype) in enumerate(zip(values, self.types, strict=True)):
            if is_array(value) and value.dtype != dtype.numpy:
                raise InvalidArgumentError(f"Type mismatch in tuple component {i}. Expected {dtype}, got {value.dtype}")

    def _check_one(self, values: Sequence[Any]) -> None:
        self._check_types(values)
        for i, (value, expected) in enumerate(zip(values, self.shapes or (), strict=False)):
            if not self._fits(expected, shape_of(value)):
                raise _mismatch(i, expected, shape_of(value))

    def _check_many(self, values: Sequence[Any]) -> int:
        self._check_types(values)
        for i, value in enumerate(values):
            if not shape_of(value):
                raise InvalidArgumentError(
                    f"Input tensors must have at least one dimension; component {i} of the batch is a scalar"
                )
        size = shape_of(values[0])[0]
        if self.shapes is None:
            for i, value in enumerate(values):
                if shape_of(value)[0] != size:
                    raise InvalidArgumentError(
                        f"All input tensors must have the same size in the 0th dimension. Component {i} has "
                        f"{shape_of(value)[0]}, and should have {size}"
                    )
            return size
        for i, (value, expected) in enumerate(zip(values, self.shapes, strict=True)):
            shape = shape_of(value)
            if shape[0] != size or not self._fits(expected, shape[1:]):
                raise _mismatch(i, Shape([size]).concatenate(expected), shape)
        return size

    # -- the operations ------------------------------------------------------------------------------------

    def enqueue(self, values: Sequence[Any], cancellation: Cancellation, done: Done) -> None:
        """Put one element in; waits while the queue is full.

        Raises:
            InvalidArgumentError: the components do not fit the queue.
        """
        self._check_one(values)
        element = [own(value) for value in values]

        def run(attempt: Attempt) -> Progress:
            if self._closed:
                attempt.result = self._is_closed_error()
            elif self._count() < self.capacity:
                self._put(element)
                attempt.result = []
            else:
                return Progress.NONE
            return Progress.COMPLETE

        self._wait(self._enqueues, Attempt(run, done, 1), cancellation, "Enqueue")

    def enqueue_many(self, values: Sequence[Any], cancellation: Cancellation, done: Done) -> None:
        """Put the rows of a batch in, one after the other; waits whenever the queue is full.

        Raises:
            InvalidArgumentError: the components do not fit the queue.
        """
        size = self._check_many(values)
        if size == 0:
            done([])
            return
        # While it waits, the batch must not change under its rows.
        batch = [own(value) for value in values]

        def run(attempt: Attempt) -> Progress:
            if self._closed:
                attempt.result = self._is_closed_error()
                return Progress.COMPLETE
            result = Progress.NONE
            while self._count() < self.capacity:
                result = Progress.SOME
                self._put([own_row(value, size - attempt.remaining) for value in batch])
                attempt.remaining -= 1
                if not attempt.remaining:
                    attempt.result = []
                    return Progress.COMPLETE
            return result

        self._wait(self._enqueues, Attempt(run, done, size), cancellation, "Enqueue")

    def dequeue(self, cancellation: Cancellation, done: Done) -> None:
        """Take one element out; waits while there is none."""

        def run(attempt: Attempt) -> Progress:
            if self._closed and not self._count():
                attempt.result = self._insufficient(1, 0)
            elif self._available() > 0:
                attempt.result = self._take()
            else:
                return Progress.NONE
            return Progress.COMPLETE

        self._wait(self._dequeues, Attempt(run, done, 1), cancellation, "Dequeue")

    def dequeue_many(self, count: int, allow_small_batch: bool, cancellation: Cancellation, done: Done) -> None:
        """Take `count` elements out as one batch.

        Elements are taken as they come, which makes room for enqueues; when the batch cannot be completed they
        go back.

        Args:
            allow_small_batch: at the end of a closed queue be content with what is left, if anything is.

        Raises:
            InvalidArgumentError: the queue does not know the shapes of its components.
        """
        if self.shapes is None:
            raise InvalidArgumentError(
                f"{self.kind}'s DequeueMany and DequeueUpTo require the components to have specified shapes."
            )
        if count == 0:
            done(self._join([]))
            return

        def run(attempt: Attempt) -> Progress:
            size = self._count()
            if self._closed and size < attempt.remaining:
                self._give_back(attempt)
                if allow_small_batch and self._count():
                    attempt.remaining = self._count()
                elif allow_small_batch and self._enqueues:
                    return Progress.SOME  # those still waiting to put something in come first
                else:
                    attempt.result = self._insufficient(attempt.remaining, size)
                    return Progress.COMPLETE
            result = Progress.NONE
            while self._available_for_batch(attempt.remaining) > 0:
                result = Progress.SOME
                attempt.taken.append(self._take())
                attempt.remaining -= 1
                if not attempt.remaining:
                    attempt.result = self._join(attempt.taken)
                    return Progress.COMPLETE
            return result

        self._wait(self._dequeues, Attempt(run, done, count), cancellation, "Dequeue")

    def close(self, cancel_pending_enqueues: bool, done: Done) -> None:
        """Let nothing more in. Enqueues that wait come first, unless they are cancelled."""
        if not cancel_pending_enqueues:

            def run(attempt: Attempt) -> Progress:
                if self._closed:
                    attempt.result = CancelledError(f"Queue '{self.name}' is already closed.")
                else:
                    self._closed = True
                    attempt.result = []
                return Progress.COMPLETE

            with self._lock:
                self._enqueues.append(Attempt(run, done, 0))
            self._flush()
            return
        cancelled: list[Attempt] = []
        with self._lock:
            self._closed = True
            for attempt in self._enqueues:
                if not attempt.over:
                    attempt.over = True
                    attempt.result = CancelledError("Enqueue operation was cancelled")
                    cancelled.append(attempt)
        for attempt in cancelled:
            attempt.finish()
        self._flush()
        done([])

    def size(self) -> int:
        with self._lock:
            return self._count()

    def is_closed(self) -> bool:
        with self._lock:
            return self._closed

    def __repr__(self) -> str:
        return f"<{self.kind} '{self.name}': {self._count()} of {self.capacity}>"

    # -- waiting -------------------------------------------------------------------------------------------

    def _wait(self, line: deque[Attempt], attempt: Attempt, cancellation: Cancellation, what: str) -> None:
        attempt.cancellation = cancellation
        with self._lock:
            attempt.token = cancellation.register(lambda: self._cancel(attempt, what))
            if attempt.token >= 0:
                line.append(attempt)
        if attempt.token < 0:
            attempt.done(CancelledError(f"{what} operation was cancelled"))
            return
        self._flush()

    def _cancel(self, attempt: Attempt, what: str) -> None:
        with self._lock:
            if attempt.over:
                return
            attempt.over = True
            attempt.result = CancelledError(f"{what} operation was cancelled")
            self._give_back(attempt)
        attempt.finish()
        self._flush()

    def _give_back(self, attempt: Attempt) -> None:
        if attempt.taken:
            self._put_back(attempt.taken)
            attempt.taken = []

    def _flush(self) -> None:
        """Move the waiting attempts on until nothing changes."""
        finished: list[Attempt] = []
        with self._lock:
            while True:
                progress = self._try_line(self._enqueues, finished)
                progress = self._try_line(self._dequeues, finished) or progress
                if not progress:
                    break
        for attempt in finished:
            attempt.finish()

    @staticmethod
    def _try_line(line: deque[Attempt], finished: list[Attempt]) -> bool:
        progressed = False
        while line:
            attempt = line[0]
            if attempt.over:
                line.popleft()
                continue
            try:
                progress = attempt.run(attempt)
            except Exception as error:  # an element that does not fit with the others, or no memory for the batch
                attempt.result, progress = error, Progress.COMPLETE
            if progress is Progress.NONE:
                return progressed
            progressed = True
            if progress is Progress.SOME:
                return True
            attempt.over = True
            finished.append(attempt)
            line.popleft()
        return progressed

    def _is_closed_error(self) -> CancelledError:
        return CancelledError(f"Queue '{self.name}' is closed.")

    def _insufficient(self, requested: int, size: int) -> OutOfRangeError:
        return OutOfRangeError(
            f"{self.kind} '{self.name}' is closed and has insufficient elements "
            f"(requested {requested}, current size {size})"
        )


def _mismatch(component: int, expected: Shape, shape: Sequence[int]) -> InvalidArgumentError:
    return InvalidArgumentError(
        f"Shape mismatch in tuple component {component}. Expected {expected}, got {Shape(shape)}"
    )
