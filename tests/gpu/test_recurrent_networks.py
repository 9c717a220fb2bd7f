"""A graph with cuDNN's recurrent networks and their gradients on a GPU beside the CPU, where TensorFlow has none."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from tests import tolerance
from tests.gpu.driver import WHERE, on
from tests.kernels.op_suite import sample
from toolkit import Session
from toolkit import client as gm
from toolkit.client import ops
from toolkit.client.gradients import gradients
from toolkit.kernels.recurrent_params import RecurrentModel

STEPS, BATCH, INPUTS, UNITS = 4, 2, 3, 4


def network(there: str, mode: str, version: str) -> tuple[gm.Graph, list[Any]]:
    """Two layers in both directions, then their gradients by inputs and weights."""
    model = RecurrentModel(mode, 2, UNITS, INPUTS, 2)
    graph = gm.Graph()
    with graph.as_default(), graph.device(there):
        x = gm.placeholder(gm.float32, [STEPS, BATCH, INPUTS], name="x")
        h = gm.constant(np.zeros((4, BATCH, UNITS), np.float32))
        params = gm.constant(sample("float32", (model.size,), -1, 1))
        lengths = [gm.constant([STEPS, 2])] if version == "V3" else []
        made = ops.function(f"CudnnRNN{version}")(
            x, h, h, params, *lengths, rnn_mode=mode, direction="bidirectional", name="network"
        )
        by = gradients([made[0] * made[0]], [x, params])
    return graph, [made[0], made[1], *by]


@pytest.mark.parametrize("where", WHERE)
@pytest.mark.parametrize(("mode", "version"), [("lstm", ""), ("gru", "V2"), ("lstm", "V3"), ("gru", "V3")])
def test_networks(where: str, mode: str, version: str) -> None:
    on(where)
    x = sample("float32", (STEPS, BATCH, INPUTS), -1, 1)
    graph, fetched = network("", mode, version)
    wanted = Session(graph).run(fetched, {"x:0": x})
    graph, fetched = network("/device:GPU:0", mode, version)
    session = Session(graph, devices={"CPU": 1, "GPU": 1})
    for _ in range(3):  # launch by launch, recorded, replayed
        found = session.run(fetched, {"x:0": x})
        for mine, other in zip(found, wanted, strict=True):
            # two layers of products of 12, there and back, over the steps, by either
            bound = 2 * tolerance.likely(2 * 2 * STEPS * (3 * UNITS + 10))
            largest = max(1.0, float(np.abs(other).max()))
            np.testing.assert_allclose(mine, other, rtol=0, atol=bound * largest)
