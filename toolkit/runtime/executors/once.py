"""Large programs that are run once, by the kernels of their nodes: compiling them takes longer than running them.

Compiling takes some tens of microseconds a node, whatever the node computes; its kernel takes a few, where tensors are
small. So of a program that a session is asked for once (`Settings.once`) nothing is compiled where it has many nodes
and works on little. That is known before it runs, as far as weights and arguments tell; what the rest takes is counted
while it runs. A program that turns out to compute more, for its tensors are large or its loops long, is stopped and
compiled. Therefore only those are begun that may be run again from their start: what they do besides computing is to
read variables, or to give variables values that depend on nothing.

What is counted are nodes and bytes, not time, so a program always takes the same way, and has the same bits.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np

from toolkit.compiler.importer.effects import ASSIGNS, HANDLES, READERS, initialises, named_functions
from toolkit.compiler.program import Program
from toolkit.compiler.steps import Role
from toolkit.errors import GraphmillError
from toolkit.graph.garbage import no_collection
from toolkit.graph.kinds import NodeKind
from toolkit.kernels.registry import Kind
from toolkit.runtime.executors.dataflow import FrameState, IterationState, NodeItem
from toolkit.runtime.executors.tokens import TokenExecution, TokenExecutor
from toolkit.runtime.steps.step import DeviceStep

#: bytes of weights and arguments for each node at most: such a product takes as long as the call of its kernel
KNOWN_BYTES = 1024
#: bytes that the nodes put out, for each node of the program: NumPy writes them in a tenth of what compiling takes
MADE_BYTES = 4096
#: how often a node is run, on the average: by then the nodes have taken half as long as compiling would
TIMES = 4
#: nodes after which is looked whether the step is cancelled, which takes as long as one of them; a few milliseconds
_LOOK = 1024

#: ops of which the functions are looked into; turns of a loop are those of its functions, which are compiled themselves
_CALLS = frozenset({"PartitionedCall", "StatefulPartitionedCall", "If", "StatelessIf", "Case", "StatelessCase", "While",
                    "StatelessWhile"})  # fmt: skip


class OnceExecutor(TokenExecutor):
    """Runs a program by tokens, and gives up where it does more than compiling is worth."""

    def run(self, arguments: Sequence[Any], running: DeviceStep) -> list[Any]:
        """Execute once; see `Executor.run`.

        Raises:
            TooMuchError: it is to be compiled, and run from its start.
        """
        return _Counted(self, arguments, running).run()


class TooMuchError(Exception):
    """A program computes more than its size told."""


def run_once(program: Program, arguments: Sequence[Any], running: DeviceStep) -> list[Any] | None:
    """The results of a program that is not compiled; None where it is to be compiled, as if nothing had been run.

    Raises:
        OpError: see `Executor.run`.
    """
    if running.probe is not None or running.pool is not None:
        return None
    if not _works_on_little(program, arguments, running) or not is_repeatable(program, running):
        return None
    try:
        with no_collection():
            return OnceExecutor(program).run(arguments, running)
    except TooMuchError:
        return None


def is_pure(program: Program, running: DeviceStep) -> bool:
    """Whether a program, with the functions that it calls, only computes or reads variables, and may be begun twice."""
    return is_repeatable(program, running) and not initialises(program)


def _works_on_little(program: Program, arguments: Sequence[Any], running: DeviceStep) -> bool:
    """Whether arguments, constants and variables have few bytes for so many nodes."""
    most = KNOWN_BYTES * len(program.steps)
    known = _bytes_of(arguments) + _bytes_of(step.constant for step in program.steps if step.role is Role.CONSTANT)
    return known <= most and known + _bytes_of(value for _, value in running.variables()) <= most


def _bytes_of(values: Iterable[Any]) -> int:
    return sum(value.nbytes for value in values if isinstance(value, np.ndarray))


def is_repeatable(program: Program, running: DeviceStep, seen: set[int] | None = None) -> bool:
    """Whether a program that was stopped on its way can be run again as if it had not been begun.

    Args:
        seen: functions that are looked into already, by id.
    """
    seen = set() if seen is None else seen
    if id(program) in seen:
        return True
    seen.add(id(program))
    if program.memory is not None or program.is_asynchronous or program.is_part or program.beside:
        return False
    assigns = initialises(program)
    pure: set[NodeKind] = set()  # kinds whose nodes only compute
    for step in program.steps:
        if step.role is not Role.KERNEL:
            if step.role is Role.SEND or step.role is Role.SEGMENT:
                return False
            continue
        kind = step.node.kind
        if kind is not None and kind in pure and step.kind is Kind.PURE:
            continue
        op = step.node.op
        if op in READERS or op in HANDLES or (assigns and op in ASSIGNS):
            continue
        if op in _CALLS:
            if not _calls_repeatable(step.node, running, seen):
                return False
            continue
        if step.kind is not Kind.PURE or any(dtype.is_ref for dtype in step.node.input_types):
            return False
        if kind is not None and kind.is_shared:
            pure.add(kind)
    return True


def _calls_repeatable(node: Any, running: DeviceStep, seen: set[int]) -> bool:
    for ref in named_functions(node):
        try:
            program = running.device_functions.program(node.graph.library, ref)
        except GraphmillError:  # which its kernel reports
            continue
        if not is_repeatable(program, running, seen):
            return False
    return True


class _Counted(TokenExecution):
    """An execution that counts what it does."""

    def __init__(self, executor: OnceExecutor, arguments: Sequence[Any], running: DeviceStep):
        super().__init__(executor, arguments, running)
        self._nodes = TIMES * len(executor.nodes)
        self._bytes = MADE_BYTES * len(executor.nodes)

    def _activate(
        self, node: NodeItem, outputs: Sequence[Any], is_dead: bool, frame: FrameState, iteration: IterationState
    ) -> None:
        left = self._nodes = self._nodes - 1
        if not left % _LOOK:
            self.running.check_cancelled()
        for output in outputs:
            if output.__class__ is np.ndarray:
                self._bytes -= output.nbytes
        if left < 0 or self._bytes < 0:
            self.ready.clear()  # nothing follows any more: the loop over what is ready ends
            return
        TokenExecution._activate(self, node, outputs, is_dead, frame, iteration)  # `super` is a call more for each node

    def _check_complete(self) -> None:
        if self._nodes < 0 or self._bytes < 0:
            raise TooMuchError
        super()._check_complete()
