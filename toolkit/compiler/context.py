"""What compiled code asks of the step that it runs in, beyond what kernels ask."""

from __future__ import annotations

import time
from collections.abc import Generator, Iterator, Sequence
from contextlib import contextmanager
from typing import Any, Protocol

from toolkit.compiler.program import Program
from toolkit.graph.attrs import FuncRef
from toolkit.graph.functions import FunctionLibrary
from toolkit.kernels.context import Functions, Resources, StepContext


class Watcher(Protocol):
    """Who is told what compiled functions do; see `toolkit.runtime.probes.base`."""

    def ran_plan(self, entries: Sequence[Any], device: str, marks: list[int]) -> None:
        """A compiled function has run.

        Args:
            entries: `backends.base.Entry`: what it does.
            marks: when each of that was over, 0 for what was not done; and when it began.
        """
        ...

    def compiled(self, what: str, start_ns: int, end_ns: int) -> None:
        """A part of the compilation is over."""
        ...


class Programs(Functions, Protocol):
    """Functions of the library, and their bodies."""

    def program(self, library: FunctionLibrary, ref: FuncRef) -> Program:
        """A function's body made ready to run, made once.

        Raises:
            GraphError: there is no such function, or its body is malformed.
        """
        ...


class Generations(Resources, Protocol):
    """Resources that say when all of them were replaced."""

    @property
    def generation(self) -> int: ...


class RunningStep(StepContext, Protocol):
    """The running step; `toolkit.runtime.steps.step` has it."""

    @property
    def device_functions(self) -> Programs: ...

    @property
    def resources(self) -> Generations: ...

    @property
    def is_cancelled(self) -> bool:
        """Whether the step is over; asking makes nothing."""
        ...

    @property
    def device_name(self) -> str:
        """Where it runs; "" for the only device."""
        ...

    @property
    def watcher(self) -> Watcher | None:
        """Who is told what compiled functions do, if somebody is."""
        ...

    @property
    def slots(self) -> list[Any] | None:
        """Where what is sent within the step is taken from, if its order is known (`segments/schedule`)."""
        ...

    def check_cancelled(self) -> None:
        """Raises CancelledError when the step is over."""
        ...

    def variables(self) -> Iterator[tuple[str, Any]]:
        """The variables of the session with their present values."""
        ...


@contextmanager
def compiling(running: RunningStep, what: str) -> Generator[None]:
    """Around a part of the compilation: whoever watches the step is told how long it took."""
    watcher: Watcher | None = getattr(running, "watcher", None)  # block by block, passes are applied without a step
    if watcher is None:
        yield
        return
    start = time.perf_counter_ns()
    yield
    watcher.compiled(what, start, time.perf_counter_ns())
