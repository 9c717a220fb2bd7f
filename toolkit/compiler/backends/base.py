"""What a backend makes of a block, as the plan and reports see it."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from types import CodeType
from typing import Any, Protocol

from toolkit.compiler.context import RunningStep
from toolkit.compiler.ir.block import Block
from toolkit.compiler.ir.operation import Operation
from toolkit.compiler.ir.value import Value

#: the file that generated code is said to be from, by which a traceback finds its operation
SOURCE_NAME = "<plan>"


@dataclass(frozen=True, slots=True)
class Entry:
    """What is told of one thing that a compiled function does: a primitive, a fused loop, a kernel.

    Attributes:
        node: the node whose outputs it makes.
        op: what it does, by the ops of its nodes.
        inputs: what it takes, by the nodes that made it.
        outputs: type, shape and bytes of each.
        others: further nodes that it does the work of.
        made_bytes: what it fills of the function's memory; `in_use_bytes`: what of that holds something then.
    """

    node: str
    op: str
    inputs: tuple[str, ...]
    outputs: tuple[tuple[str, tuple[int, ...], int], ...]
    others: tuple[str, ...]
    made_bytes: int
    in_use_bytes: int


@dataclass(frozen=True, slots=True)
class HostSide:
    """Where a step on a device with a memory of its own meets host memory.

    Attributes:
        arguments: by position, whether it is wanted in the device's memory; others are not for this device.
        results: positions of those that are there and wanted in host memory.
    """

    arguments: Mapping[int, bool]
    results: tuple[int, ...]


class Placement(Protocol):
    """Where values lie in the memory of a function.

    Attributes:
        storage: the values that do.
        size: bytes of it all.
    """

    @property
    def storage(self) -> Mapping[Value, Any]: ...

    @property
    def size(self) -> int: ...

    def offset(self, value: Value) -> int:
        """Bytes from the start of the memory to a value."""
        ...


class Instance(Protocol):
    """A function with memory of its own; one thread may run it at a time."""

    @property
    def run(self) -> Callable[[Any, RunningStep], list[Any]]:
        """Takes the arguments' values; returns those of the results."""
        ...

    def run_marked(
        self, arguments: Sequence[Any], running: RunningStep
    ) -> tuple[list[Any], Sequence[Entry], list[int]]:
        """Run, and note the time on the way.

        Returns:
            the results, what was done, and when each of that was over, on the clock of `time.perf_counter_ns`; 0 for
            what is on a branch that was not taken. The last number is when all of it began.
        """
        ...

    def run_checked(self, arguments: Sequence[Any], running: RunningStep) -> tuple[list[Any], list[Operation]]:
        """Run, and look at the floating tensors that are made; returns the results, and what made one not finite."""
        ...

    def close(self) -> None:
        """Give the memory back at once."""
        ...


class Replays(Protocol):
    """What an instance may offer besides: steps that were recorded, from host memory to host memory."""

    def run_from_host(self, arguments: Sequence[Any], running: RunningStep, boundary: HostSide) -> list[Any] | None:
        """Run, with arguments and results in host memory, and wait for the end of it.

        Returns:
            the results; None where the step has not become a recording of that kind, and nothing was done.
        """
        ...

    def replay(self, arguments: Sequence[Any]) -> list[Any] | None:
        """Likewise, if what was recorded last fits."""
        ...


class Executable(Protocol):
    """A compiled block, still without memory.

    Attributes:
        block: what it was made of.
        is_whole: it is a loop with all of its iterations.
        initialises: it assigns variables what depends on constants alone, and does nothing else.
        replays: its instances have what `Replays` says.
        layout: where its values lie.
        inner: the functions of the loops in it.
    """

    @property
    def block(self) -> Block: ...

    @property
    def is_whole(self) -> bool: ...

    @property
    def initialises(self) -> bool: ...

    @property
    def replays(self) -> bool: ...

    @property
    def layout(self) -> Placement: ...

    @property
    def inner(self) -> Sequence[Executable]: ...

    def all(self) -> Iterator[Executable]:
        """This function and those of the loops in it."""
        ...

    def owner(self, code: CodeType, line: int) -> Operation | None:
        """The operation behind a line of this function or of a loop in it."""
        ...

    def named(self) -> Iterator[tuple[str, str]]:
        """The nodes whose outputs are outside that memory, and the local variables that hold them."""
        ...

    def inputs_of(
        self, operation: Operation, there: Mapping[str, Any], everywhere: Mapping[str, Any]
    ) -> list[Any] | None:
        """What the node behind an operation was given, None for what is not to be found; None if it is not one node.

        Args:
            there, everywhere: the variables of the function, and of its module.
        """
        ...

    def primitives(self) -> Mapping[Operation, Sequence[str]]:
        """The implementations that a library chose, by operation."""
        ...

    def packed(self) -> dict[int, int]:
        """Constants in layouts of their own, those of loops included: by what tells shared ones, bytes."""
        ...

    def instantiate(self) -> Instance:
        """The function with memory of its own."""
        ...
