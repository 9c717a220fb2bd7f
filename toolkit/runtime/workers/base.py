"""The interface of workers: what a session asks of a task (TensorFlow's WorkerService, and RecvTensor between workers).

Nothing in it needs shared memory: graphs, tensors, names and numbers can be written to a wire, errors are statuses with
the name of a node, and whatever waits is ended by `cancel`. Inputs and outputs are keyed: `register` says under which
keys a graph takes and brings tensors, and `run` takes and gives values in the order of these keys.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

from toolkit.compiler.settings import Settings
from toolkit.graph.graph import Graph
from toolkit.kernels.device_memory import MemoryStatistics
from toolkit.policy.access import Access
from toolkit.runtime.devices import Device
from toolkit.runtime.executors.inter_op import InterOpPool
from toolkit.runtime.probes.base import Probe
from toolkit.runtime.steps.cancellation import CancellationManager
from toolkit.runtime.steps.rendezvous import LocalRendezvous, Receiver
from toolkit.runtime.steps.resources import ResourceManager
from toolkit.runtime.workers.peers import Sender


@dataclass(frozen=True, slots=True)
class Registered:
    """A graph that a worker has made ready to run.

    Attributes:
        handle: its name at this worker.
        inputs: the keys of what `run` takes, in order (`passes.pruning.client_graph.feed_key`).
        outputs: the keys of what `run` gives, in order (`fetch_key`).
        partitions: what each device of the worker runs, by the device's name, for looking at.
    """

    handle: int
    inputs: tuple[str, ...]
    outputs: tuple[str, ...]
    partitions: Mapping[str, Graph]


class Worker(Protocol):
    """One task: it has devices, compiles graphs for them and runs them.

    One that waits for another process may have a method `begin` beside `run`: with the same arguments and `failed`,
    which is called, from any thread, when the graph has failed; it returns what waits for the values. A step then takes
    no thread for each of its tasks.

    Calls may come from many threads. A step is known by its id from the first call that names it until `cleanup`;
    other workers may ask for its tensors, and a cancellation may arrive, before the step itself does.
    """

    def register(self, graph: Graph) -> Registered:
        """Make a graph ready to run (RegisterGraph).

        Args:
            graph: placed on this task's devices. `_Arg` and `_Retval` nodes are its inputs and outputs; what comes
                from and goes to other tasks crosses by `_Recv` and `_Send`.

        Raises:
            GraphError: it is malformed.
            UnimplementedError: an op has no kernel.
        """
        ...

    def run(self, handle: int, step_id: int, inputs: Sequence[Any], probe: Probe | None = None) -> list[Any]:
        """Run a graph once and wait for its end (RunGraph).

        Args:
            handle: of a registered graph.
            inputs: values in the order of `Registered.inputs`.
            probe: is told of every kernel that ran, at the latest when this returns.

        Returns:
            values in the order of `Registered.outputs`.

        Raises:
            AbortedError: there is no such graph (any more).
            OpError: the first failure, with its node; nothing of the step runs at this worker any more.
        """
        ...

    def send(self, step_id: int, key: str, value: Any) -> None:
        """Hand in a tensor that a graph receives from the client in the course of a step.

        Raises:
            OpError: the step has failed or was cancelled.
        """
        ...

    def receive(self, step_id: int, key: str, done: Receiver) -> Callable[[], object] | None:
        """Ask for a tensor that a graph sends to another task or to the client (RecvTensor).

        Args:
            done: is called once, possibly from another thread, with (value, is dead, error).

        Returns:
            what ends the asking, after which `done` may stay uncalled; None where it ends with the step alone.
        """
        ...

    def cancel(self, step_id: int) -> None:
        """End what runs of a step, what waits for its tensors, and what comes of it later. Again is fine."""
        ...

    def cleanup(self, step_id: int) -> None:
        """The step is over: drop what was kept for it (CleanupGraph)."""
        ...

    def deregister(self, handle: int) -> None:
        """Forget a graph; steps that run it go on (DeregisterGraph)."""
        ...

    def explain(self, handle: int, step_id: int, inputs: Sequence[Any]) -> list[str]:
        """What the graph was compiled to for inputs like these, in lines; nothing is run."""
        ...

    def notes(self) -> list[str]:
        """What the compiler left to kernels of the graphs that are registered, and why, in lines."""
        ...

    def statistics(self) -> Mapping[str, MemoryStatistics]:
        """What the memories of those of its devices have done that have one of their own, by device."""
        ...


@dataclass(frozen=True, slots=True)
class Environment:
    """What a session has for the workers that it makes in its own process.

    Attributes:
        resources: variables, queues and tables.
        cancellation: of everything in the session: a worker's steps end with it.
        access: what kernels may touch outside of the process.
        settings: of the compiler.
        force_tokens: run every node in the dataflow executor.
        pool: threads for kernels of one step; None to run them one after the other.
        peers: the worker of a task, by name, for tensors that come from there; None where this is the only one.
        rendezvous: of a step, where it may be known before its worker hears of the step; else the worker makes it.
    """

    resources: ResourceManager
    cancellation: CancellationManager
    access: Access | None = None
    settings: Settings | None = None
    force_tokens: bool = False
    pool: InterOpPool | None = None
    peers: Callable[[str], Sender] | None = None
    rendezvous: Callable[[int], LocalRendezvous] | None = None


#: makes the worker of a task, of its name and its devices
WorkerFactory = Callable[[str, Sequence[Device], Environment], Worker]
