"""What a simulated step tells: a timeline as trace events, loads, peaks, transfers, and how far it is from a measured
one."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import Any

from toolkit.errors import GraphmillError
from toolkit.formats.settings.cost_file import MeasuredCosts, full_device
from toolkit.graph.device import DeviceSpec
from toolkit.graph.graph import Graph
from toolkit.graph.node import Output
from toolkit.passes.placement.costs import NodeCosts
from toolkit.passes.placement.simulated_step import SimulatedStep
from toolkit.passes.placement.simulation import Simulator
from toolkit.passes.placement.strategies import PlacementTask


def simulated_facts(task: PlacementTask, step: SimulatedStep) -> dict[str, Any]:
    """The `simulated` part of a report: seconds, and by device nodes, load and memory; what is transferred."""
    counts = Counter(run.device for run in step.runs)
    sent: Counter[DeviceSpec] = Counter()
    for each in step.transfers:
        sent[each.source] += each.bytes
    memory = {device: task.speeds.of(device).memory for device in step.busy}
    return {
        "seconds": step.seconds,
        "devices": {
            str(device): {
                "nodes": counts[device],
                "busy_seconds": busy,
                "load": busy / step.seconds if step.seconds else 0.0,
                "peak_bytes": step.peak[device],
                "memory_bytes": None if memory[device] == float("inf") else int(memory[device]),
                "sent_bytes": sent[device],
            }
            for device, busy in sorted(step.busy.items(), key=lambda item: str(item[0]))
        },
        "transfer_bytes": sum(sent.values()),
        "transfers": [
            {
                "tensor": _tensor(each.output),
                "from": str(each.source),
                "to": str(each.target),
                "bytes": each.bytes,
                "start_us": round(each.start * 1e6, 3),
                "us": round((each.end - each.start) * 1e6, 3),
            }
            for each in step.transfers
        ],
    }


def trace_events(costs: NodeCosts, step: SimulatedStep) -> list[dict[str, Any]]:
    """The step as Chrome's trace events: a process for each device, a lane for its nodes and one for what it sends."""
    devices = {device: number for number, device in enumerate(sorted(step.busy, key=str))}
    events: list[dict[str, Any]] = []
    for device, number in devices.items():
        events.append({"ph": "M", "name": "process_name", "pid": number, "args": {"name": str(device)}})
        for lane, name in enumerate(("nodes", "transfers")):
            events.append({"ph": "M", "name": "thread_name", "pid": number, "tid": lane, "args": {"name": name}})
    for run in step.runs:
        node = run.node
        outputs = [
            f"{dtype.base}[{count // dtype.size if dtype.size else 0}]"
            for count, dtype in zip(costs.sizes[node.id], node.output_types, strict=False)
        ]
        events.append(
            {
                "ph": "X", "cat": "Op", "name": node.op, "pid": devices[run.device], "tid": 0,
                "ts": round(run.start * 1e6, 3), "dur": round((run.end - run.start) * 1e6, 3),
                "args": {"node": node.name, "inputs": node.input_refs(), "outputs": outputs},
            }
        )  # fmt: skip
    for each in step.transfers:
        events.append(
            {
                "ph": "X", "cat": "Transfer", "name": "_Send", "pid": devices[each.source], "tid": 1,
                "ts": round(each.start * 1e6, 3), "dur": round((each.end - each.start) * 1e6, 3),
                "args": {"node": _tensor(each.output), "to": str(each.target), "bytes": each.bytes},
            }
        )  # fmt: skip
    return events


def _tensor(output: Output) -> str:
    return f"^{output.node.name}" if output.index < 0 else f"{output.node.name}:{output.index}"


def measured_facts(
    graph: Graph, task: PlacementTask, measured: MeasuredCosts, devices: Sequence[DeviceSpec]
) -> dict[str, Any] | None:
    """What the simulation says of the step that was measured, on the devices it was measured on.

    None where the costs are not those of a step of this graph.
    """
    if measured.step is None:
        return None
    ran = [node for node in graph.nodes if (cost := measured.nodes.get(node.name)) and cost.op == node.op]
    if not ran:
        return None
    part = graph.subgraph(ran)
    default = devices[0]
    where: list[DeviceSpec] = []
    for node in part.nodes:
        try:
            where.append(full_device(measured.nodes[node.name].device, default))
        except GraphmillError:
            return None
    costs = NodeCosts(part, task.speeds, measured, task.batch)
    step = Simulator(part, part.topological_order(), costs).run(where)
    return {
        "step_seconds": measured.step,
        "estimated_seconds": step.seconds,
        "ratio": step.seconds / measured.step if measured.step else None,
        "nodes": len(ran),
        "peak_bytes": {str(device): peak for device, peak in step.peak.items()},
        "measured_peak_bytes": measured.memory,
    }
