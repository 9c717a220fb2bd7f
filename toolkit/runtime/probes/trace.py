"""Traces: Chrome's trace-event JSON and TensorFlow's StepStats.

A span is what ran: a primitive, a fused loop or a kernel of a compiled function, named for the node whose output it
makes, and what the dataflow executor calls. Where nodes run one by one, it is a node.
"""

from __future__ import annotations

import functools
import json
import re
import threading
import time
from collections.abc import Sequence
from typing import Any, NamedTuple

from schemas import config_pb2, step_stats_pb2
from toolkit.compiler.backends.base import Entry
from toolkit.formats.io import write_atomic
from toolkit.graph import dtypes
from toolkit.graph.attrs import shape_to_proto
from toolkit.graph.node import Node
from toolkit.graph.shape import Shape
from toolkit.runtime.probes.base import Manner
from toolkit.runtime.probes.memory import MemoryMeter


class Span(NamedTuple):
    """One kernel that ran: times in microseconds since the epoch, sizes in bytes.

    `made_bytes` is what it allocated for its outputs, `in_use_bytes` what the device's tensors took then (of a compiled
    function, what its arena held); `others` are further nodes that it did the work of.
    """

    node: str
    op: str
    device: str
    thread: int
    start_us: float
    duration_us: float
    inputs: tuple[str, ...]
    shapes: tuple[tuple[str, tuple[int, ...], int], ...]  # dtype name, shape, bytes of each output
    made_bytes: int = 0
    in_use_bytes: int = 0
    others: tuple[str, ...] = ()

    @property
    def label(self) -> str:
        """As TensorFlow's tools read it: node = op(inputs); behind that, the further nodes."""
        told = f"{self.node} = {self.op}({', '.join(self.inputs)})"
        if not self.others:
            return told
        more = len(self.others) - _MOST_OTHERS
        return f"{told} with {', '.join(self.others[:_MOST_OTHERS])}" + (f" and {more} more" if more > 0 else "")

    @property
    def output_bytes(self) -> int:
        return sum(size for _, _, size in self.shapes)


#: further nodes that are named in a label
_MOST_OTHERS = 32
#: the row of what the compiler does
COMPILER = "compiler"


class TraceProbe:
    """Collects a span per kernel. While a step runs only times are written down; spans are made when asked for.

    Args:
        limit: stop collecting after so many, so that an endless run cannot fill the memory.
        per_node: nodes run one by one.

    Attributes:
        compilations: what the compiler did meanwhile, a span for each pass.
    """

    def __init__(self, limit: int = 1_000_000, *, per_node: bool = False):
        self.manner = Manner.NODE_BY_NODE if per_node else Manner.PLANNED
        self.compilations: list[Span] = []
        self._spans: list[Span] = []
        self._plans: list[tuple[Sequence[Entry], str, int, list[int]]] = []
        self._count = self._dropped = 0
        self.told_stats: list[step_stats_pb2.StepStats] = []
        self._memory = MemoryMeter()
        self._limit = limit
        self._lock = threading.Lock()
        # perf_counter has no epoch: tie it to the wall clock once
        self._epoch_ns = time.time_ns() - time.perf_counter_ns()

    @property
    def spans(self) -> list[Span]:
        """What has run, in the order in which it began."""
        with self._lock:
            self._make_spans()
            return self._spans

    @property
    def memory(self) -> MemoryMeter:
        """What tensors took."""
        with self._lock:
            self._make_spans()
            return self._memory

    @property
    def dropped(self) -> int:
        """How many kernels more have run than are kept."""
        with self._lock:
            self._make_spans()
            return self._dropped

    def _make_spans(self) -> None:
        if not self._plans:
            return
        for entries, device, thread, marks in self._plans:
            # as floats, times since 1970 come in steps of a quarter of a microsecond: differences of such fit together
            start = (self._epoch_ns + marks[-1]) / 1e3
            ran = [(entry, mark) for entry, mark in zip(entries, marks, strict=False) if mark]  # not on other branches
            self._memory.planned(device, [entry for entry, _ in ran])
            for entry, mark in ran:
                end = (self._epoch_ns + mark) / 1e3
                self._spans.append(Span(
                    entry.node, entry.op, device, thread, start, end - start, entry.inputs, entry.outputs,
                    entry.made_bytes, entry.in_use_bytes, entry.others,
                ))  # fmt: skip
                start = end
        self._plans.clear()
        self._spans.sort(key=lambda span: span.start_us)
        self._dropped += max(0, len(self._spans) - self._limit)
        del self._spans[self._limit :]

    def on_device(self, name: str) -> list[Span]:
        """The spans; those of a worker with one device, which does not name it, have this name."""
        return [span if span.device else span._replace(device=name) for span in self.spans]

    def ran(
        self, node: Node, device: str, start_ns: int, end_ns: int, inputs: Sequence[Any], outputs: Sequence[Any]
    ) -> None:
        made, in_use = self._memory.made(node, device, inputs, outputs)
        span = Span(
            node.name,
            node.op,
            device,
            threading.get_ident(),
            (self._epoch_ns + start_ns) / 1e3,
            (end_ns - start_ns) / 1e3,
            tuple(node.input_refs()),
            tuple(_describe(value) for value in outputs),
            made,
            in_use,
        )
        with self._lock:
            self._count += 1
            if self._count <= self._limit:
                self._spans.append(span)
            else:
                self._dropped += 1

    def ran_plan(self, entries: Sequence[Entry], device: str, marks: list[int]) -> None:
        """A compiled function has run; see `Watcher`."""
        with self._lock:
            if self._count < self._limit:
                self._plans.append((entries, device, threading.get_ident(), marks))
            else:
                self._dropped += len(entries)
            self._count += len(entries)

    def compiled(self, what: str, start_ns: int, end_ns: int) -> None:
        """A part of the compilation is over."""
        start = (self._epoch_ns + start_ns) / 1e3
        span = Span(what, "Compile", COMPILER, threading.get_ident(), start, (end_ns - start_ns) / 1e3, (), ())
        with self._lock:
            if len(self.compilations) < self._limit:
                self.compilations.append(span)

    def told(self, stats: step_stats_pb2.StepStats) -> None:
        """What another task has written down of its part of the step."""
        with self._lock:
            self.told_stats.append(stats)

    def timeline(self) -> list[Span]:
        """The spans at all tasks, and what the compiler did; those of others are on their own clocks."""
        told = (
            _span_of(each.device, entry) for s in self.told_stats for each in s.dev_stats for entry in each.node_stats
        )
        return [*self.spans, *self.compilations, *told]

    def stats(self) -> step_stats_pb2.StepStats:
        """The step at all tasks."""
        stats = step_stats([*self.spans, *self.compilations])
        for each in self.told_stats:
            stats.dev_stats.extend(each.dev_stats)
        return stats


#: "node = Op(input, input)"
_LABEL = re.compile(r"(?:.* = )?([\w+]+)\((.*)\)(?: with .*)?", re.DOTALL)


def _span_of(device: str, entry: step_stats_pb2.NodeExecStats) -> Span:
    label = _LABEL.fullmatch(entry.timeline_label)
    shapes = [
        (
            dtypes.from_enum(each.dtype).name if each.dtype else "",
            tuple(dim.size for dim in each.shape.dim),
            each.allocation_description.requested_bytes,
        )
        for each in (output.tensor_description for output in entry.output)
    ]
    return Span(
        entry.node_name,
        label[1] if label is not None else entry.node_name,
        device,
        entry.thread_id,
        entry.all_start_nanos / 1e3 if entry.all_start_nanos else float(entry.all_start_micros),
        entry.all_end_rel_nanos / 1e3 if entry.all_end_rel_nanos else float(entry.all_end_rel_micros),
        tuple(filter(None, label[2].split(", "))) if label is not None else (),
        tuple(shapes),
        sum(each.total_bytes for each in entry.memory),
        max((each.allocator_bytes_in_use for each in entry.memory), default=0),
    )


def _describe(value: Any) -> tuple[str, tuple[int, ...], int]:
    dtype = getattr(value, "dtype", None)
    shape: Any = getattr(value, "shape", ())
    if isinstance(shape, Shape):  # of a list: what its elements have
        shape = ()
    return (str(dtype) if dtype is not None else type(value).__name__, tuple(shape), int(getattr(value, "nbytes", 0)))


def chrome_trace(spans: Sequence[Span]) -> str:
    """Trace-event JSON for chrome://tracing and Perfetto: one process per device, one row per thread."""
    devices = {name: number for number, name in enumerate(sorted({span.device for span in spans}))}
    threads = {ident: number for number, ident in enumerate(dict.fromkeys(span.thread for span in spans))}
    origin = min((span.start_us for span in spans), default=0.0)
    events: list[dict[str, Any]] = [
        {"ph": "M", "name": "process_name", "pid": number, "args": {"name": name or "CPU:0"}}
        for name, number in devices.items()
    ]
    events += [
        {
            "ph": "C",
            "name": "tensor memory",
            "pid": devices[span.device],
            "ts": round(span.start_us + span.duration_us - origin, 3),
            "args": {"bytes": span.in_use_bytes},
        }
        for span in spans
        if span.device != COMPILER
    ]
    events += [
        {
            "ph": "X",
            "cat": "Op" if span.device != COMPILER else "Compile",
            "name": span.op if span.device != COMPILER else span.node,
            "pid": devices[span.device],
            "tid": threads[span.thread],
            "ts": round(span.start_us - origin, 3),
            "dur": round(span.duration_us, 3),
            "args": {
                "node": span.node,
                "inputs": list(span.inputs),
                "outputs": [f"{dtype}{list(shape)}" for dtype, shape, _ in span.shapes],
                **({"others": list(span.others)} if span.others else {}),
            },
        }
        for span in spans
    ]
    return json.dumps({"displayTimeUnit": "ms", "traceEvents": events}) + "\n"


def write_trace(path: str, spans: Sequence[Span]) -> None:
    """Write a trace: a serialized RunMetadata when the suffix is .pb, else trace-event JSON."""
    if path.endswith(".pb"):
        data = run_metadata(spans).SerializeToString(deterministic=True)
    else:
        data = chrome_trace(spans).encode()
    write_atomic(path, data)


def step_stats(spans: Sequence[Span]) -> step_stats_pb2.StepStats:
    """The StepStats message that TensorFlow's RunMetadata carries.

    The peak of a device is the largest `allocator_bytes_in_use` among its nodes.
    """
    stats = step_stats_pb2.StepStats()
    by_device: dict[str, step_stats_pb2.DeviceStepStats] = {}
    for span in spans:
        device = by_device.get(span.device)
        if device is None:
            device = by_device[span.device] = stats.dev_stats.add(device=span.device or "/device:CPU:0")
        start, duration = int(span.start_us * 1e3), int(span.duration_us * 1e3)
        entry = device.node_stats.add()
        entry.MergeFrom(_described(span.label, span.node, span.shapes, span.made_bytes, span.in_use_bytes))
        entry.all_start_micros, entry.all_start_nanos = int(span.start_us), start
        entry.op_end_rel_micros, entry.op_end_rel_nanos = int(span.duration_us), duration
        entry.all_end_rel_micros, entry.all_end_rel_nanos = max(1, int(span.duration_us)), duration
        entry.thread_id = span.thread & 0xFFFFFFFF
    return stats


@functools.lru_cache(maxsize=4096)  # a few large networks: a step's nodes are the last step's
def _described(
    label: str, node: str, shapes: tuple[tuple[str, tuple[int, ...], int], ...], made: int, in_use: int
) -> step_stats_pb2.NodeExecStats:
    """What is the same for a node in every step; nobody changes it."""
    stats = step_stats_pb2.NodeExecStats(node_name=node, op_start_rel_nanos=0, timeline_label=label)
    stats.memory.add(
        allocator_name="cpu", total_bytes=made, peak_bytes=made, live_bytes=made, allocator_bytes_in_use=in_use
    )
    for slot, (_, shape, size) in enumerate(shapes):
        output = stats.output.add(slot=slot)
        shape_to_proto(Shape(shape), output.tensor_description.shape)
        output.tensor_description.allocation_description.requested_bytes = size
    return stats


def run_metadata(spans: Sequence[Span]) -> config_pb2.RunMetadata:
    """A RunMetadata message with the step's stats."""
    metadata = config_pb2.RunMetadata()
    metadata.step_stats.CopyFrom(step_stats(spans))
    return metadata
