"""What soft placement changed: nodes that are on another device than they ask for, and why."""

from __future__ import annotations

import contextlib
from collections.abc import Iterable
from dataclasses import dataclass

from toolkit.errors import UsageError
from toolkit.graph.device import DeviceSpec
from toolkit.graph.node import Node


@dataclass(frozen=True, slots=True)
class Moved:
    """A node that is not where it asks to be.

    Attributes:
        node, op: its name and operation.
        asked: the device name in the node.
        device: the full name of the one that it is on.
        why: as text: there is no such device; no kernel; what it is together with.
    """

    node: str
    op: str
    asked: str
    device: str
    why: str


NO_DEVICE = "there is no such device"


def moved_to_only_device(nodes: Iterable[Node], device: DeviceSpec) -> list[Moved]:
    """Where there is one device, nothing is placed: the nodes that ask for another one.

    What is no device name asks for nothing that could be had; `validate` tells of it.
    """
    nodes = list(nodes)
    elsewhere = devices_elsewhere({node.device for node in nodes}, device)
    return [
        Moved(node.name, node.op, node.device, str(device), NO_DEVICE) for node in nodes if node.device in elsewhere
    ]


def devices_elsewhere(names: Iterable[str], device: DeviceSpec) -> set[str]:
    """The device names that stand for no device like this one."""
    found: set[str] = set()
    for name in names:
        with contextlib.suppress(UsageError):
            if name and not DeviceSpec.parse(name).matches(device):
                found.add(name)
    return found


def moved_lines(moved: Iterable[Moved]) -> list[str]:
    """One line for all nodes of an op that were moved for the same reason; the first of them is named."""
    groups: dict[tuple[str, str, str, str], list[str]] = {}
    for each in moved:
        groups.setdefault((each.op, each.asked, each.device, each.why), []).append(each.node)
    return [
        f"{op} '{names[0]}'{f' and {len(names) - 1} more' if len(names) > 1 else ''} asked for {asked} and "
        f"{'run' if len(names) > 1 else 'runs'} on {device}: {why}"
        for (op, asked, device, why), names in groups.items()
    ]
