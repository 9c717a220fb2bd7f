"""Datasets made of other datasets without a user's function."""

from __future__ import annotations

import time
from dataclasses import dataclass
from typing import Any

import numpy as np

from toolkit.errors import InvalidArgumentError, OpError
from toolkit.kernels.context import StepContext
from toolkit.kernels.cpu.common import integer, require
from toolkit.kernels.datasets.base import INFINITE, UNKNOWN, Dataset, Element, Next, Run, a_dataset, empty
from toolkit.kernels.datasets.options import kernel, simple
from toolkit.kernels.queues.elements import own_row
from toolkit.kernels.random.philox import WordStream
from toolkit.kernels.registry import Compute, KernelNode, Kind
from toolkit.kernels.types import Array


@simple(
    "OptionsDataset", "ModelDataset", "OptimizeDataset", "OptimizeDatasetV2", "PrefetchDataset", "FinalizeDataset",
    "AssertNextDataset", "ExperimentalAssertNextDataset", "AssertPrevDataset", "MaxIntraOpParallelismDataset",
    "ExperimentalMaxIntraOpParallelismDataset", "PrivateThreadPoolDataset", "ExperimentalPrivateThreadPoolDataset",
    "RewriteDataset", "NonSerializableDataset", "ExperimentalNonSerializableDataset", "BytesProducedStatsDataset",
    "ExperimentalBytesProducedStatsDataset", "LatencyStatsDataset", "ExperimentalLatencyStatsDataset",
)  # fmt: skip
def same_elements(dataset: Any, *settings: Any) -> Dataset:
    """Advice on how to compute elements; the elements are those of the input."""
    return a_dataset(dataset)


@dataclass(frozen=True)
class Wrapped:
    """A dataset in a variant of its own, which is none before it is taken out."""

    dataset: Dataset


@simple("WrapDatasetVariant")
def wrap(dataset: Any) -> Wrapped:
    return Wrapped(a_dataset(dataset))


@simple("UnwrapDatasetVariant")
def unwrap(wrapped: Any) -> Dataset:
    require(isinstance(wrapped, Wrapped), "the variant holds no wrapped dataset")
    return wrapped.dataset


@simple("RepeatDataset")
def repeat_dataset(dataset: Any, count: Array) -> Dataset:
    """The elements `count` times over; negative: for ever, which an empty dataset is not."""
    source, times = a_dataset(dataset), integer(count, "count")

    def start(run: Run) -> Next:
        epoch = 0
        current: Next | None = None
        had_element = False

        def following() -> Element | None:
            nonlocal epoch, current, had_element
            while times < 0 or epoch < times:
                if current is None:
                    run.go_on()  # an epoch may be empty, each of a great many
                    current, had_element = source.start(run), False
                element = current()
                if element is not None:
                    had_element = True
                    return element
                if times < 0 and not had_element:
                    return None
                epoch += 1
                current = None
            return None

        return following

    size = source.cardinality
    if times < 0:
        return Dataset(start, 0 if size == 0 else INFINITE)
    return Dataset(start, 0 if times == 0 else size * times if size >= 0 else size)


@simple("TakeDataset")
def take_dataset(dataset: Any, count: Array) -> Dataset:
    source, limit = a_dataset(dataset), integer(count, "count")
    if limit < 0:
        return source

    def start(run: Run) -> Next:
        current = source.start(run)
        taken = 0

        def following() -> Element | None:
            nonlocal taken
            if taken >= limit:
                return None
            taken += 1
            element = current()
            if element is None:
                taken = limit
            return element

        return following

    size = source.cardinality
    return Dataset(
        start, UNKNOWN if size == UNKNOWN and limit else limit if size == INFINITE else min(size, limit) if limit else 0
    )


@simple("SkipDataset")
def skip_dataset(dataset: Any, count: Array) -> Dataset:
    source, skipped = a_dataset(dataset), integer(count, "count")
    if skipped < 0:
        return Dataset(empty, 0)

    def start(run: Run) -> Next:
        current = source.start(run)
        left = skipped

        def following() -> Element | None:
            nonlocal left
            while left:
                left -= 1
                if current() is None:
                    left = 0
                    return None
            return current()

        return following

    size = source.cardinality
    return Dataset(start, max(0, size - skipped) if size >= 0 else size)


@simple("ShardDataset")
def shard_dataset(dataset: Any, num_shards: Array, index: Array) -> Dataset:
    """Every `num_shards`-th element, from number `index` on."""
    source, shards, mine = a_dataset(dataset), integer(num_shards, "num_shards"), integer(index, "index")
    require(shards > 0, f"Number of shards must be greater than zero (currently num_shards = {shards}).")
    require(0 <= mine < shards, f"Index must be between 0 and {shards - 1} (currently index = {mine}).")

    def start(run: Run) -> Next:
        current = source.start(run)
        position = -1

        def following() -> Element | None:
            nonlocal position
            while True:
                element = current()
                if element is None:
                    return None
                position += 1
                if position % shards == mine:
                    return element

        return following

    size = source.cardinality
    return Dataset(start, size // shards + (mine < size % shards) if size >= 0 else size)


@simple("ZipDataset")
def zip_dataset(*datasets: Any) -> Dataset:
    """Elements side by side, until one of the datasets ends."""
    sources = [a_dataset(d) for d in datasets]

    def start(run: Run) -> Next:
        currents = [source.start(run) for source in sources]
        over = not currents

        def following() -> Element | None:
            nonlocal over
            joined: Element = []
            for current in currents if not over else ():
                element = current()
                if element is None:
                    over = True
                    break
                joined += element
            return None if over else joined

        return following

    sizes = [source.cardinality for source in sources]
    if UNKNOWN in sizes:
        return Dataset(start, 0 if 0 in sizes else UNKNOWN)
    return Dataset(start, min((s for s in sizes if s >= 0), default=INFINITE))


@simple("ConcatenateDataset")
def concatenate_dataset(first: Any, second: Any) -> Dataset:
    sources = [a_dataset(first), a_dataset(second)]

    def start(run: Run) -> Next:
        position = 0
        current = sources[0].start(run)

        def following() -> Element | None:
            nonlocal position, current
            while True:
                element = current()
                if element is not None or position == 1:
                    return element
                position = 1
                current = sources[1].start(run)

        return following

    sizes = [source.cardinality for source in sources]
    total = INFINITE if INFINITE in sizes else UNKNOWN if UNKNOWN in sizes else sum(sizes)
    return Dataset(start, total)


@kernel("DirectedInterleaveDataset", "ExperimentalDirectedInterleaveDataset")
def directed_interleave_dataset(op: KernelNode) -> Compute:
    """Elements of several datasets in the order that a dataset of numbers says."""
    stop_on_empty: bool = op.attr("stop_on_empty_dataset", False)

    def compute(selector: Any, *datasets: Any) -> Dataset:
        chooser, sources = a_dataset(selector), [a_dataset(d) for d in datasets]

        def start(run: Run) -> Next:
            choose = chooser.start(run)
            currents: list[Next | None] = [source.start(run) for source in sources]

            def following() -> Element | None:
                while any(current is not None for current in currents):
                    choice = choose()
                    if choice is None:
                        return None
                    index = int(choice[0])
                    require(0 <= index < len(currents), f"Selector index out of range: {index} >= {len(currents)}")
                    current = currents[index]
                    if current is None:
                        continue
                    element = current()
                    if element is not None:
                        return element
                    currents[index] = None
                    if stop_on_empty:
                        currents[:] = [None] * len(currents)
                return None

            return following

        return Dataset(start, INFINITE if any(source.cardinality == INFINITE for source in sources) else UNKNOWN)

    return compute


@simple("UnbatchDataset", "ExperimentalUnbatchDataset")
def unbatch_dataset(dataset: Any) -> Dataset:
    """The rows of the elements."""
    source = a_dataset(dataset)

    def start(run: Run) -> Next:
        current = source.start(run)
        batch: Element = []
        position = size = 0

        def following() -> Element | None:
            nonlocal batch, position, size
            while position >= size:
                element = current()
                if element is None:
                    return None
                for c in element:
                    require(np.ndim(c) > 0, "Input element must have a non-scalar value in each component.")
                size = len(element[0])
                for c in element:
                    require(
                        len(c) == size,
                        f"Input element must have the same batch size in each component. Component 0 had size {size} "
                        f"but component {len(c)} had another.",
                    )
                batch, position = element, 0
            position += 1
            return [own_row(c, position - 1) for c in batch]

        return following

    return Dataset(start)


@simple("UniqueDataset", "ExperimentalUniqueDataset")
def unique_dataset(dataset: Any) -> Dataset:
    """Every element when it comes for the first time."""
    source = a_dataset(dataset)

    def start(run: Run) -> Next:
        current = source.start(run)
        seen: set[Any] = set()

        def following() -> Element | None:
            while True:
                element = current()
                if element is None:
                    return None
                array: Array = np.asarray(element[0])
                key = (array.shape, tuple(array.ravel().tolist()) if array.dtype == object else array.tobytes())
                if key not in seen:
                    seen.add(key)
                    return element

        return following

    return Dataset(start)


@simple("IgnoreErrorsDataset", "ExperimentalIgnoreErrorsDataset")
def ignore_errors_dataset(dataset: Any) -> Dataset:
    """The elements that could be computed; the others are left out."""
    source = a_dataset(dataset)

    def start(run: Run) -> Next:
        current = source.start(run)

        def following() -> Element | None:
            while True:
                try:
                    return current()
                except OpError as error:
                    if run.step.cancellation.is_cancelled:
                        raise error from None

        return following

    return Dataset(start)


@simple("AssertCardinalityDataset")
def assert_cardinality_dataset(dataset: Any, cardinality: Array) -> Dataset:
    """The same elements; an error when there turn out to be more or fewer."""
    from toolkit.errors import FailedPreconditionError

    source, wanted = a_dataset(dataset), integer(cardinality, "cardinality")
    text = "an infinite number of elements" if wanted == INFINITE else f"{wanted} elements"

    def start(run: Run) -> Next:
        current = source.start(run)
        count = 0

        def following() -> Element | None:
            nonlocal count
            element = current()
            if element is not None:
                count += 1
            if element is None and count != wanted and wanted != UNKNOWN:
                raise FailedPreconditionError(
                    f"Input dataset was expected to contain {text} but contained only {count} elements."
                )
            if element is not None and 0 <= wanted < count:
                raise FailedPreconditionError(
                    f"Input dataset was expected to contain {text} but contained at least {count} elements."
                )
            return element

        return following

    return Dataset(start, wanted)


@simple("SleepDataset", "ExperimentalSleepDataset")
def sleep_dataset(dataset: Any, microseconds: Array) -> Dataset:
    source, pause = a_dataset(dataset), integer(microseconds, "microseconds") / 1e6

    def start(run: Run) -> Next:
        current = source.start(run)

        def following() -> Element | None:
            time.sleep(pause)
            return current()

        return following

    return Dataset(start, source.cardinality)


@simple("SamplingDataset")
def sampling_dataset(dataset: Any, rate: Array, seed: Array, seed2: Array) -> Dataset:
    """Each element with the given probability."""
    source, chance = a_dataset(dataset), np.float32(rate)

    def start(run: Run) -> Next:
        current, random = source.start(run), WordStream.seeded(integer(seed, "seed"), integer(seed2, "seed2"))

        def following() -> Element | None:
            while True:
                element = current()
                # The upper 23 bits are the fraction of a float in [1, 2).
                if element is None or np.float32((random.next() & 0x7FFFFF) / 2**23) < chance:
                    return element

        return following

    return Dataset(start)


# -- looking at datasets ---------------------------------------------------------------------------------


@simple("DatasetCardinality", "ExperimentalDatasetCardinality")
def dataset_cardinality(dataset: Any) -> Array:
    return np.int64(a_dataset(dataset).cardinality)


@kernel("DatasetToSingleElement", kind=Kind.STATEFUL)
def dataset_to_single_element(op: KernelNode) -> Compute:
    """The only element.

    Raises:
        InvalidArgumentError: there is none, or there are more.
    """

    def compute(step: StepContext, dataset: Any) -> Element:
        following = a_dataset(dataset).start(Run(step))
        element = following()
        if element is None:
            raise InvalidArgumentError("Dataset was empty.")
        if following() is not None:
            raise InvalidArgumentError("Dataset had more than one element.")
        return element

    return compute
