"""The devices that groups of nodes may have, best first: those that fit their names and have kernels for all."""

from __future__ import annotations

from dataclasses import replace
from typing import Any, cast

from toolkit.errors import GraphError
from toolkit.graph.bodies import functions_of
from toolkit.graph.device import DeviceSpec
from toolkit.graph.kinds import NodeKind
from toolkit.graph.node import Node
from toolkit.kernels.facts import Availability, priority
from toolkit.passes.placement.colocation import ColocationGroup
from toolkit.passes.placement.devices import DeviceSet


class Candidates:
    """What groups may have.

    Attributes:
        set: the devices.
    """

    def __init__(self, devices: DeviceSet, *, soft: bool, supports: Availability, leaves: bool = True):
        """Args:
        soft: take other devices where those asked for cannot be had.
        supports: which device types can run a node.
        leaves: of other tasks, too.
        """
        self.set = devices
        self._supports = supports
        self._is_soft = soft
        self._leaves_tasks = leaves
        self._kernels: dict[tuple[Any, ...], tuple[str, ...]] = {}
        self._by_kind: dict[NodeKind, tuple[str, ...]] = {}

    def types_of(self, node: Node) -> tuple[str, ...]:
        """The device types of the set that can run a node; first those whose kernels TensorFlow prefers."""
        kind = node.kind
        if kind is not None:
            kind = kind.like or kind
            known = self._by_kind.get(kind)
            if known is not None:
                return known
        key = (
            node.op, tuple(t.enum for t in node.output_types), tuple(t.enum for t in node.input_types), _held(node),
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

    def find(self, group: ColocationGroup) -> tuple[list[DeviceSpec], str]:
        """The devices of a group, best first, and why they are so few.

        Raises:
            GraphError: there are none.
        """
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


def _held(node: Node) -> tuple[Any, ...]:
    """What the types of a node's tensors do not tell: of which types a handle is that it makes or takes."""
    op_def = node.graph.find_op_def(node.op)
    if op_def is None:
        return ()
    found: list[Any] = [node.attr_or(name, None) for name, attr in op_def.attrs.items() if attr.type in _TYPES]
    return tuple(tuple(cast("list[Any]", each)) if isinstance(each, list) else each for each in found)


#: what the attributes are called that hold types
_TYPES = ("type", "list(type)")
