"""Box proposals against TensorFlow's parts: its own kernel of the op runs on GPUs only."""

from __future__ import annotations

import math
from types import ModuleType
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests import tolerance
from tests.kernels.op_suite import Case, run_ours, sample
from toolkit.errors import OpError

pytestmark = pytest.mark.tensorflow

F = np.float32


def inputs(seed: int = 0, threshold: float = 0.5, most: int = 40, least: float = 1.0) -> list[Any]:
    """Two images, 4 x 3 places, 5 anchors."""
    corners = sample("float32", (4, 3, 5, 2), 0, 40, seed)
    anchors = np.concatenate([corners, corners + sample("float32", (4, 3, 5, 2), 1, 25, seed + 1)], axis=-1)
    info = F([[50, 60, 1, 50, 60], [40, 30, 2, 40, 30]])
    scores, deltas = sample("float32", (2, 4, 3, 5), -3, 3, seed), sample("float32", (2, 4, 3, 20), -1, 6, seed)
    return [scores, deltas, info, anchors.reshape(4, 3, 20), F(threshold), np.int32(most), F(least)]


def expected(values: list[Any], count: int) -> tuple[Any, Any]:
    """Box by box in Python; what overlaps is TensorFlow's word."""
    import tensorflow as tf

    scores, deltas, info, anchors, threshold, most, least = values
    boxes, best = np.zeros((2, count, 4), F), np.zeros((2, count), F)
    for image, (height, width, scale, *_) in enumerate(info):
        order = sorted(range(scores[image].size), key=lambda i: -scores[image].reshape(-1)[i])[: int(most)]
        found: list[tuple[Any, float]] = []
        for place in order:
            y1, x1, y2, x2 = anchors.reshape(-1, 4)[place].astype(float)
            dy, dx, dh, dw = deltas[image].reshape(-1, 4)[place].astype(float)
            h, w = y2 - y1, x2 - x1
            cy, cx = y1 + h / 2 + h * dy, x1 + w / 2 + w * dx
            h, w = (n * math.exp(min(d, math.log(62.5))) for n, d in ((h, dh), (w, dw)))
            y1, y2 = (min(max(v, 0), height) for v in (cy - h / 2, cy + h / 2))
            x1, x2 = (min(max(v, 0), width) for v in (cx - w / 2, cx + w / 2))
            if min(y2 - y1, x2 - x1) >= least * scale:
                found.append(([y1, x1, y2, x2], scores[image].reshape(-1)[place]))
        if not found:
            continue
        corners, values_of = F([f[0] for f in found]), F([f[1] for f in found])
        kept = tf.image.non_max_suppression(corners, values_of, count, float(threshold)).numpy()
        boxes[image, : len(kept)], best[image, : len(kept)] = corners[kept], values_of[kept]
    return boxes, best


@settings(max_examples=20, deadline=None, print_blob=True)
@given(
    seed=st.integers(0, 500),
    threshold=st.sampled_from([0.0, 0.3, 0.7, 1.0]),
    most=st.sampled_from([1, 7, 40, 500]),
    least=st.sampled_from([0.0, 3.0, 15.0, 99.0]),
    count=st.sampled_from([1, 6, 80]),
)
def test_proposals(tf: ModuleType, seed: int, threshold: float, most: int, least: float, count: int) -> None:
    values = inputs(seed, threshold, most, least)
    boxes, best = run_ours(Case("GenerateBoundingBoxProposals", values, {"post_nms_topn": count}))
    wanted, scores = expected(values, count)
    np.testing.assert_array_equal(best, scores)
    # corners of boxes: an exponential, and sums and products with numbers as large as the picture
    tolerance.assert_within(boxes, wanted, 2 * tolerance.gamma(8 + 6) * max(1.0, float(np.abs(wanted).max(initial=0))))


@pytest.mark.parametrize("place", range(7))
def test_refused(place: int) -> None:
    values = inputs()
    values[place] = [values[0][0], values[1][..., :8], values[2][:, :4], values[3][..., :8], F(1.5), np.int32(0),
                     F([1])][place]  # fmt: skip
    with pytest.raises(OpError):
        run_ours(Case("GenerateBoundingBoxProposals", values))


def test_refused_count() -> None:
    with pytest.raises(OpError):
        run_ours(Case("GenerateBoundingBoxProposals", inputs(), {"post_nms_topn": 0}))
