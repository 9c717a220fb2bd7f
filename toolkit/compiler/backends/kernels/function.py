"""A function that calls kernels, as the plan and reports see it."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from types import CodeType, FunctionType
from typing import Any

from toolkit.compiler.backends.base import SOURCE_NAME, Entry
from toolkit.compiler.context import RunningStep
from toolkit.compiler.ir.block import Block
from toolkit.compiler.ir.operation import Operation
from toolkit.compiler.ir.value import Value


class NoMemory:
    """Where values lie that kernels allocate: nowhere that is planned."""

    storage: Mapping[Value, Any] = {}
    size = 0

    def offset(self, value: Value) -> int:
        """There is none."""
        raise KeyError(value)


class KernelFunction:
    """A compiled block; it has no memory of its own, so all threads may run the same one.

    Args:
        lines: the source.
        owners: the operation behind each line.
        constants: the function's globals.
        names: the local variable that holds each value.
        inner: the bodies of its loops.
    """

    is_whole = False
    initialises = False
    replays = False
    layout = NoMemory()

    def __init__(
        self,
        block: Block,
        lines: Sequence[str],
        owners: Sequence[Operation | None],
        constants: dict[str, Any],
        names: Mapping[Value, str],
        inner: Sequence[KernelFunction] = (),
    ):
        self.block = block
        self.inner = inner
        self.source = "\n".join(lines) + "\n"
        self._owners = owners
        self._names = names
        namespace = dict(constants)
        exec(compile(self.source, SOURCE_NAME, "exec"), namespace)
        run = namespace["run"]
        assert isinstance(run, FunctionType)
        self._code = run.__code__
        self.run: Callable[[Any, RunningStep], list[Any]] = run

    def all(self) -> Iterator[KernelFunction]:
        """This function and the bodies of its loops."""
        yield self
        for each in self.inner:
            yield from each.all()

    def owner(self, code: CodeType, line: int) -> Operation | None:
        """The operation behind a line of this function or of a loop in it."""
        if code is self._code:
            return self._owners[line - 1]
        return next((found for each in self.inner if (found := each.owner(code, line)) is not None), None)

    def named(self) -> Iterator[tuple[str, str]]:
        """The nodes' outputs, and the local variables that hold them."""
        for operation in self.block:
            for index, value in enumerate(operation.outputs):
                if value in self._names:
                    yield f"{operation.name}:{index}" if index else operation.name, self._names[value]

    def inputs_of(
        self, operation: Operation, there: Mapping[str, Any], everywhere: Mapping[str, Any]
    ) -> list[Any] | None:
        """What the node behind an operation was given, None for what is not to be found; None if it is not one node."""
        if len(operation.inputs) != len(operation.step.inputs) or len(operation.steps) != 1:
            return None
        return [
            value.constant if value.is_constant else there.get(self._names.get(value, "")) for value in operation.inputs
        ]

    def primitives(self) -> Mapping[Operation, Sequence[str]]:
        """No library chose anything."""
        return {}

    def packed(self) -> dict[int, int]:
        """Nothing is packed."""
        return {}

    def instantiate(self) -> KernelFunction:
        """Itself."""
        return self

    def run_marked(
        self, arguments: Sequence[Any], running: RunningStep
    ) -> tuple[list[Any], Sequence[Entry], list[int]]:
        """Kernels alone are looked at node by node."""
        return self.run(arguments, running), [], [time.perf_counter_ns()]

    def run_checked(self, arguments: Sequence[Any], running: RunningStep) -> tuple[list[Any], list[Operation]]:
        """Kernels alone are looked at node by node."""
        return self.run(arguments, running), []

    def close(self) -> None:
        """There is nothing to give back."""
