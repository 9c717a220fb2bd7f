"""Non-maximum suppression against TensorFlow."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import product
from types import ModuleType
from typing import Any

import numpy as np
import pytest

from tests.kernels.op_suite import Case, check, suite

pytestmark = pytest.mark.tensorflow


def boxes_of(n: int, seed: int = 0, dtype: Any = np.float32, *, flip: bool = True) -> Any:
    """Overlapping boxes; some are flipped or have no area."""
    rng = np.random.default_rng(seed)
    corner = rng.uniform(0, 0.7, (n, 2))
    boxes = np.concatenate([corner, corner + rng.uniform(0.1, 0.5, (n, 2))], axis=1)
    if flip:
        boxes[::5] = boxes[::5, [2, 3, 0, 1]]
        boxes[::7, 2] = boxes[::7, 0]
    return boxes.astype(dtype)


def scores_of(n: int, seed: int = 1, dtype: Any = np.float32) -> Any:
    return (np.random.default_rng(seed).permutation(n) / n).astype(dtype)


I = np.int32
BAD = "INVALID_ARGUMENT"


def cases() -> Iterator[Case]:
    for n, limit, iou in product((1, 30, 60), (0, 4, 100), (0.0, 0.3, 0.6, 1.0)):
        boxes, scores = boxes_of(n), scores_of(n)
        tag = f"{n}-{limit}-{iou}"
        yield Case("NonMaxSuppression", [boxes, scores, I(limit)], {"iou_threshold": iou}, id=tag)
        for dtype in (np.float32, np.float16):
            name = f"{np.dtype(dtype).name}-{tag}"
            data = [boxes.astype(dtype), scores.astype(dtype), I(limit)]
            threshold, least = dtype(iou), dtype(0.2)
            more = {"T_threshold": np.dtype(dtype)}
            yield Case("NonMaxSuppressionV2", [*data, threshold], more, id=name)
            yield Case("NonMaxSuppressionV3", [*data, threshold, least], more, id=name)
            for pad in (False, True):
                attrs = {"pad_to_max_output_size": pad}
                yield Case("NonMaxSuppressionV4", [*data, threshold, least], more | attrs, id=f"{name}-{pad}")
                for sigma in (0.0, 0.5):
                    yield Case("NonMaxSuppressionV5", [*data, threshold, least, dtype(sigma)], attrs,
                               id=f"{name}-{pad}-{sigma}")  # fmt: skip
    many, best = boxes_of(2000), scores_of(2000)  # looked at part by part
    for limit, iou in product((20, 150, 2000), (0.1, 0.5, 0.95)):
        thresholds = [np.float32(iou), np.float32(0.05)]
        yield Case("NonMaxSuppressionV3", [many, best, I(limit), *thresholds], id=f"many-{limit}-{iou}")
        overlaps = np.random.default_rng(2).random((700, 700), np.float32)  # not symmetric
        data = [overlaps, best[:700], I(limit), np.float32(0.9 + iou / 10), np.float32(0.05)]
        yield Case("NonMaxSuppressionWithOverlaps", data, id=f"many-{limit}-{iou}")
    boxes, scores = boxes_of(20), np.float32([0.5, 0.25] * 10)
    half, low, four = np.float32(0.5), np.float32(-1), I(4)
    yield Case("NonMaxSuppressionV3", [boxes, scores, I(20), half, low], id="ties")
    yield Case("NonMaxSuppressionV5", [boxes, scores, I(20), half, low, half], id="ties-soft")
    yield Case("NonMaxSuppressionV3", [boxes[:0], scores[:0], four, half, low], id="no-boxes")
    yield Case("NonMaxSuppressionV5", [boxes[:0], scores[:0], four, half, low, half], id="no-boxes")
    for op, rest in (
        ("NonMaxSuppressionV2", []),
        ("NonMaxSuppressionV3", [low]),
        ("NonMaxSuppressionV4", [low]),
        ("NonMaxSuppressionV5", [low, half]),
    ):
        yield Case(op, [boxes[0], scores, four, half, *rest], error=BAD, id="rank")
        yield Case(op, [boxes[:, :3], scores, four, half, *rest], error=BAD, id="columns")
        yield Case(op, [boxes, scores[:5], four, half, *rest], error=BAD, id="scores")
        yield Case(op, [boxes, scores, I([4]), half, *rest], error=BAD, id="limit-vector")
        yield Case(op, [boxes, scores, I(-1), half, *rest], error=BAD, id="limit-negative")
        yield Case(op, [boxes, scores, four, np.float32(1.5), *rest], error=BAD, id="iou")
        yield Case(op, [boxes, scores, four, np.float32([0.5]), *rest], error=BAD, id="iou-vector")
        if rest:
            yield Case(op, [boxes, scores, four, half, np.float32([0.5]), *rest[1:]], error=BAD, id="score-vector")
    yield Case("NonMaxSuppressionV5", [boxes, scores, four, half, low, np.float32(-0.5)], error=BAD, id="sigma")
    overlaps = np.random.default_rng(3).uniform(0, 2, (20, 20)).astype(np.float32)
    scores = scores_of(20)
    for limit, threshold, least in product((0, 3, 50), (0.5, 1.5), (-1.0, 0.4)):
        yield Case("NonMaxSuppressionWithOverlaps",
                   [overlaps, scores, I(limit), np.float32(threshold), np.float32(least)],
                   id=f"{limit}-{threshold}-{least}")  # fmt: skip
    yield Case("NonMaxSuppressionWithOverlaps", [overlaps[:5], scores, four, half, low], error=BAD)
    yield Case("NonMaxSuppressionWithOverlaps", [overlaps, scores[:5], four, half, low], error=BAD, id="scores")
    yield from combined()


def combined() -> Iterator[Case]:
    op, half = "CombinedNonMaxSuppression", np.float32(0.5)
    n, classes = 15, 3
    scores = scores_of(2 * n * classes).reshape(2, n, classes)
    for q, per_class, total, pad, clip in product((1, classes), (2, 20), (3, 50), (False, True), (False, True)):
        boxes = boxes_of(2 * n * q, flip=False).reshape(2, n, q, 4) * np.float32(1.3)
        for least in (0.0, 0.6):
            yield Case(op, [boxes, scores, I(per_class), I(total), np.float32(0.3), np.float32(least)],
                       {"pad_per_class": pad, "clip_boxes": clip},
                       id=f"{q}-{per_class}-{total}-{pad}-{clip}-{least}")  # fmt: skip
    boxes = boxes_of(2 * n).reshape(2, n, 1, 4)
    low = np.float32(0.1)
    yield Case(op, [boxes, scores, I(20), I(30), half, low], id="flipped")
    yield Case(op, [boxes[:0], scores[:0], I(20), I(30), half, low], id="no-examples")
    yield Case(op, [boxes[0], scores, I(2), I(3), half, low], error=BAD, id="rank")
    yield Case(op, [boxes, scores[0], I(2), I(3), half, low], error=BAD, id="rank-scores")
    yield Case(op, [boxes, scores[:, :4], I(2), I(3), half, low], error=BAD, id="count")
    yield Case(op, [boxes.repeat(2, 2), scores, I(2), I(3), half, low], error=BAD, id="classes")
    yield Case(op, [boxes, scores, I(0), I(3), half, low], error=BAD, id="per-class")
    yield Case(op, [boxes, scores, I(2), I(0), half, low], error=BAD, id="total")
    yield Case(op, [boxes, scores, I(2), I(3), np.float32(2), low], error=BAD, id="iou")


CASES = list(cases())


@suite(CASES)
def test_nms(case: Case, device: str, tf: ModuleType) -> None:
    check(case, device)
