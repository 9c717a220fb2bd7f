"""The life of a step: from the full graph to executors.

    full graph -> placement -> client graph (_Arg, _Retval) -> optimisation -> one graph per device -> executors

Each stage is a value that can be looked at (`Stages`). A `CompiledStep` is what remains; it is made once for a
set of feeds, fetches and targets and run many times.
"""

from __future__ import annotations

import threading
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from toolkit.compiler.program import Program, Role
from toolkit.compiler.settings import Settings
from toolkit.errors import AbortedError, CancelledError, InvalidArgumentError
from toolkit.graph.device import DeviceSpec
from toolkit.graph.graph import Graph
from toolkit.graph.node import Node, Output
from toolkit.kernels import device_types
from toolkit.kernels.context import DEAD
from toolkit.limits.account import charging, current
from toolkit.passes.memory_types import MemoryTypes
from toolkit.policy.access import Access
from toolkit.runtime.executor import Executor, make_executor
from toolkit.runtime.planned import CompiledExecutor
from toolkit.runtime.step import Step


@dataclass(slots=True)
class Stages:
    """The graph after each stage of compilation, for looking at."""

    placed: Graph
    client: Graph
    partitions: dict[str, Graph] = field(default_factory=dict[str, Graph])


@dataclass(slots=True)
class _Partition:
    device: str
    executor: Executor
    results: list[int]  # which results this partition brings


class CompiledStep:
    """Executors for one combination of feeds, fetches and targets."""

    def __init__(
        self,
        stages: Stages,
        num_results: int,
        *,
        force_tokens: bool = False,
        settings: Settings | None = None,
        access: Access | None = None,
    ):
        self.stages = stages
        self._num_results = num_results
        self._partitions: list[_Partition] = []
        for device, graph in stages.partitions.items():
            defining = settings is not None and settings.defines
            spec = DeviceSpec.parse(device)
            kind, index = spec.device_type or "CPU", spec.device_index or 0
            if device_types.memory(kind, index) is not None:
                graph = MemoryTypes(kind).apply(graph).graph
            program = Program(graph, kind, access=access, device_index=index, defining=defining)
            results = [step.index for step in program.steps if step.role is Role.RETVAL]
            executor = make_executor(program, force_tokens=force_tokens, settings=settings)
            self._partitions.append(_Partition(device, executor, results))
        self._only = self._partitions[0].executor if len(self._partitions) == 1 else None

    def explain(self, arguments: Sequence[Any], step: Step) -> list[str]:
        """What was compiled for these arguments, in lines; nothing is run."""
        lines: list[str] = []
        for partition in self._partitions:
            if len(self._partitions) > 1:
                lines.append(f"{partition.device}:")
            if isinstance(partition.executor, CompiledExecutor):
                lines += partition.executor.explain(arguments, step)
            else:
                lines.append(f"runs node by node in the {type(partition.executor).__name__}")
        return lines

    def run(self, arguments: Sequence[Any], step: Step) -> list[Any]:
        """Run all partitions and wait for all of them (the executor barrier).

        Raises:
            OpError: the first failure; the other partitions have been cancelled.
        """
        if self._only is not None:
            # TensorFlow's kernels compute infinities and NaN without a word.
            with np.errstate(all="ignore"):
                return self._only.run(arguments, step)
        results: list[Any] = [None] * self._num_results
        errors: list[BaseException] = []
        lock = threading.Lock()
        account = current()

        def run_one(partition: _Partition) -> None:
            try:
                with np.errstate(all="ignore"), charging(account):  # hold for this thread
                    values = partition.executor.run(arguments, step.sibling(partition.device))
                for index in partition.results:
                    results[index] = values[index]
            except BaseException as error:
                with lock:
                    errors.append(error)
                step.cancellation.cancel()
                step.rendezvous.abort()

        threads = [
            threading.Thread(target=run_one, args=(p,), name=f"graphmill {p.device}", daemon=True)
            for p in self._partitions[1:]
        ]
        for thread in threads:
            thread.start()
        if self._partitions:
            run_one(self._partitions[0])
        for thread in threads:
            thread.join()
        if errors:
            raise _root_cause(errors)
        return results


def _root_cause(errors: list[BaseException]) -> BaseException:
    """The error that started it: cancellations and aborts are what the others see of it."""
    return next((e for e in errors if not isinstance(e, CancelledError | AbortedError)), errors[0])


def check_results(fetches: Sequence[Output], values: Sequence[Any]) -> None:
    """Refuse values from branches that were not taken.

    Raises:
        InvalidArgumentError: a fetched tensor is dead.
    """
    for output, value in zip(fetches, values, strict=True):
        if value is DEAD:
            raise InvalidArgumentError(
                f"the tensor '{output.name}' was fetched but is on a branch that was not taken; it has no value",
                node=output.node.name,
            )


def signature_of(feeds: Sequence[Output], fetches: Sequence[Output], targets: Sequence[Node]) -> tuple[Any, ...]:
    """The cache key of a compiled step."""
    return (tuple(feeds), tuple(fetches), tuple(targets))
