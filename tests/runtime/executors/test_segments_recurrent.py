"""Recurrent networks over two devices: the whole graph's numbers, and loops compiled as if it were whole."""

# lambdas over tensors of the client, whose parameters have no types
# pyright: reportUnknownVariableType=false, reportUnknownMemberType=false, reportUnknownArgumentType=false
# pyright: reportUnknownLambdaType=false

from __future__ import annotations

import random
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from toolkit import client as gm
from toolkit.client.recurrent import rnn, rnn_cell
from toolkit.client.seq2seq.attention import LuongAttention
from toolkit.client.seq2seq.decoder import BasicDecoder, dynamic_decode
from toolkit.client.seq2seq.helpers import TrainingHelper
from toolkit.client.seq2seq.wrapper import AttentionWrapper
from toolkit.client.train import GradientDescent
from toolkit.graph.device import DeviceSpec
from toolkit.graph.graph import Graph
from toolkit.kernels.cpu.onednn.library import library
from toolkit.passes.placement.place import Place
from toolkit.runtime.devices import make_device
from toolkit.runtime.session import Session
from toolkit.runtime.sessions.graphs import core_graph

NEAR = [DeviceSpec("localhost", 0, 0, "CPU", number) for number in (0, 1)]
FAR = [DeviceSpec("worker", 0, number, "CPU", 0) for number in (0, 1)]
X = np.random.default_rng(3).standard_normal((4, 6, 5)).astype(np.float32)
FEEDS = {"x:0": X}
UNITS = 8

Build = Callable[[Any], Any]


def _layers(x: Any, kinds: list[Any]) -> Any:
    for number, kind in enumerate(kinds):
        with gm.name_scope(f"layer{number}"):
            x, _ = rnn.dynamic_rnn(kind(UNITS), x, dtype=np.float32, scope=f"layer{number}")
    return x


def lstm(x: Any) -> Any:
    return _layers(x, [rnn_cell.LSTMCell])


def gru(x: Any) -> Any:
    return _layers(x, [rnn_cell.GRUCell])


def stacked(x: Any) -> Any:
    return _layers(x, [rnn_cell.LSTMCell, rnn_cell.GRUCell, rnn_cell.LSTMCell])


def both_ways(x: Any) -> Any:
    outputs, _ = rnn.bidirectional_dynamic_rnn(rnn_cell.LSTMCell(UNITS), rnn_cell.LSTMCell(UNITS), x, dtype=np.float32)
    return gm.ops.concat_v2(list(outputs), 2)


def attentive(x: Any) -> Any:
    """A decoder that looks at what an encoder made of the input."""
    memory, state = rnn.dynamic_rnn(rnn_cell.LSTMCell(UNITS), x, dtype=np.float32, scope="encoder")
    cell = AttentionWrapper(rnn_cell.LSTMCell(UNITS), LuongAttention(UNITS, memory), attention_layer_size=UNITS)
    helper = TrainingHelper(x, np.full(4, 6, np.int32))
    start = cell.zero_state(4, np.float32).clone(cell_state=state)
    outputs, _, _ = dynamic_decode(BasicDecoder(cell, helper, start))
    return outputs.rnn_output


MODELS: dict[str, Build] = {
    "lstm": lstm, "gru": gru, "stacked": stacked, "both ways": both_ways, "attentive": attentive
}  # fmt: skip


def network(build: Build, *, trains: bool = False, references: bool = False) -> Graph:
    """A graph with x float32[4, 6, 5], the target "init", the result y and, where it trains, the target "train"."""
    with gm.Graph().as_default() as made:
        gm.set_random_seed(5)
        with gm.variable_scope("", use_resource=not references):
            x = gm.placeholder(np.float32, [4, 6, 5], name="x")
            y = gm.identity(build(x), name="y")
        if trains:
            loss = gm.reduce_sum(gm.square(y))
            GradientDescent(0.01).minimize(loss, name="train")
        gm.group([each.initializer for each in gm.global_variables()], name="init")
    return core_graph(made)


def placed(graph: Graph, devices: list[DeviceSpec], device_of: Callable[[Any], int | None]) -> Graph:
    """The graph with its nodes where a function says, or anywhere."""
    made = graph.copy()
    for node in made:
        at = device_of(node)
        node.device = "" if at is None else str(devices[at])
    return Place(devices, allow_soft_placement=True).apply(made).graph


def by_variables(node: Any) -> int:
    return 0 if node.op in ("VarHandleOp", "VariableV2") else 1


def steps(graph: Graph, devices: list[DeviceSpec] | None = None, **settings: Any) -> tuple[list[Any], str]:
    """What three steps compute, and what is told of them."""
    fetches = ["y:0", "train"] if "train" in graph else ["y:0"]
    made = None if devices is None else [make_device(each) for each in devices]
    with Session(graph.copy(), devices=made, **settings) as session:
        session.run("init")
        found = [session.run(fetches, FEEDS)[0] for _ in range(3)]
        return found, "\n".join([*session.explain(fetches, FEEDS), *session.notes()])


@pytest.mark.parametrize("devices", [NEAR, FAR], ids=["devices", "tasks"])
@pytest.mark.parametrize("trains", [False, True], ids=["runs", "trains"])
@pytest.mark.parametrize("name", MODELS)
def test_variables_on_another_device(name: str, trains: bool, devices: list[DeviceSpec]) -> None:
    graph = network(MODELS[name], trains=trains)
    wanted, _ = steps(graph, precision="exact")
    split = placed(graph, devices, by_variables)
    found, told = steps(split, devices, precision="exact")
    np.testing.assert_array_equal(found, wanted)
    assert "goes around in the loop" not in told, told  # no loop is spread
    np.testing.assert_array_equal(steps(split, devices, precision="exact", force_tokens=True)[0], wanted)


@pytest.mark.parametrize("name", ["lstm", "gru", "stacked", "both ways"])
def test_layers_are_recognised_beside_their_variables_device(name: str) -> None:
    if library() is None:
        pytest.skip("there are no primitives without oneDNN")
    graph = network(MODELS[name])
    _, whole = steps(graph)
    _, told = steps(placed(graph, NEAR, by_variables), NEAR)
    for kind in ("lstm", "gru"):
        count = sum(f" {kind} " in line for line in whole.splitlines() if "oneDNN" not in line)
        assert sum(f" {kind} " in line for line in told.splitlines() if "oneDNN" not in line) == count, told


@pytest.mark.parametrize("name", ["stacked", "attentive"])
def test_layers_on_devices_of_their_own(name: str) -> None:
    graph = network(MODELS[name], trains=True)
    wanted, _ = steps(graph, precision="exact")
    first = ("layer1", "encoder")
    split = placed(graph, NEAR, lambda node: 0 if any(each in node.name for each in first) else 1)
    np.testing.assert_array_equal(steps(split, NEAR, precision="exact")[0], wanted)


@pytest.mark.parametrize("seed", range(6))
def test_nodes_anywhere(seed: int) -> None:
    rng = random.Random(seed)
    name = rng.choice(list(MODELS))
    graph = network(MODELS[name], trains=rng.random() < 0.5, references=rng.random() < 0.3)
    wanted, _ = steps(graph, precision="exact")
    share = rng.choice([0.02, 0.1, 0.5])
    devices = rng.choice([NEAR, FAR])

    def anywhere(node: Any) -> int | None:
        return rng.choice([0, 1]) if rng.random() < share else None

    found, _ = steps(placed(graph, devices, anywhere), devices, precision="exact")
    np.testing.assert_array_equal(found, wanted, err_msg=f"{name}, {share}, {devices[0]}")
