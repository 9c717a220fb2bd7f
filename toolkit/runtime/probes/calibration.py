"""What holds of this machine whatever the model is, measured in about a second by steps of small graphs.

Each number is the difference between two graphs run by the executor that runs graphs split over devices. All graphs run
in turn, again and again, so that what else the machine does falls on all of them alike; compared are lower quartiles:
half of the steps may be disturbed, and no single lucky one decides.
"""

from __future__ import annotations

import functools
import os
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from typing import Any

import numpy as np

from toolkit.graph import dtypes
from toolkit.graph.device import DeviceSpec
from toolkit.graph.graph import Graph
from toolkit.graph.shape import Shape

#: how often each graph is run, and seconds after which that is enough, on a machine that does much else
_ROUNDS, _FEWEST_ROUNDS, _SECONDS = 24, 6, 2.0
#: nodes of a chain
_NODES = 32
#: square matrices of so many rows, whose product takes some ten microseconds: as long as small kernels do
_SMALL_ROWS = 128
#: likewise some hundred microseconds; so many products one after another
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
        contention: what a node takes longer beside its kernel while another device is at work: they hand one
            interpreter to each other.
        startup: what a step takes longer for each device more.
        latency, bandwidth: of a tensor on its way from one device of the task to another, which waits for it.
    """

    cores: int
    threads: int
    slowdown: float
    contention: float
    startup: float
    latency: float
    bandwidth: float


def measure_host(threads: int | None) -> HostCosts:
    """Measure this machine; takes about a second.

    Args:
        threads: of a kernel; None for as many as there are cores.
    """
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    given = cores if threads is None else threads
    side_by_side = max(1, cores // given)
    devices = max(2, side_by_side)
    turns = devices / side_by_side
    tiny, large = np.zeros(2, np.float32), np.zeros(_LARGE, np.float32)
    small, matrix = (np.eye(rows, dtype=np.float32) for rows in (_SMALL_ROWS, _ROWS))
    long, short, far = _Chain("Neg", _NODES), _Chain("Neg", 1), _Chain("Neg", _NODES, devices=2)
    products, one, away = _Chain("MatMul", _NODES), _Chain("MatMul", 1), _Chain("MatMul", _NODES, devices=2)
    step = _quartiles(
        {
            "tiny": ([long], tiny),
            "tiny on two": ([long, short], tiny),
            "products": ([products, one], small),
            "products to and fro": ([away], small),
            "products beside others": ([products, products], small),
            "large": ([long, short], large),
            "large to and fro": ([far], large),
            "matrices": ([_Chain("MatMul", _PRODUCTS)], matrix),
            "matrices everywhere": ([_Chain("MatMul", _PRODUCTS)] * devices, matrix),
        },
        threads,
    )
    startup = max(0.0, step["tiny on two"] - step["tiny"])
    latency = max(0.0, step["products to and fro"] - step["products"]) / _NODES
    more = (step["large to and fro"] - step["large"]) / _NODES - latency
    bandwidth = min(_FASTEST, large.nbytes / more) if more > 0 else _FASTEST
    everywhere = step["matrices everywhere"] - startup * (devices - 1)
    slowdown = max(1.0, everywhere / (step["matrices"] * turns))
    # two devices with small kernels, where cores suffice for two; else they take turns, which is no contention
    alone = (step["products"] - startup) * slowdown * (1 if side_by_side > 1 else 2)
    contention = max(0.0, step["products beside others"] - startup - alone) / _NODES
    return HostCosts(cores, given, slowdown, contention, startup, latency, bandwidth)


@dataclass(frozen=True, slots=True)
class _Chain:
    """Nodes one after another, on so many devices in turn."""

    op: str
    count: int
    devices: int = 1


def _quartiles(graphs: Mapping[str, tuple[Sequence[_Chain], Any]], threads: int | None) -> dict[str, float]:
    """The lower quartiles of the seconds of steps, by name; all graphs run in turn."""
    with ExitStack() as sessions:
        steps = {name: _step(sessions, chains, value, threads) for name, (chains, value) in graphs.items()}
        found: dict[str, list[float]] = {name: [] for name in steps}
        begun = time.perf_counter()
        for count in range(_ROUNDS):
            if count >= _FEWEST_ROUNDS and time.perf_counter() - begun > _SECONDS:
                break
            for name, step in steps.items():
                start = time.perf_counter()
                step()
                found[name].append(time.perf_counter() - start)
    return {name: lower_quartile(seconds) for name, seconds in found.items()}


def lower_quartile(values: Sequence[float]) -> float:
    """What a quarter of the values do not exceed."""
    return sorted(values)[len(values) // 4]


def _step(sessions: ExitStack, chains: Sequence[_Chain], value: Any, threads: int | None) -> Callable[[], object]:
    """A step with these chains, each of which begins on a device of its own; it has run once."""
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
    session = Session(graph, devices=list(map(make_device, used)), force_tokens=True, threads=threads)
    step = functools.partial(sessions.enter_context(session).make_callable(ends, ["x:0"]), value)
    step()
    return step
