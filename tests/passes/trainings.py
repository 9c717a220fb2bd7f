"""Small models with their training: from specs, and by hand."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from tests.passes.optimize.equivalence import made_graph
from toolkit import client as gm
from toolkit.client.spec import build_spec, build_text
from toolkit.graph.graph import Graph
from toolkit.graph.metagraph import MetaGraph
from toolkit.passes.optimize.kept import Kept, kept_by
from toolkit.runtime.session import Session

ops = gm.ops
_SAMPLES = Path(__file__).parents[2] / "samples"
#: examples of a batch, and batches, which come again and again
_SIZE, _BATCHES = 6, 4


@dataclass
class Training:
    """A graph that learns.

    Attributes:
        loss: the tensor.
        step: the operation that changes the variables.
        batches: what each step is fed, one after the other, again and again.
        initial: what each variable begins with, by the tensor that its initializer takes.
        initializers: the operations that give variables their first values.
    """

    graph: Graph
    loss: str
    step: str
    batches: list[dict[str, Any]]
    initial: dict[str, Any]
    initializers: list[str]

    def kept(self) -> Kept:
        """What optimizing must leave: the step, and the way back to where it begins."""
        return kept_by(
            MetaGraph(self.graph), [*self.batches[0], *self.initial], [self.loss], [self.step, *self.initializers]
        )

    def losses(self, run: Callable[..., Any], steps: int) -> list[Any]:
        """The loss of each step, by the `run` of a session, from the initial values on."""
        run(self.initializers, self.initial)
        return [run([self.loss, self.step], self.batches[n % _BATCHES])[0] for n in range(steps)]


def _training(graph: Graph, loss: str, step: str, batch: Callable[[np.random.Generator], dict[str, Any]]) -> Training:
    rng = np.random.default_rng(len(graph))
    assigns = [
        node for node in graph
        if node.op in ("Assign", "AssignVariableOp") and node.name == f"{node.inputs[0].node.name}/Assign"
    ]  # fmt: skip
    tensors = [node.inputs[1].name for node in assigns]
    with Session(graph.copy()) as session:
        values = session.run(tensors)
    batches = [batch(rng) for _ in range(_BATCHES)]
    return Training(
        graph, loss, step, batches, dict(zip(tensors, values, strict=True)), [node.name for node in assigns]
    )


def _of_spec(meta: MetaGraph, batch: Callable[[np.random.Generator], dict[str, Any]]) -> Training:
    outputs = meta.signatures["train"].output_tensors()
    return _training(meta.graph, outputs["loss"], outputs["step"].partition(":")[0], batch)


def _classes(rng: np.random.Generator, count: int = 3) -> Any:
    return rng.integers(0, count, _SIZE)


_END = """
loss: {type: sparse_softmax_cross_entropy, labels: y, logits: logits}
signatures:
  train: {inputs: {x: x, y: y}, outputs: {loss: loss, step: "train:0"}}
"""


def dense() -> Training:
    """Two dense layers, gradient descent."""
    meta = build_text(
        """
seed: 3
inputs: {x: {shape: [null, 5]}, y: {dtype: int64, shape: [null]}}
nodes:
  - {layer: dense, name: hidden, units: 8, activation: tanh}
  - {layer: dense, name: logits, units: 3}
optimizer: {type: sgd, learning_rate: 0.1}
"""
        + _END
    )
    return _of_spec(meta, lambda rng: {"x:0": rng.normal(size=(_SIZE, 5)).astype(np.float32), "y:0": _classes(rng)})


def convolutional() -> Training:
    """Convolutions, batch norms with their moving averages, a pool; momentum."""
    meta = build_text(
        """
seed: 3
inputs: {x: {shape: [null, 8, 8, 1]}, y: {dtype: int64, shape: [null]}, training: {dtype: bool, default: true}}
nodes:
  - {layer: conv2d, name: c1, input: x, filters: 4, kernel: 3}
  - {layer: batch_norm, name: n1, training: training}
  - {layer: relu, name: r1}
  - {layer: max_pool, name: p1, size: 2}
  - {layer: conv2d, name: c2, filters: 4, kernel: 3}
  - {layer: batch_norm, name: n2, training: training}
  - {layer: relu, name: r2}
  - {layer: flatten}
  - {layer: dense, name: logits, units: 3}
optimizer: {type: momentum, momentum: 0.9, learning_rate: 0.05}
"""
        + _END
    )
    return _of_spec(
        meta, lambda rng: {"x:0": rng.normal(size=(_SIZE, 8, 8, 1)).astype(np.float32), "y:0": _classes(rng)}
    )


def recurrent() -> Training:
    """The sample that reads texts: an embedding, an LSTM in both directions, clipped gradients, Adam."""
    meta = build_spec(_SAMPLES / "lstm_classifier.yaml", {"words": "12", "units": "4"})

    def batch(rng: np.random.Generator) -> dict[str, Any]:
        text = rng.integers(0, 12, (_SIZE, 5)).astype(np.int32)
        return {"text:0": text, "length:0": rng.integers(1, 6, _SIZE).astype(np.int32), "label:0": _classes(rng, 2)}

    return _of_spec(meta, batch)


def lenet() -> Training:
    """The sample LeNet, whose rate decays."""
    meta = build_spec(_SAMPLES / "lenet.yaml")

    def batch(rng: np.random.Generator) -> dict[str, Any]:
        return {"image:0": rng.normal(size=(_SIZE, 28, 28, 1)).astype(np.float32), "label:0": _classes(rng, 10)}

    return _of_spec(meta, batch)


def _by_hand(use_resource: bool) -> Training:
    def build() -> None:
        ids = gm.placeholder(gm.int32, [_SIZE], name="ids")
        wanted = gm.placeholder(gm.float32, [_SIZE, 4], name="wanted")
        table, weights = (
            gm.get_variable(
                name, shape, use_resource=use_resource,
                initializer=gm.initializers.Constant(np.random.default_rng(n).normal(size=shape).astype(np.float32)),
            )
            for n, (name, shape) in enumerate((("table", [9, 4]), ("weights", [4, 4])))
        )  # fmt: skip
        rows = gm.gather(table, ids)
        state = gm.while_loop(
            lambda i, s: ops.less(i, 3),
            lambda i, s: [i + 1, ops.tanh(ops.mat_mul(s, weights)) + 0.5 * s],
            [gm.constant(0), rows],
        )[1]
        kind = ops.less(gm.reduce_sum(state), 0.0)
        made = gm.cond(kind, lambda: ops.sigmoid(state), lambda: state * 0.5)
        gm.identity(gm.reduce_mean(ops.squared_difference(made, wanted)), name="loss")
        loss = gm.get_default_graph().get_tensor_by_name("loss:0")
        gm.train.Adagrad(0.2).minimize(loss, name="step")

    graph = made_graph(build)
    return _training(
        graph, "loss:0", "step",
        lambda rng: {
            "ids:0": rng.integers(0, 9, _SIZE).astype(np.int32),
            "wanted:0": rng.normal(size=(_SIZE, 4)).astype(np.float32),
        },
    )  # fmt: skip


def sparse() -> Training:
    """Rows of a table through a loop and a branch, sparse gradients, reference variables."""
    return _by_hand(use_resource=False)


def sparse_resource() -> Training:
    """As `sparse`, with resource variables."""
    return _by_hand(use_resource=True)


TRAININGS: dict[str, Callable[[], Training]] = {
    each.__name__: each for each in (dense, convolutional, recurrent, sparse, sparse_resource, lenet)
}
