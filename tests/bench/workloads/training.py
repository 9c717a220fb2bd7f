"""Training steps as MetaGraphs that TensorFlow 1's API wrote: perceptrons, a LeNet, an LSTM and word2vec.

Initialisers draw nothing, so both sides begin alike, as often as they begin.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

from tests.bench.workloads.base import Workload, tensorflow
from tests.models import builder

BATCH, CLASSES = 64, 10
SEQUENCES, STEPS, FEATURES, UNITS = 32, 50, 64, 128
WORDS, EMBEDDING, PAIRS, SAMPLED = 50_000, 128, 128, 64


def _variable(name: str, *shape: int, scale: float = 0.0, resource: bool = True) -> Any:
    """A variable of values spread evenly about zero, with the standard deviation `scale`.

    Its initialiser computes them from their positions, so that it gives the same whenever and wherever it runs.
    """
    import math
    import zlib

    import tensorflow as tf

    place = tf.range(math.prod(shape), dtype=tf.int64) + zlib.crc32(name.encode()) % 1000
    even = tf.cast(place * place % 100003, tf.float32) / 50001.5 - 1.0
    value = tf.reshape(even * (scale * 3**0.5), shape)
    return tf.compat.v1.get_variable(name, initializer=value, use_resource=resource)


def _dense(name: str, x: Any, width: int, resource: bool = True) -> Any:
    depth = int(x.shape[-1])
    kernel = _variable(f"{name}/kernel", depth, width, scale=depth**-0.5, resource=resource)
    return x @ kernel + _variable(f"{name}/bias", width, resource=resource)


def _export(folder: Path, loss: Any, optimizer: Any, inputs: dict[str, Any]) -> dict[str, Any]:
    """Add the step that lowers `loss`, and write the MetaGraph of the default graph."""
    import tensorflow as tf

    v1 = tf.compat.v1
    train = optimizer.minimize(loss, name="train")
    init = v1.global_variables_initializer()
    v1.train.export_meta_graph(str(folder / "training.meta"), graph=v1.get_default_graph(), clear_devices=True)
    return {
        "main": "training.meta",
        "inputs": {label: tensor.name for label, tensor in inputs.items()},
        "outputs": {"loss": loss.name},
        "train": train.name,
        "init": init.name,
    }


def _classify(folder: Path, shape: list[int], network: Callable[[Any], Any], optimizer: Any) -> dict[str, Any]:
    """Train logits of `network` on inputs "x" float32[batch, *shape] and labels "y" int64[batch]."""
    import tensorflow as tf

    v1 = tf.compat.v1
    x = v1.placeholder(tf.float32, [None, *shape], name="x")
    y = v1.placeholder(tf.int64, [None], name="y")
    losses = tf.nn.sparse_softmax_cross_entropy_with_logits(labels=y, logits=network(x))
    return _export(folder, tf.reduce_mean(losses, name="loss"), optimizer, {"x": x, "y": y})


@builder(_variable, _dense, _export, _classify)
def perceptron(folder: Path, optimizer: str, variables: str) -> dict[str, Any]:
    """784-128-10; optimizer "SGD" or "Adam", variables "resource" or "reference"."""
    import tensorflow as tf

    v1 = tf.compat.v1
    made = {"SGD": v1.train.GradientDescentOptimizer(0.05), "Adam": v1.train.AdamOptimizer(1e-3)}[optimizer]
    resource = variables == "resource"

    def network(x: Any) -> Any:
        return _dense("output", tf.nn.relu(_dense("hidden", x, 128, resource)), CLASSES, resource)

    with v1.Graph().as_default():
        return _classify(folder, [784], network, made)


@builder(_variable, _dense, _export, _classify)
def lenet(folder: Path) -> dict[str, Any]:
    """Two convolutions of 32 and 64 channels with pools, and two dense layers, for 28 x 28 images; Adam."""
    import tensorflow as tf

    v1 = tf.compat.v1

    def network(x: Any) -> Any:
        for layer, width in (("conv1", 32), ("conv2", 64)):
            depth = int(x.shape[-1])
            kernel = _variable(f"{layer}/kernel", 5, 5, depth, width, scale=(25 * depth) ** -0.5)
            x = tf.nn.relu(tf.nn.bias_add(tf.nn.conv2d(x, kernel, 1, "SAME"), _variable(f"{layer}/bias", width)))
            x = tf.nn.max_pool2d(x, 2, 2, "VALID")
        x = tf.reshape(x, [-1, 7 * 7 * 64])
        return _dense("output", tf.nn.relu(_dense("hidden", x, 512)), CLASSES)

    with v1.Graph().as_default():
        return _classify(folder, [28, 28, 1], network, v1.train.AdamOptimizer(1e-3))


@builder(_variable, _dense, _export, _classify)
def lstm_step(folder: Path, form: str) -> dict[str, Any]:
    """An LSTM over a loop with TensorArrays and its gradient; form "while-loop" or "functional"; SGD."""
    import tensorflow as tf

    v1 = tf.compat.v1
    {"while-loop": v1.disable_control_flow_v2, "functional": v1.enable_control_flow_v2}[form]()

    def network(x: Any) -> Any:
        # thrice the usual scale: small states would leave the loss the same for all inputs
        kernel = _variable("cell/kernel", FEATURES + UNITS, 4 * UNITS, scale=3 * (FEATURES + UNITS) ** -0.5)
        bias = _variable("cell/bias", 4 * UNITS)
        sequence = tf.TensorArray(tf.float32, STEPS, element_shape=[None, FEATURES])
        sequence = sequence.unstack(tf.transpose(x, [1, 0, 2]))
        outputs = tf.TensorArray(tf.float32, STEPS, element_shape=[None, UNITS])
        zero = tf.zeros([tf.shape(x)[0], UNITS])

        def step(time: Any, cell: Any, state: Any, written: Any) -> Any:
            gates = tf.concat([sequence.read(time), state], 1) @ kernel + bias
            enter, candidate, forget, leave = tf.split(gates, 4, 1)
            cell = cell * tf.sigmoid(forget + 1.0) + tf.sigmoid(enter) * tf.tanh(candidate)
            state = tf.sigmoid(leave) * tf.tanh(cell)
            return time + 1, cell, state, written.write(time, state)

        _, _, _, outputs = v1.while_loop(lambda time, *_: time < STEPS, step, [0, zero, zero, outputs], name="rnn")
        return _dense("output", tf.transpose(outputs.stack(), [1, 0, 2])[:, -1], CLASSES)

    with v1.Graph().as_default():
        return _classify(folder, [STEPS, FEATURES], network, v1.train.GradientDescentOptimizer(0.1))


@builder(_variable, _export)
def word2vec(folder: Path) -> dict[str, Any]:
    """A skip-gram step with the NCE loss: inputs "word" int32[batch] and "context" int32[batch, 1]; SGD."""
    import tensorflow as tf

    v1 = tf.compat.v1
    with v1.Graph().as_default():
        word = v1.placeholder(tf.int32, [PAIRS], name="word")
        context = v1.placeholder(tf.int64, [PAIRS, 1], name="context")
        embedded = tf.nn.embedding_lookup(_variable("embedding", WORDS, EMBEDDING, scale=0.5), word)
        weights = _variable("nce/weights", WORDS, EMBEDDING, scale=EMBEDDING**-0.5)
        v1.set_random_seed(7)  # the samples' seed
        loss = tf.reduce_mean(
            tf.nn.nce_loss(weights, _variable("nce/biases", WORDS), context, embedded, SAMPLED, WORDS), name="loss"
        )
        optimizer = v1.train.GradientDescentOptimizer(1.0)
        return _export(folder, loss, optimizer, {"word": word, "context": context})


def _labelled(random: Any, *, shape: tuple[int, ...]) -> dict[str, Any]:
    x = random.standard_normal(shape, dtype="float32")
    return {"x": x, "y": random.integers(0, CLASSES, shape[0])}


def _pairs(random: Any) -> dict[str, Any]:
    # words come by Zipf's law, so that rows are hit more than once
    drawn = (WORDS ** random.random((2, PAIRS)) - 1).astype("int64")
    return {"word": drawn[0].astype("int32"), "context": drawn[1][:, None]}


def workloads() -> list[Workload]:
    """Every training step of the suite."""
    reach = tensorflow(0.60)
    mlp = partial(_labelled, shape=(BATCH, 784))
    sequences = partial(_labelled, shape=(SEQUENCES, STEPS, FEATURES))
    found = [
        Workload(f"train MLP 784-128-10 {name}", "training", partial(perceptron, name, "resource"), mlp, reach)
        for name in ("SGD", "Adam")
    ]
    name = "train MLP 784-128-10 SGD, reference variables"
    found.append(Workload(name, "training", partial(perceptron, "SGD", "reference"), mlp, reach))
    images = partial(_labelled, shape=(BATCH, 28, 28, 1))
    found.append(Workload(f"train LeNet batch {BATCH}", "training", lenet, images, reach))
    weights = (FEATURES + UNITS) * 4 * UNITS
    # forward, and backward twice as much; weights are read and written, the inputs read
    work = (6.0 * SEQUENCES * STEPS * weights, 4.0 * (2 * weights + SEQUENCES * STEPS * FEATURES))
    for form in ("while-loop", "functional"):
        name = f"train LSTM({UNITS}) T={STEPS} batch {SEQUENCES}, {form}"
        found.append(Workload(name, "training", partial(lstm_step, form), sequences, reach, work=work))
    rows = 2 * PAIRS + SAMPLED  # each is read, and read and written again by its update
    work = (6.0 * PAIRS * SAMPLED * EMBEDDING, 3 * 4.0 * rows * EMBEDDING)
    found.append(Workload(f"word2vec NCE step batch {PAIRS}", "training", word2vec, _pairs, reach, work=work))
    return found
