"""tf.contrib.learn: estimators, SKCompat, monitors, experiments and exports, from training to a served model."""

from __future__ import annotations

from pathlib import Path
from typing import Any, cast

import numpy as np
import pytest

from toolkit import tensorflow as tf

learn = tf.contrib.learn
RANDOM = np.random.RandomState(0)
X = RANDOM.randn(60, 2).astype(np.float32)
Y = (X @ np.array([1.0, -2.0], np.float32))[:, None]
#: a least squares fit that is exact is found to well within this
CLOSE = 0.05


def model(features: Any, labels: Any, mode: str) -> Any:
    by_name = isinstance(features, dict)
    x: Any = cast("Any", features)["x"] if by_name else features
    predictions = tf.layers.dense(x, 1, use_bias=False)
    loss = train_op = None
    if mode != learn.ModeKeys.INFER:
        loss = tf.losses.mean_squared_error(tf.reshape(labels, [-1, 1]), predictions)
        train_op = tf.train.GradientDescentOptimizer(0.3).minimize(loss, tf.train.get_global_step())
    return learn.ModelFnOps(mode, predictions, loss, train_op)


def inputs() -> Any:
    return tf.constant(X), tf.constant(Y)


def trained(folder: Path, **config: Any) -> Any:
    settings = learn.RunConfig(tf_random_seed=1, **config)
    return learn.Estimator(model, str(folder), settings).fit(input_fn=inputs, steps=40)


def test_a_model_is_trained_evaluated_and_asked(tmp_path: Path) -> None:
    estimator = trained(tmp_path)
    assert "dense/kernel" in estimator.get_variable_names()
    metric = learn.MetricSpec(tf.metrics.mean_absolute_error)
    found = estimator.evaluate(input_fn=inputs, steps=2, metrics={"error": metric})
    assert found["global_step"] == 40
    assert found["loss"] < CLOSE
    assert found["error"] < CLOSE
    predicted = list(estimator.predict(input_fn=inputs))
    np.testing.assert_allclose(predicted, Y, atol=CLOSE)
    assert estimator.fit(input_fn=inputs, max_steps=40) is estimator


def test_arrays_take_the_place_of_functions(tmp_path: Path) -> None:
    estimator = learn.SKCompat(learn.Estimator(model, str(tmp_path)))
    estimator.fit(X, Y[:, 0], batch_size=20, steps=60)
    assert estimator.score(X, Y[:, 0])["loss"] < CLOSE
    np.testing.assert_allclose(estimator.predict(X, batch_size=7), Y, atol=CLOSE)


def test_old_model_functions_return_three_things(tmp_path: Path) -> None:
    def old(features: Any, target: Any) -> Any:
        found = model(features, target, "train")
        return {"y": found.predictions}, found.loss, found.train_op

    estimator = learn.Estimator(old, str(tmp_path)).fit(iter(X), iter(Y), batch_size=10)
    assert estimator.get_variable_value("global_step") == 6
    assert next(estimator.predict(X))["y"].shape == (1,)


def test_an_experiment_trains_and_evaluates(tmp_path: Path) -> None:
    seen: list[int] = []

    class Watches(learn.monitors.EveryN):
        def every_n_step_end(self, step: Any, outputs: Any) -> bool:
            seen.append(step)
            return False

    def make(run_config: Any, hparams: Any) -> Any:
        del hparams
        estimator = learn.Estimator(model, config=run_config)
        return learn.Experiment(estimator, inputs, inputs, train_steps=20, eval_steps=1, train_monitors=[Watches(10)])

    config = learn.RunConfig(model_dir=str(tmp_path), save_checkpoints_steps=5)
    values, exports = learn.learn_runner.run(make, run_config=config, schedule="train_and_evaluate")
    assert values["global_step"] == 20
    assert exports == []
    assert seen[0] == 1


def test_training_ends_where_nothing_gets_better(tmp_path: Path) -> None:
    monitor = learn.monitors.ValidationMonitor(
        input_fn=inputs, eval_steps=1, every_n_steps=1, early_stopping_rounds=3, early_stopping_metric="loss",
        early_stopping_metric_minimize=False, check_interval_secs=None,
    )  # fmt: skip
    config = learn.RunConfig(save_checkpoints_steps=1)
    learn.Estimator(model, str(tmp_path), config).fit(input_fn=inputs, steps=50, monitors=[monitor])
    assert monitor.early_stopped
    assert monitor.best_step < 50


def test_a_model_is_exported_and_served(tmp_path: Path) -> None:
    estimator = trained(tmp_path / "model")
    column = tf.contrib.layers.real_valued_column("x", 2)
    spec = tf.contrib.layers.create_feature_spec_for_parsing([column])
    strategy = learn.make_export_strategy(learn.build_parsing_serving_input_fn(spec), exports_to_keep=1)
    path = strategy.export(estimator, str(tmp_path / "export"))
    assert list((tmp_path / "export").iterdir()) == [Path(path.decode())]
    feature = tf.train.Feature(float_list=tf.train.FloatList(value=[1.0, 1.0]))
    example = tf.train.Example(features=tf.train.Features(feature={"x": feature})).SerializeToString()
    with tf.Graph().as_default(), tf.Session() as session:
        meta = tf.saved_model.loader.load(session, ["serve"], path)
        signature = meta.signature_def["serving_default"]
        found = session.run(signature.outputs["output"].name, {signature.inputs["examples"].name: [example]})
    np.testing.assert_allclose(found, [[-1.0]], atol=CLOSE)


def test_columns_are_inferred() -> None:
    (column,) = learn.infer_real_valued_columns_from_input(X)
    assert (column.name, column.dimension) == ("", 2)
    (column,) = learn.infer_real_valued_columns_from_input_fn(lambda: ({"x": tf.constant(X)}, None))
    assert (column.name, column.dimension) == ("x", 2)


def test_what_is_no_data_frame_stays_as_it_is() -> None:
    for extract in (learn.extract_pandas_data, learn.extract_pandas_labels, learn.extract_dask_data):
        assert extract(X) is X


def test_mistakes_are_told(tmp_path: Path) -> None:
    estimator = learn.Estimator(model, str(tmp_path))
    with pytest.raises(learn.NotFittedError, match="there is no checkpoint in model_dir; train the model first"):
        estimator.evaluate(input_fn=inputs)
    with pytest.raises(ValueError, match="give steps or max_steps, not both"):
        estimator.fit(input_fn=inputs, steps=1, max_steps=1)
    with pytest.raises(ValueError, match="give input_fn, or x, y and batch_size, not both"):
        estimator.fit(X, Y, input_fn=inputs)
    with pytest.raises(ValueError, match="must give train_op in the mode 'train'; it is missing"):
        learn.ModelFnOps("train", 1.0, 1.0)
    with pytest.raises(ValueError, match="which mean the same"):
        learn.MetricSpec(lambda labels, targets: None)
    with pytest.raises(ValueError, match="give output_dir or run_config, one of them"):
        learn.learn_runner.run(lambda: None)
    with pytest.raises(NotImplementedError, match=r"export_savedmodel\('somewhere', serving_input_fn\)"):
        estimator.export("somewhere")


def test_examples_are_read_from_csv(tmp_path: Path) -> None:
    base = learn.datasets.base
    file = tmp_path / "iris.csv"
    file.write_text("2,3,a,b\n1,2,3,0\n4,5,6,1\n")
    found = base.load_csv_with_header(str(file), np.int64, np.float32)
    np.testing.assert_array_equal(found.data, [[1, 2, 3], [4, 5, 6]])
    np.testing.assert_array_equal(found.target, [0, 1])
    assert base.maybe_download("iris.csv", str(tmp_path), "somewhere") == str(file)
    file.write_text("0,1.5\n1,2.5\n")
    found = base.load_csv_without_header(str(file), np.int64, np.float32, target_column=0)
    np.testing.assert_array_equal(found.data, [[1.5], [2.5]])
    with pytest.raises(tf.errors.NotFoundError, match="graphmill downloads nothing"):
        base.maybe_download("other.csv", str(tmp_path), "somewhere")
    file.write_text("x,y\n")
    with pytest.raises(Exception, match="its first line must begin with two counts"):
        base.load_csv_with_header(str(file), np.int64, np.float32)
    with pytest.raises(Exception, match="its rows are not of numbers"):
        base.load_csv_without_header(str(file), np.int64, np.float32)
