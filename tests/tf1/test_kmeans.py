"""k-means: steps of small batches beside NumPy, centers that are drawn, and the estimators."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from toolkit import tensorflow as tf
from toolkit.tensorflow import modules

factorization = modules.module("contrib.factorization")
DRAWN = np.random.RandomState(4)
#: three groups that lie far from each other
POINTS = np.concatenate([DRAWN.randn(20, 3) + center for center in ([9, 0, 0], [0, 9, 0], [0, 0, 9])]).astype("f")
#: float32 sums of a few dozen numbers, over some steps
RTOL = 1e-4


def unit(x: Any) -> Any:
    return x / np.linalg.norm(x, axis=1, keepdims=True)


@pytest.mark.parametrize("cosine", [False, True])
@pytest.mark.parametrize("every", [1, 2, 3])
def test_small_batches(cosine: bool, every: int) -> None:
    start = POINTS[[0, 25, 45]]
    with tf.Graph().as_default(), tf.Session() as session:
        fed = tf.placeholder(tf.float32, [None, 3])
        made = factorization.KMeans(
            fed, 3, start, "cosine" if cosine else "squared_euclidean", use_mini_batch=True,
            mini_batch_steps_per_iteration=every,
        )  # fmt: skip
        _, _, _, there, begin, step = made.training_graph()
        variable = tf.global_variables()[0]
        session.run(tf.global_variables_initializer())
        session.run(begin, {fed: POINTS})
        assert session.run(there)
        centers = unit(start) if cosine else start
        updated, counts, left = centers.copy(), np.full(3, 1 if every == 1 else 0), every
        for at in range(7):
            batch = POINTS[at::7]
            session.run(step, {fed: batch})
            if every > 1:
                used = centers  # a step that publishes has looked for the nearest before
                if left <= 0:
                    left = every - 1
                    centers, counts = unit(updated) if cosine else updated.copy(), np.zeros(3)
                else:
                    left -= 1
            else:
                used = unit(updated) if cosine else updated
            points = unit(batch) if cosine else batch
            nearest = np.argmin(((points[:, None] - used) ** 2).sum(2), 1)
            for which in range(3):
                mine = points[nearest == which]
                counts[which] += len(mine)
                if len(mine):
                    updated[which] += (mine.sum(0) - len(mine) * updated[which]) / counts[which]
            shown = updated if every == 1 else centers
            np.testing.assert_allclose(session.run(variable), shown, rtol=RTOL, atol=RTOL)


@pytest.mark.parametrize("start", ["random", "kmeans_plus_plus"])
def test_centers_are_points(start: str) -> None:
    with tf.Graph().as_default(), tf.Session() as session:
        made = factorization.KMeans(tf.constant(POINTS), 3, start, random_seed=5)
        _, _, _, there, begin, _ = made.training_graph()
        centers = tf.global_variables()[0]
        session.run(tf.global_variables_initializer())
        session.run(begin)
        assert session.run(there)
        found = session.run(centers)
    assert all(np.any(np.all(center == POINTS, 1)) for center in found)
    if start == "kmeans_plus_plus":  # one of each group: the others are far away
        assert sorted(np.argmax(found, 1)) == [0, 1, 2]


def test_centers_come_of_several_batches() -> None:
    with tf.Graph().as_default(), tf.Session() as session:
        fed = tf.placeholder(tf.float32, [None, 3])
        _, _, _, there, begin, _ = factorization.KMeans(fed, 5, use_mini_batch=True).training_graph()
        session.run(tf.global_variables_initializer())
        for at, complete in ((0, False), (2, False), (4, True)):
            session.run(begin, {fed: POINTS[at : at + 2]})
            assert session.run(there) == complete
        assert session.run(tf.global_variables()[0]).shape == (5, 3)


def points() -> Any:
    return tf.train.limit_epochs(tf.constant(POINTS), num_epochs=1)


@pytest.mark.parametrize("kind", ["factorization", "estimator"])
def test_estimators(tmp_path: Path, kind: str) -> None:
    settings: dict[str, Any] = {"initial_clusters": "kmeans_plus_plus", "use_mini_batch": False}
    if kind == "factorization":
        model = factorization.KMeansClustering(3, str(tmp_path), random_seed=1, **settings)
    else:
        model = tf.estimator.experimental.KMeans(3, str(tmp_path), seed=1, relative_tolerance=1e-3, **settings)
    model.train(lambda: tf.constant(POINTS), steps=10)
    centers = model.cluster_centers()
    order = np.argmax(centers, 1)
    wanted = np.stack([POINTS[20 * group : 20 * group + 20].mean(0) for group in order])
    np.testing.assert_allclose(centers, wanted, rtol=RTOL, atol=RTOL)
    found = np.array(list(model.predict_cluster_index(points)))
    assert order[found].tolist() == [0] * 20 + [1] * 20 + [2] * 20
    apart = ((POINTS[:, None] - centers) ** 2).sum(2)
    np.testing.assert_allclose(np.array(list(model.transform(points))), apart, rtol=RTOL, atol=RTOL * apart.max())
    np.testing.assert_allclose(model.score(points), apart.min(1).sum(), rtol=RTOL)


def test_columns_and_dictionaries(tmp_path: Path) -> None:
    columns = {"b": POINTS[:, :1], "a": POINTS[:, 1:]}
    model = factorization.KMeansClustering(2, str(tmp_path / "a"), POINTS[[0, 30]])
    model.train(lambda: {key: tf.constant(value) for key, value in columns.items()}, steps=1)
    assert model.cluster_centers().shape == (2, 3)
    chosen = [tf.feature_column.numeric_column("b")]
    model = factorization.KMeansClustering(2, str(tmp_path / "b"), POINTS[[0, 30], :1], feature_columns=chosen)
    model.train(lambda: {key: tf.constant(value) for key, value in columns.items()}, steps=1)
    assert model.cluster_centers().shape == (2, 1)


def test_mistakes() -> None:
    with pytest.raises(ValueError, match="initial_clusters: expected one of random, kmeans_plus_plus, got 'near'"):
        factorization.KMeansClustering(2, initial_clusters="near")
    with pytest.raises(ValueError, match="distance_metric: expected one of squared_euclidean, cosine, got 'far'"):
        factorization.KMeans(POINTS, 2, distance_metric="far")
