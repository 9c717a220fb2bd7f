# TensorFlow's arguments may be anything, so what they are is for tests to say, not for types.
# pyright: basic
"""Input functions over arrays and data frames: threads feed a queue, batches come out of it."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator
from typing import Any

from toolkit.client.arrays import array_ops
from toolkit.client.construction import context
from toolkit.client.construction.convert import as_dtype
from toolkit.client.construction.scopes import name_scope
from toolkit.client.inputs import queues as client_queues
from toolkit.client.math import math_ops
from toolkit.client.summaries import summary
from toolkit.errors import CancelledError, OutOfRangeError
from toolkit.graph import dtypes
from toolkit.graph.metagraph import GraphKeys
from toolkit.runtime.training.queue_runner import QueueRunner as RuntimeQueueRunner
from toolkit.tensorflow.families.data import queues

_TARGET = "__target_key__"


def numpy_input_fn(
    x: Any, y: Any = None, batch_size: Any = 128, num_epochs: Any = 1, shuffle: Any = None,
    queue_capacity: Any = 1000, num_threads: Any = 1,
) -> Callable[[], Any]:  # fmt: skip
    """A function that makes batches of arrays.

    Args:
        x: an array, or arrays by name.
        y: targets: an array, arrays by name, or None.
        num_epochs: how often all examples come; None: for ever.

    Raises:
        ValueError: it is not said whether to shuffle; when called, arrays are empty or of different lengths.
        TypeError: when called, x is neither.
    """
    if not isinstance(shuffle, bool):
        raise ValueError(f"shuffle must be True or False; got {shuffle!r}")

    def input_fn() -> Any:
        columns = _columns(x)
        keys = list(columns)
        targets: Any = None
        if isinstance(y, dict):
            if not y:
                raise ValueError("y is an empty dict; give None where there are no targets")
            both = sorted(set(columns) & set(y))
            if both:
                raise ValueError(f"x and y both have {', '.join(both)}")
            targets = sorted(y)
            columns |= {key: y[key] for key in targets}
        elif y is not None:
            targets = _unused(columns)
            columns[targets] = y
        lengths = {key: value.shape[0] for key, value in columns.items()}
        if len(set(lengths.values())) != 1:
            raise ValueError(f"arrays of x and y must be of one length; they are: {lengths}")
        queue = enqueued(columns, queue_capacity, shuffle, num_threads, batch_size, num_epochs)
        take = queue.dequeue_many if num_epochs is None else queue.dequeue_up_to
        _, *batch = take(batch_size)
        features: Any = dict(zip(keys, batch, strict=False)) if isinstance(x, dict) else batch[0]
        if targets is None:
            return features
        if isinstance(targets, str):
            return features, batch[-1]
        return features, dict(zip(targets, batch[len(keys) :], strict=True))

    return input_fn


def pandas_input_fn(
    x: Any, y: Any = None, batch_size: Any = 128, num_epochs: Any = 1, shuffle: Any = None,
    queue_capacity: Any = 1000, num_threads: Any = 1, target_column: Any = "target",
) -> Callable[[], Any]:  # fmt: skip
    """A function that makes batches of the columns of a pandas DataFrame.

    Raises:
        ValueError: it is not said whether to shuffle, y has other rows than x, or a column has the target's name.
        TypeError: the target's name is no text.
    """
    if not isinstance(shuffle, bool):
        raise ValueError(f"shuffle must be True or False; got {shuffle!r}")
    if not isinstance(target_column, str):
        raise TypeError(f"target_column must be a text; got {target_column!r}")
    frame = x.copy()
    if y is not None:
        if target_column in frame:
            raise ValueError(f"x has a column '{target_column}'; give another target_column")
        if not (len(frame.index) == len(y.index) and (frame.index == y.index).all()):
            raise ValueError("x and y must have the same rows in the same order")
        targets = y if getattr(y, "ndim", 1) == 2 else None
        if targets is None:
            frame[target_column] = y
        else:
            for name in targets.columns:
                frame[name] = targets[name]

    def input_fn() -> Any:
        columns = {name: frame[name].to_numpy() for name in frame.columns}
        queue = enqueued(
            columns, queue_capacity, shuffle, num_threads, batch_size, num_epochs, index=frame.index.to_numpy()
        )
        take = queue.dequeue_many if num_epochs is None else queue.dequeue_up_to
        _, *batch = take(batch_size)
        features = dict(zip(columns, batch, strict=True))
        if y is None:
            return features
        if getattr(y, "ndim", 1) == 2:
            return features, {name: features.pop(name) for name in y.columns}
        return features, features.pop(target_column)

    return input_fn


def _columns(x: Any) -> dict[str, Any]:
    import numpy as np

    if isinstance(x, dict):
        if not x:
            raise ValueError("x is an empty dict")
        return {key: x[key] for key in sorted(x)}
    if isinstance(x, np.ndarray):
        if x.size == 0:
            raise ValueError("x is an empty array")
        return {"__direct_np_input__": x}
    raise TypeError(f"x must be an array, or arrays by name; got {type(x).__name__}")


def _unused(columns: dict[str, Any]) -> str:
    key = _TARGET
    while key in columns:
        key += "_n"
    return key


def enqueued(
    columns: dict[str, Any], capacity: int, shuffle: bool, num_threads: int, enqueue_size: int, num_epochs: int | None,
    index: Any = None,
) -> Any:  # fmt: skip
    """A queue of rows, their numbers first, that threads of a queue runner fill."""
    with name_scope("enqueue_input"):
        number = dtypes.int64 if index is None else as_dtype(index.dtype)
        kinds = [number, *(as_dtype(column.dtype) for column in columns.values())]
        shapes = [(), *(column.shape[1:] for column in columns.values())]
        least = int(capacity / 4) if shuffle else 0
        if shuffle:
            queue: Any = client_queues.RandomShuffleQueue(capacity, least, kinds, shapes)
        else:
            queue = client_queues.FIFOQueue(capacity, kinds, shapes)
        feeds: dict[str, Callable[[], dict[Any, Any]]] = {}
        enqueues: list[Any] = []
        for _ in range(num_threads):
            inputs = [array_ops.placeholder(kind) for kind in kinds]
            enqueue = queue.enqueue_many(inputs)
            enqueues.append(enqueue)
            rows = _rows(len(next(iter(columns.values()))), enqueue_size, num_epochs, shuffle)
            feeds[enqueue.name] = _feeding(rows, inputs, [*columns.values()], index)
        runner = FeedingQueueRunner(queue, enqueues, feeds)
        context.get_default_graph().add_to_collection(GraphKeys.QUEUE_RUNNERS, runner)
        waiting = math_ops.maximum(0, queue.size() - least)
        share = math_ops.cast(waiting, dtypes.float32) * (1.0 / (capacity - least))
        summary.scalar(f"queue/{queue.name}fraction_over_{least}_of_{capacity - least}_full", share)
        return queue


def _rows(count: int, size: int, epochs: int | None, random_start: bool) -> Iterator[list[int]]:
    """The numbers of the rows of one batch after another; at the end of the last epoch a shorter one."""
    at = random.randrange(count) if random_start else 0
    left = None if epochs is None else epochs * count
    while left is None or left > 0:
        taken = size if left is None else min(size, left)
        yield [(at + step) % count for step in range(taken)]
        at = (at + taken) % count
        left = None if left is None else left - taken


def _feeding(
    rows: Iterator[list[int]], inputs: list[Any], columns: list[Any], index: Any
) -> Callable[[], dict[Any, Any]]:
    def feed() -> dict[Any, Any]:
        chosen = next(rows, None)
        if chosen is None:
            raise OutOfRangeError("all epochs have been fed")
        numbers = chosen if index is None else index[chosen]
        return dict(zip(inputs, [numbers, *(column[chosen] for column in columns)], strict=True))

    return feed


class FeedingQueueRunner(RuntimeQueueRunner):
    """A queue runner whose threads feed what they enqueue; it lives in this process, so no file holds it."""

    in_process_only = True

    def __init__(self, queue: Any, enqueue_ops: list[Any], feeds: dict[str, Callable[[], dict[Any, Any]]]):
        plain = queues.QueueRunner(queue, enqueue_ops, queue_closed_exception_types=(OutOfRangeError, CancelledError))
        proto = plain.to_proto()
        super().__init__(
            proto.queue_name, list(proto.enqueue_op_name), proto.close_op_name, proto.cancel_op_name,
            (OutOfRangeError, CancelledError),
        )  # fmt: skip
        self.queue = queue
        self._feeds = feeds

    @property
    def name(self) -> str:
        return self.queue_name

    def enqueuing(self, session: Any, enqueue_op: str) -> Callable[[], Any]:
        feed = self._feeds[enqueue_op]
        op = session.graph.get_operation_by_name(enqueue_op)
        return lambda: session.run(op, feed())
