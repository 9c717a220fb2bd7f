"""What nodes take, step by step, written as a cost file (`toolkit.formats.settings.cost_file`) for `place --costs`."""

from __future__ import annotations

import threading
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from toolkit.formats.settings.cost_file import MeasuredCosts, NodeCost, device_type_of, signature_text, write_cost_file
from toolkit.graph import dtypes
from toolkit.graph.node import Node
from toolkit.runtime.probes.base import Manner
from toolkit.runtime.probes.calibration import HostCosts, lower_quartile
from toolkit.runtime.probes.memory import MemoryMeter
from toolkit.runtime.training.hooks.base import Hook, RunContext

#: steps looked at; what comes later changes no median
_MOST_STEPS = 1000
_OPAQUE = (dtypes.resource, dtypes.variant)
#: how steps run in turn; how many of a kind one after the other, in the first turn, that a short run ends in, and later
_KINDS = (Manner.LOOKED_AT, Manner.BY_TOKENS, Manner.COMPILED)
_FIRST_TURN, _LATER_TURNS = 2, 4


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
    """Adds up what the kernels of each node take in each step.

    Looking costs about as much as a small kernel takes, so a third of the steps run without: what they take longer than
    the kernels is their overhead. Another third runs compiled, as a step does that one device runs. A few of a kind run
    one after the other, and the first of them does not count: it finds what the kind before it has left in caches and
    threads. Counted is what executing takes (`tell_duration`), not what sessions and hooks do around it.

    Attributes:
        manner: how the step at hand runs.
        plain: what steps took that nothing looked at; `first`: likewise the first ones of a few.
    """

    def __init__(self) -> None:
        self.manner = Manner.LOOKED_AT
        self.plain: dict[Manner, list[float]] = {Manner.BY_TOKENS: [], Manner.COMPILED: []}
        self.first: dict[Manner, list[float]] = {Manner.BY_TOKENS: [], Manner.COMPILED: []}
        self._number = -1
        self._is_first = True
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

    def begin_step(self) -> None:
        """A step is about to run: say how."""
        self._number += 1
        first = _FIRST_TURN * len(_KINDS)
        number, each = (self._number, _FIRST_TURN) if self._number < first else (self._number - first, _LATER_TURNS)
        self.manner = _KINDS[number // each % len(_KINDS)]
        self._is_first = number % each == 0

    def executed(self, seconds: float) -> None:
        """A step has run; the first one is forgotten when another follows, for it makes what later ones find."""
        if self.manner in self.plain:
            found = (self.first if self._is_first else self.plain)[self.manner]
            if len(found) < _MOST_STEPS:
                found.append(seconds)
            return
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

    def write(self, path: str, host: HostCosts | None = None) -> None:
        """Write a cost file: of kernels the medians, of whole steps that nothing looked at the lower quartiles.

        Args:
            host: what holds of the machine.
        """
        import statistics  # takes longer to import than all probes

        by_tokens, compiled = (self._without_looking(manner) for manner in (Manner.BY_TOKENS, Manner.COMPILED))
        overhead, scale = self._overhead(by_tokens)
        nodes: dict[str, NodeCost] = {}
        signatures: dict[str, str] = {}
        for (name, device), runs in self._nodes.items():
            if not any(runs.counts) or name in nodes:
                continue
            seconds = statistics.median(runs.times) / 1e9 * scale
            nodes[name] = NodeCost(runs.op, device, seconds, statistics.fmean(runs.counts))
            if runs.signature is not None:
                signatures[name] = runs.signature
        seen = {text: times for text, times in self._signatures.items() if times}
        costs = MeasuredCosts(
            nodes,
            {text: statistics.median(times) / 1e9 * scale for text, times in seen.items()},
            step=(statistics.median(self._steps) if self._steps else None) if by_tokens is None else by_tokens,
            compiled=compiled if len({device for _, device in self._nodes}) == 1 else None,
            overhead=overhead,
            steps=len(self._steps),
            memory={device: usage.peak for device, usage in self.memory.by_device.items()},
        )
        if host is not None:
            costs.cores, costs.threads, costs.slowdown = host.cores, host.threads, host.slowdown
            costs.startup, costs.latency, costs.bandwidth = host.startup, host.latency, host.bandwidth
            costs.contention = host.contention
        write_cost_file(path, costs, signatures, {text: len(times) for text, times in seen.items()})

    def _without_looking(self, manner: Manner) -> float | None:
        """What such a step takes where nothing disturbs it, which is most kernels' case and not that of many steps."""
        found = self.plain[manner] or self.first[manner]
        return lower_quartile(found) if found else None

    def _overhead(self, plain: float | None) -> tuple[float | None, float]:
        """Seconds of a step that no kernel took, for each kernel, and by how much kernels were measured too long.

        Args:
            plain: what steps take that nothing looks at; None where there was none.
        """
        import statistics

        if plain is None:
            found = self._overheads()
            return (statistics.median(found) if found else None), 1.0
        if len({device for _, device in self._nodes}) != 1 or not self._steps:
            return None, 1.0
        every = range(len(self._steps))
        kernels = statistics.median(sum(runs.counts[i] for runs in self._nodes.values()) for i in every)
        busy = sum(statistics.median(runs.times) for runs in self._nodes.values()) / 1e9
        if not kernels or not busy:
            return None, 1.0
        return max(0.0, plain - busy) / kernels, min(1.0, plain / busy)

    def _overheads(self) -> list[float]:
        """Of each step that was looked at; of several devices nothing can be said."""
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
    """Tells a probe where steps begin; where they end the session tells it."""

    def __init__(self, probe: MeasureProbe):
        self._probe = probe

    def before_run(self, run: RunContext) -> None:
        self._probe.begin_step()
