"""Assign every node to a device (white paper, section 3.2.1).

Constraints come from device names, colocation, references, resources and kernels (`placement/constraints`); among the
devices that are left a strategy decides (`placement/strategies`): the default one as TensorFlow does, the greedy one by
simulating the step. What rules and `variables` say is noted in the nodes before.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import asdict, dataclass, field
from typing import Any, ClassVar

from toolkit.errors import UsageError
from toolkit.formats.settings.cluster_speeds import Speeds
from toolkit.formats.settings.cost_file import MeasuredCosts
from toolkit.formats.settings.placement_rules import PlacementRule
from toolkit.graph.device import DeviceSpec
from toolkit.graph.garbage import no_collection
from toolkit.graph.graph import Graph
from toolkit.graph.node import Node
from toolkit.kernels.facts import Availability, has_kernel
from toolkit.passes.base import PassResult
from toolkit.passes.placement.colocation import ColocationGroup
from toolkit.passes.placement.constraints import Choice, Constraints
from toolkit.passes.placement.costs import BATCH
from toolkit.passes.placement.devices import DeviceSet
from toolkit.passes.placement.moved import NO_DEVICE, Moved
from toolkit.passes.placement.report import measured_facts, simulated_facts, trace_events
from toolkit.passes.placement.rules import SpreadVariables, apply_rules
from toolkit.passes.placement.simulated_step import SimulatedStep
from toolkit.passes.placement.strategies import PlacementTask, check_choices, find_strategy, is_ours


@dataclass(frozen=True)
class Place:
    """Give every node a full device name.

    Attributes:
        devices: what there is; full names are as good as a set, the task of the first is the default one.
        allow_soft_placement: when a device type or number cannot be had, or has no kernel, take another of the
            task instead of failing; when there is no such task, any.
        strategy: the name of one (`placement/strategies`).
        supports: which device types can run a node; by default those that TensorFlow has kernels for.
        variables: where variables go that name no job, such as "/job:ps", over the tasks that fit.
        balance: how they are spread there: "round-robin" or "bytes" (TensorFlow's replica_device_setter).
        rules: which nodes go where; the first one that fits a node wins.
        speeds: how fast devices and links are.
        measured: what nodes took when they were measured.
        batch: what an unknown first size counts as.
        stages: how many pipeline stages the strategy "stages" makes.
        details: whether the report tells of each node.
        leaves_tasks: whether soft placement may take a device of another task. Files carry the names of other
            clusters; in a cluster that runs, a task that is not there is a mistake.
        timeline: simulate the step whatever the strategy is, and report it as trace events.
    """

    name: ClassVar[str] = "place"

    devices: DeviceSet | Sequence[DeviceSpec]
    allow_soft_placement: bool = False
    strategy: str = "default"
    supports: Availability = has_kernel
    variables: str = ""
    balance: str = "round-robin"
    rules: tuple[PlacementRule, ...] = ()
    speeds: Speeds = field(default_factory=Speeds)
    measured: MeasuredCosts | None = None
    batch: int = BATCH
    stages: int = 0
    timeline: bool = False
    details: bool = True
    leaves_tasks: bool = True

    def check(self) -> None:
        """Raise UsageError when the strategy is unknown."""
        find_strategy(self.strategy)

    def tasks_of_variables(self) -> list[str]:
        """The tasks where variables go that name no job.

        Raises:
            UsageError: no task is like that.
        """
        return SpreadVariables(self.variables, self.balance).tasks(self._set())

    def _set(self) -> DeviceSet:
        return self.devices if isinstance(self.devices, DeviceSet) else DeviceSet(self.devices)

    @no_collection()
    def apply(self, graph: Graph) -> PassResult:
        """The placed graph.

        The report has `strategy`, `devices` (device -> how many nodes), `nodes` (name -> device, reason, group:
        the name of the group's first node, or None), `moved` (a `Moved` as a dict for each node that soft placement
        put elsewhere than it asks for) and `rules` (pattern -> how many nodes it decided). Where a step was simulated:
        `simulated` (`placement/report`), `simulated_seconds` and `chosen` of the greedy strategy, `stages` of
        pipelines, `measured` of a measured run, and with `timeline` the `traceEvents` of the step.

        Raises:
            UsageError: the strategy is unknown, a device name is malformed; the devices' memory does not hold the
                step.
            GraphError: colocated nodes ask for different devices; no device fits; no device has a kernel.
        """
        return self.change(graph.copy())

    @no_collection()
    def change(self, graph: Graph) -> PassResult:
        """The same, with the devices noted in the graph that comes in.

        Raises:
            UsageError, GraphError: as `apply`.
        """
        devices, strategy = self._set(), find_strategy(self.strategy)
        if graph.unmade is not None:
            from toolkit.passes.placement.place_table import place_table  # which imports NumPy

            placed = place_table(self, graph, devices)
            if placed is not None:
                return placed
        return _Placer(self, graph, devices, strategy).run()


class _Placer:
    def __init__(self, options: Place, graph: Graph, devices: DeviceSet, strategy: Any):
        self.options = options
        self.graph = graph
        self.set = devices
        self.strategy = strategy

    def run(self) -> PassResult:
        options, graph = self.options, self.graph
        asked = [node.device for node in graph.nodes]
        rules = apply_rules(graph, options.rules)
        if options.variables:
            SpreadVariables(options.variables, options.balance).apply(graph, self.set)
        self.constraints = Constraints(
            graph, self.set, soft=options.allow_soft_placement, supports=options.supports,
            keep=options.strategy != "default", leaves=options.leaves_tasks,
        )  # fmt: skip
        task = PlacementTask(self.constraints, options.speeds, options.measured, options.batch, options.stages)
        choices = self.strategy(task)
        if not is_ours(options.strategy):
            check_choices(task, options.strategy, choices)
        step: SimulatedStep | None = None
        if options.strategy != "default" or options.timeline or options.speeds.bounds_memory:
            step = task.simulate(choices)
            self._require_room(task, step)
        report: dict[str, Any] = {}
        if options.timeline and step is not None:
            report = {"displayTimeUnit": "ms", "traceEvents": trace_events(task.costs, step)}
        report |= {"strategy": options.strategy, **task.facts, "rules": rules}
        if step is not None:
            report["simulated"] = simulated_facts(task, step)
        if options.measured is not None:
            report["measured"] = measured_facts(graph, task, options.measured, self.set.devices)
        return self._finish(report, choices, asked)

    def _require_room(self, task: PlacementTask, step: SimulatedStep) -> None:
        """Raises UsageError when a device's memory would not do."""
        overfull = task.overfull(step)
        if not overfull:
            return
        from toolkit.formats.inspection.report import bytes_text

        total = bytes_text(sum(task.costs.resident))
        held = ", ".join(
            f"{device} {'any' if (size := task.speeds.of(device).memory) == float('inf') else bytes_text(int(size))}"
            for device in self.set.devices[:8]
        )
        others = {"default": "; try --strategy greedy", "single": "; try --strategy greedy or --stages N"}
        sizes = [task.speeds.of(device).memory for device in self.set.devices]
        fits = sum(task.costs.resident) <= sum(sizes) and max(task.costs.resident, default=0) <= max(sizes)
        larger = "; more or larger devices are needed"
        advice = others.get(self.options.strategy, larger) if fits else larger
        raise UsageError(
            f"the devices' memory does not hold the step: {' and '.join(overfull[:4])} (constants and variables take "
            f"{total} in all); there is: {held}{advice}"
        )

    def _finish(self, report: dict[str, Any], choices: Sequence[Choice], asked: Sequence[str]) -> PassResult:
        options = self.options
        nodes: dict[str, Any] = {}
        rows: dict[tuple[str, str, str | None], dict[str, str | None]] = {}
        moved: list[Moved] = []
        modified = False
        names: dict[DeviceSpec, str] = {device: str(device) for device in self.set.devices}
        fits: dict[tuple[str, str], bool] = {}
        groups, lone, details = self.constraints.groups, self.constraints.groups.lone, options.details
        last: DeviceSpec | None = None
        device = ""
        for node, choice, before in zip(self.graph.nodes, choices, asked, strict=True):
            if choice.device is not last:
                last = choice.device
                device = names[last]
            if details:
                leader = None if lone[node.id] else groups[node.id].leader.name
                row = (device, choice.reason, leader)
                told = rows.get(row)  # one for all nodes of which the same is to be said
                if told is None:
                    told = rows[row] = {"device": device, "reason": choice.reason, "group": leader}
                nodes[node.name] = told
            key = (node.device, device)  # with what rules and variables say
            fit = fits.get(key)
            if fit is None:
                fit = fits[key] = DeviceSpec.parse(node.device).matches(choice.device)
            if not fit:
                spec = DeviceSpec.parse(node.device)
                why = self._why_moved(node, spec, groups[node.id])
                moved.append(Moved(node.name, node.op, node.device, device, why))
            node.device = device
            modified = modified or before != device
        counts = Counter(node.device for node in self.graph.nodes)
        report["devices"] = {name: counts[name] for name in names.values()}
        if details:
            report["nodes"] = nodes
        report["moved"] = [asdict(each) for each in moved]
        return PassResult(self.graph, modified, report, ())

    def _why_moved(self, node: Node, asked: DeviceSpec, group: ColocationGroup) -> str:
        """Why a node is not where it asks to be."""
        there = {device.device_type for device in self.set.matching(asked)}
        if not there:
            return NO_DEVICE
        if not there.intersection(self.constraints.types_of(node)):
            types = ", ".join(map(str, node.output_types[:1] or node.input_types[:1]))
            return f"there is no {' or '.join(sorted(map(str, there)))} kernel for {node.op} ({types})"
        return self.constraints.bond(node, group) or "the nodes it must be with cannot be there"
