"""Loops and branches that tensors decide: one launch a step on a GPU, with the CPU's numbers.

What only hardware shows here: that the driver's compiler knows `cudaGraphSetConditional` without a library, that graphs
are captured into bodies beside a recording, that cuBLASLt's kernels may stand in bodies, and that the memory that a
recording reserves holds through any number of iterations.
"""

from __future__ import annotations

import numpy as np
import pytest

from tests.gpu.driver import WHERE, on
from tests.runtime.gpu.decided_graphs import FED, GRAPHS
from toolkit import Session
from toolkit import client as gm
from toolkit.kernels.cuda.device import device
from toolkit.kernels.cuda.recording import Recording

CPU, GPU = "/device:CPU:0", "/device:GPU:0"


@pytest.mark.parametrize("where", WHERE)
@pytest.mark.parametrize("name", GRAPHS)
def test_steps_are_replayed(name: str, where: str, monkeypatch: pytest.MonkeyPatch) -> None:
    on(where)
    replays: list[Recording] = []
    replay = Recording.replay

    def noted(self: Recording) -> None:
        replays.append(self)
        replay(self)

    monkeypatch.setattr(Recording, "replay", noted)
    found: list[list[list[np.ndarray]]] = []
    for there in (GPU, CPU):
        with gm.Graph().as_default() as graph, graph.device(there):
            x = gm.placeholder(gm.float32, [4, 3])
            fetched = GRAPHS[name](x)
        with Session(graph, devices={"CPU": 1, "GPU": 1}) as session:
            given = [session.run(fetched, {x: each}) for each in FED * 2]
        found.append([each if isinstance(each, list) else [each] for each in given])
    for ours, wanted in zip(*found, strict=True):
        for one, other in zip(ours, wanted, strict=True):
            # a dozen roundings of numbers around 1; products are in float32
            np.testing.assert_allclose(one, other, rtol=1e-5, atol=1e-6)
    if not device(0).context.no_conditions:
        assert len(replays) == 2 * len(FED) - 1
