"""tf.estimator: early stops, evaluations in memory, more metrics, features among predictions, several heads."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from toolkit import tensorflow as tf
from toolkit.errors import UsageError

te: Any = tf.estimator
ce: Any = tf.contrib.estimator


def _input(repeat: bool = True) -> Any:
    x = np.arange(8, dtype=np.float32).reshape(4, 2)
    features = {"x": x, "id": np.array([7, 8, 9, 10])}
    dataset = tf.data.Dataset.from_tensor_slices((features, np.array([0.0, 1.0, 2.0, 3.0], np.float32)))
    return (dataset.repeat() if repeat else dataset).batch(2)


def _model(features: Any, labels: Any, mode: Any) -> Any:
    out = tf.layers.dense(features["x"], 1, name="out")
    exports = {"predict": te.export.PredictOutput({"out": out})}
    if mode == te.ModeKeys.PREDICT:
        return te.EstimatorSpec(mode, predictions={"out": out}, export_outputs=exports)
    loss = tf.losses.mean_squared_error(labels, out[:, 0])
    train_op = tf.train.GradientDescentOptimizer(0.01).minimize(loss, tf.train.get_global_step())
    return te.EstimatorSpec(mode, {"out": out}, loss, train_op)


def _estimator(folder: Path) -> Any:
    return te.Estimator(_model, str(folder), te.RunConfig(tf_random_seed=1))


def _evaluated(folder: Path, metrics: dict[int, float]) -> str:
    """A folder of evaluations, of which the last are read in the order of their steps."""
    with tf.Graph().as_default():
        writer = tf.summary.FileWriter(str(folder))
        for step in sorted(metrics, reverse=True):
            writer.add_summary(tf.Summary(value=[tf.Summary.Value(tag="m", simple_value=metrics[step])]), step)
        writer.close()
    return str(folder)


@pytest.mark.parametrize(
    ("make", "steps"),
    [
        ("stop_if_higher_hook(e, 'm', 0.75, d", 1), ("stop_if_higher_hook(e, 'm', 1.5, d", 4),
        ("stop_if_higher_hook(e, 'm', 0.75, d, min_steps=30", 4), ("stop_if_lower_hook(e, 'm', 0.3, d", 1),
        ("stop_if_lower_hook(e, 'm', 0.2, d", 4), ("stop_if_no_increase_hook(e, 'm', 10, d", 1),
        ("stop_if_no_increase_hook(e, 'm', 25, d", 4), ("stop_if_no_decrease_hook(e, 'm', 20, d", 1),
        ("stop_if_no_decrease_hook(e, 'm', 25, d", 4),
        ("stop_if_no_decrease_hook(e, 'm', 20, d, min_steps=20", 4),
    ],
)  # fmt: skip
def test_training_stops_when_a_metric_says_so(make: str, steps: int, tmp_path: Path) -> None:
    estimator = _estimator(tmp_path / "model")
    folder = _evaluated(tmp_path / "eval", {10: 0.25, 20: 1.0, 30: 0.5})
    hook = eval(
        f"te.experimental.{make}, run_every_secs=None, run_every_steps=1)", {"te": te, "e": estimator, "d": folder}
    )
    estimator.train(_input, hooks=[hook], max_steps=4)
    assert estimator.trained_steps() == steps


def test_training_goes_on_without_evaluations(tmp_path: Path) -> None:
    estimator = _estimator(tmp_path)
    hook = te.experimental.stop_if_higher_hook(estimator, "m", 0.0)
    estimator.train(_input, hooks=[hook], max_steps=2)
    assert estimator.trained_steps() == 2


def test_a_metric_that_no_evaluation_has_is_told(tmp_path: Path) -> None:
    estimator = _estimator(tmp_path / "model")
    hook = te.experimental.stop_if_higher_hook(estimator, "accuracy", 0, _evaluated(tmp_path / "eval", {3: 1.0}))
    with pytest.raises(UsageError, match="step 3 has no metric 'accuracy'; it has: m"):
        estimator.train(_input, hooks=[hook], max_steps=2)


def test_a_program_decides_when_to_stop(tmp_path: Path) -> None:
    estimator = _estimator(tmp_path)
    asked: list[int] = []

    def enough() -> bool:
        asked.append(1)
        return len(asked) == 2

    hook = te.experimental.make_early_stopping_hook(estimator, enough, None, 2)
    estimator.train(_input, hooks=[hook], max_steps=9)
    assert estimator.trained_steps() == 3
    assert estimator.get_variable_value("signal_early_stopping/STOP")


def test_the_chief_stops_at_a_step(tmp_path: Path) -> None:
    estimator = _estimator(tmp_path)
    estimator.train(_input, hooks=[te.experimental.make_stop_at_checkpoint_step_hook(estimator, 3)])
    assert estimator.trained_steps() == 3


def test_other_tasks_stop_with_the_chief(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    estimator = _estimator(tmp_path)
    estimator.train(_input, max_steps=2)
    monkeypatch.setattr(te.RunConfig, "is_chief", False)
    stopping = te.experimental.make_early_stopping_hook(estimator, lambda: False)
    at_step = te.experimental.make_stop_at_checkpoint_step_hook(estimator, 2, 0)
    for hook, stopped in ((stopping, True), (at_step, True)):
        with tf.Graph().as_default():
            step = tf.train.get_or_create_global_step()
            hook.begin()
            flags = [v.assign(True) for v in tf.global_variables() if v.op.name.endswith("STOP")]
            with tf.Session() as session:
                session.run(tf.global_variables_initializer())
                session.run([flags, step.assign(2)])
                context = tf.train.SessionRunContext(None, session)
                results = session.run(hook.before_run(context).fetches)
                hook.after_run(context, tf.train.SessionRunValues(results, None, None))
                assert context.stop_requested == stopped


def test_the_model_is_evaluated_while_it_trains(tmp_path: Path) -> None:
    estimator = _estimator(tmp_path)
    hook = te.experimental.InMemoryEvaluatorHook(estimator, lambda: _input(False), name="now", every_n_iter=2)
    estimator.train(_input, hooks=[hook], max_steps=5)
    (events,) = Path(estimator.eval_dir("now")).iterdir()
    losses = {
        event.step: value.simple_value
        for event in tf.train.summary_iterator(str(events))
        for value in event.summary.value
        if value.tag == "loss"
    }
    assert sorted(losses) == [0, 2, 4, 5]
    assert losses[5] == np.float32(estimator.evaluate(lambda: _input(False))["loss"]), "of the same variables"


def test_metrics_are_added(tmp_path: Path) -> None:
    def more(labels: Any, predictions: Any, config: Any) -> Any:
        assert config.tf_random_seed == 1
        return {"most": tf.metrics.mean(tf.reduce_max(labels)), "out": tf.metrics.mean(predictions["out"])}

    estimator = te.add_metrics(_estimator(tmp_path), more)
    estimator.train(_input, max_steps=2)
    found = estimator.evaluate(lambda: _input(False))
    assert found["most"] == 2.0 and {"out", "loss"} <= set(found)


@pytest.mark.parametrize("keys", [None, "id", ["id"]])
def test_features_are_among_predictions(keys: Any, tmp_path: Path) -> None:
    estimator = ce.forward_features(_estimator(tmp_path), keys)
    estimator.train(_input, max_steps=1)
    found = list(estimator.predict(lambda: _input(False)))
    assert [each["id"] for each in found] == [7, 8, 9, 10]
    assert ("x" in found[0]) == (keys is None)
    receiver = te.export.build_raw_serving_input_receiver_fn(
        {"x": tf.placeholder(tf.float32, [None, 2]), "id": tf.placeholder(tf.int64, [None])}
    )
    path = estimator.export_saved_model(str(tmp_path / "export"), receiver)
    with tf.Session(graph=tf.Graph()) as session:
        signature = tf.saved_model.loader.load(session, ["serve"], path).signature_def["predict"]
    assert {"out", "id"} <= set(signature.outputs)


def test_gaps_of_sparse_features_are_filled(tmp_path: Path) -> None:
    def sparse() -> Any:
        tags = tf.SparseTensor([[0, 1]], [5], [2, 2])
        return {"x": tf.constant([[1.0, 2.0], [3.0, 4.0]]), "tags": tags}, tf.constant([1.0, 2.0])

    estimator = ce.forward_features(_estimator(tmp_path), "tags", {"tags": -1})
    predictions = estimator.predict(sparse)
    assert [list(next(predictions)["tags"]) for _ in range(2)] == [[-1, 5], [-1, -1]]
    with pytest.raises(ValueError, match="sparse_default_values"):
        next(ce.forward_features(_estimator(tmp_path), "tags").predict(sparse))


def test_clipped_gradients() -> None:
    with tf.Graph().as_default():
        v = tf.get_variable("v", [2], initializer=tf.constant_initializer(1.0))
        optimizer = ce.clip_gradients_by_norm(tf.train.MomentumOptimizer(1.0, 0.5), 5.0)
        train = optimizer.minimize(tf.reduce_sum(v * [6.0, 8.0]))
        assert optimizer.get_name() == "ClipByNormMomentum" and optimizer.get_slot_names() == ["momentum"]
        with tf.Session() as session:
            session.run(tf.global_variables_initializer())
            session.run(train)
            # of norm 10, halved; float32 knows 1 - 3 and 1 - 4
            np.testing.assert_array_equal(session.run(v), [-2.0, -3.0])


def test_logits_of_a_function() -> None:
    with tf.Graph().as_default():
        assert ce.call_logit_fn(
            lambda features, mode: tf.add(features, 1, mode), tf.constant(1), "eval", {}, None
        ).op.type
        with pytest.raises(ValueError, match="expected a tensor"):
            te.experimental.call_logit_fn(lambda features: 3, None, "eval", {}, None)


def test_receivers_like_an_input_function(tmp_path: Path) -> None:
    receiver = ce.build_supervised_input_receiver_fn_from_input_fn(_input, repeat=False)
    estimator = _estimator(tmp_path)
    estimator.train(_input, max_steps=1)
    for path in (
        ce.export_saved_model_for_mode(estimator, str(tmp_path / "a"), receiver, mode="eval"),
        ce.export_all_saved_models(estimator, str(tmp_path / "b"), {"eval": receiver}),
    ):
        with tf.Session(graph=tf.Graph()) as session:
            signature = tf.saved_model.loader.load(session, ["eval"], path).signature_def["eval"]
        assert sorted(signature.inputs) == ["id", "label", "x"]


def test_one_model_has_several_heads(tmp_path: Path) -> None:
    def model(features: Any, labels: Any, mode: Any) -> Any:
        head = te.MultiHead([te.RegressionHead(name="number"), te.MultiClassHead(3, name="kind")], [1.0, 0.5])
        logits = tf.layers.dense(features["x"], head.logits_dimension)
        optimizer = tf.train.GradientDescentOptimizer(0.01)
        return head.create_estimator_spec(features, mode, logits, labels, optimizer)

    def labelled() -> Any:
        return _input(False).map(lambda x, y: (x, {"number": y, "kind": tf.cast(y, tf.int64) % 3}))

    estimator = te.Estimator(model, str(tmp_path), te.RunConfig(tf_random_seed=1))
    estimator.train(labelled)
    found = estimator.evaluate(labelled)
    assert {"loss/number", "loss/kind", "accuracy/kind", "average_loss/number"} <= set(found)
    # the mean of two float32 sums, added in another order
    np.testing.assert_allclose(found["loss"], found["loss/number"] + 0.5 * found["loss/kind"], rtol=1e-6)
    prediction = next(estimator.predict(labelled))
    assert prediction["kind", "probabilities"].shape == (3,)
    path = estimator.export_saved_model(
        str(tmp_path / "e"), te.export.build_raw_serving_input_receiver_fn({"x": tf.placeholder(tf.float32, [None, 2])})
    )
    with tf.Session(graph=tf.Graph()) as session:
        signatures = tf.saved_model.loader.load(session, ["serve"], path).signature_def
    assert "number/probabilities" not in signatures["predict"].outputs
    assert {"kind/probabilities", "number/predictions"} <= set(signatures["predict"].outputs)


_HEADS = "te.MultiHead([te.RegressionHead(name='a'), te.BinaryClassHead(name='b')])"
_BAD = {
    "te.MultiHead([])": (ValueError, "at least one"),
    "te.MultiHead([te.RegressionHead()])": (ValueError, "name"),
    "te.MultiHead([te.RegressionHead(name='a')], [1, 2])": (ValueError, "expected 1"),
    f"{_HEADS}.predictions(tf.zeros([2, 3]))": (ValueError, "expected 2 numbers"),
    f"{_HEADS}.predictions({{'a': tf.zeros([2, 1])}})": (ValueError, "none for the heads b"),
    f"{_HEADS}.loss(tf.zeros([2, 1]), tf.zeros([2, 2]))": (ValueError, "expected a dict"),
    f"{_HEADS}.loss({{'a': tf.zeros([2, 1])}}, tf.zeros([2, 2]))": (ValueError, "none for the heads b"),
    "te.add_metrics(e, lambda x: 0)": (ValueError, "takes x"),
    "ce.forward_features(e, 3)": (TypeError, "keys"),
    "ce.forward_features(e, [3])": (TypeError, "keys"),
    "next(ce.forward_features(e, 'none').predict(f))": (ValueError, "no feature 'none'"),
    "te.experimental.make_early_stopping_hook(3, f)": (TypeError, "estimator"),
    "te.experimental.make_early_stopping_hook(e, f, 1, 1)": (ValueError, "not both"),
    "te.experimental.make_early_stopping_hook(e, 3)": (TypeError, "should_stop_fn"),
    "te.experimental.InMemoryEvaluatorHook(e, f, every_n_iter=0)": (ValueError, "every_n_iter"),
    "te.classifier_parse_example_spec([c], 'x')": (ValueError, "'x' is a feature"),
    "te.classifier_parse_example_spec([c], 'y', weight_column='x')": (ValueError, "weight_column"),
    "te.regressor_parse_example_spec([c], 'y', weight_column=3)": (ValueError, "weight_column"),
}


@pytest.mark.parametrize("code", _BAD)
def test_what_cannot_be_is_told(code: str, tmp_path: Path) -> None:
    kind, said = _BAD[code]
    known = {
        "te": te,
        "ce": ce,
        "tf": tf,
        "e": _estimator(tmp_path),
        "f": _input,
        "c": tf.feature_column.numeric_column("x"),
    }
    with tf.Graph().as_default(), pytest.raises(kind, match=said):
        eval(code, known)
