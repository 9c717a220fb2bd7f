# TensorFlow's arguments may be anything, so what they are is for tests to say, not for types.
# pyright: basic
"""tf.contrib.factorization.KMeansClustering, and tf.estimator.experimental.KMeans."""

from __future__ import annotations

import time
from typing import Any

from toolkit.client.arrays import array_ops
from toolkit.client.clustering import kmeans
from toolkit.client.construction.grouping import with_dependencies
from toolkit.client.feature_columns.layers import input_layer
from toolkit.client.math import math_ops
from toolkit.client.metrics.means import mean
from toolkit.client.summaries import summary
from toolkit.client.train.global_step import get_global_step
from toolkit.tensorflow.estimators.estimator import Estimator
from toolkit.tensorflow.estimators.export_outputs import PredictOutput
from toolkit.tensorflow.estimators.spec import EstimatorSpec
from toolkit.tensorflow.families.train.session_hooks import SessionRunArgs, SessionRunHook

SCORE, CLUSTER_INDEX, ALL_DISTANCES = "score", "cluster_index", "all_distances"
#: how long workers wait for the chief to choose centers before they look again, in seconds
_PAUSE = 1.0


class _Settled(SessionRunHook):
    """Stops training once the loss changes by less than a share of it."""

    def __init__(self, loss: Any, tolerance: float):
        self._loss, self._tolerance, self._before = loss, tolerance, None

    def before_run(self, run_context: Any) -> Any:
        return SessionRunArgs(self._loss)

    def after_run(self, run_context: Any, run_values: Any) -> None:
        loss = run_values.results
        if self._before and abs(loss - self._before) / (1 + abs(self._before)) < self._tolerance:
            run_context.request_stop()
        self._before = loss


class _Beginning(SessionRunHook):
    """Chooses centers before the first step, from as many batches as that takes."""

    def __init__(self, begin: Any, there: Any, is_chief: bool):
        self._begin, self._there, self._is_chief = begin, there, is_chief

    def after_create_session(self, session: Any, coord: Any) -> None:
        while not session.run(self._there):
            if self._is_chief:
                session.run(self._begin)
            else:
                time.sleep(_PAUSE)


def _points(features: Any, feature_columns: Any) -> Any:
    if not isinstance(features, dict):
        return features
    if feature_columns:
        return input_layer(features, feature_columns)
    return array_ops.concat([features[key] for key in sorted(features)], 1)


class _Clustering(Estimator):
    """k-means on the points that an input function gives."""

    SQUARED_EUCLIDEAN_DISTANCE = kmeans.SQUARED_EUCLIDEAN_DISTANCE
    COSINE_DISTANCE = kmeans.COSINE_DISTANCE
    RANDOM_INIT = kmeans.RANDOM_INIT
    KMEANS_PLUS_PLUS_INIT = kmeans.KMEANS_PLUS_PLUS_INIT
    SCORE, CLUSTER_INDEX, ALL_DISTANCES = SCORE, CLUSTER_INDEX, ALL_DISTANCES
    CLUSTER_CENTERS_VAR_NAME = kmeans.CENTERS

    def _set_up(
        self, settings: dict[str, Any], model_dir: Any, config: Any, relative_tolerance: Any, feature_columns: Any
    ) -> None:
        kmeans.check_choices(settings["initial_clusters"], settings["distance_metric"])

        def model_fn(features: Any, mode: Any, config: Any) -> EstimatorSpec:
            graph = kmeans.KMeans(_points(features, feature_columns), **settings)
            everything, nearest, least, there, begin, step = graph.training_graph()
            loss = math_ops.reduce_sum(least[0])
            summary.scalar("loss/raw", loss)
            counted = get_global_step().assign_add(1)
            hooks: list[Any] = [_Beginning(begin, there, config.is_chief)]
            if relative_tolerance is not None:
                hooks.append(_Settled(loss, relative_tolerance))
            return EstimatorSpec(
                mode=mode, predictions={ALL_DISTANCES: everything[0], CLUSTER_INDEX: nearest[0]}, loss=loss,
                train_op=with_dependencies([step, counted], loss), eval_metric_ops={SCORE: mean(loss)},
                training_hooks=hooks,
                export_outputs={
                    ALL_DISTANCES: PredictOutput(everything[0]), CLUSTER_INDEX: PredictOutput(nearest[0]),
                    "serving_default": PredictOutput(nearest[0]),
                },
            )  # fmt: skip

        Estimator.__init__(self, model_fn, model_dir, config)

    def _one(self, input_fn: Any, key: str) -> Any:
        for found in self.predict(input_fn, predict_keys=[key]):
            yield found[key]

    def predict_cluster_index(self, input_fn: Any) -> Any:
        """The nearest center of each point."""
        return self._one(input_fn, CLUSTER_INDEX)

    def score(self, input_fn: Any) -> Any:
        """The sum of the distances to the nearest centers, of one batch."""
        return self.evaluate(input_fn, steps=1)[SCORE]

    def transform(self, input_fn: Any) -> Any:
        """The distances of each point to all centers."""
        return self._one(input_fn, ALL_DISTANCES)

    def cluster_centers(self) -> Any:
        """The centers [clusters, size]."""
        return self.get_variable_value(kmeans.CENTERS)


class KMeansClustering(_Clustering):
    """As tf.contrib.factorization has it; see `kmeans.KMeans`."""

    def __init__(
        self, num_clusters: Any, model_dir: Any = None, initial_clusters: Any = kmeans.RANDOM_INIT,
        distance_metric: str = kmeans.SQUARED_EUCLIDEAN_DISTANCE, random_seed: Any = 0, use_mini_batch: bool = True,
        mini_batch_steps_per_iteration: int = 1, kmeans_plus_plus_num_retries: int = 2, relative_tolerance: Any = None,
        config: Any = None, feature_columns: Any = None,
    ):  # fmt: skip
        settings = {
            "num_clusters": num_clusters, "initial_clusters": initial_clusters, "distance_metric": distance_metric,
            "use_mini_batch": use_mini_batch, "mini_batch_steps_per_iteration": mini_batch_steps_per_iteration,
            "random_seed": random_seed, "kmeans_plus_plus_num_retries": kmeans_plus_plus_num_retries,
        }  # fmt: skip
        self._set_up(settings, model_dir, config, relative_tolerance, feature_columns)


class ExperimentalKMeans(_Clustering):
    """As tf.estimator.experimental has it: its seed is called otherwise."""

    def __init__(
        self, num_clusters: Any, model_dir: Any = None, initial_clusters: Any = kmeans.RANDOM_INIT,
        distance_metric: str = kmeans.SQUARED_EUCLIDEAN_DISTANCE, seed: Any = None, use_mini_batch: bool = True,
        mini_batch_steps_per_iteration: int = 1, kmeans_plus_plus_num_retries: int = 2, relative_tolerance: Any = None,
        config: Any = None, feature_columns: Any = None,
    ):  # fmt: skip
        settings = {
            "num_clusters": num_clusters, "initial_clusters": initial_clusters, "distance_metric": distance_metric,
            "use_mini_batch": use_mini_batch, "mini_batch_steps_per_iteration": mini_batch_steps_per_iteration,
            "random_seed": seed, "kmeans_plus_plus_num_retries": kmeans_plus_plus_num_retries,
        }  # fmt: skip
        self._set_up(settings, model_dir, config, relative_tolerance, feature_columns)
