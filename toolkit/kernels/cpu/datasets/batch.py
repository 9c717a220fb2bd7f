"""Datasets that join elements: batches, padded batches, windows."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from toolkit.errors import DataLossError, InvalidArgumentError
from toolkit.graph.dtypes import DType
from toolkit.kernels.cpu.common import flag, integer, require, require_scalar, require_vector, shape_text
from toolkit.kernels.datasets.base import Dataset, Element, Next, Run, a_dataset
from toolkit.kernels.datasets.options import kernel, simple
from toolkit.kernels.queues.elements import is_array, own
from toolkit.kernels.registry import Compute, KernelNode
from toolkit.kernels.types import Array


def batched(source: Dataset, size: int, drop_remainder: bool, join: Callable[[list[Element]], Element]) -> Dataset:
    """Groups of `size` elements; the last may be smaller unless it is dropped."""
    require(size > 0, "Batch size must be greater than zero.")

    def start(run: Run) -> Next:
        current = source.start(run)
        over = False

        def following() -> Element | None:
            nonlocal over
            elements: list[Element] = []
            while not over and len(elements) < size:
                element = current()
                if element is None:
                    over = True
                else:
                    elements.append(element)
            if not elements or (drop_remainder and len(elements) < size):
                return None
            return join(elements)

        return following

    count = source.cardinality
    if count >= 0:
        count = count // size if drop_remainder else -(-count // size)
    return Dataset(start, count)


def stack_elements(elements: Sequence[Element]) -> Element:
    """The components of several elements as batches.

    Raises:
        InvalidArgumentError: their shapes differ.
    """
    joined: Element = []
    for i, first in enumerate(elements[0]):
        parts = [element[i] for element in elements]
        if not is_array(first):
            out = np.empty(len(parts), object)
            out[:] = parts
            joined.append(out)
            continue
        for k, part in enumerate(parts):
            if np.shape(part) != np.shape(first):
                raise InvalidArgumentError(
                    f"Cannot batch tensors with different shapes in component {i}. First element had shape "
                    f"{shape_text(first)} and element {k} had shape {shape_text(part)}."
                )
        joined.append(np.stack(parts))
    return joined


@simple("BatchDataset", "BatchDatasetV2", "ParallelBatchDataset")
def batch_dataset(dataset: Any, batch_size: Array, *settings: Array) -> Dataset:
    """The last setting, if there is one, says whether a remainder is dropped; the other is a degree of parallelism."""
    require_scalar(batch_size, "batch_size")
    drop = flag(settings[-1], "drop_remainder") if settings else False
    return batched(a_dataset(dataset), integer(batch_size, "batch_size"), drop, stack_elements)


@kernel("PaddedBatchDataset", "PaddedBatchDatasetV2")
def padded_batch_dataset(op: KernelNode) -> Compute:
    types: list[DType] = op.attr("Toutput_types")
    count = len(types)
    has_drop = op.op.endswith("V2")

    def compute(dataset: Any, batch_size: Array, *rest: Array) -> Dataset:
        source = a_dataset(dataset)
        for shape in rest[:count]:
            require_vector(shape, "padded_shapes")
        shapes = [[int(d) for d in shape] for shape in rest[:count]]
        values = [own(v) for v in rest[count : 2 * count]]
        for value in values:
            require(np.ndim(value) == 0, f"All padding values must be scalars, got shape {shape_text(value)}")
        for shape in shapes:
            require(all(d >= -1 for d in shape), f"Invalid padded shape {shape}: dimensions must be >= -1")

        def join(elements: list[Element]) -> Element:
            return [
                _padded([element[i] for element in elements], shapes[i], values[i], i) for i in range(len(elements[0]))
            ]

        return batched(source, integer(batch_size, "batch_size"), has_drop and flag(rest[-1], "drop_remainder"), join)

    return compute


def _padded(parts: Sequence[Array], shape: Sequence[int], value: Array, component: int) -> Array:
    for part in parts:
        if np.ndim(part) != len(shape):
            raise InvalidArgumentError(
                f"All elements in a batch must have the same rank as the padded shape for component {component}: "
                f"expected rank {len(shape)} but got element with rank {np.ndim(part)}"
            )
    sizes = [max(np.shape(p)[axis] for p in parts) if d == -1 else d for axis, d in enumerate(shape)]
    out = np.empty((len(parts), *sizes), np.asarray(parts[0]).dtype)
    out[...] = value[()]
    for i, part in enumerate(parts):
        if any(have > want for have, want in zip(np.shape(part), sizes, strict=True)):
            raise DataLossError(
                f"Attempted to pad to a smaller size than the input element: {shape_text(part)} to {sizes}."
            )
        out[(i, *(slice(d) for d in np.shape(part)))] = part[()]
    return out


@simple("WindowDataset")
def window_dataset(dataset: Any, size: Array, shift: Array, stride: Array, drop_remainder: Array) -> Dataset:
    """Windows over the elements; a window is one dataset per component."""
    source, drop = a_dataset(dataset), flag(drop_remainder, "drop_remainder")
    width, step, gap = integer(size, "size"), integer(shift, "shift"), integer(stride, "stride")
    require(width > 0, f"Window size must be greater than zero, but got {width}.")
    require(step > 0, f"Window shift must be greater than zero, but got {step}.")
    require(gap > 0, f"Window stride must be greater than zero, but got {gap}.")
    span = (width - 1) * gap + 1

    def start(run: Run) -> Next:
        current = source.start(run)
        buffer: deque[Element] = deque()
        to_skip = 0
        over = False

        def following() -> Element | None:
            nonlocal over, to_skip
            while not over and (to_skip or len(buffer) < span):
                element = current()
                if element is None:
                    over = True
                elif to_skip:
                    to_skip -= 1
                else:
                    buffer.append(element)
            if not buffer or (drop and len(buffer) < span):
                return None
            window = list(buffer)[:span:gap]
            for _ in range(min(step, len(buffer))):
                buffer.popleft()
            to_skip = max(0, step - span)
            return [_component(window, i) for i in range(len(window[0]))]

        return following

    count = source.cardinality
    if count >= 0:
        count = max(0, -(-(count - span + 1) // step)) if drop else -(-count // step)
    return Dataset(start, count)


def _component(window: Sequence[Element], index: int) -> Dataset:
    def start(run: Run) -> Next:
        rows = iter(window)

        def following() -> Element | None:
            row = next(rows, None)
            return None if row is None else [row[index]]

        return following

    return Dataset(start, len(window))
