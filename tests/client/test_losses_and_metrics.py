"""Losses and metrics: what they are over several batches, and one line for arguments that do not fit."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

from tests import tolerance
from toolkit import client as gm
from toolkit.client import metrics
from toolkit.client.losses import weighted
from toolkit.errors import GraphError
from toolkit.graph.metagraph import GraphKeys
from toolkit.runtime.session import Session


def run_batches(make: Callable[[gm.Tensor, gm.Tensor], tuple[gm.Tensor, gm.Tensor]], seed: int) -> tuple[float, float]:
    """A metric's value after three batches, and its last update; and what it was fed is returned by `_batches`."""
    graph = gm.Graph()
    with graph.as_default():
        labels, predictions = gm.placeholder(gm.float32, [5]), gm.placeholder(gm.float32, [5])
        value, update = make(labels, predictions)
        start = gm.local_variables_initializer()
    with Session(graph) as session:
        session.run(start)
        last = 0.0
        for one, other in _batches(seed):
            last = session.run(update, {labels: one, predictions: other})
        return float(session.run(value)), float(last)


def _batches(seed: int) -> list[tuple[np.ndarray, np.ndarray]]:
    generator = np.random.default_rng(seed)
    return [(generator.integers(0, 2, 5).astype(np.float32), generator.random(5, np.float32)) for _ in range(3)]


@pytest.mark.parametrize("seed", range(3))
def test_a_metric_is_of_all_batches(seed: int) -> None:
    labels, predictions = (np.concatenate(parts).astype(np.float64) for parts in zip(*_batches(seed), strict=True))
    value, last = run_batches(metrics.mean_squared_error, seed)
    wanted = np.mean((labels - predictions) ** 2)
    assert value == last == pytest.approx(wanted, rel=tolerance.gamma(len(labels) + 4, np.float32))


@pytest.mark.parametrize("seed", range(3))
def test_counts_are_of_all_batches(seed: int) -> None:
    labels, predictions = (np.concatenate(parts) for parts in zip(*_batches(seed), strict=True))
    found = run_batches(lambda x, y: metrics.precision(x, gm.ops.greater(y, 0.5)), seed)
    said = predictions > 0.5
    wanted = (said & (labels > 0)).sum() / said.sum() if said.any() else 0.0
    assert found == (pytest.approx(wanted, rel=tolerance.gamma(1, np.float32)),) * 2


def test_variables_of_metrics_are_local_and_found() -> None:
    with gm.Graph().as_default() as graph:
        value, update = metrics.accuracy([1], [1], metrics_collections="m", updates_collections=["u", "w"])
    assert graph.get_collection("m") == [value]
    assert graph.get_collection("u") == graph.get_collection("w") == [update]
    found = graph.get_collection(GraphKeys.METRIC_VARIABLES)
    assert [v.name for v in found] == ["accuracy/total:0", "accuracy/count:0"]
    assert graph.get_collection(GraphKeys.LOCAL_VARIABLES) == found
    assert not graph.get_collection(GraphKeys.TRAINABLE_VARIABLES)


@pytest.mark.parametrize(
    ("make", "error", "message"),
    [
        (lambda x, y: weighted.mean_squared_error(x, y, reduction="most"), ValueError, "reduction: .* got 'most'"),
        (lambda x, y: weighted.mean_squared_error(x, None), ValueError, "predictions is needed"),
        (lambda x, y: weighted.mean_squared_error(x, gm.zeros([5])), GraphError, r"shape \[5\] and .* \[4\]"),
        (lambda x, y: weighted.mean_squared_error(x, y, gm.zeros([3])), GraphError, "axis 0 they have sizes 3 and 4"),
        (lambda x, y: weighted.mean_squared_error(x, y, gm.zeros([2, 4])), GraphError, "2 and 1 dimensions"),
        (lambda x, y: weighted.cosine_distance(x, y), ValueError, "axis is needed"),
        (lambda x, y: weighted.cosine_distance(x, y, axis=0, dim=0), ValueError, "dim is the older name of axis"),
        (lambda x, y: metrics.auc(x, y, curve="DET"), ValueError, "curve: expected 'ROC' or 'PR', got 'DET'"),
        (lambda x, y: metrics.auc(x, y, summation_method="sum"), ValueError, "summation_method: .* got 'sum'"),
        (lambda x, y: metrics.sensitivity_at_specificity(x, y, 1.5), ValueError, "expected a number from 0 to 1"),
        (lambda x, y: metrics.average_precision_at_k(x, y, 0), ValueError, "k: expected a number from 1 on, got 0"),
        (lambda x, y: metrics.true_positives(x, y, gm.zeros([2, 4, 1])), GraphError, "3 dimensions"),
    ],
)  # fmt: skip
def test_arguments_that_do_not_fit_are_one_line(
    make: Callable[[gm.Tensor, gm.Tensor], object], error: type[Exception], message: str
) -> None:
    with gm.Graph().as_default(), pytest.raises(error, match=message) as caught:
        make(gm.placeholder(gm.float32, [4]), gm.placeholder(gm.float32, [4]))
    assert "\n" not in str(caught.value)
