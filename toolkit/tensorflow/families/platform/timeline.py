# TensorFlow's arguments may be anything, so what they are is for tests to say, not for types.
# pyright: basic
"""tensorflow.python.client.timeline: a traced step as JSON for chrome://tracing."""

from __future__ import annotations

import json
from typing import Any

from schemas import step_stats_pb2


class Timeline:
    """The kernels of a step, from `run_metadata.step_stats`."""

    def __init__(self, step_stats: Any, graph: Any = None):
        self._step_stats = step_stats_pb2.StepStats.FromString(step_stats.SerializeToString())

    def generate_chrome_trace_format(
        self, show_dataflow: bool = True, show_memory: bool = False, op_time: str = "schedule"
    ) -> str:
        """JSON: a process for each device, a row for each thread; arrows from producers to consumers.

        Args:
            show_dataflow: add the arrows.
            show_memory: add what the tensors of a device take, over time.
            op_time: "schedule", when a kernel was due to its end, or "op", only its own time.
        """
        events: list[dict[str, Any]] = []
        made: dict[str, tuple[int, int, int]] = {}
        arrows: list[dict[str, Any]] = []
        for process, device in enumerate(self._step_stats.dev_stats):
            events.append({"ph": "M", "name": "process_name", "pid": process, "args": {"name": device.device}})
            for node in device.node_stats:
                start, length = _times(node, op_time)
                op, inputs = _parsed(node.timeline_label)
                events.append({
                    "ph": "X", "cat": "Op", "name": op or node.node_name, "pid": process, "tid": node.thread_id,
                    "ts": start, "dur": length,
                    "args": {"name": node.node_name, "op": op, **{f"input{i}": name for i, name in enumerate(inputs)}},
                })  # fmt: skip
                made[node.node_name] = (process, node.thread_id, start + length)
                if show_dataflow:
                    for name in inputs:
                        source = made.get(name.removeprefix("^").partition(":")[0])
                        if source is not None:
                            arrows += _arrow(len(arrows) // 2, name, source, (process, node.thread_id, start))
                if show_memory:
                    for memory in node.memory:
                        events.append({
                            "ph": "C", "cat": "Memory", "name": f"Allocated Bytes {memory.allocator_name}",
                            "pid": process, "ts": start + length, "args": {"bytes": memory.allocator_bytes_in_use},
                        })  # fmt: skip
        return json.dumps({"traceEvents": events + arrows}, indent=4, sort_keys=True)


def _times(node: Any, op_time: str) -> tuple[int, int]:
    """Start and duration in microseconds."""
    if op_time == "op":
        return (
            node.all_start_micros + node.op_start_rel_micros,
            max(1, node.op_end_rel_micros - node.op_start_rel_micros),
        )
    return node.all_start_micros, max(1, node.all_end_rel_micros)


def _parsed(label: str) -> tuple[str, list[str]]:
    """The op and the inputs of a label `name = op(input, ...)`."""
    _, _, call = label.partition(" = ")
    op, _, inputs = call.partition("(")
    return op, [name for name in inputs.rstrip(")").split(", ") if name]


def _arrow(number: int, name: str, source: tuple[int, int, int], sink: tuple[int, int, int]) -> list[dict[str, Any]]:
    shared = {"cat": "DataFlow", "name": name, "id": number}
    return [
        {"ph": phase, "pid": pid, "tid": tid, "ts": ts, **shared}
        for phase, (pid, tid, ts) in (("s", source), ("t", sink))
    ]
