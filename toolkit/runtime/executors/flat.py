"""The straight-line executor: programs without control flow or asynchronous kernels.

The program becomes one list of instructions over a list of value slots; constants are in place beforehand,
arguments are copied in, and each value is dropped right after its last use.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from typing import Any

from toolkit.compiler.program import Program
from toolkit.compiler.steps import Role, Step, as_outputs, dereference, locate
from toolkit.kernels.registry import Kind
from toolkit.runtime.executors.node_by_node import NodeByNode
from toolkit.runtime.probes.base import Probe, looks
from toolkit.runtime.steps.step import DeviceStep

# compute, input slots, first output slot, number of outputs, slots to drop afterwards
Instruction = tuple[Callable[..., Any], tuple[int, ...], int, int, tuple[int, ...]]


class FlatExecutor(NodeByNode):
    """Runs one program, as often as wanted and from several threads at once."""

    def __init__(self, program: Program):
        self._template: list[Any] = []
        self._args: list[tuple[int, int]] = []  # (argument index, slot)
        self._memory = program.memory
        self._results: list[int] = [0] * program.num_results
        self._instructions: list[Instruction] = []
        self._sources: list[Step] = []  # the step behind each instruction
        self._references: list[Step] = []  # results that are references: their values are wanted
        self._stateful: list[int] = []  # instructions that want the running step first
        first_slot: list[int] = []
        for step in program.steps:
            first_slot.append(len(self._template))
            if step.role is Role.CONSTANT:
                self._template.append(step.constant)
            else:
                self._template += [None] * step.num_outputs
        last_use = self._last_uses(program, first_slot)
        for position, step in enumerate(program.steps):
            slots = tuple(first_slot[src] + index for src, index in step.inputs)
            match step.role:
                case Role.CONSTANT:
                    continue
                case Role.ARG:
                    self._args.append((step.index, first_slot[position]))
                case Role.RETVAL:
                    self._results[step.index] = slots[0]
                    if step.deref:
                        self._references.append(step)
                case _:
                    drops = tuple(sorted({s for s in slots if last_use[s] == position}))
                    own = range(first_slot[position], first_slot[position] + step.num_outputs)
                    drops += tuple(s for s in own if last_use[s] < 0)
                    if step.kind is Kind.STATEFUL:
                        self._stateful.append(len(self._instructions))
                    compute = _dereferencing(step) if step.deref else step.compute
                    self._instructions.append((compute, slots, first_slot[position], step.num_outputs, drops))
                    self._sources.append(step)

    @staticmethod
    def _last_uses(program: Program, first_slot: list[int]) -> list[int]:
        """For each slot, the position of its last consumer; -1 unused; beyond the end for what must stay."""
        total = first_slot[-1] + program.steps[-1].num_outputs if program.steps else 0
        last = [-1] * (total + 1)
        keep = len(program.steps)
        for position, step in enumerate(program.steps):
            if step.role is Role.CONSTANT:
                last[first_slot[position]] = keep
            for src, index in step.inputs:
                slot = first_slot[src] + index
                last[slot] = keep if step.role is Role.RETVAL or last[slot] == keep else position
        return last

    def run(self, arguments: Sequence[Any], running: DeviceStep) -> list[Any]:
        """Execute once.

        Args:
            arguments: the values of the _Arg nodes.

        Returns:
            the values of the _Retval nodes.

        Raises:
            OpError: a kernel failed or the step was cancelled; the error names the node.
        """
        values = self._template.copy()
        for index, slot in self._args:
            values[slot] = arguments[index]
        if running.probe is not None and looks(running.probe):
            return self._run_probed(values, running, running.probe)
        stateful = iter(self._stateful)
        next_stateful = next(stateful, -1)
        position = 0
        is_cancelled = running.cancellation
        try:
            for position, (compute, inputs, out, count, drops) in enumerate(self._instructions):
                if position == next_stateful:
                    next_stateful = next(stateful, -1)
                    if is_cancelled.is_cancelled:
                        running.check_cancelled()
                    result = compute(running, *[values[i] for i in inputs])
                else:
                    result = compute(*[values[i] for i in inputs])
                if count == 1 and not isinstance(result, (tuple, list)):
                    values[out] = result
                elif count or result is not None:
                    values[out : out + count] = as_outputs(self._sources[position], result)
                for slot in drops:
                    values[slot] = None
        except Exception as error:
            given = [values[i] for i in self._instructions[position][1]]
            alive = lambda: self._alive(values, running)  # noqa: E731
            raise locate(error, self._sources[position], alive, given) from error.__cause__
        return self._collect(values)

    def _alive(self, values: list[Any], running: DeviceStep) -> Iterator[tuple[str, Any]]:
        """The values that are there, with the names of what made them, and variables."""
        for index, slot in self._args:
            yield f"argument {index}", values[slot]
        for (_, _, out, count, _), step in zip(self._instructions, self._sources, strict=True):
            for index in range(count):
                yield f"{step.node.name}:{index}" if index else step.node.name, values[out + index]
        yield from running.variables()

    def _collect(self, values: list[Any]) -> list[Any]:
        """The results; of references, the values that their variables have now."""
        results = [values[slot] for slot in self._results]
        for step in self._references:
            held = [results[step.index]]
            try:
                dereference(step, held)
            except Exception as error:
                raise locate(error, step) from None
            results[step.index] = held[0]
        return results

    def _run_probed(self, values: list[Any], running: DeviceStep, probe: Probe) -> list[Any]:
        """As `run`, with somebody looking at every node."""
        stateful = set(self._stateful)
        for position, (compute, inputs, out, count, drops) in enumerate(self._instructions):
            step = self._sources[position]
            given = [values[i] for i in inputs]
            start = time.perf_counter_ns()
            try:
                running.check_cancelled()
                result = compute(running, *given) if position in stateful else compute(*given)
                outputs = as_outputs(step, result)
                if self._memory is not None:
                    self._memory.synchronize()  # what it takes, and what it fails with, is told of it alone
            except Exception as error:
                raise locate(error, step, lambda: self._alive(values, running), given) from error.__cause__
            end = time.perf_counter_ns()
            probe.ran(step.node, running.device_name, start, end, given, outputs)
            values[out : out + count] = outputs
            for slot in drops:
                values[slot] = None
        return self._collect(values)


def _dereferencing(step: Step) -> Callable[..., Any]:
    compute = step.compute
    if step.kind is Kind.STATEFUL:

        def call_stateful(running: DeviceStep, *args: Any) -> Any:
            plain = list(args)
            dereference(step, plain)
            return compute(running, *plain)

        return call_stateful

    def call(*args: Any) -> Any:
        plain = list(args)
        dereference(step, plain)
        return compute(*plain)

    return call
