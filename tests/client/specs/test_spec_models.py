"""Models described by specs of every combination of layers, control flow, input, loss and optimizer: TensorFlow imports
what we build, and both see the same losses over 20 steps."""

from __future__ import annotations

import itertools
from types import ModuleType
from typing import Any

import numpy as np
import pytest

from tests import perturbation
from toolkit.client.spec import build_text
from toolkit.formats.models.metagraph import to_proto
from toolkit.runtime.session import Session

pytestmark = pytest.mark.tensorflow

STEPS = 20
#: models in all: every body with every flow and input twice, with other losses and optimizers
COUNT = 160

#: from `features`, [n, 4, 4, 2], to a tensor of two dimensions
BODIES = {
    "dense": """
  - {layer: flatten, input: features}
  - {layer: dense, name: hidden, units: 8, activation: tanh, regularizer: {l2: 0.01}}
""",
    "convolutions": """
  - {layer: conv2d, name: c1, input: features, filters: 4, kernel: 3, activation: relu}
  - {layer: depthwise_conv2d, name: c2, kernel: 3, multiplier: 2, padding: valid, use_bias: false}
  - {layer: max_pool, name: pool, size: 2, strides: 1}
  - {layer: flatten, name: hidden}
""",
    "normalized": """
  - {layer: conv2d, name: c1, input: features, filters: 3, kernel: [2, 2], strides: 2, use_bias: false}
  - {layer: batch_norm, name: bn, training: true, momentum: 0.9}
  - {layer: elu}
  - {layer: global_avg_pool, name: hidden}
""",
    "mixed": """
  - {layer: avg_pool, name: small, input: features, size: 2}
  - {layer: leaky_relu, name: left, alpha: 0.1}
  - {layer: softplus, name: right, input: small}
  - {layer: concat, name: both, input: [left, right], axis: -1}
  - {layer: flatten}
  - {layer: l2_normalize, name: unit}
  - {layer: dense, name: hidden, units: 6, activation: softsign, kernel_initializer: {type: orthogonal, gain: 1.5}}
""",
}

_RECURRENT = """
  - {{layer: reshape, name: rows, input: features, shape: [-1, 4, 8]}}
  - {{layer: {kind}, name: reader, units: 3, {options}}}
  - {{layer: dense, name: hidden, units: 4}}
"""
BODIES |= {
    "attention": """
  - {layer: reshape, name: rows, input: features, shape: [-1, 4, 8]}
  - {layer: attention, name: seen, heads: 2, causal: true}
  - {layer: add, name: both, input: [rows, seen]}
  - {layer: layer_norm, name: normal}
  - {layer: flatten}
  - {layer: dense, name: hidden, units: 4}
""",
    "volumes": """
  - {layer: reshape, name: cubes, input: features, shape: [-1, 4, 4, 2, 1]}
  - {layer: conv3d, name: v1, filters: 2, kernel: 2, activation: softsign}
  - {layer: avg_pool3d, name: v2, size: [2, 2, 1]}
  - {layer: reshape, name: flat, shape: [-1, 4, 4]}
  - {layer: separable_conv1d, name: v3, filters: 3, kernel: 2, multiplier: 2}
  - {layer: conv1d, name: v4, filters: 2, kernel: 2, padding: causal, dilation: 2}
  - {layer: flatten, name: hidden}
""",
    "lstm": _RECURRENT.format(kind="lstm", options="bidirectional: true, return: last, peepholes: true"),
    "gru": _RECURRENT.format(kind="gru", options="layers: 2, return: last"),
    "rnn": _RECURRENT.format(kind="rnn", options="unrolled: true, return: last, activation: softsign"),
    "scan": """
  - {layer: reshape, name: rows, input: features, shape: [-1, 32]}
  - map: {row: rows}
    name: squeezed
    body: {nodes: [{layer: reshape, shape: [8, 4]}, {layer: reduce_mean, axis: 0}]}
  - scan: {row: squeezed}
    name: hidden
    initial: {total: [0.0, 0.0, 0.0, 0.0]}
    body: {nodes: [{op: AddV2, name: sum, inputs: [row, total]}, {layer: tanh}]}
""",
}

#: from `hidden` to `mixed`
FLOWS = {
    "straight": "\n  - {layer: identity, name: mixed, input: hidden}\n",
    "branch": """
  - {layer: reduce_mean, name: middle, input: hidden}
  - {op: Greater, name: positive, inputs: [middle, 0.05]}
  - cond: positive
    name: mixed
    then: {nodes: [{layer: scale, input: hidden, factor: 0.5}]}
    else:
      nodes: [{layer: dense, name: turned, input: hidden, units: 5}, {layer: dense, name: back, units: "${width}"}]
""",
    "loop": """
  - while: {i: 0, state: hidden}
    name: loop
    condition: {nodes: [{op: Less, inputs: [i, 3]}]}
    body:
      nodes:
        - {op: AddV2, name: next, inputs: [i, 1]}
        - {op: MatMul, name: product, inputs: [state, turn]}
        - {layer: tanh, name: bent}
      outputs: {i: next, state: bent}
  - {layer: identity, name: mixed, input: loop/state}
""",
}

FLOWS["function"] = """
  - {call: bent, name: twice, inputs: {v: hidden, factor: 0.5}}
  - {layer: reduce_mean, name: middle, input: twice/once}
  - {op: Greater, name: positive, inputs: [middle, 0.05]}
  - {op: StatelessIf, name: mixed, inputs: [positive, [twice/again]],
     attrs: {then_branch: halved, else_branch: turned, Tout: [float32]}}
"""

#: of the flow `function`, whose variables are resources: TensorFlow inlines the gradient of a call, and what in it
#: reads a reference may do so before or after the update; `turn` is a variable of the spec, `d` is made in the function
FUNCTIONS = """
functions:
  halved: {inputs: {v: {shape: [null, WIDTH]}}, nodes: [{layer: scale, factor: 0.5}]}
  turned: {inputs: {v: {shape: [null, WIDTH]}}, nodes: [{layer: tanh, name: t}, {layer: scale, factor: -1.5}]}
  bent:
    inputs: {v: {shape: [null, WIDTH]}, factor: {}}
    nodes:
      - {op: MatMul, name: product, inputs: [v, turn]}
      - {layer: multiply, name: small, input: [product, factor]}
      - {call: turned, name: inner, inputs: [small]}
      - {layer: dense, name: d, units: WIDTH, input: inner}
    outputs: {again: d, once: inner}
"""

INPUTS = {
    "fed": "",
    "dataset": """
  - dataset: {arrays: {x: "${images}", y: "${labels}"}}
    name: data
    repeat: null
    batch: 5
  - {layer: identity, name: features, input: data/x}
  - {layer: cast, name: classes, input: data/y, dtype: int64}
""",
}

LOSSES = {
    "classes": "{type: sparse_softmax_cross_entropy, labels: classes, logits: logits}",
    "smoothed": "{type: softmax_cross_entropy, labels: targets, logits: logits, label_smoothing: 0.1}",
    "huber": "{type: huber, labels: targets, predictions: logits, delta: 0.3, weight: 2.0}",
    "hinge": "{type: hinge, labels: targets, logits: logits}",
}

OPTIMIZERS = (
    "{type: sgd, learning_rate: {schedule: exponential_decay, learning_rate: 0.1, decay_steps: 5, decay_rate: 0.5}}",
    "{type: momentum, learning_rate: 0.05, momentum: 0.9, use_nesterov: true}",
    "{type: adam, learning_rate: 0.01, clip_norm: 1.0}",
    "{type: adagrad, learning_rate: {schedule: piecewise_constant, boundaries: [5], values: [0.1, 0.01]}}",
    "{type: rmsprop, learning_rate: 0.01, momentum: 0.5, centered: true}",
    "{type: ftrl, learning_rate: 0.05, l1_regularization_strength: 0.01}",
    "{type: adadelta, learning_rate: 1.0, clip_value: 0.1}",
    "{type: adamw, learning_rate: 0.02, weight_decay: 0.001}",
    "{type: nadam, learning_rate: 0.02}",
    "{type: proximal_adagrad, learning_rate: 0.05, l2_regularization_strength: 0.01}",
    "{type: adam, learning_rate: 0.02, moving_average: 0.9, variables: ['*kernel*', '*']}",
)

#: width of `hidden` for each body
_WIDTHS = {
    "dense": 8, "convolutions": 8, "normalized": 3, "mixed": 6, "lstm": 4, "gru": 4, "rnn": 4, "scan": 4,
    "attention": 4, "volumes": 8,
}  # fmt: skip

_RANDOM = np.random.default_rng(20261123)
IMAGES = _RANDOM.normal(size=(20, 4, 4, 2)).astype(np.float32)
CLASSES = _RANDOM.integers(0, 3, 20)


def spec(number: int) -> tuple[str, bool]:
    """The text of one of the models, and whether it is fed."""
    combinations = list(itertools.product(BODIES, FLOWS, INPUTS))
    body, flow, given = combinations[number % len(combinations)]
    loss = list(LOSSES)[number % len(LOSSES)]
    optimizer = OPTIMIZERS[number % len(OPTIMIZERS)]
    width = _WIDTHS[body]
    fed = given == "fed"
    turn = np.linspace(-1, 1, width * width).reshape(width, width).round(3).tolist()
    return (
        f"""
seed: {number + 1}
resource_variables: {"true" if number % 2 or flow == "function" else "false"}
parameters:
  width: {width}
  images: {IMAGES[:10].round(4).tolist() if not fed else []}
  labels: {CLASSES[:10].tolist() if not fed else []}
inputs:
{"  features: {shape: [null, 4, 4, 2]}" if fed else "  unused: {default: 0.0}"}
{"  classes: {dtype: int64, shape: [null]}" if fed else ""}
variables:
{f"  turn: {{value: {turn}}}" if flow in ("loop", "function") else "  spare: {value: 1.0, trainable: false}"}
{FUNCTIONS.replace("WIDTH", str(width)) if flow == "function" else ""}
nodes:{INPUTS[given]}{BODIES[body]}{FLOWS[flow]}
  - {{layer: dense, name: logits, input: mixed, units: 3}}
  - {{layer: one_hot, name: targets, input: classes, depth: 3}}
loss: {LOSSES[loss]}
optimizer: {optimizer}
""",
        fed,
    )


def _feeds(fed: bool) -> list[dict[str, Any]]:
    if not fed:
        return [{}] * STEPS
    return [
        {"features:0": IMAGES[i % 4 * 5 : i % 4 * 5 + 5], "classes:0": CLASSES[i % 4 * 5 : i % 4 * 5 + 5]}
        for i in range(STEPS)
    ]


def _step(session: Any, number: int, feeds: dict[str, Any]) -> Any:
    """The loss before a step of training, and the step.

    Of reference variables they are two steps: what reads one for the loss may do so after it was updated otherwise.
    """
    if number % 2:
        return session.run(["loss:0", "train"], feeds)[0]
    loss = session.run("loss:0", feeds)
    session.run("train", feeds)
    return loss


def _check(tf: ModuleType, number: int) -> None:
    text, fed = spec(number)
    meta = build_text(text, "model.yaml")
    v1 = tf.compat.v1
    imported = tf.Graph()
    with imported.as_default():
        v1.train.import_meta_graph(v1.MetaGraphDef.FromString(to_proto(meta).SerializeToString()))
    starts = ["init", *(() if fed else ("data/make",))]
    with v1.Session(graph=imported) as session:
        session.run(starts)
        expected = [_step(session, number, feeds) for feeds in _feeds(fed)]
    assert np.isfinite(expected).all() and expected[0] != expected[-1]

    def work(running: Session) -> list[Any]:
        running.run(starts)
        return [_step(running, number, feeds) for feeds in _feeds(fed)]

    with Session(build_text(text, "model.yaml")) as session:
        found = work(session)
    perturbation.assert_agree([found, expected], lambda: perturbation.of_work(build_text(text, "model.yaml"), work))


@pytest.mark.parametrize("number", range(0, COUNT, 9))
def test_models(tf: ModuleType, number: int) -> None:
    _check(tf, number)


@pytest.mark.long
@pytest.mark.parametrize("number", [number for number in range(COUNT) if number % 9])
def test_all_models(tf: ModuleType, number: int) -> None:
    _check(tf, number)
