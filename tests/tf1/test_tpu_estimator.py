"""tf.contrib.tpu.TPUEstimator in programs that run without a TPU."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from toolkit import tensorflow as tf

X = np.arange(16, dtype=np.float32).reshape(8, 2)
Y = X.sum(1, keepdims=True)


def input_fn(params: Any) -> Any:
    return tf.data.Dataset.from_tensor_slices(({"x": X}, Y)).repeat().batch(params["batch_size"])


def model_fn(features: Any, labels: Any, mode: str, params: Any) -> Any:
    tpu = tf.contrib.tpu
    out = tf.layers.dense(features["x"], 1, kernel_initializer=tf.zeros_initializer())
    if mode == tf.estimator.ModeKeys.PREDICT:
        return tpu.TPUEstimatorSpec(mode, predictions={"y": out})
    loss = tf.losses.mean_squared_error(labels, out)
    optimizer = tpu.CrossShardOptimizer(tf.train.GradientDescentOptimizer(params["rate"]))
    train = optimizer.minimize(loss, tf.train.get_global_step()) if mode == tf.estimator.ModeKeys.TRAIN else None

    def metrics(labels: Any, out: Any) -> Any:
        return {"error": tf.metrics.mean_absolute_error(labels, out), "size": tf.metrics.mean(tf.shape(out)[0])}

    return tpu.TPUEstimatorSpec(mode, loss=loss, train_op=train, eval_metrics=(metrics, [labels, out]))


def made(folder: Path, **options: Any) -> Any:
    tpu = tf.contrib.tpu
    config = tpu.RunConfig(
        cluster=None, master=None, model_dir=str(folder), save_checkpoints_steps=10,
        tpu_config=tpu.TPUConfig(
            iterations_per_loop=5, num_shards=8, per_host_input_for_training=tpu.InputPipelineConfig.PER_HOST_V2
        ),
    )  # fmt: skip
    assert config.tpu_config.num_shards == 8
    return tpu.TPUEstimator(
        model_fn, config=config, params={"rate": 0.002}, train_batch_size=4, eval_batch_size=2, predict_batch_size=8,
        **options,
    )  # fmt: skip


def test_it_trains_evaluates_and_predicts(tmp_path: Path) -> None:
    estimator = made(tmp_path, use_tpu=False)
    estimator.train(input_fn, max_steps=1)
    before = estimator.evaluate(input_fn, steps=4)
    estimator.train(input_fn, max_steps=40)
    after = estimator.evaluate(input_fn, steps=4)
    assert after["global_step"] == 40
    assert after["size"] == 2.0
    assert after["error"] < before["error"] / 2
    predicted = next(iter(estimator.predict(input_fn)))
    assert predicted["y"].shape == (1,)
    assert "batch_size" not in estimator.params


def test_mistakes(tmp_path: Path) -> None:
    tpu = tf.contrib.tpu
    with pytest.raises(ValueError, match="no TPU is driven here; give TPUEstimator use_tpu=False"):
        made(tmp_path)
    with pytest.raises(ValueError, match="is set by TPUEstimator"):
        tpu.TPUEstimator(model_fn, params={"batch_size": 3}, use_tpu=False)
    with pytest.raises(ValueError, match="expected weighted_sum or weighted_mean; got 'mean'"):
        tpu.CrossShardOptimizer(tf.train.GradientDescentOptimizer(0.1), "mean")
    with tf.Graph().as_default():
        spec = tpu.TPUEstimatorSpec("eval", loss=tf.constant(1.0), eval_metrics={"a": 1})
        with pytest.raises(ValueError, match="eval_metrics must be a function and the tensors that it takes"):
            spec.as_estimator_spec()
