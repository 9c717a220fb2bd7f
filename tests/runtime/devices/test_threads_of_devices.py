"""`threads` of a session holds on each of its devices, in every executor."""

from __future__ import annotations

import threading
from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest

from tests.passes.graphs import F
from toolkit.compiler.backends.cpu.threads import THREADS
from toolkit.graph.device import DeviceSpec
from toolkit.graph.graph import Graph
from toolkit.graph.node import Node
from toolkit.graph.shape import Shape
from toolkit.kernels.cpu.onednn.library import library
from toolkit.runtime.devices import make_device
from toolkit.runtime.session import Session

DEVICES = [DeviceSpec("localhost", 0, 0, "CPU", index) for index in range(2)]


class _Asks:
    """What a kernel's thread would give a primitive, by device."""

    def __init__(self) -> None:
        self.found: dict[str, set[int]] = {}
        self.threads: set[int] = set()

    def ran(
        self, node: Node, device: str, start_ns: int, end_ns: int, inputs: Sequence[Any], outputs: Sequence[Any]
    ) -> None:
        self.found.setdefault(device, set()).add(THREADS.available())
        self.threads.add(threading.get_ident())


@pytest.mark.skipif(library() is None, reason="without oneDNN no primitive has threads")
@pytest.mark.parametrize("force_tokens", [False, True])
def test_each_device_has_as_many_threads_as_the_session_says(force_tokens: bool) -> None:
    graph = Graph()
    x = graph.add("Placeholder", "x", attrs={"dtype": F, "shape": Shape([2])}, device=str(DEVICES[0]))
    graph.add("Neg", "a", [x], attrs={"T": F}, device=str(DEVICES[0]))
    graph.add("Tanh", "b", [x], attrs={"T": F}, device=str(DEVICES[1]))
    for wanted in (3, 1):
        asks = _Asks()
        with Session(
            graph, devices=list(map(make_device, DEVICES)), threads=wanted, force_tokens=force_tokens
        ) as session:
            session.run(["a:0", "b:0"], {"x:0": np.ones(2, np.float32)}, probe=asks)
        assert asks.found == {str(device): {wanted} for device in DEVICES} and len(asks.threads) == 2
