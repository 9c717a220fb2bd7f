# TensorFlow's arguments may be anything, so what they are is for tests to say, not for types.
# pyright: basic
"""An estimator that takes arrays, as scikit-learn's do."""

from __future__ import annotations

from typing import Any

import numpy as np

from toolkit.tensorflow.families.train.session_hooks import FeedFnHook
from toolkit.tensorflow.learn.feeding import input_fn_of
from toolkit.tensorflow.learn.scikit import ParameterHolder


class SKCompat(ParameterHolder):
    """An estimator of tf.contrib.learn whose inputs are arrays."""

    def __init__(self, estimator: Any):
        self._estimator = estimator

    def fit(
        self, x: Any, y: Any, batch_size: Any = 128, steps: Any = None, max_steps: Any = None, monitors: Any = None
    ) -> Any:
        """Train on examples and their labels, shuffled, for ever unless a count of steps is given."""
        input_fn, feed_fn = input_fn_of(x, y, None, None, batch_size, shuffle=True, epochs=None)
        monitors = [FeedFnHook(feed_fn), *(monitors or [])]
        self._estimator.fit(input_fn=input_fn, steps=steps, max_steps=max_steps, monitors=monitors)
        return self

    def score(
        self, x: Any, y: Any, batch_size: Any = 128, steps: Any = None, metrics: Any = None, name: Any = None
    ) -> Any:
        """The metrics over all examples.

        Raises:
            ValueError: metrics are no dict.
        """
        if metrics is not None and not isinstance(metrics, dict):
            raise ValueError(f"metrics must be a dict of MetricSpecs by name; got {metrics!r}")
        input_fn, feed_fn = input_fn_of(x, y, None, None, batch_size)
        found, step = self._estimator._evaluate_model(
            input_fn=input_fn, feed_fn=feed_fn, steps=steps, metrics=metrics, name=name
        )
        if found is not None:
            found["global_step"] = step
        return found

    def predict(self, x: Any, batch_size: Any = 128, outputs: Any = None) -> Any:
        """The predictions for all examples: an array, or arrays by name."""
        input_fn, feed_fn = input_fn_of(x, None, None, None, batch_size)
        batches = list(
            self._estimator._infer_model(
                input_fn=input_fn, feed_fn=feed_fn, outputs=outputs, as_iterable=True, iterate_batches=True
            )
        )
        if not isinstance(batches[0], dict):
            return np.concatenate(batches, axis=0)
        return {key: np.concatenate([batch[key] for batch in batches], axis=0) for key in batches[0]}
