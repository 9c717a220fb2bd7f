"""What holds of this machine whatever the model is, measured in a fraction of a second by steps of small graphs.

Each number is the difference between two graphs run by the executor that runs graphs split over devices.
"""

from __future__ import annotations

import os
import statistics
import time
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from toolkit.graph import dtypes
from toolkit.graph.device import DeviceSpec
from toolkit.graph.graph import Graph
from toolkit.graph.shape import Shape

#: how often each graph is run
_REPEATS = 21
#: devices that a tensor goes back and forth between so often
_CROSSINGS = 32
#: square matrices of so many rows, so many products one after another: each takes some hundred microseconds
_ROWS, _PRODUCTS = 384, 8
#: numbers of a large tensor on its way
_LARGE = 1 << 20
#: bytes per second beyond which nothing can be told from the noise
_FASTEST = 1e12


@dataclass(frozen=True, slots=True)
class HostCosts:
    """Seconds and ratios.

    Attributes:
        cores: those that this process may use.
        threads: what a kernel was given.
        slowdown: how much longer kernels take while as many run as cores allow, beside taking turns.
        startup: what a step takes longer for each device more.
        latency, bandwidth: of a tensor on its way from one device of the task to another.
    """

    cores: int
    threads: int
    slowdown: float
    startup: float
    latency: float
    bandwidth: float


def measure_host(threads: int | None) -> HostCosts:
    """Measure this machine; takes a fraction of a second.

    Args:
        threads: of a kernel; None for as many as there are cores.
    """
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    given = cores if threads is None else threads
    side_by_side = max(1, cores // given)
    devices = max(2, side_by_side)
    small, large = np.zeros(2, np.float32), np.zeros(_LARGE, np.float32)
    matrix = np.eye(_ROWS, dtype=np.float32)

    # whatever else the machine does only adds to these: the fastest step counts
    alone = min(_steps([_Chain("Neg", _CROSSINGS)], small, threads))
    two = min(_steps([_Chain("Neg", _CROSSINGS), _Chain("Neg", 1)], small, threads))
    crossing = min(_steps([_Chain("Neg", _CROSSINGS, devices=2)], small, threads))
    startup = max(0.0, two - alone)
    latency = max(0.0, crossing - two) / _CROSSINGS
    stays = min(_steps([_Chain("Neg", _CROSSINGS), _Chain("Neg", 1)], large, threads))
    goes = min(_steps([_Chain("Neg", _CROSSINGS, devices=2)], large, threads))
    more = (goes - stays) / _CROSSINGS - latency
    bandwidth = min(_FASTEST, large.nbytes / more) if more > 0 else _FASTEST
    # threads that want more cores than there are get in each other's way more or less by chance
    one = statistics.median(_steps([_Chain("MatMul", _PRODUCTS)], matrix, threads))
    crowd = statistics.median(_steps([_Chain("MatMul", _PRODUCTS)] * devices, matrix, threads))
    turns = devices / side_by_side
    slowdown = max(1.0, (crowd - startup * (devices - 1)) / (one * turns))
    return HostCosts(cores, given, slowdown, startup, latency, bandwidth)


@dataclass(frozen=True, slots=True)
class _Chain:
    """Nodes one after another, on so many devices in turn."""

    op: str
    count: int
    devices: int = 1


def _steps(chains: Sequence[_Chain], value: Any, threads: int | None) -> list[float]:
    """The seconds of steps with these chains, each of which begins on a device of its own."""
    from toolkit.runtime.devices import make_device
    from toolkit.runtime.session import Session

    used = [DeviceSpec("localhost", 0, 0, "CPU", index) for index in range(max(2, len(chains)))]
    graph = Graph()
    x = graph.add("Placeholder", "x", attrs={"dtype": dtypes.float32, "shape": Shape(value.shape)}, device=str(used[0]))
    ends: list[str] = []
    for number, chain in enumerate(chains):
        last = x
        for index in range(chain.count):
            device = str(used[(number + index % chain.devices) % len(used)])
            inputs = [last, x] if chain.op == "MatMul" else [last]
            last = graph.add(chain.op, f"chain{number}/{index}", inputs, attrs={"T": dtypes.float32}, device=device)
        ends.append(last.name)
    with Session(graph, devices=list(map(make_device, used)), force_tokens=True, threads=threads) as session:
        step = session.make_callable(ends, ["x:0"])
        step(value)
        found: list[float] = []
        for _ in range(_REPEATS):
            start = time.perf_counter()
            step(value)
            found.append(time.perf_counter() - start)
    return found
