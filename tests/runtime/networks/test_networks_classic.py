"""Training graphs of TensorFlow 1 as its tutorials built them, as MetaGraphs with checkpoints: steps and all."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import pytest

from tests import perturbation
from tests.runtime.networks.network_case import check_outputs
from toolkit.formats.models.model import read_model
from toolkit.runtime.saving.saver import Saver
from toolkit.runtime.session import Session
from toolkit.runtime.training.scaffold import Scaffold, run_in_dependency_order

pytestmark = pytest.mark.tensorflow
RANDOM = np.random.default_rng(71)


def _check(
    tf: ModuleType, folder: Path, build: Callable[[Any], dict[str, Any]], feeds: dict[str, Any],
    *, functional: bool, resource: bool, steps: int = 3,
) -> None:  # fmt: skip
    """Build with TensorFlow, save, and take `steps` steps on both sides, which must agree on the last one's values."""
    v1 = tf.compat.v1
    (v1.enable_control_flow_v2 if functional else v1.disable_control_flow_v2)()
    (v1.enable_resource_variables if resource else v1.disable_resource_variables)()
    try:
        with tf.Graph().as_default(), v1.Session() as session:
            v1.set_random_seed(3)
            tensors = build(v1)
            session.run([v1.global_variables_initializer(), v1.local_variables_initializer()])
            v1.train.Saver().save(session, str(folder / "model"))
            for _ in range(steps):
                wanted = session.run(tensors, feeds)
            names = {label: tensor.name for label, tensor in tensors.items()}
    finally:
        v1.enable_control_flow_v2()
        v1.enable_resource_variables()
    meta = read_model(folder / "model.meta").meta
    saver = Saver(meta)

    def work(session: Session) -> list[Any]:
        saver.restore(session, str(folder / "model"))
        run_in_dependency_order(session, Scaffold.of(meta, saver).local_init_ops)
        for _ in range(steps):
            got = session.run(list(names.values()), feeds)
        return got

    ours: list[dict[str, Any]] = []
    for tokens in (False, True):
        with Session(meta, force_tokens=tokens) as session:
            ours.append(dict(zip(names, work(session), strict=True)))
    theirs = {label: np.asarray(value) for label, value in wanted.items()}
    check_outputs(ours, theirs, lambda: dict(zip(names, perturbation.of_network(meta, work), strict=True)))


@pytest.mark.parametrize("resource", [False, True], ids=["ref", "resource"])
@pytest.mark.parametrize("functional", [False, True], ids=["switch", "functional"])
def test_dynamic_rnn(tf: ModuleType, tmp_path: Path, functional: bool, resource: bool) -> None:
    """A stack of cells with peepholes and projections, one in both directions, sequences of their own length; Adam."""
    from tensorflow.python.keras.layers.legacy_rnn import rnn_cell_impl as cells

    def build(v1: Any) -> dict[str, Any]:
        x = v1.placeholder(tf.float32, [None, 6, 4], name="x")
        lengths = v1.placeholder(tf.int32, [None], name="lengths")
        stack = cells.MultiRNNCell(
            [
                cells.BasicLSTMCell(5), cells.LSTMCell(4, use_peepholes=True, num_proj=3),
                cells.DropoutWrapper(cells.GRUCell(4), output_keep_prob=1.0),
            ]
        )  # fmt: skip
        out, _ = v1.nn.dynamic_rnn(stack, x, lengths, dtype=tf.float32)
        (left, right), _ = v1.nn.bidirectional_dynamic_rnn(
            cells.GRUCell(3), cells.BasicRNNCell(3), x, lengths, dtype=tf.float32, scope="both"
        )
        loss = tf.reduce_mean(out**2) + tf.reduce_mean(left * right)
        variables = v1.trainable_variables()
        gradients, norm = tf.clip_by_global_norm(v1.gradients(loss, variables), 0.5)
        train = v1.train.AdamOptimizer(0.01).apply_gradients(zip(gradients, variables, strict=True))
        with tf.control_dependencies([train]):
            after = tf.identity(loss)
        return {"out": out, "left": left, "right": right, "norm": norm, "loss": after}

    x = RANDOM.standard_normal((2, 6, 4)).astype(np.float32)
    feeds = {"x:0": x, "lengths:0": np.int32([6, 3])}
    _check(tf, tmp_path, build, feeds, functional=functional, resource=resource)


def test_convolutions_with_moving_averages(tf: ModuleType, tmp_path: Path) -> None:
    """Hand-written batch norm, dropout of a seed, local response norm, sampled softmax, streaming metrics."""

    def build(v1: Any) -> dict[str, Any]:
        x = v1.placeholder(tf.float32, [None, 8, 8, 3], name="x")

        def weight(name: str, *shape: int) -> Any:
            return v1.get_variable(name, shape, initializer=v1.glorot_uniform_initializer(seed=1))

        y = v1.nn.conv2d(x, weight("first", 3, 3, 3, 6), strides=[1, 2, 2, 1], padding="SAME")
        mean, variance = tf.nn.moments(y, [0, 1, 2])
        average = v1.train.ExponentialMovingAverage(0.9)
        with tf.control_dependencies([average.apply([mean, variance])]):
            mean, variance = average.average(mean).read_value(), average.average(variance).read_value()
        y = v1.nn.lrn(tf.nn.crelu(tf.nn.batch_normalization(y, mean, variance, None, None, 1e-3)), 3)
        y = v1.nn.dropout(v1.nn.atrous_conv2d(y, weight("second", 3, 3, 12, 4), 2, "SAME"), rate=0.4, seed=5)
        scores = tf.reshape(y, [-1, 64]) @ weight("third", 64, 5)
        label = tf.argmax(scores, 1)
        sampled = v1.nn.sampled_softmax_loss(
            weight("classes", 20, 5), tf.zeros([20]), label[:, None], scores, 5, 20, seed=4
        )
        return {
            "scores": scores, "sampled": sampled, "accuracy": v1.metrics.accuracy(label, tf.zeros_like(label))[1],
            "auc": v1.metrics.auc(tf.constant([0.0, 1.0, 0.0, 1.0]), tf.constant([0.1, 0.5, 0.6, 0.9]))[1],
            "mean": v1.metrics.mean(scores)[1],
        }  # fmt: skip

    x = RANDOM.standard_normal((2, 8, 8, 3)).astype(np.float32)
    _check(tf, tmp_path, build, {"x:0": x}, functional=False, resource=True)


@pytest.mark.parametrize("resource", [False, True], ids=["ref", "resource"])
def test_state_of_many_kinds(tf: ModuleType, tmp_path: Path, resource: bool) -> None:
    """Updates in order, parts of variables, a partitioned one, a stack, a case."""

    def build(v1: Any) -> dict[str, Any]:
        x = v1.placeholder(tf.float32, [4], name="x")
        total = v1.Variable(tf.zeros([4]), name="total")
        parts = v1.get_variable(
            "parts", [3, 4], initializer=v1.orthogonal_initializer(seed=2), partitioner=v1.fixed_size_partitioner(3)
        )
        with tf.control_dependencies([v1.assign_add(total, x)]):
            added = total.read_value() * 2
        with tf.control_dependencies([added]):
            scattered = tf.identity(v1.scatter_update(total, [1, 2], [5.0, 6.0]))
        stack = tf.raw_ops.StackV2(max_size=3, elem_type=tf.float32)
        with tf.control_dependencies([tf.raw_ops.StackPushV2(handle=stack, elem=x)]):
            popped = tf.raw_ops.StackPopV2(handle=stack, elem_type=tf.float32)
        chosen = v1.case([(x[0] > 0, lambda: x * 2), (x[1] > 0, lambda: x * 3)], default=lambda: x)
        return {"added": added, "scattered": scattered, "popped": popped, "parts": tf.abs(parts), "chosen": chosen}

    x = RANDOM.standard_normal(4).astype(np.float32)
    _check(tf, tmp_path, build, {"x:0": x}, functional=resource, resource=resource)


@pytest.mark.parametrize("resource", [False, True], ids=["ref", "resource"])
def test_moving_averages_of_weights(tf: ModuleType, tmp_path: Path, resource: bool) -> None:
    """They run after the optimizer and see the weights it left, also where the weights were read before."""

    def build(v1: Any) -> dict[str, Any]:
        x = v1.placeholder(tf.float32, [3, 4], name="x")
        first = v1.get_variable("first", initializer=np.ones((4, 2), np.float32))
        second = v1.get_variable("second", initializer=np.ones((2, 2), np.float32))
        loss = tf.reduce_mean((tf.tanh(x @ first) @ second - 1.0) ** 2)
        step = v1.train.GradientDescentOptimizer(0.5).minimize(loss)
        average = v1.train.ExponentialMovingAverage(0.5)
        with tf.control_dependencies([step]):
            averaged = average.apply([first, second])
        with tf.control_dependencies([averaged]):
            return {"loss": tf.identity(loss), "average": tf.identity(average.average(first).read_value())}

    x = RANDOM.standard_normal((3, 4)).astype(np.float32)
    _check(tf, tmp_path, build, {"x:0": x}, functional=False, resource=resource)


UPDATES: dict[str, Callable[[Any, Any], Any]] = {
    "add": lambda v1, variable: v1.assign_add(variable, [1.0, 2.0]),
    "assign": lambda v1, variable: v1.assign(variable, [5.0, 6.0]),
    "scatter": lambda v1, variable: v1.scatter_add(variable, [0], [3.0]),
    "step": lambda v1, variable: v1.raw_ops.ApplyGradientDescent(var=variable._ref(), alpha=0.1, delta=[1.0, 1.0]),
}


@pytest.mark.parametrize("update", UPDATES)
def test_what_was_read_from_a_reference_shares_its_memory(tf: ModuleType, tmp_path: Path, update: str) -> None:
    def build(v1: Any) -> dict[str, Any]:
        x = v1.placeholder(tf.float32, [2], name="x")
        variable = v1.get_variable("v", initializer=np.zeros(2, np.float32))
        read = tf.identity(variable._ref())
        with tf.control_dependencies([read]):
            updated = UPDATES[update](v1, variable)
        with tf.control_dependencies([updated]):
            return {"after": read * x, "read": read, "snapshot": variable.value()}

    _check(tf, tmp_path, build, {"x:0": np.ones(2, np.float32)}, functional=False, resource=False)
