"""Choosing the executor for a program."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Protocol

from toolkit.compiler.program import Program
from toolkit.compiler.segments.waits import Together
from toolkit.compiler.settings import Settings
from toolkit.runtime.executors.flat import FlatExecutor
from toolkit.runtime.executors.on_devices import DeviceExecutor
from toolkit.runtime.executors.planned import CompiledExecutor
from toolkit.runtime.executors.segmented import SegmentedExecutor
from toolkit.runtime.executors.tokens import TokenExecutor
from toolkit.runtime.steps.step import DeviceStep


class Executor(Protocol):
    """Runs one compiled partition."""

    def run(self, arguments: Sequence[Any], running: DeviceStep) -> list[Any]:
        """Execute once: the values of _Arg nodes in, the values of _Retval nodes out."""
        ...

    def explain(self, arguments: Sequence[Any], running: DeviceStep) -> list[str]:
        """What it does for these arguments, in lines; nothing is run."""
        ...

    def notes(self) -> list[str]:
        """What was left to kernels until now, and why, in lines."""
        ...


def make_executor(
    program: Program,
    *,
    force_tokens: bool = False,
    settings: Settings | None = None,
    to_host: bool = True,
    together: Together | None = None,
) -> Executor:
    """Compiled segments, or the straight-line executor, where the program allows it, else the dataflow executor.

    Args:
        force_tokens: run every node by tokens all the same (the debug switch; the two must agree).
        together: the program with those that run in the same step and send it tensors; by default it is alone.
        to_host: results of a device with a memory of its own are wanted in host memory.
    """
    reference = TokenExecutor if force_tokens or program.needs_tokens else FlatExecutor
    settings = settings or Settings.current()
    if force_tokens or not settings.segments or (program.memory is not None and _loops_and_waits(program)):
        inner = reference(program)
    elif program.is_asynchronous:
        inner = SegmentedExecutor(program, settings, together or Together([program]))
    else:
        inner = CompiledExecutor(program, settings, reference)
    return inner if program.memory is None else DeviceExecutor(program, inner, program.memory, to_host=to_host)


def _loops_and_waits(program: Program) -> bool:
    """Whether a loop goes over several devices. Segments know how loops that they take a part of follow each other on
    the CPU alone: on others a gradient's loop would take from a stack what is not pushed yet."""
    return program.is_asynchronous and len(program.all_frames) > 1
