"""Cost files: what nodes took when somebody looked, for `place --costs`. `run --measure` writes them, as JSON:

    {"graphmill_costs": 1,
     "steps": 20, "step_us": 812.5,          # steps looked at; what steps take that nothing looks at
     "compiled_us": 190.0,                   # likewise where they are compiled as a whole (lower quartiles)
     "overhead_us": 4.1,                     # what a node took besides its kernel, the median
     "host": {"cores": 8, "threads": 1,      # of the machine; that a kernel was given
              "slowdown": 1.2,               # how much longer kernels take while all cores are busy
              "contention_us": 6.0,          # what a node takes longer while another device is at work, beside that
              "startup_us": 80.0},           # what a step takes longer for each device more
     "links": {"local": {"latency_us": 55.0, "bytes_per_s": 9.1e9}},
     "nodes": {"conv1": {"op": "Conv2D", "device": "/job:...", "us": 102.0, "count": 1, "signature": "Conv2D(...)"}},
     "signatures": {"CPU Conv2D(float32[1,28,28,1], float32[5,5,1,32])": {"us": 102.0, "count": 20}},
     "memory": {"/job:...": 4096}}           # the most bytes that tensors took at once

`us` of a node is what it takes in one step, all its runs together; of a signature, what one run takes: an op with the
types and shapes of its inputs on a type of device, so that the numbers are good for other graphs too. A trace
(`run --trace`, TensorFlow's RunMetadata) has the first of these alone.
"""

from __future__ import annotations

import json
from collections import Counter, defaultdict
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, cast

from toolkit.errors import FormatError, source_name
from toolkit.formats import io
from toolkit.formats.records.timeline import STREAM, read_trace
from toolkit.formats.settings.documents import load_json
from toolkit.graph.device import DeviceSpec

VERSION = 1
_MARK = b'"graphmill_costs"'


@dataclass(frozen=True, slots=True)
class NodeCost:
    """What a node took: `seconds` of one step in `count` runs on `device` (as the file names it)."""

    op: str
    device: str
    seconds: float
    count: float = 1


@dataclass(slots=True)
class MeasuredCosts:
    """What was measured; times in seconds.

    Attributes:
        nodes: by name.
        signatures: device type and op with the types and shapes of its inputs, to seconds of one run.
        step: of a whole step, node by node; None where the file does not say.
        compiled: of a whole step that was compiled, as it runs on one device.
        overhead: of a node besides its kernel.
        latency, bandwidth: of transfers within a task.
        cores, threads: of the machine, and those that a kernel was given.
        slowdown: how much longer a kernel takes while all cores are busy with others.
        contention: what a node takes longer, besides its kernel, while another device of the task is at work.
        startup: what a step takes longer for each device more.
        steps: how many were looked at.
        memory: device to the most bytes that tensors took.
    """

    nodes: dict[str, NodeCost] = field(default_factory=dict[str, NodeCost])
    signatures: dict[str, float] = field(default_factory=dict[str, float])
    step: float | None = None
    overhead: float | None = None
    latency: float | None = None
    bandwidth: float | None = None
    compiled: float | None = None
    cores: int | None = None
    threads: int | None = None
    slowdown: float = 1.0
    contention: float = 0.0
    startup: float | None = None
    steps: int = 1
    memory: dict[str, int] = field(default_factory=dict[str, int])

    @property
    def device_types(self) -> set[str]:
        """The types of the devices that something ran on."""
        return {device_type_of(cost.device) for cost in self.nodes.values()}


def signature_text(op: str, inputs: list[str]) -> str:
    """`MatMul(float32[2,3], float32[3,4])`."""
    return f"{op}({', '.join(inputs)})"


def device_type_of(name: str) -> str:
    """The type in a device's name, however short: "CPU:0", "/device:GPU:1"; CPU where there is none."""
    last = name.rpartition("/")[2].removeprefix("device:")
    return last.partition(":")[0].upper() or "CPU"


def read_cost_file(source: str) -> MeasuredCosts:
    """Read a cost file or a trace.

    Raises:
        FormatError: it is neither, or a number in it is none.
    """
    data = io.read_bytes(source)
    name = source_name(source)
    if data.lstrip()[:1] != b"{" or _MARK not in data[:4096]:
        return _from_trace(source, data)
    content: Any = load_json(data, name)
    try:
        return _from_json(_mapping(content))
    except (KeyError, TypeError, ValueError) as error:
        raise FormatError(f"is no cost file as run --measure writes it: {error!r:.200}", file=name) from None


def write_cost_file(
    path: str, costs: MeasuredCosts, signatures_of: Mapping[str, str], counts: Mapping[str, int]
) -> None:
    """Write a cost file.

    Args:
        signatures_of: node to signature, of those whose shapes were always the same.
        counts: signature to how often it ran.
    """
    content: dict[str, Any] = {"graphmill_costs": VERSION, "steps": costs.steps}
    for key, value in (("step_us", costs.step), ("compiled_us", costs.compiled), ("overhead_us", costs.overhead)):
        if value is not None:
            content[key] = _us(value)
    if costs.cores is not None:
        content["host"] = {"cores": costs.cores, "threads": costs.threads or 1, "slowdown": round(costs.slowdown, 3)}
        content["host"]["contention_us"] = _us(costs.contention)
        if costs.startup is not None:
            content["host"]["startup_us"] = _us(costs.startup)
    if costs.latency is not None and costs.bandwidth is not None:
        content["links"] = {"local": {"latency_us": _us(costs.latency), "bytes_per_s": round(costs.bandwidth)}}
    content["nodes"] = {
        name: {
            "op": cost.op, "device": cost.device, "us": _us(cost.seconds), "count": round(cost.count, 3),
            **({"signature": signatures_of[name]} if name in signatures_of else {}),
        }
        for name, cost in costs.nodes.items()
    }  # fmt: skip
    content["signatures"] = {
        text: {"us": _us(seconds), "count": counts.get(text, 1)} for text, seconds in sorted(costs.signatures.items())
    }
    content["memory"] = costs.memory
    io.write_atomic(path, json.dumps(content, indent=1).encode() + b"\n")


def _us(seconds: float) -> float:
    return round(seconds * 1e6, 3)


def _from_json(content: dict[str, Any]) -> MeasuredCosts:
    if content["graphmill_costs"] != VERSION:
        raise ValueError(f"version {content['graphmill_costs']!r:.40}, expected {VERSION}")
    costs = MeasuredCosts(steps=int(_number(content.get("steps", 1))))
    for name, row in _rows(content["nodes"]).items():
        seconds, count = _number(row["us"]) / 1e6, _number(row.get("count", 1))
        costs.nodes[name] = NodeCost(str(row["op"]), str(row["device"]), seconds, count)
    costs.signatures = {text: _number(row["us"]) / 1e6 for text, row in _rows(content["signatures"]).items()}
    if "step_us" in content:
        costs.step = _number(content["step_us"]) / 1e6
    if "overhead_us" in content:
        costs.overhead = _number(content["overhead_us"]) / 1e6
    if "compiled_us" in content:
        costs.compiled = _number(content["compiled_us"]) / 1e6
    host = _mapping(content.get("host", {}))
    if host:
        costs.cores, costs.threads = max(1, int(_number(host["cores"]))), max(1, int(_number(host.get("threads", 1))))
        costs.slowdown = max(1.0, _number(host.get("slowdown", 1)))
        costs.contention = _number(host.get("contention_us", 0)) / 1e6
        costs.startup = _number(host["startup_us"]) / 1e6 if "startup_us" in host else None
    local = _rows(content.get("links", {})).get("local")
    if local is not None:
        costs.latency, costs.bandwidth = _number(local["latency_us"]) / 1e6, max(1.0, _number(local["bytes_per_s"]))
    costs.memory = {name: int(_number(size)) for name, size in _mapping(content.get("memory", {})).items()}
    return costs


def _mapping(value: Any) -> dict[str, Any]:
    if not isinstance(value, dict):
        raise TypeError(f"{value!r:.40} where an object is expected")
    return cast("dict[str, Any]", value)


def _rows(value: Any) -> dict[str, dict[str, Any]]:
    return {name: _mapping(row) for name, row in _mapping(value).items()}


def _number(value: Any) -> float:
    if isinstance(value, bool) or not isinstance(value, int | float) or not 0 <= value < 1e18:
        raise ValueError(f"{value!r:.40} where a number from 0 on is expected")
    return float(value)


def _from_trace(source: str, data: bytes) -> MeasuredCosts:
    """Medians over the runs of each node. A trace does not say where steps begin: most nodes run once in each."""
    import statistics  # takes longer to import than anything else here

    try:
        trace = read_trace(source, data=data)
    except FormatError as error:
        raise FormatError(
            f"is neither a cost file (graphmill run --measure FILE) nor a trace (run --trace FILE): {error.message}",
            file=source_name(source),
        ) from None
    found: dict[str, list[float]] = defaultdict(list)
    where: dict[str, tuple[str, str]] = {}
    for span in trace.spans:
        if STREAM not in span.device:
            name = span.name.partition(":")[0]
            found[name].append(span.duration / 1e6)
            where[name] = (span.op, span.device)
    runs = Counter(len(times) for times in found.values())
    steps = max(runs, key=lambda count: (runs[count], -count), default=1)
    nodes = {
        name: NodeCost(*where[name], statistics.median(times) * len(times) / steps, len(times) / steps)
        for name, times in found.items()
    }
    return MeasuredCosts(nodes, step=trace.length / 1e6 if steps == 1 else None, steps=steps)


def full_device(name: str, default: DeviceSpec) -> DeviceSpec:
    """A device's name as a trace has it, made whole with what `default` says."""
    text = name if name.startswith("/") or not name else f"/device:{name}"
    return DeviceSpec.parse(text).override(default)
