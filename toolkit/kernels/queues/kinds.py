"""The kinds of queues beside first-in-first-out: shuffling, padding, by priority."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from toolkit.graph import dtypes
from toolkit.graph.dtypes import DType
from toolkit.graph.shape import SCALAR, Shape
from toolkit.kernels.queues.base import QueueResource
from toolkit.kernels.queues.elements import Element, pad_stack
from toolkit.kernels.random.philox import WordStream


class RandomShuffleQueue(QueueResource):
    """Gives out a random element of those it holds.

    Args:
        min_after_dequeue: this many stay inside until the queue is closed, so that there is something to mix.
        seed, seed2: both zero: another order every time.
    """

    kind = "RandomShuffleQueue"

    def __init__(
        self,
        name: str,
        types: Sequence[DType],
        shapes: Sequence[Shape] | None,
        capacity: int,
        min_after_dequeue: int = 0,
        seed: int = 0,
        seed2: int = 0,
    ):
        super().__init__(name, types, shapes, capacity)
        self.min_after_dequeue = min_after_dequeue
        self.seeds = (seed, seed2)
        self._random = WordStream.seeded(seed, seed2)
        self._bag: list[Element] = []

    def _count(self) -> int:
        return len(self._bag)

    def _put(self, element: Element) -> None:
        self._bag.append(element)

    def _take(self) -> Element:
        index = self._random.next() % len(self._bag)
        last = self._bag.pop()
        if index == len(self._bag):
            return last
        taken, self._bag[index] = self._bag[index], last
        return taken

    def _put_back(self, taken: list[Element]) -> None:
        self._bag.extend(reversed(taken))

    def _available(self) -> int:
        return len(self._bag) - (0 if self._closed else self.min_after_dequeue)


class PaddingFIFOQueue(QueueResource):
    """First in first out; shapes may have unknown sizes, and a batch is padded to its largest element."""

    kind = "PaddingFIFOQueue"

    def _fits(self, expected: Shape, shape: Sequence[int]) -> bool:
        return expected.is_compatible_with(Shape(shape))

    def _join(self, taken: list[Element]) -> list[Any]:
        assert self.shapes is not None
        return [
            pad_stack([element[i] for element in taken], dtype, shape.dims or ())
            for i, (dtype, shape) in enumerate(zip(self.types, self.shapes, strict=True))
        ]


class PriorityQueue(QueueResource):
    """Gives out the element with the lowest number in its first component (a scalar int64).

    Among equals the order is that of a binary heap as the C++ standard library keeps it, which is what
    TensorFlow's order depends on.
    """

    kind = "PriorityQueue"

    def __init__(self, name: str, types: Sequence[DType], shapes: Sequence[Shape] | None, capacity: int):
        super().__init__(name, [dtypes.int64, *types], [SCALAR, *(shapes or ())], capacity)
        self._heap: list[tuple[int, Element]] = []

    def _count(self) -> int:
        return len(self._heap)

    def _put(self, element: Element) -> None:
        item = (int(element[0]), element)
        self._heap.append(item)
        self._sift_up(len(self._heap) - 1, item)

    def _available_for_batch(self, remaining: int) -> int:
        """A batch waits until it can be filled: of what comes in meanwhile, the lowest must go first."""
        return self._count() if self._count() >= remaining else 0

    def _put_back(self, taken: list[Element]) -> None:
        for element in reversed(taken):
            self._put(element)

    def _take(self) -> Element:
        heap = self._heap
        first = heap[0]
        moved = heap.pop()
        size = len(heap)
        if size:
            hole = 0
            while 2 * hole + 2 < size:  # the hole goes down to a leaf along the smaller children
                child = 2 * hole + 2
                if heap[child][0] > heap[child - 1][0]:
                    child -= 1
                heap[hole] = heap[child]
                hole = child
            if 2 * hole + 2 == size:  # one child, the left
                heap[hole] = heap[size - 1]
                hole = size - 1
            self._sift_up(hole, moved)
        return first[1]

    def _sift_up(self, hole: int, item: tuple[int, Element]) -> None:
        heap = self._heap
        while hole > 0 and heap[(hole - 1) // 2][0] > item[0]:
            heap[hole] = heap[(hole - 1) // 2]
            hole = (hole - 1) // 2
        heap[hole] = item
