"""The life of a step: from the full graph to workers.

    full graph -> placement -> client graph (_Arg, _Retval) -> one graph per task -> workers -> one graph per device

Each stage is a value that can be looked at (`Stages`). A `CompiledStep` is what remains; it is made once for a
set of feeds, fetches and targets and run many times.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from toolkit.errors import InvalidArgumentError
from toolkit.graph.graph import Graph
from toolkit.graph.node import Node, Output
from toolkit.kernels.context import DEAD
from toolkit.passes.partitioning.partition import RECV_OPS, SEND_OPS
from toolkit.passes.pruning.client_graph import CLIENT, feed_key, fetch_key
from toolkit.runtime.executors.chain import Chain, Members
from toolkit.runtime.probes.base import Probe
from toolkit.runtime.steps.barrier import run_together
from toolkit.runtime.steps.failures import root_cause
from toolkit.runtime.steps.rendezvous import LocalRendezvous, Receiver, make_key
from toolkit.runtime.steps.step import DeviceStep
from toolkit.runtime.workers.base import Worker


@dataclass(slots=True)
class Stages:
    """The graph after each stage of compilation, for looking at."""

    placed: Graph
    client: Graph
    partitions: dict[str, Graph] = field(default_factory=dict[str, Graph])


@dataclass(frozen=True, slots=True)
class _Part:
    """What one worker runs.

    Attributes:
        handle: of the graph, at the worker.
        arguments, results: which of the step's arguments it takes, and which results it brings, in its order.
    """

    task: str
    worker: Worker
    handle: int
    arguments: list[int]
    results: list[int]


class CompiledStep:
    """One combination of feeds, fetches and targets, registered with the workers that run it.

    Args:
        parts: what each task runs.
        workers: of these tasks.
    """

    def __init__(
        self, stages: Stages, num_arguments: int, num_results: int, parts: Mapping[str, Graph],
        workers: Mapping[str, Worker],
    ):  # fmt: skip
        self.stages = stages
        self._num_results = num_results
        self._parts: list[_Part] = []
        self._members: list[tuple[_Part, Members]] = []
        self._transfers: dict[str, Worker] = {}  # who sends to or receives from the client, by tensor name
        arguments = {feed_key(index): index for index in range(num_arguments)}
        results = {fetch_key(index): index for index in range(num_results)}
        for task, graph in parts.items():
            worker = workers[task]
            try:
                registered = worker.register(graph)
            except BaseException:
                self.close()  # of those before
                raise
            stages.partitions.update(registered.partitions)
            taken = [arguments[key] for key in registered.inputs]
            brought = [results[key] for key in registered.outputs]
            self._parts.append(_Part(task, worker, registered.handle, taken, brought))
            self._transfers.update(dict.fromkeys(_client_transfers(graph), worker))
        self._chain = self._chained()
        #: see `_run_all` and `_clean_up_all`; where there is one worker, it is called without a detour
        self.run: Callable[[int, Sequence[Any], Probe | None], list[Any]] = self._run_all
        self.cleanup: Callable[[int], None] = self._clean_up_all
        if len(self._parts) == 1:
            part = self._parts[0]
            self.run, self.cleanup = functools.partial(part.worker.run, part.handle), part.worker.cleanup

    @property
    def handles(self) -> list[int]:
        """Its graphs at the workers."""
        return [part.handle for part in self._parts]

    def node_names(self) -> set[str]:
        """The names of the nodes that it runs."""
        return {node.name for node in self.stages.client}

    def explain(self, step_id: int, arguments: Sequence[Any]) -> list[str]:
        """What was compiled for these arguments, in lines; nothing is run."""
        lines = [] if self._chain is None else self._chain.explain()
        for part in self._parts:
            if len(self._parts) > 1:
                lines.append(f"{part.task}:")
            lines += part.worker.explain(part.handle, step_id, [arguments[index] for index in part.arguments])
        return lines

    def _chained(self) -> Chain | None:
        """What runs all parts in one thread; None where there is one part, or some are run elsewhere, or the client may
        ask for tensors before the step has begun."""
        members: list[tuple[_Part, Members]] = [
            (part, part.worker) for part in self._parts if isinstance(part.worker, Members)
        ]
        if len(self._parts) < 2 or self._transfers or len(members) < len(self._parts):
            return None
        self._members = members
        return Chain.of([each for part, worker in members for each in worker.executors(part.handle)])

    def _run_chain(self, chain: Chain, step_id: int, arguments: Sequence[Any], probe: Probe | None) -> list[Any]:
        """As `_run_all`, in this thread."""
        given: list[list[Any]] = []
        steps: list[DeviceStep] = []
        collects: list[Callable[[Iterator[Sequence[Any]]], list[Any]]] = []
        # one: what another worker sends need not be asked for there
        rendezvous = None if chain.is_scheduled else LocalRendezvous()
        for part, worker in self._members:
            found, collect = worker.steps(part.handle, step_id, probe, rendezvous)
            steps += found
            collects.append(collect)
            given += [[arguments[index] for index in part.arguments]] * len(found)
        with np.errstate(all="ignore"):  # TensorFlow's kernels compute infinities and NaN without a word
            values = iter(chain.run(given, steps, functools.partial(self.cancel, step_id)))
        results: list[Any] = [None] * self._num_results
        for part, collect in zip(self._parts, collects, strict=True):
            for index, value in zip(part.results, collect(values), strict=True):
                results[index] = value
        return results

    def _run_all(self, step_id: int, arguments: Sequence[Any], probe: Probe | None) -> list[Any]:
        """Run all parts and wait for all of them. `cleanup` must follow.

        Raises:
            OpError: the first failure; the other workers' parts have been cancelled.
        """
        if self._chain is not None and self._chain.fits(probe):
            return self._run_chain(self._chain, step_id, arguments, probe)
        results: list[Any] = [None] * self._num_results

        def cancel() -> None:
            self.cancel(step_id)

        def keep(part: _Part, values: Sequence[Any]) -> None:
            for index, value in zip(part.results, values, strict=True):
                results[index] = value

        def run_one(part: _Part) -> None:
            keep(part, part.worker.run(part.handle, step_id, [arguments[index] for index in part.arguments], probe))

        here: dict[str, Callable[[], None]] = {}
        begun: list[tuple[_Part, Callable[[], Sequence[Any]]]] = []
        errors: list[BaseException] = []
        try:
            for part in self._parts:
                begin = getattr(part.worker, "begin", None)
                if begin is None:
                    here[part.task] = functools.partial(run_one, part)
                    continue
                inputs = [arguments[index] for index in part.arguments]
                begun.append((part, begin(part.handle, step_id, inputs, probe, cancel)))
            if here:
                run_together(here, cancel)
        except BaseException as error:
            errors.append(error)
            cancel()
        for part, finish in begun:
            try:
                keep(part, finish())
            except BaseException as error:
                errors.append(error)
                cancel()
        if errors:
            raise root_cause(errors)
        return results

    def send(self, step_id: int, name: str, value: Any) -> None:
        """Feed a step that is under way.

        Args:
            name: of the transfer: `feed_key`.

        Raises:
            OpError: the step has failed.
        """
        self._transfers[name].send(step_id, _client_key(name), value)

    def receive(self, step_id: int, name: str, done: Receiver) -> None:
        """Fetch from a step that is under way: `done(value, is_dead, error)` is called when the value is there.

        Args:
            name: of the transfer: `fetch_key` or `target_key`.
        """
        self._transfers[name].receive(step_id, _client_key(name), done)

    def cancel(self, step_id: int) -> None:
        """End a step at all workers."""
        for part in self._parts:
            part.worker.cancel(step_id)

    def _clean_up_all(self, step_id: int) -> None:
        """Drop what the workers keep for a step that is over."""
        for part in self._parts:
            part.worker.cleanup(step_id)

    def close(self) -> None:
        """Forget the graphs at the workers."""
        for part in self._parts:
            part.worker.deregister(part.handle)


def _client_transfers(graph: Graph) -> list[str]:
    """The names of the tensors that a graph of a partial run exchanges with the client."""
    return [
        node.text("tensor_name")
        for node in graph
        if node.op in SEND_OPS | RECV_OPS and node.attr("client_terminated", False)
    ]


def _client_key(name: str) -> str:
    return make_key(CLIENT, 0, CLIENT, name, (0, 0))


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
