"""Compiling steps for a session: placement once per graph, then pruning and splitting per request."""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Mapping
from dataclasses import replace

from toolkit.compiler.segments.notes import note_waits
from toolkit.graph.bodies import functions_of
from toolkit.graph.consistency import require_consistent
from toolkit.graph.device import LOCAL_JOB, DeviceSpec
from toolkit.graph.garbage import no_collection
from toolkit.graph.graph import Graph
from toolkit.graph.node import Node, Output
from toolkit.graph.shape import Shape
from toolkit.kernels import registry
from toolkit.passes.base import PassResult
from toolkit.passes.partitioning.bring_near import bring_near
from toolkit.passes.partitioning.partition import by_task, split
from toolkit.passes.partitioning.same_data import merge_same_data
from toolkit.passes.placement.moved import NO_DEVICE, Moved, devices_elsewhere, moved_to_only_device
from toolkit.passes.pruning.client_graph import rewrite_for_execution, rewrite_for_partial_run
from toolkit.policy.access import Access
from toolkit.policy.check import check_graph
from toolkit.runtime.device_kernels import DeviceKernels
from toolkit.runtime.devices import Device
from toolkit.runtime.sessions.feeds import placeholder_shape
from toolkit.runtime.steps.compiled import CompiledStep, Stages
from toolkit.runtime.workers.base import Worker
from toolkit.runtime.workers.local import LocalWorker


class Compiler:
    """Turns (feeds, fetches, targets) into a `CompiledStep`.

    With one device nothing is placed or split, unless every node must be where it asks to be. With several, the whole
    graph is placed first and again when nodes were added, so that a variable stays where it is whatever part of the
    graph a step needs. A worker gets the part of its task, and splits it among its devices.

    Args:
        workers: of every task that has devices, by name.
        access: what the graph may touch outside of the process.
    """

    def __init__(
        self,
        graph: Graph,
        devices: list[Device],
        workers: Mapping[str, Worker],
        allow_soft_placement: bool,
        access: Access | None = None,
    ):
        self._graph = graph
        self._devices = devices
        self._soft = allow_soft_placement
        self._in_cluster = any(device.spec.job != LOCAL_JOB for device in devices)
        self._workers = workers
        self._access = access
        self._kernels = DeviceKernels(allow_soft_placement)
        self._placed: tuple[int, PassResult] | None = None
        self._numbers = itertools.count(1)
        self._incarnations = {device.name: device.incarnation for device in devices}

    @no_collection()
    def compile(
        self, feeds: list[Output], fetches: list[Output], targets: list[Node], *, partial: bool = False
    ) -> CompiledStep:
        """Compile one combination.

        Args:
            partial: for a partial run: feeds and fetches are transfers instead of arguments and results.

        Raises:
            GraphError: the needed part of the graph is malformed, or cannot be placed.
            InvalidGraphError: what is known of its shapes and values breaks a rule of an op.
            UnimplementedError: it holds an op without a kernel.
            RefusedError: it, or a function that it calls, would touch what the session's policy does not allow.
        """
        if not partial and (step := self._over_table(feeds, fetches, targets)) is not None:
            return step
        return self._compile(feeds, fetches, targets, partial)

    def _over_table(self, feeds: list[Output], fetches: list[Output], targets: list[Node]) -> CompiledStep | None:
        """The step where it is the only one of a graph none of whose nodes has been made, and none need be."""
        if self._graph.unmade is None or not self._is_as_it_is:
            return None
        (worker,) = self._workers.values()
        if not isinstance(worker, LocalWorker) or not worker.runs_once:
            return None
        from toolkit.runtime.table_steps.first import TableStep
        from toolkit.runtime.table_steps.planner import plan_over_table  # large graphs alone need them

        kernels = worker.kernels_of(self._graph)
        plan = plan_over_table(self._graph, feeds, fetches, targets, self._access, kernels)
        if plan is None:
            return None
        return TableStep(plan, worker, lambda: self._made_ready(feeds, fetches, targets))

    @no_collection()
    def _made_ready(self, feeds: list[Output], fetches: list[Output], targets: list[Node]) -> CompiledStep:
        return self._compile(feeds, fetches, targets, partial=False)

    def _compile(self, feeds: list[Output], fetches: list[Output], targets: list[Node], partial: bool) -> CompiledStep:
        rewrite = rewrite_for_partial_run if partial else rewrite_for_execution
        if self._is_as_it_is:
            client = rewrite(self._graph, feeds, fetches, targets)
            self._check(client, feeds)
            stages = Stages(self._graph, client)
        else:
            self._check(rewrite(self._graph, feeds, fetches, targets), feeds)
            placed = self._placement().graph

            def same(output: Output) -> Output:
                return Output(placed.nodes[output.node.id], output.index)

            client = rewrite(
                placed, [same(o) for o in feeds], [same(o) for o in fetches], [placed.nodes[t.id] for t in targets]
            )
            stages = Stages(placed, client)
        parts = dict.fromkeys(self._workers, client)
        if len(self._workers) > 1:
            tag = f"S{next(self._numbers)}_"
            near = bring_near(client, by_task, shared=False)
            parts = split(merge_same_data(near, by_task), by_task, incarnation=self._incarnations.__getitem__, tag=tag)
            note_waits(list(parts.values()))
        return CompiledStep(stages, len(feeds), len(fetches), parts, self._workers)

    def _check(self, graph: Graph, feeds: list[Output]) -> None:
        if self._access is not None:
            check_graph(graph, self._access, registry.lacking)
        known: dict[Output, Shape] = {}
        for node in graph.nodes:
            if node.op == "_Arg":
                index: int = node.attr("index")
                known[node.output()] = placeholder_shape(feeds[index])
        require_consistent(graph, known)

    @property
    def _is_as_it_is(self) -> bool:
        """Whether nodes need not be placed."""
        return len(self._devices) == 1 and self._soft and not self._in_cluster

    def moved(self, steps: Iterable[CompiledStep]) -> list[Moved]:
        """The nodes of compiled steps that run elsewhere than they ask to."""
        if self._is_as_it_is:
            device = self._devices[0].spec
            elsewhere = devices_elsewhere(self._graph.device_names(), device)
            if not elsewhere:
                return []
            names = {name for step in steps for name in step.node_names()}
            needed = [node for node in self._graph.nodes_on(elsewhere) if node.name in names]
            return moved_to_only_device(needed, device)
        if self._placed is None:
            return []
        names = {name for step in steps for name in step.node_names()}
        found = [Moved(**each) for each in self._placed[1].report["moved"] if each["node"] in names]
        return [self._with_function(each) for each in found]

    def _with_function(self, moved: Moved) -> Moved:
        """Of a node that calls a function, what the function lacks."""
        node = self._graph.node(moved.node)
        kind = DeviceSpec.parse(moved.asked).device_type
        if kind is None or moved.why == NO_DEVICE or not functions_of(node):
            return moved
        lack = self._kernels.lack(node, kind)
        return replace(moved, why=lack) if lack else moved

    def wanting(self, steps: Iterable[CompiledStep]) -> list[str]:
        """The nodes of compiled steps that run on a CPU for want of a kernel here: TensorFlow has one for GPUs."""
        if self._is_as_it_is or self._placed is None or not any(d.device_type == "GPU" for d in self._devices):
            return []
        names = {node.name for step in steps for node in step.stages.client}
        found: dict[tuple[str, str, bool], list[str]] = {}
        for node, placed in zip(self._graph.nodes, self._placed[1].graph.nodes, strict=True):
            if node.name not in names:
                continue
            on_cpu = DeviceSpec.parse(placed.device).device_type == "CPU"
            if (not node.device if on_cpu else functions_of(node)) and (lack := self._kernels.wanting(node, "GPU")):
                found.setdefault((node.op, lack, on_cpu), []).append(node.name)
        return [
            f"{op} '{of[0]}'{f' and {len(of) - 1} more run' if len(of) > 1 else ' runs'} "
            f"{'on the CPU' if on_cpu else 'in part on the CPU'}: {lack}"
            for (op, lack, on_cpu), of in found.items()
        ]

    def _placement(self) -> PassResult:
        """The whole graph with devices; its nodes correspond to the graph's by id."""
        if self._placed is None or self._placed[0] != self._graph.version:
            from toolkit.passes.placement.place import Place  # a first step on one device does without its cost models

            place = Place(
                [device.spec for device in self._devices],
                allow_soft_placement=self._soft,
                supports=self._kernels.supports,
                leaves_tasks=not self._in_cluster,
            )
            self._placed = (self._graph.version, place.apply(self._graph))
        return self._placed[1]
