"""Datasets that cut batches anew, and those that change nothing but how TensorFlow runs a pipeline."""

from __future__ import annotations

from collections import deque
from typing import Any

import numpy as np

from toolkit.errors import DataLossError, InvalidArgumentError
from toolkit.kernels.cpu.common import flag, integer, require, require_scalar, shape_text
from toolkit.kernels.cpu.datasets.batch import stack_elements
from toolkit.kernels.datasets.base import UNKNOWN, Dataset, Element, Next, Run, a_dataset
from toolkit.kernels.datasets.options import simple
from toolkit.kernels.types import Array


@simple("RebatchDataset", "ExperimentalRebatchDataset")
def rebatch(dataset: Any, num_replicas: Array) -> Dataset:
    """Each batch in as many parts as there are replicas, the last ones smaller."""
    source, parts = a_dataset(dataset), integer(num_replicas, "num_replicas")
    require(parts > 0, "num_replicas must be greater than zero.")

    def start(run: Run) -> Next:
        current = source.start(run)
        waiting: deque[Element] = deque()

        def following() -> Element | None:
            if not waiting:
                element = current()
                if element is None:
                    return None
                count = _rows(element)
                size = -(-count // parts)
                for part in range(parts):
                    low, high = min(part * size, count), min((part + 1) * size, count)
                    waiting.append([component[low:high] for component in element])
            return waiting.popleft()

        return following

    return Dataset(start, UNKNOWN)


def _rows(element: Element) -> int:
    """The size of the batch.

    Raises:
        InvalidArgumentError: a component is a scalar, or their sizes differ.
    """
    for component in element:
        if np.ndim(component) == 0:
            raise InvalidArgumentError(
                "Cannot rebatch dataset: All components must have at least one dimension. Perhaps your input dataset "
                "is not batched?"
            )
    counts = {len(component) for component in element}
    require(len(counts) == 1, "Cannot rebatch dataset: the components' first dimensions differ")
    return counts.pop()


@simple("RebatchDatasetV2")
def rebatch_v2(dataset: Any, batch_sizes: Array, drop_remainder: Array) -> Dataset:
    """The rows of all batches, in batches of these sizes in turn."""
    require(np.ndim(batch_sizes) <= 1, f"batch_sizes must be a scalar or vector, got shape {shape_text(batch_sizes)}")
    source, sizes, drop = (
        a_dataset(dataset),
        np.atleast_1d(batch_sizes).tolist(),
        flag(drop_remainder, "drop_remainder"),
    )
    require(len(sizes) > 0, "batch_sizes must not be empty")

    def start(run: Run) -> Next:
        current = source.start(run)
        held: list[Element] = []
        turn, over = 0, False

        def following() -> Element | None:
            nonlocal turn, over
            size = sizes[turn % len(sizes)]
            while not over and sum(len(e[0]) for e in held) < max(size, 1):
                element = current()
                if element is None:
                    over = True
                elif _rows(element):
                    held.append(element)
            available = sum(len(e[0]) for e in held)
            if not available or (drop and available < size):
                return None
            turn += 1
            joined: Element = [np.concatenate([e[k] for e in held]) for k in range(len(held[0]))]
            held[:] = [[c[size:] for c in joined]] if available > size else []
            return [c[:size] for c in joined]

        return following

    return Dataset(start, UNKNOWN)


@simple("SlidingWindowDataset", "ExperimentalSlidingWindowDataset")
def sliding_window(dataset: Any, window_size: Array, window_shift: Array, window_stride: Array) -> Dataset:
    """Batches of `size` elements, `stride` apart, beginning `shift` after one another; incomplete ones are dropped."""
    source = a_dataset(dataset)
    size, shift = integer(window_size, "window_size"), integer(window_shift, "window_shift")
    stride = integer(window_stride, "window_stride")
    for value, what in ((size, "window_size"), (shift, "window_shift"), (stride, "window_stride")):
        require(value > 0, f"{what} must be greater than zero.")
    span = (size - 1) * stride + 1

    def start(run: Run) -> Next:
        current = source.start(run)
        buffer: deque[Element] = deque()
        skip = 0

        def following() -> Element | None:
            nonlocal skip
            while skip or len(buffer) < span:
                element = current()
                if element is None:
                    return None
                if skip:
                    skip -= 1
                else:
                    buffer.append(element)
            window = [buffer[i] for i in range(0, span, stride)]
            for _ in range(min(shift, len(buffer))):
                buffer.popleft()
            skip = max(0, shift - span)
            return stack_elements(window)

        return following

    count = source.cardinality  # TensorFlow's count does not see that incomplete windows are dropped
    return Dataset(start, -(-count // shift) if count >= 0 else count)


@simple("DenseToSparseBatchDataset", "ExperimentalDenseToSparseBatchDataset")
def dense_to_sparse_batch(dataset: Any, batch_size: Array, row_shape: Array) -> Dataset:
    """Tensors of different shapes joined into sparse tensors of one shape; -1 is the largest size in a batch."""
    source, size = a_dataset(dataset), integer(batch_size, "batch_size")
    require_scalar(batch_size, "batch_size")
    require(size > 0, "Batch size must be greater than zero.")
    wanted: list[int] = np.atleast_1d(row_shape).tolist()

    def start(run: Run) -> Next:
        current = source.start(run)

        def following() -> Element | None:
            rows: list[Array] = []
            while len(rows) < size:
                element = current()
                if element is None:
                    break
                rows.append(np.asarray(element[0]))
            return [_sparse(rows, wanted)] if rows else None

        return following

    count = source.cardinality
    return Dataset(start, -(-count // size) if count >= 0 else count)


def _sparse(rows: list[Array], wanted: list[int]) -> Array:
    """The variant of a sparse tensor with every element of the rows, zeros too."""
    for row in rows:
        require(
            row.ndim == len(wanted),
            f"Input element had shape ({shape_text(row)}) that is incompatible with the row shape.",
        )
        if any(-1 < w < n for n, w in zip(row.shape, wanted, strict=True)):
            raise DataLossError(
                f"Input element had shape {shape_text(row)} that is larger than the row shape {wanted}."
            )
    shape = [max(row.shape[i] for row in rows) if w == -1 else w for i, w in enumerate(wanted)]
    indices = [
        np.concatenate([np.full((row.size, 1), i), np.argwhere(np.ones(row.shape, bool))], 1)
        for i, row in enumerate(rows)
    ]
    out = np.empty(3, object)
    out[:] = [
        np.concatenate(indices).astype(np.int64),
        np.concatenate([row.reshape(-1) for row in rows]),
        np.array([len(rows), *shape], np.int64),
    ]
    return out


@simple("FilterByLastComponentDataset")
def filter_by_last_component(dataset: Any) -> Dataset:
    """The elements whose last component is true, without it."""
    source = a_dataset(dataset)

    def start(run: Run) -> Next:
        current = source.start(run)

        def following() -> Element | None:
            while (element := current()) is not None:
                if bool(element[-1]):
                    return element[:-1]
            return None

        return following

    return Dataset(start, UNKNOWN)


# -- what only changes how a pipeline is run ----------------------------------------------------------------


@simple("ThreadPoolDataset", "ExperimentalThreadPoolDataset", "SetStatsAggregatorDataset",
        "ExperimentalSetStatsAggregatorDataset")  # fmt: skip
def the_same(dataset: Any, *_: Any) -> Dataset:
    return a_dataset(dataset)


@simple("ChooseFastestDataset", "ExperimentalChooseFastestDataset")
def choose_fastest(*datasets: Any) -> Dataset:
    """All are said to have the same elements: the first is as good as any."""
    return a_dataset(datasets[0])
