"""Datasets in random order, with TensorFlow's own choices for the same seeds."""

from __future__ import annotations

from collections import deque
from typing import Any

from toolkit.kernels.context import StepContext
from toolkit.kernels.cpu.common import flag, integer, require, require_scalar
from toolkit.kernels.cpu.datasets.source import seeds_of
from toolkit.kernels.datasets.base import INFINITE, Dataset, Element, Next, Run, a_dataset
from toolkit.kernels.datasets.options import kernel
from toolkit.kernels.datasets.seeds import NoSeedGenerator, SeedGenerator
from toolkit.kernels.random.philox import Philox, WordStream
from toolkit.kernels.registry import Compute, KernelNode, Kind
from toolkit.kernels.resources.handles import ResourceHandle
from toolkit.kernels.types import Array


@kernel("ShuffleDataset", "ShuffleDatasetV2", "ShuffleDatasetV3", kind=Kind.STATEFUL)
def shuffle_dataset(op: KernelNode) -> Compute:
    reshuffle: bool = op.attr("reshuffle_each_iteration", True)
    is_v2 = op.op.endswith("V2")

    def compute(step: StepContext, dataset: Any, buffer_size: Array, *seeding: Any) -> Dataset:
        seed, seed2, generator = (0, 0, seeding[0]) if is_v2 else (*seeding[:2], seeding[2] if seeding[2:] else None)
        return _shuffled(a_dataset(dataset), buffer_size, seeds_of(generator, seed, seed2, reshuffle), 1)

    return compute


@kernel("ShuffleAndRepeatDataset", "ShuffleAndRepeatDatasetV2", kind=Kind.STATEFUL)
def shuffle_and_repeat_dataset(op: KernelNode) -> Compute:
    reshuffle: bool = op.attr("reshuffle_each_iteration", True)

    def compute(
        step: StepContext,
        dataset: Any,
        size: Array,
        seed: Array,
        seed2: Array,
        count: Array,
        generator: Any = None,
    ) -> Dataset:
        seeds = seeds_of(generator, seed, seed2, reshuffle)
        return _shuffled(a_dataset(dataset), size, seeds, integer(count, "count"))

    return compute


def _shuffled(source: Dataset, buffer_size: Array, seeds: SeedGenerator, count: int) -> Dataset:
    """Random elements out of a buffer that is kept full.

    Epochs follow one another in the buffer: elements of the next are there before the last of this one are given
    out, but never given out before them.
    """
    require_scalar(buffer_size, "buffer_size")
    capacity = integer(buffer_size, "buffer_size")
    require(capacity > 0 or capacity == -1, "buffer_size must be greater than zero or UNKNOWN_CARDINALITY")

    def start(run: Run) -> Next:
        random = WordStream(Philox.seeded(*seeds.next()))
        slices: deque[list[Element]] = deque()  # one per epoch under way
        current: Next | None = None
        epoch = 0
        is_first_pull = True
        is_over = False

        def fill() -> None:
            nonlocal current, epoch, is_first_pull, is_over
            while not is_over and (count < 0 or epoch < count):
                if current is None:
                    run.go_on()
                    current = source.start(run)
                    slices.append([])
                    is_first_pull = True
                if 0 <= capacity <= sum(map(len, slices)):
                    return
                element = current()
                if element is None:
                    if is_first_pull and count < 0:
                        is_over = True  # an empty input, even for ever, is empty
                        return
                    epoch += 1
                    current = None
                    if capacity < 0:
                        return
                else:
                    is_first_pull = False
                    slices[-1].append(element)

        def following() -> Element | None:
            nonlocal random
            fill()
            while len(slices) > 1 and not slices[0]:
                slices.popleft()
                random = WordStream(Philox.seeded(*seeds.next()))  # each epoch has seeds of its own
            if not slices or not slices[0]:
                return None
            first = slices[0]
            chosen = random.next() % len(first)
            element, first[chosen] = first[chosen], first[0]
            del first[0]
            return element

        return following

    size = source.cardinality
    if count < 0:
        return Dataset(start, 0 if size == 0 else INFINITE)
    return Dataset(start, size * count if size >= 0 else size)


# -- seed generators -------------------------------------------------------------------------------------


@kernel("AnonymousSeedGenerator", "AnonymousRandomSeedGenerator", kind=Kind.STATEFUL)
def anonymous_seed_generator(op: KernelNode) -> Compute:
    def compute(step: StepContext, seed: Array, seed2: Array, reshuffle: Array | bool = True) -> tuple[Any, Any]:
        generator = SeedGenerator(
            integer(seed, "seed"), integer(seed2, "seed2"), flag(reshuffle, "reshuffle_each_iteration")
        )
        handle = ResourceHandle("", op.name, "SeedGenerator", owned=generator)
        return handle, handle

    return compute


@kernel("DummySeedGenerator", kind=Kind.STATEFUL)
def dummy_seed_generator(op: KernelNode) -> Compute:
    def compute(step: StepContext) -> Any:
        return ResourceHandle("", op.name, "SeedGenerator", owned=NoSeedGenerator())

    return compute
