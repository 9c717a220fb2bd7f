"""A step whose order is known, run by one thread: what each part computes and sends, one after the other, in slots."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from typing import Any

from toolkit.compiler.segments.schedule import ScheduledStep, StepSchedule
from toolkit.compiler.steps import Role, as_outputs, dereference, locate
from toolkit.errors import CancelledError
from toolkit.kernels.context import DEAD
from toolkit.kernels.registry import Kind
from toolkit.runtime.executors.switching import merge, switch
from toolkit.runtime.probes.base import looks
from toolkit.runtime.steps.rendezvous import present
from toolkit.runtime.steps.step import DeviceStep


def run_scheduled(
    schedule: StepSchedule, arguments: Sequence[Sequence[Any]], steps: Sequence[DeviceStep], cancel: Callable[[], None]
) -> list[list[Any]]:
    """The results of all programs, in order; see `Chain.run`.

    Raises:
        CancelledError: the step was ended from outside.
        BaseException: the first failure; the step is cancelled then.
    """
    values = list(schedule.slots)
    for slot, part, index in schedule.arguments:
        values[slot] = arguments[part][index]
    for step in steps:
        step.slots = values
    try:
        if looks(steps[0].probe):
            _run_watched(schedule, values, steps)
        else:
            for each in schedule.working:
                _advance(schedule, each, values, steps[each.part])
                for slot in each.dropped:
                    values[slot] = None
        return _results(schedule, values)
    except BaseException:
        cancel()
        raise
    finally:
        values.clear()  # who keeps the error, or the step, keeps no tensors


def _advance(
    schedule: StepSchedule, each: ScheduledStep, values: list[Any], running: DeviceStep
) -> tuple[Sequence[Any], Sequence[Any]] | None:
    """Do what is next; what it took and made, or None where it is on a branch that was not taken."""
    if running.is_cancelled:
        raise CancelledError("the step was cancelled")
    for slot in each.checked:
        if values[slot] is DEAD:
            for given in each.given:
                values[given] = DEAD
            return None
    step = each.step
    inputs = [values[slot] for slot in each.taken]
    if each.is_nothing:
        return inputs, inputs
    try:
        match step.role:
            case Role.SEGMENT:
                outputs = step.compute(inputs, running)
            case Role.SEND:
                outputs = list(inputs)
                dereference(step, inputs)  # a variable without a value is not sent
                outputs = outputs if each.is_late else [present(value) for value in outputs]
            case Role.CONSTANT:
                outputs = inputs
            case Role.SWITCH:
                outputs = switch(inputs)
            case Role.MERGE:
                outputs = merge(inputs, all(value is DEAD for value in inputs))
            case _ if each.is_receive:
                outputs = [present(value) for value in inputs]
            case _:
                if step.deref:
                    dereference(step, inputs)
                is_pure = step.kind is Kind.PURE
                outputs = as_outputs(step, step.compute(*inputs) if is_pure else step.compute(running, *inputs))
    except Exception as error:
        told = locate(error, step, lambda: _alive(schedule, each, inputs, values, running), inputs)
        raise told from told.__cause__
    for slot, value in zip(each.given, outputs, strict=False):  # one more says whether it is dead
        values[slot] = value
    return inputs, outputs


def _run_watched(schedule: StepSchedule, values: list[Any], steps: Sequence[DeviceStep]) -> None:
    """As without a probe, which is told of kernels between segments and of every transfer: receives wait from the
    beginning of the step, or from where they are allowed to."""
    began = time.perf_counter_ns()
    for each in schedule.steps:
        running, step = steps[each.part], each.step
        start = time.perf_counter_ns()
        done = _advance(schedule, each, values, running)
        probe = running.probe
        if probe is not None and done is not None and step.role in (Role.KERNEL, Role.SEND):
            inputs, outputs = done
            if each.is_receive:
                inputs, start = (), start if step.controls else began
            elif step.role is Role.SEND:
                outputs = ()
            probe.ran(step.node, running.device_name, start, time.perf_counter_ns(), inputs, outputs)
        for slot in each.dropped:
            values[slot] = None


def _results(schedule: StepSchedule, values: Sequence[Any]) -> list[list[Any]]:
    found: list[list[Any]] = [[None] * count for count in schedule.counts]
    for result in schedule.results:
        step = result.step
        held = [values[result.slot]]
        if any(values[slot] is DEAD for slot in result.checked):
            held = [DEAD]
        elif step.deref:  # of a reference the value at the end of the step is wanted
            try:
                dereference(step, held)
            except Exception as error:
                raise locate(error, step) from None
        found[result.part][step.index] = held[0]
    return found


def _alive(
    schedule: StepSchedule, each: ScheduledStep, inputs: Sequence[Any], values: Sequence[Any], running: DeviceStep
) -> Iterator[tuple[str, Any]]:
    """What a step takes, what waits to be taken, and variables, with their names."""
    yield from zip([schedule.names[slot] for slot in each.taken], inputs, strict=True)
    taken = set(each.taken)
    for slot, (name, value) in enumerate(zip(schedule.names, values, strict=True)):
        if value is not None and slot not in taken:
            yield name, value
    yield from running.variables()
