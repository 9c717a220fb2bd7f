"""Sessions: running parts of a graph, with state that lasts from one run to the next."""

from __future__ import annotations

import itertools
import threading
import time
import weakref
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import nullcontext
from types import TracebackType
from typing import TYPE_CHECKING, Any

from schemas import config_pb2, device_attributes_pb2
from toolkit.client.construction import session_stack
from toolkit.compiler.settings import Settings
from toolkit.errors import (
    AbortedError,
    ArgumentTypeError,
    CancelledError,
    ClosedError,
    FailedPreconditionError,
    NotFoundError,
    UsageError,
)
from toolkit.forks import free_in_children
from toolkit.graph.node import Node, Output
from toolkit.kernels.device_memory import MemoryStatistics
from toolkit.kernels.device_options import DeviceOptions
from toolkit.limits.allowance import Allowance
from toolkit.limits.exhaustion import exhaustion
from toolkit.limits.limits import Limits
from toolkit.passes.placement.moved import moved_lines
from toolkit.policy.access import Access
from toolkit.policy.rules import Policy
from toolkit.runtime.devices import Device, local_devices, require_devices, require_float8
from toolkit.runtime.executors.inter_op import InterOpPool
from toolkit.runtime.probes.base import Probe, Probes, tell_duration
from toolkit.runtime.probes.everywhere import joined
from toolkit.runtime.sessions import conversions
from toolkit.runtime.sessions.feeds import feed_array, taken_apart
from toolkit.runtime.sessions.fetches import Fetches, graph_element
from toolkit.runtime.sessions.graphs import core_graph, default_graph, default_policy
from toolkit.runtime.sessions.partial_run import PartialRun
from toolkit.runtime.sessions.prepared import Feeds, PreparedCache, PreparedStep
from toolkit.runtime.sessions.remote_steps import refuse_settings, run_remotely
from toolkit.runtime.sessions.results import detached, fill_metadata
from toolkit.runtime.sessions.targets import Remote, is_remote, kind_of
from toolkit.runtime.steps.cancellation import CancellationManager
from toolkit.runtime.steps.compiled import CompiledStep, check_results, signature_of
from toolkit.runtime.steps.compiler import Compiler
from toolkit.runtime.steps.resources import ResourceManager, shared_resources
from toolkit.runtime.steps.under_way import run_within
from toolkit.runtime.workers.base import Environment, Worker, WorkerFactory
from toolkit.runtime.workers.local import LocalWorker
from toolkit.target.target import Target

if TYPE_CHECKING:
    from toolkit.runtime.probes.trace import TraceProbe
    from toolkit.runtime.sessions.coalescing import Coalescer


class Session:
    """Runs a graph as TensorFlow 1's Session does.

    Variables, queues and tables live as long as the session. Many threads may call `run` at once.

    Args:
        graph: a core `Graph`, a client graph, a `MetaGraph` or a `Model`; default: the default graph.
        devices: how many devices of each type, {"CPU": 2}, or the devices themselves. With {"GPU": 1} every node
            that has a kernel for GPUs runs there unless it asks for something else, as with TensorFlow.
        device_options: what is said about devices with a memory of their own: how much of it, which ones.
        allow_soft_placement: nodes that ask for a device that is not here run on one that is. Unlike
            TensorFlow 1 this is on by default: graphs come with devices of other machines baked in. `moved` lists
            them; without it, a step of a graph with such nodes is refused.
        target: "" for resources of its own, or "local://NAME": sessions of this process with the same name
            share variables, queues and tables, until `Session.reset`. "grpc://HOST:PORT": the steps run at a master
            and the tasks of its cluster, where variables live; what follows of settings of this process is then
            refused, and the policy is the servers'.
        force_tokens: run everything in the dataflow executor (to debug the executors against each other).
        inter_op_threads: so many threads run independent kernels of a step at the same time, where they take long
            enough. With none, the default, nodes run one after the other in the same order every time, so that
            operations without an order between them (two updates of one variable, say) also repeat exactly.
        threads: how many threads one oneDNN primitive uses; default: as many as there are processors.
        precision: "f32"; "tf32", on GPUs, for convolutions and matrix products that see 10 bits of a mantissa; "bf16"
            for those in bfloat16 with float32 sums; "fp16", on GPUs, for the same in float16, where what is beyond
            65504 is infinity; "fp8", on GPUs of compute capability 8.9 and later, for bf16 whose products with weights
            take floats of 8 bits; or "exact" for the kernels that define the ops, alone (see: graphmill help numerics).
        limits: what all steps together may use; an `Allowance` to share it with other sessions. A step that wants
            more fails with RESOURCE_EXHAUSTED or DEADLINE_EXCEEDED.
        policy: what the graph may touch outside of the process. By default a `Model` that was read from a file may
            read its own folder and print; everything else, a graph that the program made or imported, is the
            program's own and may do what the program may.
        stages: a folder that compiled programs are written to, in text form, after each pass of the compiler.
        once: no step will be asked for twice, as a rule. Compiling a large graph of small tensors takes longer than
            running it: its first step is run by the kernels of its nodes, within rounding of what is compiled when it
            is asked for again.
        processor: what programs are compiled for; default: the processor that this runs on.
        workers: makes the worker of each task that has devices; by default all are in this process.
        config: what a master is told; by default that soft placement is as `allow_soft_placement` says.

    Attributes:
        allowance: what is left of the limits; None where there are none.
        access: the policy as it is now. What the program gives a `Saver` to save or restore is granted there.

    Used as a context manager it is the default session of its thread inside the block, and closed at its end.
    """

    graph: Any
    #: whether what is fed is cast to the type of its tensor, or refused where something would be lost
    casts_feeds = False

    def __init__(
        self,
        graph: Any = None,
        *,
        devices: Mapping[str, int] | Sequence[Device] | None = None,
        device_options: DeviceOptions | None = None,
        allow_soft_placement: bool = True,
        target: str = "",
        force_tokens: bool = False,
        inter_op_threads: int = 0,
        threads: int | None = None,
        precision: str = "f32",
        limits: Limits | Allowance | None = None,
        policy: Policy | None = None,
        stages: str | None = None,
        once: bool = False,
        processor: Target | None = None,
        workers: WorkerFactory | None = None,
        config: config_pb2.ConfigProto | None = None,
    ):
        self.graph = default_graph() if graph is None else graph
        self._core = core_graph(self.graph)
        self._remote: Remote | None = None
        if is_remote(target):
            refuse_settings(
                target, devices=devices, device_options=device_options, force_tokens=force_tokens,
                inter_op_threads=inter_op_threads, threads=threads, precision=precision != "f32", limits=limits,
                stages=stages, once=once, processor=processor, workers=workers,
            )  # fmt: skip
            config = config or config_pb2.ConfigProto(allow_soft_placement=allow_soft_placement)
            self._remote = kind_of(target).open(target, self._core, config)
            devices, target = [], ""
        self.devices = local_devices(devices) if devices is None or isinstance(devices, Mapping) else list(devices)
        require_devices(self.devices, device_options)
        self.resources = shared_resources(target) if target else ResourceManager()
        self._owns_resources = not target
        self._pool = InterOpPool(inter_op_threads) if inter_op_threads else None
        force_tokens = force_tokens or self._pool is not None  # only that executor spreads its work
        settings = Settings.current(precision, threads, stages, processor, once=once)
        if settings.float8:
            require_float8(self.devices)
        self.access = Access(default_policy(self.graph) if policy is None else policy)
        self._cancellation = CancellationManager()
        self._workers = self._make_workers(workers or LocalWorker, settings, force_tokens)
        self._compiler = Compiler(self._core, self.devices, self._workers, allow_soft_placement, self.access)
        self.allowance = Allowance(limits) if isinstance(limits, Limits) else limits
        if self.allowance is not None:
            self.allowance.watch(self._cancellation)
        self._owns_allowance = isinstance(limits, Limits)
        self._compiled: dict[tuple[Any, ...], CompiledStep] = {}
        self._prepared = PreparedCache(self._prepare)
        self._partial_runs: dict[str, PartialRun] = {}
        self._batched: weakref.WeakSet[Coalescer] = weakref.WeakSet()
        self._lock = threading.Lock()
        free_in_children(self, "_lock")
        self._step_ids: Iterator[int] = itertools.count(1)
        self._closed = False
        self._entered: list[Any] = []

    def _make_workers(self, make: WorkerFactory, settings: Settings, force_tokens: bool) -> dict[str, Worker]:
        tasks: dict[str, list[Device]] = {}
        for device in self.devices:
            tasks.setdefault(device.spec.task_name, []).append(device)
        workers: dict[str, Worker] = {}
        environment = Environment(
            self.resources, self._cancellation, self.access, settings, force_tokens, self._pool,
            peers=workers.__getitem__ if len(tasks) > 1 else None,
        )  # fmt: skip
        for task, devices in tasks.items():
            workers[task] = make(task, devices, environment)
        return workers

    # -- running -----------------------------------------------------------------------------------------

    def run(
        self,
        fetches: Any,
        feed_dict: Mapping[Any, Any] | None = None,
        options: config_pb2.RunOptions | None = None,
        run_metadata: config_pb2.RunMetadata | None = None,
        *,
        timeout_ms: int | None = None,
        probe: Probe | None = None,
    ) -> Any:
        """Run one step.

        Args:
            fetches: a tensor ("y:0", Output, client Tensor), an operation ("train", Node, client Operation), or
                any nesting of lists, tuples, dicts and named tuples of them.
            feed_dict: tensor to value; any tensor of the graph may be fed.
            options: a RunOptions message: `timeout_in_ms`, `trace_level` (FULL_TRACE fills in
                `run_metadata.step_stats`) and `output_partition_graphs` are heeded; a master is told all of it.
            run_metadata: a RunMetadata message to fill in.
            timeout_ms: cancel the step after this time, unless `options` has one.
            probe: looks at every node that runs; see `toolkit.runtime.probes`. At a master only a `TraceProbe` can.

        Returns:
            the structure of `fetches` with numpy values, None for operations.

        Raises:
            UsageError: a name or a value does not fit the graph.
            OpError: an operation failed; the error names it, and the session stays usable.
        """
        self._check_open()
        if self.allowance is not None and not self.allowance.is_inside:
            with self.allowance.running():
                return self.run(fetches, feed_dict, options, run_metadata, timeout_ms=timeout_ms, probe=probe)
        feed_dict = taken_apart(feed_dict) if feed_dict else feed_dict
        prepared = self._prepared.get(fetches, feed_dict)
        arguments = prepared.feeds.arrays(feed_dict.values()) if feed_dict else []
        if self._remote is not None:
            values = run_remotely(self._remote, prepared, arguments, options, run_metadata, timeout_ms, probe)
            return prepared.wanted.build(detached(values))
        compiled = prepared.compiled
        tracer: TraceProbe | None = None
        if options is not None:
            timeout_ms = options.timeout_in_ms if options.timeout_in_ms > 0 else timeout_ms  # the session's own
            if options.trace_level > config_pb2.RunOptions.NO_TRACE:
                from toolkit.runtime.probes.trace import TraceProbe

                tracer = TraceProbe()
                probe = tracer if probe is None else Probes([probe, tracer])
        values = self._execute(compiled, arguments, timeout_ms, probe)
        if run_metadata is not None:
            fill_metadata(run_metadata, options, tracer, compiled)
        check_results(prepared.wanted.outputs, values)
        try:
            return prepared.wanted.build(detached(values))
        except MemoryError as error:
            raise exhaustion(error, "what is fetched") or error from None

    def make_callable(self, fetches: Any, feed_list: Sequence[Any] = ()) -> Callable[..., Any]:
        """A function of the values of `feed_list` that returns what `run(fetches)` would; compiled once."""
        self._check_open()
        wanted = Fetches(self._core, fetches)
        feeds = [self._feedable(key) for key in feed_list]
        convert = Feeds(feeds, self.casts_feeds).arrays
        compiled = self._compile(feeds, wanted.outputs, wanted.targets)
        remote = None if self._remote is None else self._remote.make_callable(compiled)

        def call(*values: Any) -> Any:
            if len(values) != len(feeds):
                raise UsageError(f"this callable takes {len(feeds)} value(s), not {len(values)}")
            self._check_open()
            if remote is not None:
                return wanted.build(detached(remote(convert(values))))
            if self.allowance is None:
                results = self._execute(compiled, convert(values), None)
            else:
                with self.allowance.running():
                    results = self._execute(compiled, convert(values), None)
            check_results(wanted.outputs, results)
            return wanted.build(detached(results))

        return call

    def batched(
        self, fetches: Any, feed_list: Sequence[Any], *, max_batch: int = 16, wait_ms: float = 0.0
    ) -> Coalescer:
        """A function as `make_callable` makes it, for many threads: requests at the same time run as one step.

        Every value has examples along its first axis, every fetched tensor a row for each, and the graph computes each
        example by itself. See `toolkit.runtime.sessions.coalescing`.

        Args:
            max_batch: examples of a step at most.
            wait_ms: how long a request waits for others although nothing runs.

        Raises:
            UsageError: a tensor cannot be a batch.
        """
        from toolkit.runtime.sessions.coalescing import Coalescer

        wanted = Fetches(self._core, fetches)
        feeds = [self._feedable(key) for key in feed_list]
        step = self.make_callable(wanted.outputs, feeds)
        made = Coalescer(step, feeds, wanted, most=max_batch, wait_ms=wait_ms, casts=self.casts_feeds)
        self._batched.add(made)
        return made

    def partial_run_setup(self, fetches: Any, feeds: Sequence[Any] = ()) -> str:
        """Start a step that will be fed and fetched bit by bit.

        Args:
            fetches: a structure with everything that will be fetched in the course of it.
            feeds: everything that will be fed.

        Returns:
            a handle for `partial_run`.
        """
        self._check_open()
        wanted = Fetches(self._core, fetches)
        outputs = [self._feedable(key) for key in conversions.fed_in_part(feeds)]
        if self._remote is not None:
            return self._remote.partial_run_setup(self._remote.prepare(outputs, wanted.outputs, wanted.targets))
        compiled = self._compiler.compile(outputs, wanted.outputs, wanted.targets, partial=True)
        step_id = next(self._step_ids)
        handle = f"partial_run_{step_id}"
        within = nullcontext() if self.allowance is None else self.allowance.running()
        self._partial_runs[handle] = PartialRun(compiled, outputs, wanted.outputs, wanted.targets, step_id, within)
        return handle

    def partial_run(self, handle: str, fetches: Any, feed_dict: Mapping[Any, Any] | None = None) -> Any:
        """Go on with a step of `partial_run_setup`: feed some more and fetch what can be computed now.

        Raises:
            UsageError: the handle is unknown, or something was not declared in the setup.
            InvalidArgumentError: a fetch needs what has not been fed, or something is fed or fetched twice.
        """
        self._check_open()
        under_way = self._partial_runs.get(handle)
        if under_way is None and self._remote is None:
            raise UsageError(f"there is no partial run '{handle}'; make one with partial_run_setup")
        wanted = Fetches(self._core, fetches)
        feeds: dict[Output, Any] = {}
        for key, value in taken_apart(feed_dict or {}).items():
            output = self._feedable(key)
            feeds[output] = feed_array(output, value, casts=self.casts_feeds)
        if under_way is None:
            assert self._remote is not None
            step = self._remote.prepare(list(feeds), wanted.outputs, wanted.targets)
            return wanted.build(detached(self._remote.partial_run(handle, step, list(feeds.values()))))
        try:
            values = under_way.run(wanted.outputs, wanted.targets, feeds)
        finally:
            if under_way.is_closed:
                self._partial_runs.pop(handle, None)
        check_results(wanted.outputs, values)
        return wanted.build(detached(values))

    def compiled(self, fetches: Any, feeds: Sequence[Any] = ()) -> CompiledStep:
        """The compiled step for these fetches and feeds, with the graph at every stage (`stages`)."""
        self._require_here("compiled steps")
        wanted = Fetches(self._core, fetches)
        return self._compile([self._feedable(key) for key in feeds], wanted.outputs, wanted.targets)

    def explain(self, fetches: Any, feed_dict: Mapping[Any, Any] | None = None) -> list[str]:
        """What `run` with these fetches and feeds was compiled to, in lines; nothing is run."""
        self._check_open()
        self._require_here("compiled steps")
        with nullcontext() if self.allowance is None else self.allowance.running():
            prepared = self._prepared.get(fetches, feed_dict)
            arguments = prepared.feeds.arrays(feed_dict.values()) if feed_dict else []
            step_id = next(self._step_ids)
            try:
                lines = prepared.compiled.explain(step_id, arguments)
                moved = moved_lines(self._compiler.moved([prepared.compiled]))
                return [*lines, *(f"soft placement: {line}" for line in moved)]
            finally:
                prepared.compiled.cleanup(step_id)

    def _feedable(self, key: Any) -> Output:
        output = graph_element(self._core, key, names_are_tensors=True)
        if isinstance(output, Node):
            name = output.name
            raise ArgumentTypeError(f"the operation '{name}' cannot be fed; feed a tensor such as '{name}:0'")
        return output

    def _prepare(self, structure: Any, keys: Sequence[Any]) -> PreparedStep:
        wanted = Fetches(self._core, structure)
        outputs = [self._feedable(key) for key in keys]
        if len(set(outputs)) < len(outputs):
            twice = next(output for output in outputs if outputs.count(output) > 1)
            raise UsageError(f"'{twice.name}' is fed twice")
        compiled = self._compile(outputs, wanted.outputs, wanted.targets)
        return PreparedStep(wanted, compiled, outputs, self.casts_feeds)

    def _compile(self, feeds: list[Output], fetches: list[Output], targets: list[Node]) -> CompiledStep:
        key = signature_of(feeds, fetches, targets)
        found = self._compiled.get(key)
        if found is None:
            with self._lock:
                found = self._compiled.get(key)
                if found is None:
                    make: Any = self._compiler.compile if self._remote is None else self._remote.prepare
                    found = self._compiled[key] = make(feeds, fetches, targets)
        return found

    def _execute(
        self,
        compiled: CompiledStep,
        arguments: list[Any],
        timeout_ms: int | None,
        probe: Probe | None = None,
    ) -> list[Any]:
        step_id = next(self._step_ids)
        probe = joined(probe)
        try:
            if probe is None and timeout_ms is None:
                return compiled.run(step_id, arguments, None)
            started = time.perf_counter()
            if timeout_ms is None:
                results = compiled.run(step_id, arguments, probe)
            else:
                results = run_within(compiled, arguments, step_id, timeout_ms, probe)
            if probe is not None:
                tell_duration(probe, time.perf_counter() - started)
            return results
        except (NotFoundError, AbortedError, FailedPreconditionError):
            if self._closed:  # its resources, the values of its variables or its graphs went while the step ran
                raise CancelledError("the session was closed") from None
            raise
        finally:
            compiled.cleanup(step_id)

    @staticmethod
    def reset(
        target: str, containers: Sequence[str] | None = None, config: config_pb2.ConfigProto | None = None
    ) -> None:
        """Drop the state that sessions of a target share: all of it, or that of some containers.

        Args:
            config: for a master, whose device filters say which tasks are meant.

        Raises:
            UsageError: the target is not one that sessions can share.
        """
        if is_remote(target):
            kind_of(target).reset(target, list(containers or ()), config or config_pb2.ConfigProto())
            return
        shared_resources(target).clear(list(containers) if containers is not None else None)

    # -- life --------------------------------------------------------------------------------------------

    @property
    def is_remote(self) -> bool:
        """Whether the steps run at a master, with variables, queues and files where its tasks are."""
        return self._remote is not None

    def list_devices(self) -> Sequence[Device | device_attributes_pb2.DeviceAttributes]:
        """The devices of this process, or what a master tells of those of its cluster."""
        self._check_open()
        return list(self.devices) if self._remote is None else self._remote.list_devices()

    def notes(self) -> list[str]:
        """What the compiler left to kernels in the steps until now, and why, in lines."""
        return list(dict.fromkeys(note for worker in self._workers.values() for note in worker.notes()))

    def moved(self) -> list[str]:
        """Nodes of the steps until now that soft placement put elsewhere than they ask for, by op and why, in lines."""
        return [] if self.is_remote else moved_lines(self._compiler.moved(list(self._compiled.values())))

    def wanting(self) -> list[str]:
        """Nodes of the steps until now that ask for no device and run on a CPU though TensorFlow runs them on GPUs,
        which the session has: there is no kernel of theirs here. In lines."""
        return [] if self.is_remote else self._compiler.wanting(list(self._compiled.values()))

    def device_statistics(self) -> dict[str, MemoryStatistics]:
        """What the memories of those devices have done that have one of their own, by device."""
        return {name: each for worker in self._workers.values() for name, each in worker.statistics().items()}

    def close(self) -> None:
        """Cancel what is running and drop the session's state. Closing twice is fine."""
        if self._closed:
            return
        self._closed = True
        for batched in list(self._batched):
            batched.close()
        self._cancellation.cancel()
        if self.allowance is not None and self._owns_allowance:
            self.allowance.close()
        # other threads add to both tables until they see that it is closed
        for under_way in list(self._partial_runs.values()):
            under_way.close()
        if self._remote is not None:
            self._remote.close()
        else:
            for compiled in list(self._compiled.values()):
                compiled.close()
        self._compiled.clear()
        if self._pool is not None:
            self._pool.close()
        if self._owns_resources:
            self.resources.clear()

    def _check_open(self) -> None:
        if self._closed:
            raise ClosedError("the session is closed")

    def _require_here(self, what: str) -> None:
        if self._remote is not None:
            raise UsageError(f"{what} are the servers' in a session at a master; ask in a session of this process")

    def as_default(self) -> Any:
        """A context manager that makes this the default session of the thread without closing it."""
        return session_stack.default_session(self)

    def __enter__(self) -> Session:
        session_stack.push(self)
        scope = self.graph.as_default() if hasattr(self.graph, "as_default") else None
        if scope is not None:
            scope.__enter__()
        self._entered.append(scope)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, value: BaseException | None, trace: TracebackType | None
    ) -> None:
        scope = self._entered.pop()
        if scope is not None:
            scope.__exit__(kind, value, trace)
        session_stack.pop(self)
        self.close()


class InteractiveSession(Session):
    """A session that is the default one of its thread from the start until it is closed."""

    def __init__(self, graph: Any = None, **settings: Any):
        super().__init__(graph, **settings)
        session_stack.push(self)

    def close(self) -> None:
        session_stack.pop(self)
        super().close()
