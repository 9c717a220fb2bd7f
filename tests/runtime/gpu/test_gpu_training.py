"""Training on a GPU, through the fake driver, is training on the CPU within what roundings explain.

Graphs name no device but where a test is about that: nodes are where their kernels are.
"""

# lambdas over tensors of the client, whose parameters have no types
# pyright: reportUnknownVariableType=false, reportUnknownMemberType=false, reportUnknownArgumentType=false

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tests import perturbation
from tests.gpu.driver import driver
from toolkit import client as gm
from toolkit.client.metagraphs.export import to_meta_graph
from toolkit.client.train.adam_relatives import AdaMax
from toolkit.client.train.by_sign import AddSign, PowerSign
from toolkit.graph.metagraph import MetaGraph
from toolkit.kernels.resources.variables import read
from toolkit.runtime.saving.saver import Saver, put, variable_cells
from toolkit.runtime.session import Session

__all__ = ["driver"]

ops = gm.ops
STEPS = 4
RNG = np.random.default_rng(7)
IMAGES = RNG.normal(size=(4, 6, 6, 2)).astype(np.float32)
LABELS = np.array([0, 1, 2, 1], np.int32)
OPTIMIZERS: dict[str, Callable[[], Any]] = {
    "GradientDescent": lambda: gm.train.GradientDescent(0.1), "Momentum": lambda: gm.train.Momentum(0.1, 0.9),
    "Nesterov": lambda: gm.train.Momentum(0.1, 0.9, use_nesterov=True), "Adam": lambda: gm.train.Adam(0.01),
    "AdaMax": lambda: AdaMax(0.01), "Adagrad": lambda: gm.train.Adagrad(0.1),
    "Adadelta": lambda: gm.train.Adadelta(0.5), "RMSProp": lambda: gm.train.RMSProp(0.01, momentum=0.5),
    "CenteredRMSProp": lambda: gm.train.RMSProp(0.01, centered=True), "Ftrl": lambda: gm.train.Ftrl(0.1),
    "ProximalAdagrad": lambda: gm.train.ProximalAdagrad(0.1, l1_regularization_strength=0.001),
    "AddSign": lambda: AddSign(0.01), "PowerSign": lambda: PowerSign(0.01),
}  # fmt: skip


@dataclass
class _Net:
    """A graph with what is fed and fetched."""

    graph: Any
    feeds: dict[Any, Any]
    loss: Any
    step: Any
    start: Any
    weights: list[Any]

    def work(self, session: Session, steps: int = STEPS) -> list[Any]:
        """Losses of some steps from the start, and the weights afterwards."""
        session.run(self.start)
        return self.go_on(session, steps)

    def go_on(self, session: Session, steps: int = STEPS) -> list[Any]:
        losses = [session.run([self.loss, self.step], self.feeds)[0] for _ in range(steps)]
        return [*losses, *session.run([each.value() for each in self.weights])]

    def agrees(self) -> None:
        """Raise AssertionError unless a session with a GPU computes what one without does."""
        with Session(self.graph, devices={"GPU": 1}, precision="exact") as session:
            there = self.work(session)
            (known,) = session.device_statistics().values()
        with Session(self.graph, precision="exact") as session:
            here = self.work(session)
        assert known.allocations > 0
        assert np.isfinite(here[0])
        assert here[STEPS - 1] != here[0]
        perturbation.assert_agree([there, here], lambda: perturbation.of_work(self.graph, self.work))


def _dense(graph: Any, h: Any, w: Any, b: Any) -> Any:
    return ops.bias_add(ops.mat_mul(h, w.value()), b.value())


def _variable(name: str, shape: list[int], resource: bool) -> Any:
    value = np.random.default_rng(len(name)).normal(size=shape).astype(np.float32) * 0.3
    return gm.Variable(value, name=name, use_resource=resource)


def _trained(features: Callable[[Any, bool], tuple[Any, list[Any]]], optimizer: str, resource: bool) -> _Net:
    with gm.Graph().as_default() as graph:
        x, y = gm.placeholder(gm.float32, [None, 6, 6, 2]), gm.placeholder(gm.int32, [None])
        h, weights = features(x, resource)
        w, b = _variable("out_w", [h.static_shape[-1], 3], resource), _variable("b", [3], resource)
        loss = ops.mean(ops.sparse_softmax_cross_entropy_with_logits(_dense(graph, h, w, b), y)[0], [0])
        step = OPTIMIZERS[optimizer]().minimize(loss)
        start = gm.global_variables_initializer()
    return _Net(graph, {x: IMAGES, y: LABELS}, loss, step, start, [*weights, w, b])


def _mlp(x: Any, resource: bool) -> tuple[Any, list[Any]]:
    w, b = _variable("hidden_w", [72, 5], resource), _variable("hb", [5], resource)
    return ops.tanh(_dense(None, ops.reshape(x, [-1, 72]), w, b)), [w, b]


def _conv_net(x: Any, resource: bool) -> tuple[Any, list[Any]]:
    k, b = _variable("kernel", [3, 3, 2, 4], resource), _variable("kb", [4], resource)
    h = ops.relu(ops.bias_add(ops.conv2d(x, k.value(), [1, 1, 1, 1], "SAME"), b.value()))
    return ops.reshape(ops.max_pool(h, [1, 2, 2, 1], [1, 2, 2, 1], "VALID"), [-1, 36]), [k, b]


@pytest.mark.parametrize("resource", [False, True], ids=["reference", "resource"])
@pytest.mark.parametrize("optimizer", OPTIMIZERS)
def test_a_perceptron(optimizer: str, resource: bool) -> None:
    _trained(_mlp, optimizer, resource).agrees()


@pytest.mark.parametrize(("optimizer", "resource"), [("Momentum", True), ("Adam", False)])
def test_a_convolutional_network(optimizer: str, resource: bool) -> None:
    _trained(_conv_net, optimizer, resource).agrees()


def test_embeddings_are_trained_row_by_row() -> None:
    with gm.Graph().as_default() as graph:
        table = gm.Variable(np.linspace(-1, 1, 28, dtype=np.float32).reshape(7, 4), name="table", use_resource=True)
        ids = gm.placeholder(gm.int32, [None])
        rows = gm.embedding_lookup(table, ids)
        loss = ops.mean(ops.square(rows - 0.5), [0, 1])
        step = gm.train.Adagrad(0.3).minimize(loss)
        start = gm.global_variables_initializer()
    _Net(graph, {ids: np.array([3, 1, 3, 6, 3], np.int32)}, loss, step, start, [table]).agrees()


def test_a_recurrent_network() -> None:
    """dynamic_rnn: frames of a loop, TensorArrays and stacks."""
    with gm.Graph().as_default() as graph:
        x = gm.placeholder(gm.float32, [None, 5, 3])
        outputs, _ = gm.rnn.dynamic_rnn(gm.rnn_cell.BasicLSTMCell(4), x, dtype=gm.float32)
        loss = ops.mean(ops.square(outputs - 0.25), [0, 1, 2])
        step = gm.train.GradientDescent(0.5).minimize(loss)
        weights = gm.trainable_variables()
        gm.set_random_seed(3)
        values = [np.random.default_rng(at).normal(size=w.shape.as_list()) for at, w in enumerate(weights)]
        start = [w.assign(value.astype(np.float32)) for w, value in zip(weights, values, strict=True)]
    feeds = {x: RNG.normal(size=(2, 5, 3)).astype(np.float32)}
    _Net(graph, feeds, loss, step, start, list(weights)).agrees()


def test_variables_are_saved_from_a_gpu_and_restored_to_a_cpu_and_back(tmp_path: Path) -> None:
    net = _trained(_mlp, "Adam", True)
    with net.graph.as_default():
        meta = to_meta_graph(saver_def=gm.train.Saver().saver_def)
    saver = Saver(meta)
    with Session(net.graph, precision="exact") as session:
        whole = net.work(session, 6)
    with Session(net.graph, devices={"GPU": 1}, precision="exact") as session:
        net.work(session, 2)
        path = saver.save(session, str(tmp_path / "first"))
    with Session(net.graph, precision="exact") as session:
        saver.restore(session, path)
        net.go_on(session, 2)
        path = saver.save(session, str(tmp_path / "second"))
    with Session(net.graph, devices={"GPU": 1}, precision="exact") as session:
        saver.restore(session, path)
        last = net.go_on(session, 2)
    perturbation.assert_agree(
        [last[1:], whole[5:]],
        lambda: perturbation.of_work(net.graph, lambda session: net.work(session, 6)[5:]),
    )


def test_values_that_the_host_looks_at_or_sets(tmp_path: Path) -> None:
    """Savers without a node, and cells that are read and given values outside of any step."""
    with gm.Graph().as_default() as graph, graph.device("/device:GPU:0"):
        v = gm.Variable(np.arange(6, dtype=np.float32).reshape(2, 3), name="v")
        r = gm.Variable(np.arange(4, dtype=np.float32), name="r", use_resource=True)
        more = [v.assign_add(np.ones((2, 3), np.float32)), r.assign_add(np.ones(4, np.float32))]
        start = gm.global_variables_initializer()
    meta = MetaGraph(graph.core)
    with Session(graph, devices={"GPU": 1}) as session:
        session.run(start)
        session.run([each.op for each in more])
        cells = variable_cells(session, graph.core)
        np.testing.assert_array_equal(read(cells["v"]), np.arange(6).reshape(2, 3) + 1)
        path = Saver(meta).save(session, str(tmp_path / "by_name"))
        put(cells["r"], np.full(4, 5, np.float32), "")
        session.run([each.op for each in more])
        np.testing.assert_array_equal(session.run(r.value()), np.full(4, 6))
        Saver(meta).restore(session, path)
        np.testing.assert_array_equal(session.run(r.value()), np.arange(4) + 1)
        np.testing.assert_array_equal(session.run(v.value()), np.arange(6).reshape(2, 3) + 1)


def test_one_variable_on_two_devices() -> None:
    """Programs of both read and write it, in turns."""
    with gm.Graph().as_default() as graph:
        with graph.device("/device:GPU:0"):
            v = gm.Variable(np.zeros(3, np.float32), name="v", use_resource=True)
            there = v.assign_add(np.ones(3, np.float32))
        with graph.device("/device:CPU:0"):
            handle = ops.var_handle_op(dtype=gm.float32, shape=[3], shared_name="v")
            here = ops.assign_add_variable_op(handle, np.full(3, 10, np.float32))
            seen = ops.read_variable_op(handle, dtype=gm.float32)
        start = gm.global_variables_initializer()
    with Session(graph, devices={"GPU": 1}) as session:
        session.run(start)
        for _ in range(2):
            session.run(there.op)
            session.run(here)
        np.testing.assert_array_equal(session.run(seen), np.full(3, 22))
        np.testing.assert_array_equal(session.run(v.value()), np.full(3, 22))
