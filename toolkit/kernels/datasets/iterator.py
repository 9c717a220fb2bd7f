"""Iterators: the resources that hold an iteration."""

from __future__ import annotations

import threading
from collections.abc import Sequence

from toolkit.errors import FailedPreconditionError, InvalidArgumentError
from toolkit.forks import free_in_children
from toolkit.graph.dtypes import DType
from toolkit.kernels.context import StepContext
from toolkit.kernels.datasets.base import Dataset, Element, Next, Run


class Iterator:
    """An iteration that many steps share.

    Args:
        types: of the components; empty: not checked.
    """

    def __init__(self, types: Sequence[DType]):
        self.types = list(types)
        self._lock = threading.RLock()
        free_in_children(self, "_lock")
        self._run: Run | None = None
        self._next: Next | None = None

    def initialize(self, dataset: Dataset, step: StepContext) -> None:
        """Begin at the start of a dataset, dropping what was under way."""
        with self._lock:
            self._run = Run(step)
            self._next = dataset.start(self._run)

    @property
    def is_initialized(self) -> bool:
        return self._next is not None

    def get_next(self, step: StepContext) -> Element | None:
        """The next element, or None at the end.

        Raises:
            FailedPreconditionError: there is no iteration yet.
        """
        with self._lock:
            if self._run is None or self._next is None:
                raise FailedPreconditionError(
                    "GetNext() failed because the iterator has not been initialized. Ensure that you have run the "
                    "initializer operation for this iterator before getting the next element."
                )
            self._run.step = step
            element = self._next()
        if element is not None and self.types and len(element) != len(self.types):
            raise InvalidArgumentError(
                f"Number of components does not match: expected {len(self.types)} types but got {len(element)}."
            )
        return element
