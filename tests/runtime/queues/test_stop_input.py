"""Input that is stopped before a step has made its queues: who waits for some is told that there is none."""

from __future__ import annotations

import pytest

from toolkit import client as gm
from toolkit.errors import CancelledError, OutOfRangeError
from toolkit.kernels.queues.base import QueueResource
from toolkit.runtime.session import Session
from toolkit.runtime.steps.resources import ResourceManager


class _Made:
    """A resource."""


def test_what_is_made_later_is_told_of_too() -> None:
    resources = ResourceManager()
    first, told = _Made(), list[object]()
    resources.create("", "first", first)
    resources.for_each((_Made,), told.append)
    assert told == [first]
    second = resources.get_or_create("", "second", _Made, _Made)
    resources.create("", "third", "of another kind")
    resources.create("", "fourth", fourth := _Made())
    assert told == [first, second, fourth]


def test_a_queue_that_is_made_by_the_step_is_closed() -> None:
    with gm.Graph().as_default() as graph:
        queue = gm.queues.FIFOQueue(2, [gm.int32], [[]], names=["a"])
        taken = queue.dequeue()
    with Session(graph) as session:
        session.resources.for_each((QueueResource,), lambda made: made.close(True, lambda result: None))
        with pytest.raises((CancelledError, OutOfRangeError), match="closed"):
            session.run(taken)
