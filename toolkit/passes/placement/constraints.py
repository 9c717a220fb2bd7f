"""Which devices a node may have: device names, colocation, references, resources, kernels (as TensorFlow's placer)."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

from toolkit.errors import GraphError, did_you_mean
from toolkit.graph.bodies import functions_of
from toolkit.graph.device import DeviceSpec
from toolkit.graph.graph import Graph
from toolkit.graph.kinds import NodeKind
from toolkit.graph.node import Edge, Node
from toolkit.kernels.facts import Availability, priority
from toolkit.passes.colocation import ColocationGroup, group_nodes
from toolkit.passes.devices import DeviceSet
from toolkit.passes.partition import value_frames
from toolkit.passes.placement.bodies import used_together


@dataclass(slots=True)
class Choice:
    """Where a node goes, and why."""

    device: DeviceSpec
    reason: str


class Constraints:
    """What binds the nodes of a graph.

    Attributes:
        graph: its nodes, in `order` (topological).
        groups: by node id, the nodes that share a device with it.
        set: the devices.
    """

    def __init__(
        self, graph: Graph, devices: DeviceSet, *, soft: bool, supports: Availability, keep: bool, leaves: bool = True
    ):  # fmt: skip
        """Args:
        soft: take other devices where those asked for cannot be had.
        leaves: of other tasks, too.
        supports: which device types can run a node.
        keep: loops stay together, and resources that one node in the body of a function takes, where they do not
            ask for something else.
        """
        self.graph = graph
        self.set = devices
        self.order = graph.topological_order()
        self._supports = supports
        self._is_soft = soft
        self._leaves_tasks = leaves
        self._kernels: dict[tuple[Any, ...], tuple[str, ...]] = {}
        self._by_kind: dict[NodeKind, tuple[str, ...]] = {}
        self._candidates: dict[int, tuple[list[DeviceSpec], str]] = {}  # by id(group), of several nodes
        #: the same for groups of one node that ask for the same and can run on the same types
        self._alike: dict[tuple[DeviceSpec, bool, tuple[str, ...]], tuple[list[DeviceSpec], str]] = {}
        #: the same for nodes that are alone, by their kind and the device that they ask for
        self._lone: dict[tuple[NodeKind, str], tuple[list[DeviceSpec], str]] = {}
        bound = list(_beside(graph))
        also = [*bound, *((*used_together(graph), *_loops(graph)) if keep else ())]
        self.groups = group_nodes(graph, soft=soft, also=also)
        for node, other, why in bound:
            if self.groups[node.id] is not self.groups[other.id]:
                raise GraphError(f"{why}, but the two ask for different devices", node=node.name)

    @cached_property
    def consumers(self) -> list[list[Edge]]:
        """The edges out of each node, by its id."""
        return self.graph.consumers()

    def types_of(self, node: Node) -> tuple[str, ...]:
        """The device types of the set that can run a node; first those whose kernels TensorFlow prefers."""
        kind = node.kind
        if kind is not None:
            kind = kind.like or kind
            known = self._by_kind.get(kind)
            if known is not None:
                return known
        key = (
            node.op, tuple(t.enum for t in node.output_types), tuple(t.enum for t in node.input_types),
            "[]" if kind is not None and not kind.names_functions else repr(functions_of(node)),
        )  # fmt: skip
        found = self._kernels.get(key)
        if found is None:
            able = [t for t in self.set.types if t and self._supports(node, t)]
            found = tuple(sorted(able, key=lambda t: -priority(node, t)) if len(able) > 1 else able)
            self._kernels[key] = found
        if kind is not None:
            self._by_kind[kind] = found
        return found

    def allowed(self, group: ColocationGroup) -> tuple[list[DeviceSpec], str]:
        """The devices of a group, best first, and why they are so few."""
        if len(group.members) > 1:
            found = self._candidates.get(id(group))
            if found is None:
                found = self._candidates[id(group)] = self._find_allowed(group)
            return found
        alike = (group.spec, group.softened, self.types_of(group.leader))
        found = self._alike.get(alike)
        if found is None:
            found = self._alike[alike] = self._find_allowed(group)
        return found

    def allowed_alone(self, node: Node) -> tuple[list[DeviceSpec], str]:
        """The same for a node that is alone in its group (`ColocationGroups.lone`)."""
        kind = node.kind
        if kind is None:
            return self.allowed(self.groups[node.id])
        key = (kind.like or kind, node.device)
        found = self._lone.get(key)
        if found is None:
            found = self._lone[key] = self.allowed(self.groups[node.id])
        return found

    def _find_allowed(self, group: ColocationGroup) -> tuple[list[DeviceSpec], str]:
        spec = group.spec
        types = set(self.set.types)
        for member in group.members:
            types &= set(self.types_of(member))
        matching = self.set.matching(spec)
        runnable = [device for device in matching if device.device_type in types]
        asked = f"asks for {spec}" if spec != DeviceSpec() else ""
        if group.softened:
            asked = "soft placement: the group's nodes ask for different devices"
        if runnable:
            return self._preferred(group, runnable), asked
        leader = group.leader
        if self._is_soft:
            lack = f"no {spec.device_type} kernel" if matching else "no such device"
            # First what leaves resources where they are; failing another device of the task, any: files carry the
            # names of other clusters.
            loose = spec.without_type_and_index()
            kept = replace(
                loose,
                device_type=spec.device_type if group.resource.device_type is not None else None,
                device_index=spec.device_index if group.resource.device_index is not None else None,
            )
            elsewhere = self.set.devices if self._leaves_tasks else ()
            for devices in (self.set.matching(kept), self.set.matching(loose), elsewhere):
                runnable = [device for device in devices if device.device_type in types]
                if runnable:
                    return runnable, f"soft placement: asked for {spec}, {lack}"
        asker = next((m for m in group.members if m.device and not self._fits(m)), leader)
        has_task = bool(self.set.matching(spec.without_type_and_index()))
        if not matching and not (self._is_soft and has_task):
            would = "; soft placement would take another" if not self._is_soft else ""
            raise GraphError(
                f"no device fits {asker.device or spec}; the cluster has {self.set.listed()}"
                + (would if has_task or self._leaves_tasks else ""),
                node=asker.name,
            )
        for member in group.members:
            able = self.types_of(member)
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

    def _preferred(self, group: ColocationGroup, devices: list[DeviceSpec]) -> list[DeviceSpec]:
        """The devices in the order that the nodes' kernels ask for, if they agree on one (iterators prefer CPUs)."""
        types = tuple(dict.fromkeys(device.device_type for device in devices))
        if len(types) < 2:
            return devices
        orders = {tuple(t for t in self.types_of(member) if t in types) for member in group.members} - {types}
        if len(orders) != 1:
            return devices
        order = orders.pop()
        return sorted(devices, key=lambda device: order.index(device.device_type or ""))

    def _fits(self, node: Node) -> bool:
        return bool(self.set.matching(DeviceSpec.parse(node.device)))

    @staticmethod
    def bond(node: Node, group: ColocationGroup) -> str:
        """Why a node is in its group; "" for the first one."""
        bond = group.bonds.get(node.id)
        if bond is None and len(group.members) > 1 and node is not group.leader:
            bond = f"colocated with '{group.leader.name}'"
        return bond or ""

    def reason(self, node: Node, group: ColocationGroup, why: str) -> str:
        parts = [part for part in (why, self.bond(node, group)) if part]
        return "; ".join(parts) if parts else f"default device of {self.set.default.task_name}"


def _beside(graph: Graph) -> Iterator[tuple[Node, Node, str]]:
    """Nodes whose device is "@other": with that node, as early versions of TensorFlow wrote it. Their names go."""
    for node in graph.nodes:
        if node.device.startswith("@"):
            name = node.device[1:]
            other = graph.get(name)
            if other is None:
                hint = did_you_mean(name, (each.name for each in graph.nodes))
                raise GraphError(f"its device '@{name}' is that of a node that does not exist{hint}", node=node.name)
            node.device = ""
            yield other, node, f"it asks for the device of '{name}'"


def _loops(graph: Graph) -> Iterator[tuple[Node, Node, str]]:
    """Loops stay together unless their nodes say otherwise: each crossing would cost a transfer per iteration."""
    first: dict[str, Node] = {}
    for node, frame in zip(graph.nodes, value_frames(graph), strict=True):
        if frame is not None:
            while frame.parent is not None and frame.parent.parent is not None:
                frame = frame.parent
            leader = first.setdefault(frame.name, node)
            if leader is not node:
                yield leader, node, f"in the loop '{frame.name}'"
