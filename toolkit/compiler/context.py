"""What compiled code asks of the step that it runs in, beyond what kernels ask."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Protocol

from toolkit.compiler.program import Program
from toolkit.graph.attrs import FuncRef
from toolkit.graph.functions import FunctionLibrary
from toolkit.kernels.context import Functions, Resources, StepContext


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
    """The running step; `toolkit.runtime.step` has it."""

    @property
    def device_functions(self) -> Programs: ...

    @property
    def resources(self) -> Generations: ...

    @property
    def is_cancelled(self) -> bool:
        """Whether the step is over; asking makes nothing."""
        ...

    def check_cancelled(self) -> None:
        """Raises CancelledError when the step is over."""
        ...

    def variables(self) -> Iterator[tuple[str, Any]]:
        """The variables of the session with their present values."""
        ...
