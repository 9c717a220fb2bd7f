"""Signatures that train or differentiate: optimizers of Keras, gradients through layers and control flow."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import pytest

from tests.runtime.saved_models.saved_model_case import check_saved_model

pytestmark = pytest.mark.tensorflow
RANDOM = np.random.default_rng(61)
X = RANDOM.standard_normal((3, 4)).astype(np.float32)


def _check(tf: ModuleType, folder: Path, function: Any, held: Any) -> dict[str, Any]:
    module = tf.Module()
    module.held = held
    module.serve = tf.function(function, input_signature=[tf.TensorSpec([None, 4], tf.float32, name="x")])
    tf.saved_model.save(module, str(folder / "model"), signatures=module.serve)
    return check_saved_model(tf, folder / "model", {"x": X})


OPTIMIZERS: dict[str, Callable[[Any], Any]] = {
    "sgd": lambda k: k.SGD(0.1, momentum=0.9, nesterov=True),
    "rmsprop": lambda k: k.RMSprop(0.1, centered=True, momentum=0.5),
    "adam": lambda k: k.Adam(0.1, amsgrad=True),
    "adamw": lambda k: k.AdamW(k.schedules.CosineDecay(0.1, 100, warmup_target=0.2, warmup_steps=3), clipnorm=0.5),
    "adadelta": lambda k: k.Adadelta(1.0, global_clipnorm=1.0),
    "adagrad": lambda k: k.Adagrad(k.schedules.PiecewiseConstantDecay([2, 5], [0.3, 0.2, 0.1])),
    "nadam": lambda k: k.Nadam(0.1, weight_decay=0.01),
    "ftrl": lambda k: k.Ftrl(0.1, l1_regularization_strength=0.01),
    "lion": lambda k: k.Lion(0.1, use_ema=True),
    "scaled": lambda k: k.LossScaleOptimizer(k.Adamax(0.1)),
}


@pytest.mark.parametrize("name", OPTIMIZERS)
def test_step_of_an_optimizer(tf: ModuleType, tmp_path: Path, name: str) -> None:
    """Its slots, counters and schedules are variables of the model."""
    import keras

    weight = tf.Variable(RANDOM.standard_normal((4, 2)).astype(np.float32))
    optimizer = OPTIMIZERS[name](keras.optimizers)
    optimizer.build([weight])

    def train(x: Any) -> dict[str, Any]:
        for _ in range(2):
            with tf.GradientTape() as tape:
                loss = tf.reduce_mean((x @ weight - 1.0) ** 2)
            optimizer.apply_gradients([(tape.gradient(loss, weight), weight)])
        return {"loss": loss, "weight": weight.read_value(), "step": optimizer.iterations.value + 0}

    _check(tf, tmp_path, train, [weight, optimizer])


def test_training_a_recurrent_layer(tf: ModuleType, tmp_path: Path) -> None:
    """Loss and gradients through the loop of an LSTM, and the step."""
    import keras

    keras.utils.set_random_seed(61)
    lstm, dense = keras.layers.LSTM(3), keras.layers.Dense(1)
    lstm.build((None, 4, 1))
    dense.build((None, 3))
    variables = [variable.value for variable in lstm.trainable_variables + dense.trainable_variables]

    def train(x: Any) -> dict[str, Any]:
        with tf.GradientTape() as tape:
            loss = tf.reduce_mean(dense(lstm(x[..., None])) ** 2)
        for variable, gradient in zip(variables, tape.gradient(loss, variables), strict=True):
            variable.assign_sub(0.1 * gradient)
        return {"loss": loss} | {f"v{n}": variable.read_value() for n, variable in enumerate(variables)}

    _check(tf, tmp_path, train, [lstm, dense])


def test_gradients_through_control_flow(tf: ModuleType, tmp_path: Path) -> None:
    def serve(x: Any) -> dict[str, Any]:
        with tf.GradientTape() as tape:
            tape.watch(x)
            square, wave = (lambda: tf.reduce_sum(x**2)), (lambda: tf.reduce_sum(tf.sin(x)))
            chosen = tf.cond(tf.reduce_sum(x) > 0, square, wave)
            rows = tf.map_fn(
                lambda row: tf.while_loop(lambda i, a: i < 3, lambda i, a: (i + 1, a * tf.cos(a)), [0, row])[1], x
            )
            sums = tf.scan(lambda a, b: a * 0.9 + b, x)
            case = tf.switch_case(tf.shape(x)[0] % 2, [lambda: tf.reduce_sum(x), lambda: tf.reduce_prod(x)])
            loss = chosen + tf.reduce_sum(rows) + tf.reduce_sum(sums**2) + case
        return {"loss": loss, "gradient": tape.gradient(loss, x)}

    _check(tf, tmp_path, serve, [])


def test_jacobians_and_forward_mode(tf: ModuleType, tmp_path: Path) -> None:
    weight = tf.Variable(RANDOM.standard_normal((4, 4)).astype(np.float32))

    def serve(x: Any) -> dict[str, Any]:
        with tf.GradientTape() as outer:
            outer.watch(x)
            with tf.GradientTape() as tape:
                tape.watch(x)
                y = tf.sin(x @ weight)
            gradient = tape.gradient(y, x)
        with tf.autodiff.ForwardAccumulator(x, tf.ones_like(x)) as forward:
            z = tf.exp(-(x**2))
        return {"jacobian": outer.batch_jacobian(gradient, x), "directional": forward.jvp(z)}

    _check(tf, tmp_path, serve, [weight])


def test_sparse_updates(tf: ModuleType, tmp_path: Path) -> None:
    """Gradients of an embedding as slices, scatters and assignments to parts of a variable."""
    embedding = tf.Variable(RANDOM.standard_normal((10, 3)).astype(np.float32))

    def train(x: Any) -> dict[str, Any]:
        ids = tf.cast(tf.abs(x) * 3, tf.int32) % 10
        with tf.GradientTape() as tape:
            loss = tf.reduce_sum(tf.nn.embedding_lookup(embedding, ids) ** 2)
        slices = tape.gradient(loss, embedding)
        embedding.scatter_sub(tf.IndexedSlices(0.1 * slices.values, slices.indices))
        embedding.scatter_max(tf.IndexedSlices(tf.ones([2, 3]), tf.constant([1, 2])))
        embedding[0:2, 1].assign([7.0, 8.0])
        return {"embedding": embedding.read_value(), "touched": slices.indices}

    _check(tf, tmp_path, train, [embedding])


def test_datasets_inside(tf: ModuleType, tmp_path: Path) -> None:
    """Pipelines of tf.data that a signature makes and runs through."""

    def serve(x: Any) -> dict[str, Any]:
        doubled = tf.data.Dataset.from_tensor_slices(x).map(lambda row: row * 2).batch(2).enumerate()
        total = tf.constant(0.0)
        for number, rows in doubled:
            total += tf.reduce_sum(rows) * tf.cast(number + 1, tf.float32)
        pairs = tf.data.Dataset.zip((tf.data.Dataset.range(3), tf.data.Dataset.range(3, 6)))
        products = pairs.filter(lambda a, b: a > 0).reduce(
            tf.constant(0, tf.int64), lambda s, pair: s + pair[0] * pair[1]
        )
        return {"total": total, "products": products}

    assert _check(tf, tmp_path, serve, [])["products"] == 14


def test_compiled_and_checked(tf: ModuleType, tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    """Functions marked for XLA run like others; prints and assertions work."""
    from commands.main import run

    compiled = tf.function(lambda x: tf.nn.relu(x) + 1.0, jit_compile=True)

    def serve(x: Any) -> dict[str, Any]:
        tf.print("rows:", tf.shape(x)[0])
        tf.debugging.assert_less(tf.reduce_max(x), 100.0, message="too large")
        return {"y": compiled(x)}

    _check(tf, tmp_path, serve, [])
    capfd.readouterr()
    assert run(["run", str(tmp_path / "model"), "--feed", "x=[[1,2,3,400]]"]) == 3
    assert "too large" in capfd.readouterr().err
