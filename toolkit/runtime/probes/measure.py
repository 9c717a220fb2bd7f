"""What nodes take, step by step, written as a cost file (`toolkit.formats.cost_file`) for `place --costs`."""

from __future__ import annotations

import threading
import time
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from toolkit.formats.cost_file import MeasuredCosts, NodeCost, device_type_of, signature_text, write_cost_file
from toolkit.graph import dtypes
from toolkit.graph.node import Node
from toolkit.runtime.probes.memory import MemoryMeter
from toolkit.runtime.training.hooks.base import Hook, RunContext

#: steps looked at; what comes later changes no median
_MOST_STEPS = 1000
_OPAQUE = (dtypes.resource, dtypes.variant)


@dataclass(slots=True)
class _Runs:
    """The runs of one node: nanoseconds and runs of the step under way, both of all steps before."""

    op: str
    device: str
    signature: str | None
    now: int = 0
    runs: int = 0
    times: list[int] = field(default_factory=list[int])
    counts: list[int] = field(default_factory=list[int])


class MeasureProbe:
    """Adds up what the kernels of each node take in each step."""

    def __init__(self) -> None:
        self.memory = MemoryMeter()
        self._nodes: dict[tuple[str, str], _Runs] = {}
        self._signatures: dict[str, list[int]] = defaultdict(list)
        self._steps: list[float] = []
        self._is_warm = False
        self._first_runs: dict[str, int] = {}  # of each signature, in the first step
        self._lock = threading.Lock()

    def ran(
        self, node: Node, device: str, start_ns: int, end_ns: int, inputs: Sequence[Any], outputs: Sequence[Any]
    ) -> None:
        self.memory.made(node, device, inputs, outputs)
        if len(self._steps) >= _MOST_STEPS:
            return
        signature = _signature(node, inputs)
        with self._lock:
            found = self._nodes.get((node.name, device))
            if found is None:
                found = self._nodes[node.name, device] = _Runs(node.op, device, signature)
                found.times, found.counts = [0] * len(self._steps), [0] * len(self._steps)
            found.now += end_ns - start_ns
            found.runs += 1
            if found.signature != signature:
                found.signature = None
            if signature is not None:
                self._signatures[f"{device_type_of(device)} {signature}"].append(end_ns - start_ns)

    def end_step(self, seconds: float) -> None:
        """A step has ended; the first one is forgotten when another follows, for it makes what later ones find."""
        with self._lock:
            if len(self._steps) == 1 and not self._is_warm:
                self._forget()
            if len(self._steps) >= _MOST_STEPS:
                return
            self._steps.append(seconds)
            for runs in self._nodes.values():
                runs.times.append(runs.now)
                runs.counts.append(runs.runs)
                runs.now = runs.runs = 0
            if not self._is_warm:
                self._first_runs = {text: len(times) for text, times in self._signatures.items()}

    def _forget(self) -> None:
        self._is_warm = True
        self._steps.clear()
        for name, count in self._first_runs.items():
            del self._signatures[name][:count]
        for runs in self._nodes.values():
            runs.times.clear()
            runs.counts.clear()

    def hook(self) -> Hook:
        """What tells it where steps end."""
        return MeasureHook(self)

    def write(self, path: str) -> None:
        """Write a cost file of the medians."""
        import statistics  # takes longer to import than all probes

        nodes: dict[str, NodeCost] = {}
        signatures: dict[str, str] = {}
        for (name, device), runs in self._nodes.items():
            if not any(runs.counts) or name in nodes:
                continue
            nodes[name] = NodeCost(runs.op, device, statistics.median(runs.times) / 1e9, statistics.fmean(runs.counts))
            if runs.signature is not None:
                signatures[name] = runs.signature
        seen = {text: times for text, times in self._signatures.items() if times}
        costs = MeasuredCosts(
            nodes,
            {text: statistics.median(times) / 1e9 for text, times in seen.items()},
            step=statistics.median(self._steps) if self._steps else None,
            overhead=statistics.median(overheads) if (overheads := self._overheads()) else None,
            steps=len(self._steps),
            memory={device: usage.peak for device, usage in self.memory.by_device.items()},
        )
        write_cost_file(path, costs, signatures, {text: len(times) for text, times in seen.items()})

    def _overheads(self) -> list[float]:
        """Seconds of each step that no kernel took, for each kernel; of several devices nothing can be said."""
        if len({device for _, device in self._nodes}) != 1:
            return []
        found: list[float] = []
        for index, step in enumerate(self._steps):
            kernels = sum(runs.counts[index] for runs in self._nodes.values())
            busy = sum(runs.times[index] for runs in self._nodes.values()) / 1e9
            if kernels:
                found.append(max(0.0, step - busy) / kernels)
        return found


def _signature(node: Node, inputs: Sequence[Any]) -> str | None:
    """The node's op with the types and shapes of its inputs; None where they are not known."""
    types = node.input_types
    if len(inputs) != len(types):
        return None  # asynchronous
    texts: list[str] = []
    for dtype, value in zip(types, inputs, strict=True):
        if dtype.base in _OPAQUE:
            texts.append(str(dtype.base))
        elif hasattr(value, "shape"):
            texts.append(f"{dtype.base}[{','.join(map(str, value.shape))}]")
        else:
            return None
    return signature_text(node.op, texts)


class MeasureHook(Hook):
    """Tells a probe where steps end, and how long each took."""

    def __init__(self, probe: MeasureProbe):
        self._probe = probe
        self._start = 0.0

    def before_run(self, run: RunContext) -> None:
        self._start = time.perf_counter()

    def after_run(self, run: RunContext, values: Any) -> None:
        self._probe.end_step(time.perf_counter() - self._start)
