"""Traces of runs, read from what TensorFlow, graphmill and Chrome's tools write.

| file | recognised by |
|---|---|
| RunMetadata or StepStats, serialized | its first string, which is a device's name |
| trace-event JSON (chrome://tracing, Perfetto), also gzipped | an array, or an object with "traceEvents" |
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any, cast

from google.protobuf.message import DecodeError

from schemas import config_pb2, step_stats_pb2
from toolkit.errors import FormatError, GraphmillError, source_name
from toolkit.formats import inflate, io
from toolkit.formats.records.traces import GZIP
from toolkit.formats.settings.documents import load_json
from toolkit.graph import dtypes

_LABEL = re.compile(r"= ?([A-Za-z_][\w+]*)\(")  # a fused primitive has several ops
_OUTPUT = re.compile(r"(\w+)\[([\d, ]*)\]")
# Streams of a GPU repeat what its compute device lists; they are lanes of their own, and no costs.
STREAM = "/stream:"


@dataclass(slots=True)
class Span:
    """One run of one node.

    Attributes:
        name: of the node.
        device, thread: the lane it ran in; the thread is as the file names it.
        start, duration: microseconds; the trace begins at 0.
        memory: bytes that it allocated, or that its outputs take where the file says nothing about allocations.
        notes: more to say, such as its inputs.
    """

    name: str
    op: str
    device: str
    thread: str
    start: float
    duration: float
    memory: int = 0
    notes: tuple[str, ...] = ()


@dataclass(slots=True)
class Trace:
    """Spans in order of their start."""

    title: str
    spans: list[Span] = field(default_factory=list[Span])

    @property
    def length(self) -> float:
        """Microseconds from the first start to the last end."""
        return max((s.start + s.duration for s in self.spans), default=0.0)

    def costs(self) -> dict[str, float]:
        """Microseconds per node; a node that ran several times has their sum."""
        found: dict[str, float] = defaultdict(float)
        for span in self.spans:
            if STREAM not in span.device:
                found[span.name.partition(":")[0]] += span.duration
        return dict(found)

    def memory(self) -> dict[str, float]:
        """Bytes per node: the most that one of its runs took."""
        found: dict[str, float] = {}
        for span in self.spans:
            name = span.name.partition(":")[0]
            if span.memory > found.get(name, 0):
                found[name] = float(span.memory)
        return found


def read_trace(path: str, title: str = "trace", data: bytes | None = None) -> Trace:
    """Read a trace.

    Args:
        path: a file, or "-" for standard input.
        data: its content, where it has been read already.

    Raises:
        FormatError: it is none, or nothing ran in it.
    """
    if data is None:
        data = io.read_bytes(path)
    path = source_name(path)
    if data.startswith(GZIP):
        try:
            data = inflate.inflate(data, inflate.GZIP)
        except FormatError as error:
            raise error.at(file=path) from None
    spans = list(_from_json(data, path) if data.lstrip()[:1] in (b"{", b"[") else _from_message(data))
    if not spans:
        raise FormatError(
            "holds no measured nodes; expected a RunMetadata or StepStats message or trace-event JSON", file=path
        )
    first = min(span.start for span in spans)
    for span in spans:
        span.start -= first
    spans.sort(key=lambda span: (span.start, -span.duration))
    return Trace(title, spans)


# -- RunMetadata -------------------------------------------------------------------------------------------


def _from_message(data: bytes) -> Iterator[Span]:
    for message in (config_pb2.RunMetadata(), step_stats_pb2.StepStats()):
        try:
            message.ParseFromString(data)
        except DecodeError:
            continue
        is_metadata = isinstance(message, config_pb2.RunMetadata)
        stats = message.step_stats if is_metadata else message
        if not any(device.node_stats for device in stats.dev_stats):
            continue
        graphs = message.partition_graphs if is_metadata else ()
        ops = {node.name: node.op for graph in graphs for node in graph.node}
        # In whole nanoseconds: those since 1970 have more digits than a float.
        first = min(_start(node) + _run_time(node)[0] for device in stats.dev_stats for node in device.node_stats)
        for device in stats.dev_stats:
            for node in device.node_stats:
                yield _from_stats(node, device, ops, first)
        return


def _start(node: step_stats_pb2.NodeExecStats) -> int:
    """When the executor took the node up, in nanoseconds since 1970."""
    return node.all_start_nanos or node.all_start_micros * 1000


def _run_time(node: step_stats_pb2.NodeExecStats) -> tuple[int, int]:
    """Begin and end of its kernel, in nanoseconds since then."""
    if node.op_end_rel_nanos:
        return node.op_start_rel_nanos, node.op_end_rel_nanos
    return node.op_start_rel_micros * 1000, (node.op_end_rel_micros or node.all_end_rel_micros) * 1000


def _from_stats(
    node: step_stats_pb2.NodeExecStats, device: step_stats_pb2.DeviceStepStats, ops: dict[str, str], first: int
) -> Span:
    name, _, kernel = node.node_name.partition(":")
    label = _LABEL.search(node.timeline_label)
    op = ops.get(name) or (label[1] if label is not None else kernel) or _op_of(name)
    begin, end = _run_time(node)
    start, duration = (_start(node) + begin - first) / 1e3, max(0, end - begin) / 1e3
    memory = sum(used.total_bytes for used in node.memory)
    if not node.memory:
        memory = sum(o.tensor_description.allocation_description.requested_bytes for o in node.output)
    # TensorFlow leaves the thread out on devices of its own executor.
    thread = device.thread_names.get(node.thread_id, str(node.thread_id) if node.thread_id else "all threads")
    notes = (node.timeline_label,) if node.timeline_label else ()
    return Span(node.node_name, op, device.device, thread, start, duration, memory, notes)


def _op_of(name: str) -> str:
    """A guess from a node's name, which begins as its op where nobody chose another."""
    return re.sub(r"_\d+$", "", name.rpartition("/")[2])


# -- trace events ------------------------------------------------------------------------------------------


def _from_json(data: bytes, path: str) -> Iterator[Span]:
    content: Any = load_json(data, path)
    found_events: Any = cast("dict[str, Any]", content).get("traceEvents") if isinstance(content, dict) else content
    if not isinstance(found_events, list):
        raise FormatError('has no "traceEvents"; expected trace-event JSON', file=path)
    events = cast("list[dict[str, Any]]", found_events)
    for entry in events:
        if not isinstance(cast("object", entry), dict) or not isinstance(entry.get("args") or {}, dict):
            raise FormatError(f"has an event of an unknown form: {entry!r:.200}", file=path)
    processes: dict[Any, str] = {}
    threads: dict[Any, str] = {}
    open_spans: dict[Any, list[dict[str, Any]]] = defaultdict(list)
    found: list[tuple[dict[str, Any], float]] = []
    try:
        for entry in events:
            lane = (entry.get("pid"), entry.get("tid"))
            match entry.get("ph"):
                case "M" if entry["name"] == "process_name":
                    processes[entry.get("pid")] = str(entry["args"]["name"])
                case "M" if entry["name"] == "thread_name":
                    threads[lane] = str(entry["args"]["name"])
                case "X":
                    found.append((entry, float(entry.get("dur", 0))))
                case "B":
                    open_spans[lane].append(entry)
                case "E" if open_spans[lane]:
                    begun = open_spans[lane].pop()
                    found.append((begun, float(entry["ts"]) - float(begun["ts"])))
                case _:
                    pass
        for entry, duration in found:
            lane = (entry.get("pid"), entry.get("tid"))
            device = processes.get(lane[0], str(lane[0] if lane[0] is not None else ""))
            yield _from_event(entry, duration, device, threads.get(lane, str(lane[1] if lane[1] is not None else "")))
    except (KeyError, TypeError, ValueError) as error:
        raise FormatError(f"has an event of an unknown form: {error!r}", file=path) from None


def _from_event(event: dict[str, Any], duration: float, device: str, thread: str) -> Span:
    args: dict[str, Any] = event.get("args") or {}
    op = str(event.get("name", ""))
    # graphmill and TensorFlow's own timeline name the op; the node is in the arguments.
    name = str(args.get("node") or args.get("name") or op)
    outputs = [str(text) for text in cast("list[Any]", args.get("outputs") or [])]
    notes = [f"{key}: {value}" for key, value in args.items() if key not in ("node", "name", "outputs") and value]
    if outputs:
        notes.append("outputs: " + ", ".join(outputs))
    memory = sum(_output_bytes(text) for text in outputs)
    return Span(name, op, device, thread, float(event["ts"]), duration, memory, tuple(notes))


def _output_bytes(text: str) -> int:
    """Bytes of an output written as `float32[1, 224, 224, 3]`; 0 for what is no array."""
    found = _OUTPUT.fullmatch(text)
    if found is None:
        return 0
    try:
        size = dtypes.from_name(found[1]).size or 0
    except GraphmillError:
        return 0
    for part in filter(None, found[2].replace(" ", "").split(",")):
        size *= int(part)
    return size
