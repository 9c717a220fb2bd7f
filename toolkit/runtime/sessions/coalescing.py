"""Requests of many threads run together: `Session.batched`.

What is asked while a step runs is put together for the next one, so nobody waits for company while the machine is idle,
and a batch grows with the load. Batches have few sizes, for there is a plan for each: the last example is repeated up
to the next size, and what comes of it is dropped.

The graph must compute each example by itself. That the results have a row for each example is made sure of; that a
row depends on its own example alone is not known here.
"""

# numpy's overloads answer arrays typed Any with Unknown
# pyright: reportUnknownVariableType=false, reportUnknownMemberType=false, reportUnknownArgumentType=false

from __future__ import annotations

import itertools
import threading
import time
from collections import deque
from collections.abc import Callable, Sequence
from concurrent.futures import CancelledError as FutureCancelledError
from concurrent.futures import Future
from typing import Any

import numpy as np

from toolkit.errors import (
    ArgumentTypeError,
    ArgumentValueError,
    CancelledError,
    ClosedError,
    DeadlineExceededError,
    InvalidArgumentError,
    ResourceExhaustedError,
    UsageError,
)
from toolkit.forks import renew_in_children
from toolkit.graph.node import Output
from toolkit.kernels.types import Array
from toolkit.runtime.sessions.feeds import placeholder_shape
from toolkit.runtime.sessions.fetches import Fetches
from toolkit.runtime.sessions.prepared import Feeds

#: seconds without a request after which the thread ends; the next request starts another
IDLE = 10.0

#: of arrays, in the order of the feeds, the values of the distinct fetches
Step = Callable[..., list[Any]]


class CoalescedRequest:
    """What one caller wants.

    Attributes:
        arrays: of each feed, with as many rows as there are examples.
        kind: what arrays must share to be put together: types, and shapes but for the first size.
    """

    __slots__ = ("arrays", "count", "future", "kind", "since")

    def __init__(self, arrays: list[Array], count: int):
        self.arrays = arrays
        self.count = count
        self.kind = tuple((array.shape[1:], array.dtype) for array in arrays)
        self.future: Future[list[Any]] = Future()
        self.since = time.monotonic()


class Coalescer:
    """A function of the feeds, for many threads: what they ask at the same time runs as one step.

    Args:
        step: runs a batch.
        feeds: the tensors that are fed.
        wanted: what is fetched.
        most: examples of a batch; a request with more is one by itself.
        wait_ms: how long a request waits for others although nothing runs.
        casts: see `toolkit.runtime.sessions.feeds.feed_array`.

    Raises:
        UsageError: a feed cannot be a batch, or something is fetched that is no tensor.
    """

    def __init__(
        self,
        step: Step,
        feeds: Sequence[Output],
        wanted: Fetches,
        *,
        most: int = 16,
        wait_ms: float = 0.0,
        casts: bool = False,
    ):
        if most < 1:
            raise ArgumentValueError(f"a batch cannot have {most} examples; expected 1 or more")
        if not 0 <= wait_ms < float("inf"):
            raise ArgumentValueError(f"a request cannot wait {wait_ms} ms for others; expected 0 or more")
        _check_batches(feeds, wanted)
        self._step, self._feeds, self._wanted, self._most = step, list(feeds), wanted, most
        self._convert = Feeds(feeds, casts).arrays
        self._wait = wait_ms / 1000
        self._queue: deque[CoalescedRequest] = deque()
        self._changed = threading.Condition()
        self._thread: threading.Thread | None = None
        self._closed = False
        renew_in_children(self)

    def renew(self) -> None:
        """See `Renewed.renew`; requests of the parent's callers stay the parent's."""
        self._queue.clear()
        self._changed, self._thread = threading.Condition(), None

    def __call__(self, *values: Any, timeout_ms: int | None = None) -> Any:
        """What is fetched for these examples; returns when it is there.

        Args:
            values: of each feed, examples along the first axis.
            timeout_ms: how long to wait.

        Raises:
            UsageError: the values do not fit, or are no batch.
            DeadlineExceededError: it took longer; others in the same batch get their results.
            CancelledError: the session, or this, was closed.
            OpError: the step failed for these examples, whatever others were in the batch.
        """
        future = self.submit(*values)
        try:
            return future.result(None if timeout_ms is None else min(timeout_ms / 1000, threading.TIMEOUT_MAX))
        except TimeoutError:
            if future.done() and not future.cancelled():  # this very moment, or it is the step's own error
                return future.result()
            future.cancel()
            raise DeadlineExceededError(f"the step took longer than {timeout_ms} ms") from None
        except FutureCancelledError:
            raise CancelledError("the request was cancelled before its step had begun") from None
        except BaseException:
            future.cancel()  # who was interrupted waits for nothing any more
            raise

    def submit(self, *values: Any) -> Future[Any]:
        """The same, without waiting. `cancel` of the future takes the request back; a step that has begun goes on.

        Raises:
            UsageError: the values do not fit, or are no batch.
            ResourceExhaustedError: the system has no room for the thread that runs steps.
        """
        request = self._request(values)
        result: Future[Any] = Future()

        def tell(done: Future[list[Any]]) -> None:
            if done.cancelled() or not result.set_running_or_notify_cancel():
                return
            error = done.exception()
            if error is not None:
                result.set_exception(error)
            else:
                result.set_result(self._wanted.build(done.result()))

        def taken_back(_: Future[Any]) -> None:
            if result.cancelled():
                request.future.cancel()

        result.add_done_callback(taken_back)
        request.future.add_done_callback(tell)
        with self._changed:
            if self._closed:
                raise ClosedError("the batched session is closed")
            if self._thread is None:
                thread = threading.Thread(target=self._serve, name="graphmill-batches", daemon=True)
                try:
                    thread.start()
                except (RuntimeError, MemoryError) as error:
                    told = f"batched requests need a thread, and there is none: {error}"
                    raise ResourceExhaustedError(told) from error
                self._thread = thread
            self._queue.append(request)
            self._changed.notify()
        return result

    def hurry(self) -> None:
        """Have the oldest request that waits wait no longer for others (`wait_ms`): no more of them will come soon."""
        with self._changed:
            if self._queue:
                self._queue[0].since = -float("inf")
                self._changed.notify()

    def close(self) -> None:
        """Take no more requests; those whose step has not begun end with CancelledError. Closing twice is fine."""
        with self._changed:
            self._closed = True
            left = list(self._queue)
            self._queue.clear()
            self._changed.notify()
        for request in left:
            if request.future.set_running_or_notify_cancel():
                request.future.set_exception(CancelledError("the batched session was closed"))

    def __enter__(self) -> Coalescer:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _request(self, values: Sequence[Any]) -> CoalescedRequest:
        if len(values) != len(self._feeds):
            raise UsageError(f"this callable takes {len(self._feeds)} value(s), not {len(values)}")
        arrays = self._convert(values)
        for feed, array in zip(self._feeds, arrays, strict=True):
            if not array.ndim or not len(array):
                raise ArgumentValueError(
                    f"'{feed.name}' is fed a value of shape {list(array.shape)}: no examples along a first axis"
                )
        counts = {len(array) for array in arrays}
        if len(counts) > 1:
            told = ", ".join(f"{len(a)} for '{feed.name}'" for feed, a in zip(self._feeds, arrays, strict=True))
            raise ArgumentValueError(f"a request has the same number of examples in every value, not {told}")
        return CoalescedRequest(arrays, counts.pop())

    # -- the thread that runs steps ----------------------------------------------------------------------

    def _serve(self) -> None:
        while (batch := self._next()) is not None:
            self._run(batch)

    def _next(self) -> list[CoalescedRequest] | None:
        """The requests of the next step; None when there is nothing more to do."""
        with self._changed:
            while True:
                while not self._queue:
                    if self._closed or not (self._changed.wait(IDLE) or self._queue):
                        self._thread = None
                        return None
                batch = self._fitting()
                left = self._queue[0].since + self._wait - time.monotonic()
                if left <= 0 or self._closed or sum(request.count for request in batch) >= self._most:
                    break
                self._changed.wait(left)
            for request in batch:
                self._queue.remove(request)
        return [request for request in batch if request.future.set_running_or_notify_cancel()]

    def _fitting(self) -> list[CoalescedRequest]:
        """The first request, and those after it that can be put together with it, in their order."""
        first = self._queue[0]
        batch, count = [first], first.count
        for request in itertools.islice(self._queue, 1, None):
            if count >= self._most:
                break  # of many that wait, only the first are looked at
            if request.kind == first.kind and count + request.count <= self._most and not request.future.cancelled():
                batch.append(request)
                count += request.count
        return batch

    def _run(self, batch: list[CoalescedRequest]) -> None:
        if not batch:
            return
        try:
            results = self._results(batch)
        except BaseException as error:
            if len(batch) == 1 or self._closed:
                for request in batch:
                    request.future.set_exception(error)
                return
            for request in batch:  # whose fault it was is known when each runs by itself
                self._run([request])
            return
        for request, values in zip(batch, results, strict=True):
            request.future.set_result(values)

    def _results(self, batch: list[CoalescedRequest]) -> list[list[Any]]:
        """What each request gets.

        Raises:
            InvalidArgumentError: a result has no row for each example.
            Exception: the step failed.
        """
        count = sum(request.count for request in batch)
        size = self._size(count)
        if len(batch) == 1 and size == count:
            arrays = batch[0].arrays
        else:
            arrays = [_joined([request.arrays[each] for request in batch], size) for each in range(len(self._feeds))]
        values = self._step(*arrays)
        for output, value in zip(self._wanted.outputs, values, strict=True):
            if np.shape(value)[:1] != (size,):
                raise InvalidArgumentError(
                    f"'{output.name}' has the shape {list(np.shape(value))} for {size} examples, no row for each: "
                    "requests that are put together could not be told apart; run them one by one"
                )
        results: list[list[Any]] = []
        start = 0
        for request in batch:
            stop = start + request.count
            # copies, or a small result would keep the whole batch
            results.append([value[start:stop].copy() if request.count < size else value for value in values])
            start = stop
        return results

    def _size(self, count: int) -> int:
        """The size of the batch that so many examples run as: the next power of two, at most `most`."""
        return count if count >= self._most else min(1 << (count - 1).bit_length(), self._most)


def _joined(parts: Sequence[Array], size: int) -> Array:
    """Rows of several arrays, the last one again and again up to `size`."""
    whole = np.empty((size, *parts[0].shape[1:]), parts[0].dtype)
    start = 0
    for part in parts:
        whole[start : start + len(part)] = part
        start += len(part)
    whole[start:] = whole[start - 1]
    return whole


def _check_batches(feeds: Sequence[Output], wanted: Fetches) -> None:
    """Make sure that the tensors can hold any number of examples.

    Raises:
        UsageError: one cannot, or there is none.
    """
    if wanted.targets:
        raise ArgumentTypeError(
            f"'{wanted.targets[0].name}' is an operation, which has no result for each example; "
            "batched requests fetch tensors"
        )
    if not feeds or not wanted.outputs:
        raise UsageError("batched requests need something to feed and something to fetch")
    for feed in feeds:
        if feed.dtype.base.kind in "rv":
            raise ArgumentTypeError(f"'{feed.name}' is {feed.dtype}, of which requests cannot be put together")
        dims = placeholder_shape(feed).dims
        if dims is not None and (not dims or dims[0] is not None):
            fixed = f"{dims[0]} as its first size" if dims else "no axes"
            raise ArgumentValueError(
                f"'{feed.name}' has {fixed}, so requests cannot be put together; export the model with an unknown "
                "first size, or run them one by one"
            )
