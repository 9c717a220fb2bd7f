"""tf.estimator: what cannot be is told in one line; early stops, exports for each mode, input of data frames."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from toolkit import tensorflow as tf

te: Any = tf.estimator
fc: Any = tf.feature_column


def _input(repeat: bool = True) -> Any:
    x = np.arange(8, dtype=np.float32).reshape(4, 2)
    dataset = tf.data.Dataset.from_tensor_slices(({"x": x}, np.array([0.0, 1.0, 2.0, 3.0], np.float32)))
    return (dataset.repeat() if repeat else dataset).batch(2)


def _model(features: Any, labels: Any, mode: Any, params: Any) -> Any:
    units = params.get("units", 1)
    out = tf.layers.dense(features["x"], units, name="out")
    if mode == te.ModeKeys.PREDICT:
        return te.EstimatorSpec(mode, predictions={"out": out})
    loss = tf.losses.mean_squared_error(labels, out[:, 0])
    metrics = {"error": tf.metrics.mean_absolute_error(labels, out[:, 0])}
    train_op = tf.train.GradientDescentOptimizer(0.01).minimize(loss, tf.train.get_global_step())
    return te.EstimatorSpec(mode, {"out": out}, loss, train_op, metrics)


def _estimator(folder: Path, **settings: Any) -> Any:
    return te.Estimator(_model, str(folder), te.RunConfig(tf_random_seed=1, **settings), params={"units": 1})


_BAD: dict[str, tuple[type[Exception], str]] = {
    "te.RunConfig(save_checkpoints_steps=1, save_checkpoints_secs=1)": (ValueError, "not both"),
    "te.RunConfig(save_summary_steps=-1)": (ValueError, "at least 0"),
    "te.RunConfig(tf_random_seed=1.5)": (ValueError, "integer"),
    "te.RunConfig(model_dir='')": (ValueError, "empty"),
    "te.RunConfig().replace(task_id=3)": (ValueError, "no setting 'task_id'"),
    "te.RunConfig().no_such": (AttributeError, "no setting"),
    "te.Estimator(None)": (ValueError, "missing"),
    "te.Estimator(lambda labels: 0)": (ValueError, "must take features"),
    "te.Estimator(lambda features, x: 0)": (ValueError, "takes x"),
    "te.Estimator(lambda features: 0, params={})": (ValueError, "takes none"),
    "te.Estimator(m, config=3)": (ValueError, "RunConfig"),
    "te.Estimator(m, 'a', te.RunConfig('b'))": (ValueError, "b in the RunConfig"),
    "te.Estimator(m, warm_start_from=3)": (ValueError, "warm_start_from"),
    "te.WarmStartSettings('')": (ValueError, "missing"),
    "e.train(f, steps=1, max_steps=1)": (ValueError, "not both"),
    "e.train(f, steps=0)": (ValueError, "above 0"),
    "e.train(f, hooks=[3])": (TypeError, "SessionRunHook"),
    "e.train(f, saving_listeners=[3])": (TypeError, "CheckpointSaverListener"),
    "e.evaluate(f, steps=0)": (ValueError, "above 0"),
    "list(e.predict(f, predict_keys=['none']))": (ValueError, "no prediction is called"),
    "e.get_variable_value('x')": (ValueError, "no checkpoint in model_dir"),
    "e.export_saved_model('x', lambda: 0)": (ValueError, "no checkpoint in model_dir to export"),
    "e.export_saved_model('x', None)": (ValueError, "makes its inputs"),
    "te.Estimator(lambda features: 3).train(lambda: {'x': tf.constant(1)}, steps=1)": (
        ValueError, "EstimatorSpec; got 3"),
    "te.Estimator(lambda features: 3).train(f, steps=1)": (ValueError, "takes none"),
    "te.Estimator(m).train(lambda: (1, 2, 3), steps=1)": (ValueError, "returns 3 things"),
    "te.EstimatorSpec('train', loss=one)": (ValueError, "needs train_op"),
    "te.EstimatorSpec('eval')": (ValueError, "needs loss"),
    "te.EstimatorSpec('infer')": (ValueError, "needs predictions"),
    "te.EstimatorSpec('eval', loss=3)": (TypeError, "loss must be a tensor"),
    "te.EstimatorSpec('eval', loss=tf.constant([1.0, 2.0]))": (ValueError, "one number"),
    "te.EstimatorSpec('eval', loss=other)": (ValueError, "another graph"),
    "te.EstimatorSpec('eval', loss=one, eval_metric_ops={'a': one})": (TypeError, "a value and its update"),
    "te.EstimatorSpec('eval', loss=one, evaluation_hooks=[3])": (TypeError, "SessionRunHook"),
    "te.EstimatorSpec('eval', loss=one, scaffold=3)": (TypeError, "Scaffold"),
    "te.EstimatorSpec('infer', {'a': one}, export_outputs={'x': 3})": (TypeError, "ExportOutput"),
    "te.EstimatorSpec('eval', loss=one)._replace(mode='train')": (ValueError, "stays 'eval'"),
    "te.export.ClassificationOutput()": (ValueError, "both are None"),
    "te.export.ClassificationOutput(scores=3)": (ValueError, "floats"),
    "te.export.RegressionOutput(tf.constant(1))": (ValueError, "floats"),
    "te.export.PredictOutput({'a': 3})": (ValueError, "must be a tensor"),
    "te.export.ServingInputReceiver(None, one)": (ValueError, "features are missing"),
    "te.export.ServingInputReceiver(one, 3)": (ValueError, "must be a tensor"),
    "te.export.TensorServingInputReceiver({'a': one}, one)": (ValueError, "must be a tensor"),
    "te.TrainSpec(3)": (TypeError, "function"),
    "te.TrainSpec(f, 0)": (ValueError, "above 0"),
    "te.EvalSpec(f, exporters=[3])": (TypeError, "Exporter"),
    "te.EvalSpec(f, exporters=[te.FinalExporter('a', f), te.FinalExporter('a', f)])": (ValueError, "one name"),
    "te.EvalSpec(f, throttle_secs=-1)": (ValueError, "at least 0"),
    "te.LatestExporter('a', f, exports_to_keep=0)": (ValueError, "above 0"),
    "te.BestExporter('a', f, compare_fn=lambda a, b: 0)": (ValueError, "best_eval_result"),
    "te.FinalExporter('', f)": (ValueError, "needs a name"),
    "te.train_and_evaluate(3, te.TrainSpec(f), te.EvalSpec(f))": (TypeError, "takes a Estimator"),
    "te.inputs.numpy_input_fn({'a': np.zeros(2)})": (ValueError, "True or False"),
    "te.inputs.numpy_input_fn({}, shuffle=True)()": (ValueError, "empty dict"),
    "te.inputs.numpy_input_fn([1], shuffle=True)()": (TypeError, "got list"),
    "te.inputs.numpy_input_fn(np.zeros(2), np.zeros(3), shuffle=True)()": (ValueError, "one length"),
    "te.inputs.numpy_input_fn({'a': np.zeros(2)}, {'a': np.zeros(2)}, shuffle=True)()": (ValueError, "both have a"),
    "te.MultiClassHead(2)": (ValueError, "above 2"),
    "te.BinaryClassHead(thresholds=[1.0])": (ValueError, "between 0 and 1"),
    "te.RegressionHead(0)": (ValueError, "at least 1"),
    "te.RegressionHead(loss_reduction='x')": (ValueError, "no loss_reduction"),
    "te.RegressionHead(loss_fn=lambda x: x)": (ValueError, "must take labels"),
    "te.RegressionHead().create_estimator_spec({}, 'train', tf.zeros([2, 1]), tf.zeros([2, 1]))": (
        ValueError, "one of them"),
    "te.RegressionHead().create_estimator_spec({}, 'eval', tf.zeros([2, 1]))": (ValueError, "labels are missing"),
    "te.RegressionHead().create_estimator_spec({}, 'eval', tf.zeros([2, 3]))": (ValueError, "logits have 3"),
    "te.RegressionHead().create_estimator_spec({}, 'eval', tf.zeros([2, 1]), tf.zeros([2, 3]))": (
        ValueError, "labels have 3"),
    "te.DNNRegressor([2], [fc.numeric_column('x', 2)], optimizer='None').train(f, steps=1)": (
        ValueError, "no optimizer 'None'"),
    "te.DNNLinearCombinedRegressor()": (ValueError, "or both"),
    "te.DNNLinearCombinedRegressor(dnn_feature_columns=[fc.numeric_column('x')])": (ValueError, "dnn_hidden_units"),
    "te.experimental.dnn_logit_fn_builder('3', [2], [], None, None, None, False)": (ValueError, "integer"),
}  # fmt: skip


@pytest.mark.parametrize("code", _BAD)
def test_what_cannot_be_is_told(code: str, tmp_path: Path) -> None:
    kind, said = _BAD[code]
    with tf.Graph().as_default():
        other = tf.constant(1.0)
    with tf.Graph().as_default(), pytest.raises(kind, match=said):
        names = {"te": te, "tf": tf, "fc": fc, "np": np, "m": _model, "f": _input, "e": _estimator(tmp_path)}
        eval(code, {**names, "one": tf.constant(1.0), "other": other})


def test_members_are_not_overridden(tmp_path: Path) -> None:
    class Mine(te.Estimator):
        def train(self) -> None: ...

    with pytest.raises(ValueError, match="overrides train"):
        Mine(_model, str(tmp_path), params={})


def test_training_goes_on_from_the_latest_checkpoint(tmp_path: Path) -> None:
    model = _estimator(tmp_path, save_checkpoints_steps=2)
    model.train(_input, steps=3).train(_input, max_steps=5).train(_input, max_steps=4)
    assert model.get_variable_value("global_step") == 5
    assert model.latest_checkpoint() == str(tmp_path / "model.ckpt-5")
    again = _estimator(tmp_path)
    assert again.evaluate(lambda: _input(False))["global_step"] == 5
    events = [e for path in (tmp_path / "eval").iterdir() for e in tf.train.summary_iterator(str(path))]
    assert [value.tag for event in events for value in event.summary.value] == ["error", "loss", "checkpoint_path"]
    assert next(again.predict(lambda: _input(False), yield_single_examples=False))["out"].shape == (2, 1)


def test_listeners_hear_of_checkpoints(tmp_path: Path) -> None:
    class Heard(tf.train.CheckpointSaverListener):
        steps: list[int] = []  # noqa: RUF012 (one for the test)

        def after_save(self, session: Any, global_step_value: Any) -> None:
            self.steps.append(int(global_step_value))

    _estimator(tmp_path, save_checkpoints_steps=2).train(_input, steps=4, saving_listeners=[Heard()])
    assert Heard.steps == [0, 2, 4]


def test_each_mode_is_exported(tmp_path: Path) -> None:
    model = _estimator(tmp_path / "model")
    model.train(_input, steps=2)
    with tf.Graph().as_default():
        x, y = tf.placeholder(tf.float32, [None, 2], "x"), tf.placeholder(tf.float32, [None], "y")
        supervised = te.experimental.build_raw_supervised_input_receiver_fn({"x": x}, {"y": y})
        with pytest.raises(ValueError, match="both called x"):
            te.experimental.build_raw_supervised_input_receiver_fn({"x": x}, {"x": y})
        labels = te.experimental.build_raw_supervised_input_receiver_fn({"x": x}, y)
        serving = te.export.build_raw_serving_input_receiver_fn({"x": x})
        with tf.Graph().as_default():
            assert sorted(supervised().receiver_tensors) == ["x", "y"]
    path = model.experimental_export_all_saved_models(
        str(tmp_path / "out"), {te.ModeKeys.EVAL: labels, te.ModeKeys.PREDICT: serving}
    )
    wanted = {"eval": ["loss", "metrics/error/update_op", "metrics/error/value", "predictions/out"], "serve": ["out"]}
    for tag, outputs in wanted.items():
        with tf.Graph().as_default(), tf.Session() as session:
            found = tf.saved_model.load(session, [tag], path)
            (signature,) = found.signature_def.values()
            assert sorted(signature.outputs) == outputs


def test_a_cluster_says_which_task_this_is(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    cluster = {"chief": ["a:1"], "worker": ["b:1", "c:1"], "ps": ["d:1"]}
    monkeypatch.setenv("TF_CONFIG", json.dumps({"cluster": cluster, "task": {"type": "worker", "index": 1}}))
    config = te.RunConfig(str(tmp_path))
    found = (config.task_type, config.task_id, config.is_chief, config.num_ps_replicas, config.num_worker_replicas)
    assert found == ("worker", 1, False, 1, 3)
    monkeypatch.setenv("TF_CONFIG", json.dumps({"cluster": cluster, "task": {"type": "none", "index": 0}}))
    with pytest.raises(ValueError, match='no "none"'):
        te.RunConfig()
    monkeypatch.delenv("TF_CONFIG")
    assert te.RunConfig().is_chief


def test_logits_of_parts() -> None:
    columns = [fc.numeric_column("x", 2)]
    deep = te.experimental.dnn_logit_fn_builder(3, [4], columns, tf.nn.relu, 0.5, None, False)
    linear = te.experimental.linear_logit_fn_builder(2, columns)
    with tf.Graph().as_default():
        x = {"x": tf.placeholder(tf.float32, [None, 2])}
        assert deep(x, te.ModeKeys.TRAIN).shape.as_list() == [None, 3]
        assert linear(x).shape.as_list() == [None, 2]


def test_data_frames_are_fed() -> None:
    pandas = pytest.importorskip("pandas")
    frame = pandas.DataFrame({"a": [1.0, 2.0, 3.0], "b": [4, 5, 6]})
    with tf.Graph().as_default(), pytest.raises(ValueError, match="same rows"):
        te.inputs.pandas_input_fn(frame, pandas.Series([1, 2]), shuffle=False)
    made = te.inputs.pandas_input_fn(frame, pandas.Series([7, 8, 9]), 2, shuffle=False)
    with tf.Graph().as_default():
        features, labels = made()
        with tf.train.MonitoredSession() as session:
            found = session.run([features["a"], features["b"], labels])
    assert [each.tolist() for each in found] == [[1.0, 2.0], [4, 5], [7, 8]]


def test_other_heads_have_their_losses() -> None:
    logits, labels = np.array([[0.5], [-1.0], [1.5]]), np.array([[0.0], [1.0], [3.0]])
    stirling = 3 * np.log(3) - 3 + 0.5 * np.log(2 * np.pi * 3)
    plain = np.exp(logits) - logits * labels
    wanted = {
        te.PoissonRegressionHead(): (plain.sum() + stirling) / 3,
        te.PoissonRegressionHead(compute_full_loss=False): plain.mean(),
        te.LogisticRegressionHead(loss_reduction="sum"): (np.log1p(np.exp(logits)) - logits * labels).sum(),
        te.MultiLabelHead(2, label_vocabulary=["a", "b"], classes_for_class_based_metrics=["b"]): np.log(2),
    }
    for head, value in wanted.items():
        with tf.Graph().as_default(), tf.Session() as session:
            is_several = head.logits_dimension == 2
            given = tf.zeros([3, 2]) if is_several else tf.constant(logits, tf.float32)
            right = tf.constant([[0, 1]] * 3) if is_several else tf.constant(labels, tf.float32)
            spec = head.create_estimator_spec({}, te.ModeKeys.EVAL, given, right)
            # float32 arithmetic of a few operations
            np.testing.assert_allclose(session.run(spec.loss), value, rtol=1e-6)
            session.run(tf.local_variables_initializer())
            session.run([update for _, update in spec.eval_metric_ops.values()])
            assert head.update_metrics({}, {}, given, right).keys() == spec.eval_metric_ops.keys()
