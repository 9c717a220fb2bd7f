"""What is laid over a picture: the differences to another graph, the costs that a run was measured to have."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from google.protobuf.message import DecodeError

from schemas import config_pb2, step_stats_pb2
from toolkit.errors import FormatError
from toolkit.formats import io
from toolkit.graph.graph import Graph, node_to_proto
from toolkit.graph.node import Node, Output


def merge_for_diff(old: Graph, new: Graph) -> tuple[Graph, dict[str, str]]:
    """The new graph with the removed nodes of the old one in it, and what happened to each node, by name.

    A node is changed when its op, device, attributes or inputs are others. Nodes are matched by name.

    Returns:
        the merged graph, and "added", "removed" or "changed" by node name; nodes that are the same are left out.
    """
    merged = new.copy()
    changes: dict[str, str] = {}
    removed: dict[int, Node] = {}
    for node in old.nodes:
        twin = new.get(node.name)
        if twin is None:
            changes[node.name] = "removed"
            removed[node.id] = merged.add(node.op, node.name, device=node.device)
            removed[node.id].base = node.base
        elif node_to_proto(twin) != node_to_proto(node):
            changes[node.name] = "changed"
    for node in new.nodes:
        if node.name not in old:
            changes[node.name] = "added"

    def place(node: Node) -> Node:
        return removed[node.id] if node.id in removed else merged.node(node.name)

    for number, copy in removed.items():
        node = old.nodes[number]
        copy.inputs = [Output(place(src), index) for src, index in node.inputs]
        copy.control_inputs = [place(src) for src in node.control_inputs]
    for function in old.library:
        if function not in merged.library:
            merged.library.add(old.library.function(function))
    return merged, changes


def read_costs(path: str) -> tuple[dict[str, float], str]:
    """Costs by node name, and their unit: a RunMetadata or StepStats message (microseconds), or JSON.

    JSON is {"NODE": number, ...}, with an optional "unit" of type string.

    Raises:
        FormatError: it is none of these, or no node has a cost.
    """
    data = io.read_bytes(Path(path))
    if data.lstrip()[:1] == b"{":
        return _json_costs(data, path)
    for message in (config_pb2.RunMetadata(), step_stats_pb2.StepStats()):
        try:
            message.ParseFromString(data)
        except DecodeError:
            continue
        stats = message.step_stats if isinstance(message, config_pb2.RunMetadata) else message
        costs = _step_costs(stats)
        if costs:
            return costs, "µs"
    raise FormatError("holds no measured nodes; expected a RunMetadata or StepStats message, or JSON", file=path)


def _step_costs(stats: step_stats_pb2.StepStats) -> dict[str, float]:
    """Microseconds per node; a node that ran several times has their sum."""
    costs: dict[str, float] = {}
    for device in stats.dev_stats:
        # Streams of a GPU repeat what its compute device lists.
        if "/stream:" in device.device:
            continue
        for node in device.node_stats:
            name = node.node_name.partition(":")[0]
            costs[name] = costs.get(name, 0.0) + float(node.op_end_rel_micros - node.op_start_rel_micros)
    return costs


def _json_costs(data: bytes, path: str) -> tuple[dict[str, float], str]:
    try:
        content: Any = json.loads(data)
    except ValueError as error:
        raise FormatError(f"is not JSON: {error}", file=path) from None
    costs: dict[str, Any] = dict(content) if isinstance(content, dict) else {"": ""}  # pyright: ignore[reportUnknownArgumentType]
    unit = costs.pop("unit", "")
    if not all(isinstance(value, int | float) for value in costs.values()):
        raise FormatError('expected {"NODE": number, ...}', file=path)
    return {name: float(value) for name, value in costs.items()}, str(unit)
