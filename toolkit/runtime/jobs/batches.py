"""Cutting fed arrays into minibatches."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from typing import Any

import numpy as np

from toolkit.errors import UsageError
from toolkit.graph.node import Output
from toolkit.kernels.types import Array
from toolkit.runtime.sessions.feeds import placeholder_shape


class Batches:
    """Minibatches of several arrays along their first axis, in step.

    Arrays without a first axis are fed whole each time (a learning rate, a dropout rate), and those in `whole`. The
    order of an epoch depends on the seed and the epoch alone, so a run that
    continues at some batch sees what an uninterrupted one would have.

    Args:
        arrays: name to array.
        size: examples per batch; None feeds everything whole.
        shuffle: draw the order anew for each epoch.
        seed: of the shuffling; None draws one.
        epochs: how often to go through the data; None means without end.
        partial: also give out the last, smaller batch of an epoch.
        whole: keys of arrays that are not to be cut.

    Raises:
        UsageError: the batch is larger than the data, there is nothing to cut, or what is to be cut differs in length.
    """

    def __init__(
        self,
        arrays: Mapping[Any, Array],
        size: int | None,
        *,
        shuffle: bool = False,
        seed: int | None = None,
        epochs: int | None = None,
        partial: bool = False,
        whole: Collection[Any] = (),
    ):
        self._arrays = dict(arrays)
        self._size = size
        self._epochs = epochs
        self._shuffle = shuffle
        if seed is None and shuffle:  # NumPy imports its generators when they are asked for
            seed = int(np.random.SeedSequence().generate_state(1)[0])
        self._seed = seed or 0
        self._partial = partial
        self._cut = {key: len(a) for key, a in self._arrays.items() if getattr(a, "ndim", 0) and key not in whole}
        self.num_examples = max(self._cut.values(), default=0)
        if size is not None:
            if not self._cut:
                raise UsageError("--batch needs at least one fed array with a first axis to cut")
            if len(set(self._cut.values())) > 1:
                told = ", ".join(f"{count} of '{getattr(key, 'name', key)}'" for key, count in self._cut.items())
                raise UsageError(
                    f"--batch cuts inputs of equal length, and these have different numbers of rows: {told}"
                )
            if not 1 <= size <= self.num_examples:
                raise UsageError(f"--batch {size} must be between 1 and the {self.num_examples} examples that are fed")

    @property
    def per_epoch(self) -> int:
        """Batches in one pass over the data."""
        if self._size is None:
            return 1
        full, rest = divmod(self.num_examples, self._size)
        return full + (1 if rest and self._partial else 0)

    @property
    def count(self) -> int | None:
        """Batches in all; None where they go on without end."""
        return None if self._epochs is None else self._epochs * self.per_epoch

    def start_at(self, batch: int) -> Iterator[dict[Any, Array]]:
        """The batches from number `batch` (from 0, counted over all epochs); each is a dict like the arrays."""
        epoch, number = divmod(batch, self.per_epoch)
        while self._epochs is None or epoch < self._epochs:
            yield from self._epoch(epoch, number)
            epoch, number = epoch + 1, 0

    def __iter__(self) -> Iterator[dict[Any, Array]]:
        return self.start_at(0)

    def _epoch(self, epoch: int, start: int) -> Iterator[dict[Any, Array]]:
        if self._size is None:
            yield self._arrays
            return
        order = None
        if self._shuffle:
            order = np.random.default_rng([self._seed, epoch]).permutation(self.num_examples)
        for number in range(start, self.per_epoch):
            window = slice(number * self._size, (number + 1) * self._size)
            rows = window if order is None else order[window]
            yield {key: array[rows] if key in self._cut else array for key, array in self._arrays.items()}


def fed_whole(arrays: Mapping[Output, Array], size: int | None) -> set[Output]:
    """Those whose placeholder says how many rows it takes, and that is what they have: they are no examples."""
    whole: set[Output] = set()
    for output, array in arrays.items():
        dims = placeholder_shape(output).dims
        rows = dims[0] if dims else None
        if rows is not None and rows != size and getattr(array, "ndim", 0) and len(array) == rows:
            whole.add(output)
    return whole
