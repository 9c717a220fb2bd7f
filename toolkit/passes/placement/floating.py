"""Weights and what is made of them alone: nodes that no strategy asks about, for they go where they are used."""

from __future__ import annotations

from collections.abc import Sequence

from toolkit.graph.device import DeviceSpec
from toolkit.graph.node import Node
from toolkit.passes.placement.constraints import Choice, Constraints
from toolkit.passes.placement.costs import VARIABLE_OPS, NodeCosts

_READS = VARIABLE_OPS | {"ReadVariableOp", "Const"}
#: at most this part of a graph's time may be in what is made of weights, or only these themselves float
_MOST = 0.5


def find_floating(constraints: Constraints, costs: NodeCosts) -> list[bool]:
    """By node id, whether a node depends on nothing but constants and variables.

    In a graph that computes mostly from constants, only these, variables and their values count.
    """
    found = [False] * len(constraints.graph)
    for node in constraints.order:
        if node.op in _READS:
            found[node.id] = not node.control_inputs
            continue
        if not node.inputs or node.is_control_flow or node.num_outputs > 1 or node.op_def.is_stateful:
            continue
        sources = (*(src for src, _ in node.inputs), *node.control_inputs)
        found[node.id] = all(found[src.id] for src in sources)
    times = costs.times(constraints.set.devices[0])
    made = sum(times[node.id] for node in constraints.graph.nodes if found[node.id] and node.op not in _READS)
    if made > _MOST * sum(times):
        for node in constraints.order:
            is_read = node.op == "Identity" and found[node.inputs[0].node.id] and node.inputs[0].dtype.is_ref
            found[node.id] = found[node.id] and (node.op in _READS or is_read)
    return found


def place_group(
    constraints: Constraints, choices: list[Choice | None], node: Node, device: DeviceSpec, why: str
) -> None:
    """Give all nodes of a group the device that one of them has."""
    group = constraints.groups[node.id]
    for member in group.members:
        bond = constraints.bond(member, group)
        choices[member.id] = Choice(device, why if member is node or not bond else f"{bond}; {why}")


def attach(constraints: Constraints, choices: list[Choice | None]) -> list[Choice]:
    """Give the nodes that have no device yet that of their first consumer, if they may be there."""
    for node in reversed(constraints.order):
        if choices[node.id] is not None:
            continue
        group = constraints.groups[node.id]
        allowed, why = constraints.allowed(group)
        device, reason = allowed[0], constraints.reason(node, group, why)
        if len(allowed) > 1:
            for edge in _edges_out(constraints, group.members):
                choice = choices[edge.id]
                if choice is not None and choice.device in allowed:
                    device, reason = choice.device, f"next to its consumer '{edge.name}'"
                    break
        place_group(constraints, choices, node, device, reason)
    return [choice for choice in choices if choice is not None]


def _edges_out(constraints: Constraints, members: Sequence[Node]) -> list[Node]:
    return [edge.dst for member in members for edge in constraints.consumers[member.id] if not edge.is_control]
