"""What the metrics of tf.contrib refuse, and what they are where it is known by hand."""

from __future__ import annotations

from typing import Any

import pytest

from toolkit.client.construction.graph import Graph
from toolkit.client.metrics import agreement
from toolkit.client.variables.by_collection import variables_initializer
from toolkit.graph.metagraph import GraphKeys
from toolkit.runtime.session import Session

BAD: dict[str, tuple[Any, str]] = {
    "recall": (lambda: agreement.precision_at_recall([True], [0.5], 1.5), "target_recall"),
    "precision": (lambda: agreement.recall_at_precision([True], [0.5], -0.5), "precision"),
    "classes": (lambda: agreement.cohen_kappa([0], [0], 1), "num_classes: expected at least 2"),
    "curve": (lambda: agreement.streaming_curve_points([True], [0.5], curve="AUC"), "'ROC' or 'PR'"),
}


@pytest.mark.parametrize("what", BAD)
def test_what_cannot_be_is_told(what: str) -> None:
    code, message = BAD[what]
    with Graph().as_default(), pytest.raises(ValueError, match=message):
        code()


@pytest.mark.parametrize(
    ("labels", "predicted", "kappa"),
    [([0, 1, 1, 0], [0, 1, 1, 0], 1.0), ([0, 1, 0, 1], [0, 0, 1, 1], 0.0), ([0, 1, 1, 0], [1, 0, 0, 1], -1.0)],
)
def test_kappa_is_one_when_all_agree_and_zero_by_chance(labels: Any, predicted: Any, kappa: float) -> None:
    with Graph().as_default() as graph:
        value, update = agreement.cohen_kappa(labels, predicted, 2)
        with Session(graph) as session:
            session.run(variables_initializer(graph.get_collection(GraphKeys.LOCAL_VARIABLES)))
            assert session.run(value) == 0.0, "nothing was seen"
            assert session.run(update) == kappa == session.run(value)
