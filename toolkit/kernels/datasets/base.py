"""What every dataset is: a recipe that starts an iteration.

Iteration is pulled, one element at a time, in the thread that asks; nothing is computed ahead. Parallel and
prefetching datasets therefore give the same elements as TensorFlow in its deterministic mode, in the same order.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from toolkit.errors import CancelledError, InvalidArgumentError
from toolkit.graph.attrs import FuncRef
from toolkit.graph.functions import FunctionLibrary
from toolkit.kernels.context import StepContext

#: one element: its components
Element = list[Any]
#: gives the next element, and None at the end and ever after; after an error it goes on with the next one
Next = Callable[[], Element | None]

INFINITE = -1
UNKNOWN = -2


class Run:
    """One iteration; `step` is the step that asks for elements now and in which functions run."""

    __slots__ = ("step",)

    def __init__(self, step: StepContext):
        self.step = step

    def go_on(self) -> None:
        """Called for each element that a source gives: a batch or a shuffle may ask for them without end.

        Raises:
            CancelledError: the step is over.
        """
        if self.step.cancellation.is_cancelled:
            raise CancelledError("the step was cancelled")


class Dataset:
    """A value of a dataset variant.

    Args:
        start: begins an iteration.
        cardinality: how many elements there are, INFINITE or UNKNOWN.
    """

    __slots__ = ("cardinality", "start")

    def __init__(self, start: Callable[[Run], Next], cardinality: int = UNKNOWN):
        self.start = start
        self.cardinality = cardinality


def a_dataset(value: Any) -> Dataset:
    """The dataset in a variant.

    Raises:
        InvalidArgumentError: the variant holds something else.
    """
    found: Any = value
    if hasattr(value, "ndim") and value.ndim == 0:
        found = value.item()
    if not isinstance(found, Dataset):
        raise InvalidArgumentError(f"The given variant must hold a dataset, but holds a {type(found).__name__}")
    return found


class CapturedFunction:
    """A user's function with the values it captured.

    Args:
        library, ref: which function.
        captured: passed after the arguments of every call.
    """

    def __init__(self, library: FunctionLibrary, ref: FuncRef, captured: Sequence[Any]):
        self._library = library
        self._ref = ref
        self._captured = list(captured)

    def __call__(self, run: Run, arguments: Sequence[Any]) -> Element:
        call = run.step.functions.prepare(self._library, self._ref)
        return call([*arguments, *self._captured], run.step)

    def test(self, run: Run, arguments: Sequence[Any]) -> bool:
        """The result of a predicate.

        Raises:
            InvalidArgumentError: it is not one boolean.
        """
        result = self(run, arguments)
        if len(result) != 1 or np.ndim(result[0]) or np.asarray(result[0]).dtype != np.bool_:
            raise InvalidArgumentError("`predicate` must return a scalar bool tensor.")
        return bool(result[0])


def empty(run: Run) -> Next:
    """An iteration without elements."""
    return lambda: None
