"""Parts of a step in one thread, where one has to wait for another whenever that one works.

A training step whose variables are on another device goes there and back. With a thread for each device every transfer
that is waited for wakes a thread, the interpreter's lock goes from one to the other, and each has a team of threads in
its libraries, of which one spins while another computes. One thread that runs what is ready, on whatever device that
is, hands on nothing. Which parts of a step may be run so is looked up once (`compiler/segments/beside`).
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator, Sequence
from queue import SimpleQueue
from typing import Any, Protocol, runtime_checkable

from toolkit.compiler.segments.beside import runs_in_order
from toolkit.compiler.segments.schedule import StepSchedule
from toolkit.compiler.segments.scheduling import schedule_of
from toolkit.forks import free_in_children
from toolkit.runtime.executors.propagation import Task
from toolkit.runtime.executors.scheduled import run_scheduled
from toolkit.runtime.executors.segmented import SegmentedExecutor
from toolkit.runtime.executors.tokens import Completion, TokenExecution
from toolkit.runtime.probes.base import Manner, Probe, manner_of
from toolkit.runtime.steps.failures import root_cause
from toolkit.runtime.steps.rendezvous import LocalRendezvous
from toolkit.runtime.steps.step import DeviceStep


@runtime_checkable
class Members(Protocol):
    """A worker in the session's process, whose parts of a step may run in the session's thread (`LocalWorker`)."""

    def executors(self, handle: int) -> Sequence[object]:
        """The executors of a registered graph, one for each device."""
        ...

    def steps(
        self, handle: int, step_id: int, probe: Probe | None, rendezvous: LocalRendezvous | None
    ) -> tuple[Sequence[DeviceStep], Callable[[Iterator[Sequence[Any]]], list[Any]]]:
        """The step that they run, for each of them; this thread is ready for their kernels then.

        Args:
            rendezvous: of all workers' parts, where the step is not known here yet; None where nothing looks for one.

        Returns:
            the steps, and what takes from what all executors returned that of these, and makes of it what the graph
            brings (`Worker.run`).
        """
        ...


class Chain:
    """Programs of one step that wait for each other.

    Args:
        executors: of all of them.
    """

    def __init__(self, executors: Sequence[SegmentedExecutor]):
        self._executors = executors
        self._is_one: bool | None = None
        self._schedule: StepSchedule | None = None
        self._lock = threading.Lock()
        free_in_children(self, "_lock")

    @staticmethod
    def of(executors: Sequence[object]) -> Chain | None:
        """The executors of a step; None where some of them do not wait, or have a memory of their own."""
        found = [each for each in executors if isinstance(each, SegmentedExecutor)]
        return Chain(found) if found and len(found) == len(executors) else None

    def fits(self, probe: Probe | None) -> bool:
        """Whether one thread runs a step as fast as several would."""
        if manner_of(probe) not in (Manner.COMPILED, Manner.PLANNED, Manner.CHECKED):
            return False
        if self._is_one is None:
            with self._lock:
                if self._is_one is None:
                    self._is_one = self._made()
        return self._is_one

    def _made(self) -> bool:
        """Whether transfers put all work in order; if that is so, what the order is."""
        if not runs_in_order([executor.segments() for executor in self._executors]):
            return False
        self._schedule = schedule_of([executor.scheduled_part() for executor in self._executors])
        return True

    @property
    def is_scheduled(self) -> bool:
        """Whether the order of a step is known before it: nothing that it sends or receives looks for a rendezvous."""
        return self._schedule is not None

    def explain(self) -> list[str]:
        """How the parts run, in a line; none where each has a thread."""
        if not self.fits(None):
            return []
        schedule = self._schedule
        if schedule is None:
            return ["one thread runs what is ready of all parts"]
        working, transfers = len(schedule.working), len(schedule.steps) - len(schedule.working)
        order = f"one thread runs all parts in an order that is known before a step: {working} segment(s) and node(s)"
        return [f"{order}; {transfers} send(s) and receive(s) between them have nothing to do"]

    def run(
        self, arguments: Sequence[Sequence[Any]], steps: Sequence[DeviceStep], cancel: Callable[[], None]
    ) -> list[list[Any]]:
        """The results of all programs, in order.

        Args:
            arguments, steps: of each program.
            cancel: ends the step when a program has failed; may be called more than once.

        Raises:
            BaseException: the first failure that is not the consequence of another.
        """
        if self._schedule is not None:
            return run_scheduled(self._schedule, arguments, steps, cancel)
        arriving: SimpleQueue[Completion] = SimpleQueue()
        executions = [
            executor.execution(given, step, arriving)
            for executor, given, step in zip(self._executors, arguments, steps, strict=True)
        ]
        return _Run(executions, arriving, cancel).results()


class _Run:
    """One step."""

    def __init__(
        self, executions: Sequence[TokenExecution], arriving: SimpleQueue[Completion], cancel: Callable[[], None]
    ):
        self._executions = executions
        self._arriving = arriving
        self._cancel = cancel
        self._left: set[TokenExecution] = set()
        self._errors: list[BaseException] = []
        self._found: dict[TokenExecution, list[Any]] = {}

    def results(self) -> list[list[Any]]:
        left = self._left
        for execution in self._executions:
            try:
                execution.begin()
                left.add(execution)
            except BaseException as error:
                self._failed(error)
        for execution in [each for each in self._executions if each in left]:
            self._go_on(execution, None)
        while left:
            try:
                execution, task, result = self._arriving.get()
            except BaseException as error:  # raised from outside, as an interrupt is: who waits is told
                self._failed(error)
                continue
            if execution in left:
                self._go_on(execution, (task, result))
            del task, result  # what came in must not live until the next one comes
        if self._errors:
            raise root_cause(self._errors)
        return [self._found[execution] for execution in self._executions]

    def _go_on(self, execution: TokenExecution, came: tuple[Task | None, Any] | None) -> None:
        """Run what is ready of an execution, and see to its end: others may wait for what it failed to send."""
        try:
            if execution.go_on() if came is None else execution.go_on_with(*came):
                return
            self._found[execution] = execution.finish()
        except BaseException as error:
            self._failed(error)
        self._left.discard(execution)
        execution.end()

    def _failed(self, error: BaseException) -> None:
        self._errors.append(error)
        self._cancel()
