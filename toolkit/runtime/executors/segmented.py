"""The executor of programs that wait: compiled segments between receives, in the dataflow executor."""

from __future__ import annotations

import threading
from collections.abc import Sequence
from queue import SimpleQueue
from typing import Any

from toolkit.compiler.program import Program
from toolkit.compiler.segments.beside import SegmentsOf
from toolkit.compiler.segments.cut import Segmented, segmented
from toolkit.compiler.segments.schedule import ScheduledPart
from toolkit.compiler.segments.waits import Together
from toolkit.compiler.settings import Settings
from toolkit.forks import free_in_children
from toolkit.runtime.executors.planned import CompiledExecutor
from toolkit.runtime.executors.tokens import Completion, TokenExecution, TokenExecutor
from toolkit.runtime.probes.base import Manner, manner_of
from toolkit.runtime.steps.step import DeviceStep


class SegmentedExecutor:
    """Runs a program whose nodes wait for transfers, queues or other asynchronous kernels.

    Args:
        together: the program, and those that run in the same step.
    """

    def __init__(self, program: Program, settings: Settings, together: Together):
        self._program = program
        self._settings = settings
        self._together = together
        self._by_tokens: TokenExecutor | None = None
        self._around: TokenExecutor | None = None
        self._segmented: Segmented | None = None
        self._parts: list[CompiledExecutor] = []
        self._lock = threading.Lock()
        free_in_children(self, "_lock")

    def run(self, arguments: Sequence[Any], running: DeviceStep) -> list[Any]:
        """Execute once; see `Executor.run`."""
        return self.execution(arguments, running).run()

    def execution(
        self, arguments: Sequence[Any], running: DeviceStep, completions: SimpleQueue[Completion] | None = None
    ) -> TokenExecution:
        """One execution that is still to be begun; see `TokenExecution`."""
        if manner_of(running.probe) not in (Manner.COMPILED, Manner.PLANNED, Manner.CHECKED):
            executor = self._reference()
        else:
            executor = self._around or self._made()
        return TokenExecution(executor, arguments, running, completions)

    def segments(self) -> SegmentsOf:
        """The segments of its steps."""
        self._made()
        found = self._segmented
        return SegmentsOf(self._program) if found is None else SegmentsOf(self._program, found.group_of, found.free)

    def scheduled_part(self) -> ScheduledPart:
        """Its steps as part of a schedule."""
        self._made()
        found = self._segmented
        if found is None:
            return ScheduledPart(self._program)
        return ScheduledPart(found.around, found.segments, found.received)

    def notes(self) -> list[str]:
        """What was left to kernels until now, and why, in lines."""
        notes = [note for part in self._parts for note in part.notes()]
        if self._segmented is not None:
            alone = self._segmented.alone.items()
            loops = ((why, *found) for why, found in alone if "loop" in why)
            notes += [f"{count} node(s) run by tokens: {node.name} {why}" for why, count, node in loops]
        return notes

    def explain(self, arguments: Sequence[Any], running: DeviceStep) -> list[str]:
        """What it does, in lines; nothing is run, so segments have no more plans than they had."""
        self._made()
        found = self._segmented
        if found is None:
            return ["runs node by node in the TokenExecutor: no two of its nodes wait for the same"]
        lines = [f"{len(found.segments)} segment(s), each compiled when what it waits for has come first"]
        for segment, part in zip(found.segments, self._parts, strict=True):
            nodes = len(segment.program.steps) - segment.program.num_arguments - segment.program.num_results
            lines.append(
                f"{segment.name}: {nodes} nodes; takes {segment.program.num_arguments} values, {segment.receives} of "
                f"them received, and gives {segment.program.num_results}"
            )
            lines += [f"  {line}" for line in part.known()]
        if found.alone:
            lines.append("between them, node by node:")
            for why, (count, node) in found.alone.items():
                lines.append(f"  {count} node(s): {node.op} '{node.name}' {why}")
        return lines

    def _reference(self) -> TokenExecutor:
        if self._by_tokens is None:
            self._by_tokens = TokenExecutor(self._program)
        return self._by_tokens

    def _made(self) -> TokenExecutor:
        """The executor of what holds the segments together."""
        with self._lock:
            if self._around is None:
                found = segmented(self._program, self._together)
                if found is None:
                    self._around = self._reference()
                else:
                    for segment in found.segments:
                        part = CompiledExecutor(segment.program, self._settings, TokenExecutor)
                        segment.step.compute = part.run
                        self._parts.append(part)
                    self._segmented = found
                    self._around = TokenExecutor(found.around)
            return self._around
