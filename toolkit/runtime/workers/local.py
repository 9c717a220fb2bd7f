"""The worker in this process: executors for each device of its task, and the steps that are under way."""

from __future__ import annotations

import functools
import itertools
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np

from toolkit.compiler.pipeline.passes import THREADS
from toolkit.compiler.program import Program
from toolkit.compiler.program_kernels import ProgramKernels
from toolkit.compiler.segments.waits import Together
from toolkit.compiler.steps import Role, role_of
from toolkit.errors import AbortedError
from toolkit.graph.device import DeviceSpec
from toolkit.graph.graph import Graph
from toolkit.graph.node import Node
from toolkit.kernels import device_types, registry
from toolkit.kernels.device_memory import MemoryStatistics
from toolkit.passes.partitioning.bring_near import bring_near
from toolkit.passes.partitioning.memory_types import MemoryTypes
from toolkit.passes.partitioning.partition import by_device, split
from toolkit.passes.pruning.client_graph import feed_key, fetch_key
from toolkit.runtime.devices import Device
from toolkit.runtime.executors.chain import Chain
from toolkit.runtime.executors.choice import Executor, make_executor
from toolkit.runtime.executors.on_devices import DeviceExecutor
from toolkit.runtime.executors.planned import CompiledExecutor
from toolkit.runtime.probes.base import Probe
from toolkit.runtime.steps.barrier import run_together
from toolkit.runtime.steps.functions import FunctionRuntime
from toolkit.runtime.steps.rendezvous import LocalRendezvous, Receiver
from toolkit.runtime.steps.step import DeviceStep
from toolkit.runtime.workers.base import Environment, Registered
from toolkit.runtime.workers.peers import PeerRendezvous

if TYPE_CHECKING:
    from toolkit.runtime.table_steps.kernels import TableKernels

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class _Partition:
    """Attributes:
    results: which of the graph's results this device brings.
    functions: what calls functions there; None for host memory.
    """

    device: str
    executor: Executor
    results: list[int]
    functions: FunctionRuntime | None


class _Runnable:
    """A registered graph: one executor a device."""

    def __init__(self, partitions: list[_Partition], num_results: int):
        self.partitions = partitions
        self.num_results = num_results
        self.only = partitions[0] if len(partitions) == 1 else None
        executor = None if self.only is None else self.only.executor
        #: runs a recorded step again, without a step of this worker around it
        self.run_again = executor.run_again if isinstance(executor, DeviceExecutor) else None
        self.chain = None if self.only is not None else Chain.of([partition.executor for partition in partitions])

    def collect(self, found: Iterator[Sequence[Any]]) -> list[Any]:
        """The graph's results of those of its devices, which are taken from `found`."""
        results: list[Any] = [None] * self.num_results
        for partition in self.partitions:
            values = next(found)
            for index in partition.results:
                results[index] = values[index]
        return results


def _is_runnable(node: Node, kind: str) -> bool:
    """Whether a node of a function can run in a graph of a type of device: asked for nowhere else, with a kernel."""
    asked = DeviceSpec.parse(node.device).device_type
    if asked not in (None, kind) or node.attr_or("seed2", None) is not None:
        return False
    return role_of(node.op) is not Role.KERNEL or registry.find(node, kind) is not None


def _has_conditions(index: int) -> bool:
    """Whether the CUDA graphs of a GPU have conditional nodes: else functions are recorded one by one."""
    from toolkit.kernels.cuda.device import device

    return not device(index).context.no_conditions


class LocalWorker:
    """A task in this process. Each device but the first one has a thread of its own in a step, where devices have
    something to do at the same time.

    Args:
        task: its name: /job:worker/replica:0/task:0.
    """

    def __init__(self, task: str, devices: Sequence[Device], environment: Environment):
        self._task = task
        self._devices = devices
        self._environment = environment
        self._resources = environment.resources
        self._cancellation = environment.cancellation
        self._pool = environment.pool
        self._peers = environment.peers
        self._functions = self._function_runtime()
        self._device_functions = {
            device.name: self._function_runtime(device.spec)
            for device in devices
            if device_types.has_memory(device.device_type)
        }
        self._seed_state: dict[str, Any] = {}
        self._graphs: dict[int, _Runnable] = {}
        self._handles = itertools.count(1)
        self._steps: dict[int, DeviceStep] = {}
        self._kernels: dict[Graph, TableKernels] = {}

    def _function_runtime(self, device: DeviceSpec | None = None) -> FunctionRuntime:
        environment = self._environment
        return FunctionRuntime(
            make_executor,
            device,
            force_tokens=environment.force_tokens,
            settings=environment.settings,
            access=environment.access,
        )

    # -- graphs ------------------------------------------------------------------------------------------

    def register(self, graph: Graph) -> Registered:
        """See `Worker.register`."""
        graph, arguments, results = _numbered(graph)
        parts = {self._devices[0].name: graph} if len(self._devices) == 1 else split(self._near(graph))
        programs = {device: self._program(device, part) for device, part in parts.items()}
        together = Together(list(programs.values()))
        if len(programs) > 1:
            for program in together.programs:
                program.beside = together.programs
        partitions = [self._compile(device, program, together) for device, program in programs.items()]
        handle = next(self._handles)
        self._graphs[handle] = _Runnable(partitions, len(results))
        return Registered(handle, tuple(map(feed_key, arguments)), tuple(map(fetch_key, results)), parts)

    def _near(self, graph: Graph) -> Graph:
        """The graph that is split among the devices; by tokens the one that was given, as others would run it."""
        return graph if self._environment.force_tokens else bring_near(graph, by_device, shared=True)

    def _program(self, device: str, graph: Graph) -> Program:
        environment = self._environment
        settings = environment.settings
        spec = DeviceSpec.parse(device)
        kind, index = spec.device_type or "CPU", spec.device_index or 0
        if device_types.memory(kind, index) is not None:
            if kind == "GPU" and not environment.force_tokens and _has_conditions(index):
                from toolkit.passes.partitioning.lower_flow import lower_flow

                graph = lower_flow(graph, lambda node: _is_runnable(node, kind))
            graph = MemoryTypes(kind).apply(graph).graph
        defining, target = (False, None) if settings is None else (settings.defines, settings.target)
        return Program(graph, kind, access=environment.access, device_index=index, defining=defining, target=target)

    def _compile(self, device: str, program: Program, together: Together) -> _Partition:
        environment = self._environment
        executor = make_executor(
            program, force_tokens=environment.force_tokens, settings=environment.settings, together=together
        )
        results = [step.index for step in program.steps if step.role is Role.RETVAL]
        return _Partition(device, executor, results, self._device_functions.get(device))

    def deregister(self, handle: int) -> None:
        """See `Worker.deregister`."""
        self._graphs.pop(handle, None)

    def explain(self, handle: int, step_id: int, inputs: Sequence[Any]) -> list[str]:
        """See `Worker.explain`."""
        graph = self._graphs[handle]
        partitions = graph.partitions
        # of several tasks the session knows whether they run in one thread
        lines = [] if graph.chain is None or self._peers is not None else graph.chain.explain()
        for partition in partitions:
            if len(partitions) > 1:
                lines.append(f"{partition.device}:")
            lines += partition.executor.explain(inputs, self._step(step_id))
        return lines

    def notes(self) -> list[str]:
        """See `Worker.notes`."""
        executors = [part.executor for graph in list(self._graphs.values()) for part in graph.partitions]
        for functions in (self._functions, *self._device_functions.values()):
            executors += functions.executors()
        return [note for each in executors for note in each.notes()]

    # -- steps -------------------------------------------------------------------------------------------

    def run(self, handle: int, step_id: int, inputs: Sequence[Any], probe: Probe | None = None) -> list[Any]:
        """See `Worker.run`."""
        graph = self._registered(handle)
        if graph.run_again is not None and probe is None and step_id not in self._steps:
            results = graph.run_again(inputs)
            if results is not None:
                return results
        step = self._steps.get(step_id) or self._begin(step_id)
        if probe is not None:
            step.probe = probe
        self._use_threads()
        only = graph.only
        if only is not None:
            if only.functions is not None:
                step = step.sibling(only.device, functions=only.functions)
            # TensorFlow's kernels compute infinities and NaN without a word.
            with np.errstate(all="ignore"):
                return only.executor.run(inputs, step)
        return self._run_all(graph, inputs, step)

    def run_with(self, step_id: int, run: Callable[[DeviceStep], T]) -> T:
        """What `run` gives for a step on the only device. `cleanup` must follow."""
        step = self._steps.get(step_id) or self._begin(step_id)
        self._use_threads()
        with np.errstate(all="ignore"):
            return run(step)

    @property
    def runs_once(self) -> bool:
        """Whether large graphs of small tensors need not be compiled for their first run, on the only device."""
        environment = self._environment
        settings = environment.settings
        return (
            settings is not None
            and settings.once
            and settings.stages is None
            and settings.segments
            and not environment.force_tokens
            and environment.pool is None
            and len(self._devices) == 1
            and device_types.memory(self._devices[0].device_type, self._devices[0].spec.device_index or 0) is None
        )

    def kernels_of(self, graph: Graph) -> TableKernels:
        """Where the kernels of a graph come from that runs on the only device."""
        from toolkit.runtime.table_steps.kernels import TableKernels  # large graphs alone have such

        found = self._kernels.get(graph)
        if found is None:
            settings = self._environment.settings
            defining, target = (False, None) if settings is None else (settings.defines, settings.target)
            kind = self._devices[0].device_type
            made = ProgramKernels(kind, self._environment.access, defining, target)
            found = self._kernels[graph] = TableKernels(made)
        return found

    def ran_before(self, handles: Sequence[int]) -> None:
        """Graphs have been run in another way than by their executors: what comes is not their first run."""
        for handle in handles:
            for partition in self._registered(handle).partitions:
                if isinstance(partition.executor, CompiledExecutor):
                    partition.executor.ran_before()

    def _registered(self, handle: int) -> _Runnable:
        try:
            return self._graphs[handle]
        except KeyError:
            raise AbortedError(f"worker {self._task} has no graph with the handle {handle}; it was dropped") from None

    def executors(self, handle: int) -> list[Executor]:
        """See `chain.Members`."""
        return [partition.executor for partition in self._registered(handle).partitions]

    def steps(
        self, handle: int, step_id: int, probe: Probe | None, rendezvous: LocalRendezvous | None
    ) -> tuple[list[DeviceStep], Callable[[Iterator[Sequence[Any]]], list[Any]]]:
        """See `chain.Members`."""
        graph = self._registered(handle)
        step = self._steps.get(step_id)
        if step is None:
            step = self._new(step_id)
            if rendezvous is not None:
                step.connect(rendezvous)
            step = self._steps.setdefault(step_id, step)
        if probe is not None:
            step.probe = probe
        self._use_threads()
        return self._siblings(graph, step), graph.collect

    @staticmethod
    def _siblings(graph: _Runnable, step: DeviceStep) -> list[DeviceStep]:
        """A step for each device."""
        return [step.sibling(each.device, functions=each.functions) for each in graph.partitions]

    def _use_threads(self) -> None:
        """Let this thread's kernels take as many threads as the session was told: OpenMP keeps a number for each."""
        settings = self._environment.settings
        threads = None if settings is None else settings.threads
        if threads is None:
            THREADS.look()
            threads = THREADS.free
        if threads is not None or THREADS.is_set:
            THREADS.use(threads)

    def _run_all(self, graph: _Runnable, inputs: Sequence[Any], step: DeviceStep) -> list[Any]:
        """Run all devices and wait for all of them (the executor barrier)."""
        results: list[Any] = [None] * graph.num_results

        def run_one(partition: _Partition) -> None:
            self._use_threads()
            with np.errstate(all="ignore"):  # holds for this thread
                values = partition.executor.run(inputs, step.sibling(partition.device, functions=partition.functions))
            for index in partition.results:
                results[index] = values[index]

        def cancel() -> None:
            step.cancellation.cancel()
            step.rendezvous.abort()

        if graph.chain is not None and graph.chain.fits(step.probe):
            steps = self._siblings(graph, step)
            with np.errstate(all="ignore"):
                return graph.collect(iter(graph.chain.run([inputs] * len(steps), steps, cancel)))
        run_together({each.device: functools.partial(run_one, each) for each in graph.partitions}, cancel)
        return results

    def send(self, step_id: int, key: str, value: Any) -> None:
        """See `Worker.send`."""
        self._step(step_id).rendezvous.send(key, value)

    def receive(self, step_id: int, key: str, done: Receiver) -> None:
        """See `Worker.receive`."""
        self._step(step_id).rendezvous.recv_async(key, done)

    def cancel(self, step_id: int) -> None:
        """See `Worker.cancel`."""
        self._step(step_id).cancellation.cancel()

    def cleanup(self, step_id: int) -> None:
        """See `Worker.cleanup`."""
        step = self._steps.pop(step_id, None)
        if step is not None:
            step.finish()

    def _step(self, step_id: int) -> DeviceStep:
        return self._steps.get(step_id) or self._begin(step_id)

    def _new(self, step_id: int) -> DeviceStep:
        return DeviceStep(
            step_id, self._resources, self._functions, self._seed_state, self._cancellation, None, self._pool
        )

    def _begin(self, step_id: int) -> DeviceStep:
        step = self._new(step_id)
        if self._environment.rendezvous is not None:
            step.connect(self._environment.rendezvous(step_id))
        elif self._peers is not None:
            step.connect(PeerRendezvous(step_id, self._task, self._peers))
        return self._steps.setdefault(step_id, step)  # one of two threads that come at once makes it

    def statistics(self) -> dict[str, MemoryStatistics]:
        """See `Worker.statistics`."""
        memories = {
            device.name: device_types.memory(device.device_type, device.spec.device_index or 0)
            for device in self._devices
        }
        return {name: memory.statistics() for name, memory in memories.items() if memory is not None}


def _numbered(graph: Graph) -> tuple[Graph, list[int], list[int]]:
    """A graph with its arguments and results numbered from 0, and which of the step's these are, in order."""
    found: list[list[int]] = []
    for op in ("_Arg", "_Retval"):
        nodes = sorted((node for node in graph if node.op == op), key=lambda node: node.attr("index"))
        indices = [node.attr("index") for node in nodes]
        if indices != list(range(len(indices))):
            graph = graph.copy()
            for number, node in enumerate(nodes):
                graph.node(node.name).attrs["index"] = number
        found.append(indices)
    return graph, found[0], found[1]
