"""Strategies without thought, to compare with: everything on one device, and one device after another."""

from __future__ import annotations

from toolkit.graph.device import DeviceSpec
from toolkit.passes.placement.constraints import Choice
from toolkit.passes.placement.floating import attach, place_group
from toolkit.passes.placement.strategies import PlacementTask, strategy


@strategy("single", "everything on the one device where the simulated step is shortest")
def single(task: PlacementTask) -> list[Choice]:
    """The best of the devices that differ in type, speed or task."""
    best: tuple[bool, float, list[Choice]] | None = None
    for device in _different(task):
        choices = _on_one(task, device)
        step = task.simulate(choices, details=False)
        found = (bool(task.overfull(step)), step.seconds, choices)
        if best is None or found[:2] < best[:2]:
            best = found
    assert best is not None
    return best[2]


def _different(task: PlacementTask) -> list[DeviceSpec]:
    """One device of each type, speed and job."""
    found: dict[tuple[object, ...], DeviceSpec] = {}
    for device in task.constraints.set.devices:
        found.setdefault((device.device_type, task.speeds.of(device), device.job), device)
    return list(found.values())


def _on_one(task: PlacementTask, wanted: DeviceSpec) -> list[Choice]:
    constraints = task.constraints
    choices: list[Choice | None] = [None] * len(constraints.graph)
    for node in constraints.order:
        if choices[node.id] is not None:
            continue
        group = constraints.groups[node.id]
        allowed, why = constraints.allowed(group)
        device = wanted
        if wanted not in allowed:
            near = (each for each in allowed if each.task_name == wanted.task_name)
            device = next(near, allowed[0])
        reason = constraints.reason(node, group, why) if why else "the one device"
        place_group(constraints, choices, node, device, reason)
    return [choice for choice in choices if choice is not None]


@strategy("round-robin", "one device after another")
def round_robin(task: PlacementTask) -> list[Choice]:
    """The free groups in topological order on their devices in turn; weights go where they are used."""
    constraints = task.constraints
    floating = task.floating
    choices: list[Choice | None] = [None] * len(constraints.graph)
    turn = 0
    for node in constraints.order:
        if choices[node.id] is not None or floating[node.id]:
            continue
        group = constraints.groups[node.id]
        allowed, why = constraints.allowed(group)
        if len(allowed) > 1:
            device, reason = allowed[turn % len(allowed)], "its turn"
            turn += 1
        else:
            device, reason = allowed[0], constraints.reason(node, group, why)
        place_group(constraints, choices, node, device, reason)
    return attach(constraints, choices)
