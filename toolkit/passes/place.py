"""Assign every node to a device (white paper, section 3.2.1).

Constraints come from device names, colocation, references, resources and kernels; among the devices that are
left, the default strategy takes the best device of the default task, as TensorFlow does, and the greedy strategy
simulates the run and takes the device on which a node would finish first.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from typing import Any, ClassVar

from toolkit.errors import GraphError, UsageError, did_you_mean
from toolkit.graph.device import DeviceSpec
from toolkit.graph.graph import Graph
from toolkit.graph.infer import infer
from toolkit.graph.node import Edge, Node, Output, in_edges
from toolkit.kernels.facts import Availability, has_kernel
from toolkit.passes.base import PassResult
from toolkit.passes.colocation import ColocationGroup, group_nodes
from toolkit.passes.costs import CostModel, DeviceRates
from toolkit.passes.devices import DeviceSet
from toolkit.passes.moved import NO_DEVICE, Moved
from toolkit.passes.partition import value_frames

STRATEGIES = ("default", "greedy")
#: a spread placement must beat the default one by this factor, and by so many seconds, or it is not taken: the
#: simulation is a guess, and what it gains with small graphs are the overheads of nodes
_GAIN = 0.9
_LEAST_GAIN = 5e-4
_VARIABLES = frozenset({"Variable", "VariableV2", "AutoReloadVariable", "VarHandleOp", "_VarHandlesOp"})
_METADATA = frozenset({"Shape", "ShapeN", "Size", "Rank", "VariableShape"})


@dataclass(frozen=True)
class Place:
    """Give every node a full device name.

    Attributes:
        devices: what there is; full names are as good as a set, the task of the first is the default one.
        allow_soft_placement: when a device type or number cannot be had, or has no kernel, take another of the
            task instead of failing; when there is no such task, any.
        strategy: "default" or "greedy".
        supports: which device types can run a node; by default those that TensorFlow has kernels for.
        rates: costs for the greedy strategy.
        variables: where variables go that name no job, such as "/job:ps"; in turn over the tasks that fit, as
            TensorFlow's replica_device_setter does.
    """

    name: ClassVar[str] = "place"

    devices: DeviceSet | Sequence[DeviceSpec]
    allow_soft_placement: bool = False
    strategy: str = "default"
    supports: Availability = has_kernel
    rates: DeviceRates | None = None
    variables: str = ""

    def check(self) -> None:
        """Raise UsageError when the strategy is unknown."""
        if self.strategy not in STRATEGIES:
            raise UsageError(
                f"there is no strategy '{self.strategy}'{did_you_mean(self.strategy, STRATEGIES)}; "
                f"there are {', '.join(STRATEGIES)}"
            )

    def tasks_of_variables(self) -> list[str]:
        """The tasks where variables go that name no job.

        Raises:
            UsageError: no task is like that.
        """
        wanted = DeviceSpec.parse(self.variables)
        devices = self.devices if isinstance(self.devices, DeviceSet) else DeviceSet(self.devices)
        tasks = list(dict.fromkeys(device.task_name for device in devices.matching(wanted)))
        if not tasks:
            raise UsageError(f"no task fits {wanted}, where variables should go; the cluster has {devices.listed()}")
        return tasks

    def apply(self, graph: Graph) -> PassResult:
        """The placed graph.

        The report has `strategy`, `devices` (device -> how many nodes), `nodes` (name -> device, reason, group:
        the name of the group's first node, or None), `moved` (a `Moved` as a dict for each node that soft placement
        put elsewhere than it asks for) and, for the greedy strategy, `simulated_seconds` and `is_spread`.

        Raises:
            UsageError: the strategy is unknown, a device name is malformed.
            GraphError: colocated nodes ask for different devices; no device fits; no device has a kernel.
        """
        self.check()
        return _Placer(self, graph.copy()).run()


@dataclass(slots=True)
class _Choice:
    device: DeviceSpec
    reason: str


class _Placer:
    def __init__(self, options: Place, graph: Graph):
        self.options = options
        self.graph = graph
        devices = options.devices
        self.set = devices if isinstance(devices, DeviceSet) else DeviceSet(devices)
        self.chosen: dict[int, _Choice] = {}
        self.candidates: dict[int, tuple[list[DeviceSpec], str]] = {}  # by id(group)
        self.kernels: dict[tuple[Any, ...], tuple[str, ...]] = {}
        self.weights: set[int] = set()
        self._is_soft = options.allow_soft_placement

    def run(self) -> PassResult:
        graph = self.graph
        if self.options.variables:
            self._spread_variables()
        self.order = graph.topological_order()
        self.consumers = graph.consumers()
        also = list(self._loops()) if self.options.strategy == "greedy" else []
        self.groups = group_nodes(graph, soft=self._is_soft, also=also)
        report: dict[str, Any] = {"strategy": self.options.strategy}
        self._default()
        if self.options.strategy == "greedy" and len(self.set.devices) > 1:
            before = dict(self.chosen)
            report["simulated_seconds"] = self._greedy(before)
            report["is_spread"] = self.chosen is not before
        return self._finish(report)

    def _spread_variables(self) -> None:
        wanted, tasks = DeviceSpec.parse(self.options.variables), self.options.tasks_of_variables()
        count = 0
        for node in self.graph.nodes:
            if node.op in _VARIABLES and (own := DeviceSpec.parse(node.device)).job is None:
                task = DeviceSpec.parse(tasks[count % len(tasks)])
                node.device = str(own.override(wanted).override(task))
                count += 1

    # -- constraints -------------------------------------------------------------------------------------

    def _loops(self) -> Iterator[tuple[Node, Node, str]]:
        """Loops stay together unless their nodes say otherwise: each crossing would cost a transfer per iteration."""
        first: dict[str, Node] = {}
        for node, frame in zip(self.graph.nodes, value_frames(self.graph), strict=True):
            if frame is not None:
                while frame.parent is not None and frame.parent.parent is not None:
                    frame = frame.parent
                leader = first.setdefault(frame.name, node)
                if leader is not node:
                    yield leader, node, f"in the loop '{frame.name}'"

    def _types(self, node: Node) -> tuple[str, ...]:
        """The device types of the set that can run a node."""
        key = (node.op, tuple(t.enum for t in node.output_types), tuple(t.enum for t in node.input_types))
        found = self.kernels.get(key)
        if found is None:
            found = tuple(t for t in self.set.types if t and self.options.supports(node, t))
            self.kernels[key] = found
        return found

    def _allowed(self, group: ColocationGroup) -> tuple[list[DeviceSpec], str]:
        """The devices of a group, best first, and why they are so few."""
        found = self.candidates.get(id(group))
        if found is None:
            found = self.candidates[id(group)] = self._find_allowed(group)
        return found

    def _find_allowed(self, group: ColocationGroup) -> tuple[list[DeviceSpec], str]:
        spec = group.spec
        types = set(self.set.types)
        for member in group.members:
            types &= set(self._types(member))
        matching = self.set.matching(spec)
        runnable = [device for device in matching if device.device_type in types]
        asked = f"asks for {spec}" if spec != DeviceSpec() else ""
        if group.softened:
            asked = "soft placement: the group's nodes ask for different devices"
        if len(runnable) == len(matching) and matching:
            return matching, asked
        if runnable:
            return runnable, asked
        leader = group.leader
        if self._is_soft:
            lack = f"no {spec.device_type} kernel" if matching else "no such device"
            # Failing another device of the task, any: files carry the names of other clusters.
            for devices in (self.set.matching(spec.without_type_and_index()), self.set.devices):
                runnable = [device for device in devices if device.device_type in types]
                if runnable:
                    return runnable, f"soft placement: asked for {spec}, {lack}"
        asker = next((m for m in group.members if m.device and not self._fits(m)), leader)
        if not matching and not self._is_soft:
            raise GraphError(
                f"no device fits {asker.device or spec}; the cluster has {self.set.listed()}; soft placement would "
                "take another",
                node=asker.name,
            )
        for member in group.members:
            able = self._types(member)
            if not able or (matching and not any(d.device_type in able for d in matching)):
                wanted = sorted({d.device_type or "" for d in matching}) or [t or "" for t in self.set.types]
                types_text = ", ".join(map(str, member.output_types[:1] or member.input_types[:1]))
                raise GraphError(
                    f"{member.op} ({types_text}) has no kernel for {' or '.join(wanted)}"
                    + (f", which it is bound to ({spec})" if matching and spec != DeviceSpec() else "")
                    + ("; soft placement would take another device" if able and not self._is_soft else ""),
                    node=member.name,
                )
        raise GraphError(
            f"the {len(group.members)} nodes colocated with it have no device type in common on which all have kernels",
            node=leader.name,
        )

    def _fits(self, node: Node) -> bool:
        return bool(self.set.matching(DeviceSpec.parse(node.device)))

    # -- the default strategy ----------------------------------------------------------------------------

    def _default(self) -> None:
        """The first allowed device, with TensorFlow's exceptions: metadata, generators, identities in between."""
        late: list[Node] = []
        for node in self.order:
            group = self.groups[node.id]
            allowed, why = self._allowed(group)
            if len(group.members) == 1 and self._is_link(node):
                self._beside_producer(node)
                continue
            if self._is_generator(node):
                late.append(node)
                continue
            if len(group.members) == 1 and not why and node.op in _METADATA and node.inputs:
                source = self.chosen.get(node.inputs[0].node.id)
                if source is not None and source.device in allowed:
                    self.chosen[node.id] = _Choice(source.device, f"metadata of '{node.inputs[0].node.name}'")
                    continue
            self.chosen[node.id] = _Choice(allowed[0], self._reason(node, group, why))
        for node in late:
            self._beside_consumers(node)

    def _beside_consumers(self, node: Node) -> None:
        """Put a generator where it is used, if that is one device."""
        allowed, why = self._allowed(self.groups[node.id])
        choices = [self.chosen.get(edge.dst.id) for edge in self.consumers[node.id]]
        users = {None if choice is None else choice.device for choice in choices}
        alone = len(self.groups[node.id].members) == 1
        if alone and len(users) == 1 and (device := users.pop()) is not None and device in allowed:
            consumer = self.consumers[node.id][0].dst
            self.chosen[node.id] = _Choice(device, f"a generator, next to its consumer '{consumer.name}'")
        else:
            self.chosen[node.id] = _Choice(allowed[0], self._reason(node, self.groups[node.id], why))

    def _is_link(self, node: Node) -> bool:
        """An Identity that asks for nothing, between two nodes that ask for the same device."""
        if node.op != "Identity" or node.device or node.control_inputs or len(self.consumers[node.id]) > 1:
            return False
        users = self.consumers[node.id]
        return node.inputs[0].node.device == (users[0].dst.device if users else "")

    def _beside_producer(self, node: Node) -> None:
        allowed, why = self._allowed(self.groups[node.id])
        source = self.chosen.get(node.inputs[0].node.id)
        if source is not None and source.device in allowed:
            self.chosen[node.id] = _Choice(source.device, f"passes on '{node.inputs[0].node.name}'")
        else:
            self.chosen[node.id] = _Choice(allowed[0], self._reason(node, self.groups[node.id], why))

    @staticmethod
    def _is_generator(node: Node) -> bool:
        return not node.inputs and node.num_outputs == 1 and not node.output_types[0].is_ref

    @staticmethod
    def _bond(node: Node, group: ColocationGroup) -> str:
        """Why a node is in its group; "" for the first one."""
        bond = group.bonds.get(node.id)
        if bond is None and len(group.members) > 1 and node is not group.leader:
            bond = f"colocated with '{group.leader.name}'"
        return bond or ""

    def _reason(self, node: Node, group: ColocationGroup, why: str) -> str:
        parts = [part for part in (why, self._bond(node, group)) if part]
        return "; ".join(parts) if parts else f"default device of {self.set.default.task_name}"

    # -- the greedy strategy -----------------------------------------------------------------------------

    def _greedy(self, before: dict[int, _Choice]) -> dict[str, float]:
        """Spread the free groups by a simulated run, if the simulation gains from it."""
        model = CostModel(infer(self.graph, strict=False), self.options.rates)
        self.weights = self._find_weights()
        single = self._simulate(model, choose=False)
        spread = self._simulate(model, choose=True)
        # Weights follow their consumers, whose devices are known only now; from the last to the first.
        for node in reversed(self.order):
            if node.id in self.weights and not self._allowed(self.groups[node.id])[1]:
                self._beside_consumers(node)
        spread = self._simulate(model, choose=False)
        if spread > single * _GAIN or single - spread < _LEAST_GAIN:
            self.chosen = before
        return {"default": single, "greedy": spread}

    def _simulate(self, model: CostModel, *, choose: bool) -> float:
        """Run the graph in topological order on paper; returns when the last node ends.

        With `choose`, the group of each node is placed when its first node is ready, on the allowed device where
        that node ends first.
        """
        free = dict.fromkeys(self.set.devices, 0.0)
        ends: dict[int, float] = {}
        placed: dict[int, DeviceSpec] = {}
        for node in self.order:
            group = self.groups[node.id]
            allowed, _ = self._allowed(group)
            if choose and id(group) in placed:
                devices = [placed[id(group)]]
            elif choose and len(allowed) > 1:
                devices = allowed
            else:
                devices = [self.chosen[node.id].device]
            home = self._home(node, devices) if len(devices) > 1 else devices[0]
            end, device = self._end(node, home, model, free, ends), home
            for other in devices:
                # hopping away must pay for more than the hop itself
                sooner = self._end(node, other, model, free, ends) if other is not home else end
                if sooner < end - model.rates.local_latency:
                    end, device = sooner, other
            free[device] = end
            ends[node.id] = end
            if choose and len(allowed) > 1:
                placed[id(group)] = device
                previous = self.chosen[node.id]
                if previous.device != device:
                    self.chosen[node.id] = _Choice(device, f"simulated to end first here, after {end * 1e6:,.0f} us")
        return max(ends.values(), default=0.0)

    def _find_weights(self) -> set[int]:
        """Ids of free nodes that depend on nothing that is fed or changes: constants, and what is made of them."""
        found: set[int] = set()
        for node in self.order:
            op_def = node.op_def
            if len(self.groups[node.id].members) > 1 or op_def.is_stateful or node.op.startswith("Placeholder"):
                continue
            sources = (*(src for src, _ in node.inputs), *node.control_inputs)
            if node.num_outputs <= 1 and not node.is_control_flow and all(src.id in found for src in sources):
                found.add(node.id)
        return found

    def _home(self, node: Node, devices: list[DeviceSpec]) -> DeviceSpec:
        """The device that most inputs come from, of those allowed; the first where none does."""
        votes = Counter(
            self.chosen[source.id].device
            for source, _ in node.inputs
            if source.id in self.chosen and source.id not in self.weights
        )
        return max(devices, key=lambda device: votes[device])

    def _end(
        self, node: Node, device: DeviceSpec, model: CostModel, free: dict[DeviceSpec, float], ends: dict[int, float]
    ) -> float:
        """When a node would end on a device."""
        ready = max((self._arrival(model, edge, device, ends) for edge in in_edges(node)), default=0.0)
        return max(free[device], ready) + model.seconds(node, device.device_type or "CPU")

    def _arrival(self, model: CostModel, edge: Edge, device: DeviceSpec, ends: dict[int, float]) -> float:
        src = edge.src
        if src.id not in ends:
            return 0.0  # a back edge of a loop
        if src.id in self.weights:
            return ends[src.id]  # it will be moved next to its consumers
        return ends[src.id] + model.transfer(Output(src, edge.src_output), self.chosen[src.id].device, device)

    # -- the result --------------------------------------------------------------------------------------

    def _finish(self, report: dict[str, Any]) -> PassResult:
        nodes: dict[str, Any] = {}
        moved: list[Moved] = []
        modified = False
        counts: Counter[str] = Counter()
        for node in self.graph.nodes:
            choice = self.chosen[node.id]
            device = str(choice.device)
            group = self.groups[node.id]
            nodes[node.name] = {
                "device": device,
                "reason": choice.reason,
                "group": group.leader.name if len(group.members) > 1 else None,
            }
            counts[device] += 1
            if node.device != device:
                if not (asked := DeviceSpec.parse(node.device)).matches(choice.device):
                    moved.append(Moved(node.name, node.op, node.device, device, self._why_moved(node, asked, group)))
                node.device = device
                modified = True
        report["devices"] = {str(device): counts[str(device)] for device in self.set.devices}
        report["nodes"] = nodes
        report["moved"] = [asdict(each) for each in moved]
        return PassResult(self.graph, modified, report)

    def _why_moved(self, node: Node, asked: DeviceSpec, group: ColocationGroup) -> str:
        """Why a node is not where it asks to be."""
        there = {device.device_type for device in self.set.matching(asked)}
        if not there:
            return NO_DEVICE
        if not there.intersection(self._types(node)):
            types = ", ".join(map(str, node.output_types[:1] or node.input_types[:1]))
            return f"there is no {' or '.join(sorted(map(str, there)))} kernel for {node.op} ({types})"
        return self._bond(node, group) or "the nodes it must be with cannot be there"
