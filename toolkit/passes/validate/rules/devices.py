"""Device names and colocation."""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache

from toolkit.errors import GraphmillError
from toolkit.graph.check import ERROR
from toolkit.graph.device import DeviceSpec
from toolkit.kernels.facts import has_kernel
from toolkit.passes.placement.colocation import group_nodes
from toolkit.passes.validate.finding import Severity
from toolkit.passes.validate.registry import Problem, Rule, family
from toolkit.passes.validate.subject import Body, Subject


@family(
    "devices",
    Rule("name", Severity.ERROR, "a device name cannot be read", "write it as /job:worker/task:0/device:CPU:0"),
    Rule("colocation", Severity.ERROR, "a node is to be placed with one that does not exist", "remove it from _class"),
    Rule("conflict", Severity.ERROR, "nodes that must share a device ask for different ones", "give them one device"),
    Rule("soft-conflict", Severity.WARNING, "nodes that share a device ask for different ones, and one of them decides",
         "give them one device; `place` may want --soft-placement for the graph as it is"),
    Rule("no-kernel", Severity.WARNING, "TensorFlow has no kernel for the op on its device",
         "place it on the CPU; only soft placement runs this"),
)  # fmt: skip
def devices(subject: Subject) -> Iterator[Problem]:
    for body in subject.bodies:
        for finding in body.conformance:
            if finding.code == "device":
                yield Problem("devices/name", finding.message, finding.node, body.function)
            elif finding.code == "colocation" and finding.level == ERROR and not body.function:
                # in a function's body the other node may be its caller's
                yield Problem("devices/colocation", finding.message, finding.node)
        if _has_devices(body):
            yield from _conflicts(body)
            yield from _kernels(body)


def _has_devices(body: Body) -> bool:
    """Whether any node asks for a device."""
    table = body.table
    if table is None:
        return any(node.device for node in body.graph.nodes)
    return any(table.devices[number] for number in table.used_devices())


def _conflicts(body: Body) -> Iterator[Problem]:
    if any(finding.code in ("device", "colocation") for finding in body.conformance):
        return
    for soft, rule in ((True, "devices/conflict"), (False, "devices/soft-conflict")):
        try:
            groups = group_nodes(body.sound, soft=soft)
        except GraphmillError as error:
            yield Problem(rule, error.message, error.node, body.function)
            return
    for group in groups.several():
        for node in group.overruled:
            told = f"it asks for {node.device}, but is where '{group.leader.name}' is: {group.spec}"
            yield Problem("devices/soft-conflict", told, node.name, body.function)


@cache
def _device_type(name: str) -> str:
    try:
        return DeviceSpec.parse(name).device_type or ""
    except GraphmillError:
        return ""


def _kernels(body: Body) -> Iterator[Problem]:
    for node in body.sound.nodes:
        kind = _device_type(node.device) if node.device else ""
        if kind in ("CPU", "GPU") and not has_kernel(node, kind):
            yield Problem(
                "devices/no-kernel", f"{node.op} has no {kind} kernel for its types", node.name, body.function
            )
