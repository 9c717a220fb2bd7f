"""Non-maximum suppression: the boxes with the best scores that do not overlap better ones too much.

Boxes are (y1, x1, y2, x2) of any two opposite corners. Soft suppression (Bodla et al. 2017) lowers scores by
exp(-overlap^2 / (2 sigma)) instead of dropping boxes. Among equal scores the lower index comes first.
"""

from __future__ import annotations

import heapq
from collections.abc import Callable
from typing import Any

from toolkit.graph import dtypes
from toolkit.kernels.cpu.common import np, require, require_rank, require_scalar, shape_text
from toolkit.kernels.registry import Compute, KernelNode, kernel
from toolkit.kernels.types import Array

_F = np.float32
_TYPES = {"T": [dtypes.float16, dtypes.float32]}
#: candidates that are compared with each other at a time: the boxes that are wanted are mostly among the best, and with
#: up to so many pairs numpy's calls cost what one does
_BLOCK = 96
#: (some, others) -> the overlap of each with each, [some, others]
Overlap = Callable[[Array, Array], Array]


def box_overlap(boxes: Array) -> Overlap:
    """Intersection over union of float32 boxes [n, 4]; boxes without area overlap nothing."""
    low, high = np.minimum(boxes[:, :2], boxes[:, 2:]), np.maximum(boxes[:, :2], boxes[:, 2:])
    top, left, bottom, right = (np.ascontiguousarray(each[:, axis]) for each in (low, high) for axis in (0, 1))
    area = (bottom - top) * (right - left)
    all_real = bool(np.all(area > 0))

    def overlap(some: Array, others: Array) -> Array:
        one = some[:, None]
        shared = np.minimum(bottom[one], bottom[others])
        shared -= np.maximum(top[one], top[others])
        np.maximum(shared, _F(0), out=shared)
        across = np.minimum(right[one], right[others])
        across -= np.maximum(left[one], left[others])
        shared *= np.maximum(across, _F(0), out=across)
        union = np.add(area[one], area[others], out=across)
        union -= shared
        if all_real:
            return np.divide(shared, union, out=shared)
        real = (area[one] > 0) & (area[others] > 0)
        return np.where(real, shared / np.where(real, union, _F(1)), _F(0))

    return overlap


def suppress(scores: Array, limit: int, overlap: Overlap, threshold: float, least: float) -> Array:
    """The chosen indices, int32, best first; scores must be over `least`."""
    order = np.argsort(-scores, kind="stable")
    rest = order[scores[order] > least]
    chosen = np.empty(0, rest.dtype)
    for start in range(0, rest.size, _BLOCK):
        if chosen.size >= limit:
            break
        part = rest[start : start + _BLOCK]
        if chosen.size:
            part = part[~(overlap(chosen, part) > threshold).any(axis=0)]
        chosen = np.concatenate([chosen, part[_greedily(overlap(part, part) > threshold, limit - chosen.size)]])
    return chosen.astype(np.int32)


def _greedily(hits: Array, limit: int) -> list[int]:
    """Of candidates that come in order, each that no earlier one of them suppresses; hits [one, suppressed by it]."""
    dropped = np.zeros(len(hits), np.bool_)
    chosen: list[int] = []
    for one in range(len(hits)):
        if len(chosen) == limit:
            break
        if not dropped[one]:
            chosen.append(one)
            dropped |= hits[one]
    return chosen


def suppress_softly(scores: Array, limit: int, overlap: Overlap, least: float, sigma: float) -> tuple[Array, Array]:
    """The chosen indices and their lowered scores.

    A candidate's score is lowered by the boxes chosen since it was last looked at, once it comes up as the best.
    The iou threshold plays no part.
    """
    factor = _F(-0.5) / _F(sigma)
    heap: list[tuple[float, int, int]] = [
        (-float(score), i, 0) for i, score in enumerate(scores.astype(_F).tolist()) if score > least
    ]
    heapq.heapify(heap)
    chosen: list[int] = []
    kept: list[float] = []
    while heap and len(chosen) < limit:
        negative, i, seen = heapq.heappop(heap)
        (similar,) = overlap(np.array([i]), np.array(chosen[seen:], np.int64))
        weights = np.exp(factor * similar * similar)
        score = float(np.multiply.reduce(weights[::-1], initial=_F(-negative)))
        if score == -negative:
            chosen.append(i)
            kept.append(score)
        elif score > least:
            heapq.heappush(heap, (-score, i, len(chosen)))
    return np.array(chosen, np.int32), np.array(kept, _F)


def _limit(value: Array) -> int:
    require_scalar(value, "max_output_size")
    require(int(value) >= 0, f"max_output_size must be non-negative, got {int(value)}")
    return int(value)


def _threshold(value: Array, name: str = "iou_threshold") -> float:
    require_scalar(value, name)
    require(0 <= float(value) <= 1, f"{name} must be in [0, 1], got {float(value)}")
    return float(value)


def _check(boxes: Array, scores: Array) -> None:
    require_rank(boxes, 2, "boxes")
    require(boxes.shape[1] == 4, f"boxes must have 4 columns, got {shape_text(boxes)}")
    require_rank(scores, 1, "scores")
    require(
        scores.shape[0] == boxes.shape[0],
        f"scores has incompatible shape: {scores.shape[0]} scores, {boxes.shape[0]} boxes",
    )


def _pad(values: Array, size: int) -> Array:
    out = np.zeros(size, values.dtype)
    out[: values.size] = values
    return out


@kernel("NonMaxSuppression")
@kernel("NonMaxSuppressionV2", "NonMaxSuppressionV3", types=_TYPES)
def non_max_suppression(op: KernelNode) -> Compute:
    """The iou threshold is an attribute (V1) or an input; V3 has a least score too."""
    given = op.attr("iou_threshold") if op.op == "NonMaxSuppression" else None

    def compute(boxes: Array, scores: Array, limit: Array, *thresholds: Array) -> Array:
        count = _limit(limit)
        iou = _threshold(np.asarray(given) if given is not None else thresholds[0])
        least = -np.inf
        if len(thresholds) > 1:
            require_scalar(thresholds[1], "score_threshold")
            least = float(thresholds[1])
        _check(boxes, scores)
        wide = boxes.astype(_F)
        # a score of the lowest finite value is not over it
        floor = float(np.finfo(_F).min) if least == -np.inf and len(thresholds) < 2 else least
        return suppress(scores.astype(_F), count, box_overlap(wide), iou, floor)

    return compute


@kernel("NonMaxSuppressionV4", types=_TYPES)
def non_max_suppression_v4(op: KernelNode) -> Compute:
    """Adds how many were chosen, and padding with zeros."""
    pads = bool(op.attr("pad_to_max_output_size"))

    def compute(boxes: Array, scores: Array, limit: Array, iou: Array, least: Array) -> tuple[Array, Array]:
        count, threshold = _limit(limit), _threshold(iou)
        require_scalar(least, "score_threshold")
        _check(boxes, scores)
        chosen = suppress(scores.astype(_F), count, box_overlap(boxes.astype(_F)), threshold, float(least))
        return _pad(chosen, count) if pads else chosen, np.array(chosen.size, np.int32)

    return compute


@kernel("NonMaxSuppressionV5", types=_TYPES)
def non_max_suppression_v5(op: KernelNode) -> Compute:
    """Adds soft suppression (sigma over 0) and the scores."""
    pads = bool(op.attr("pad_to_max_output_size"))

    def compute(
        boxes: Array, scores: Array, limit: Array, iou: Array, least: Array, sigma: Array
    ) -> tuple[Array, Array, Array]:
        count, threshold = _limit(limit), _threshold(iou)
        require_scalar(least, "score_threshold")
        require_scalar(sigma, "soft_nms_sigma")
        require(float(sigma) >= 0, f"soft_nms_sigma must be non-negative, got {float(sigma)}")
        _check(boxes, scores)
        wide, overlap = scores.astype(_F), box_overlap(boxes.astype(_F))
        if float(sigma) > 0:
            chosen, kept = suppress_softly(wide, count, overlap, float(least), float(sigma))
        else:
            chosen = suppress(wide, count, overlap, threshold, float(least))
            kept = wide[chosen]
        valid = np.array(chosen.size, np.int32)
        kept = kept.astype(scores.dtype)
        return (_pad(chosen, count), _pad(kept, count), valid) if pads else (chosen, kept, valid)

    return compute


@kernel("NonMaxSuppressionWithOverlaps")
def non_max_suppression_with_overlaps(op: KernelNode) -> Compute:
    def compute(overlaps: Array, scores: Array, limit: Array, threshold: Array, least: Array) -> Array:
        require_scalar(limit, "max_output_size")
        require_scalar(threshold, "overlap_threshold")
        require_scalar(least, "score_threshold")
        require_rank(overlaps, 2, "overlaps")
        require(overlaps.shape[0] == overlaps.shape[1], f"overlaps must be a square matrix, got {shape_text(overlaps)}")
        require_rank(scores, 1, "scores")
        require(scores.shape[0] == overlaps.shape[0], "scores has incompatible shape")
        return suppress(
            scores, _limit(limit), lambda some, others: overlaps[others, some[:, None]], float(threshold), float(least)
        )

    return compute


@kernel("CombinedNonMaxSuppression")
def combined_non_max_suppression(op: KernelNode) -> Compute:
    """Suppression by class in each example, then the best of all classes, padded with zeros.

    boxes [batch, n, 1 or classes, 4], scores [batch, n, classes]; a single set of boxes serves all classes.
    """
    pad_per_class, clip = bool(op.attr("pad_per_class")), bool(op.attr("clip_boxes"))

    def one(boxes: Array, scores: Array, per_class: int, size: int, iou: float, least: float) -> tuple[Any, ...]:
        found: list[tuple[Array, Array, Array]] = []
        for label in range(scores.shape[1]):
            own = boxes[:, min(label, boxes.shape[1] - 1)]
            chosen = suppress(scores[:, label], min(per_class, len(own)), box_overlap(own), iou, least)
            found.append((own[chosen], scores[chosen, label], np.full(chosen.size, label, _F)))
        all_boxes, all_scores, labels = (np.concatenate(part) for part in zip(*found, strict=True))
        order = np.argsort(-all_scores, kind="stable")[:size]
        valid = order.size
        out_boxes, out_scores, out_labels = np.zeros((size, 4), _F), np.zeros(size, _F), np.zeros(size, _F)
        out_boxes[:valid] = np.clip(all_boxes[order], 0, 1) if clip else all_boxes[order]
        out_scores[:valid] = all_scores[order]
        out_labels[:valid] = labels[order]
        return out_boxes, out_scores, out_labels, valid

    def compute(
        boxes: Array, scores: Array, per_class: Array, total: Array, iou: Array, least: Array
    ) -> tuple[Array, ...]:
        require_rank(boxes, 4, "boxes")
        require_rank(scores, 3, "scores")
        require(
            boxes.shape[:2] == scores.shape[:2],
            f"boxes and scores must agree in two dimensions, got {shape_text(boxes)} and {shape_text(scores)}",
        )
        require(
            boxes.shape[2] in (1, scores.shape[2]),
            f"third dimension of boxes must be either 1 or num classes {scores.shape[2]}, got {boxes.shape[2]}",
        )
        require(boxes.shape[3] == 4, f"boxes must have 4 columns, got {shape_text(boxes)}")
        require_scalar(per_class, "max_size_per_class")
        require(int(per_class) > 0, "max_size_per_class must be positive")
        require_scalar(total, "max_total_size")
        require(int(total) > 0, f"max_total_size must be > 0, got {int(total)}")
        require_scalar(least, "score_threshold")
        threshold = _threshold(iou)
        size = int(total)
        if pad_per_class:
            size = min(size, int(per_class) * scores.shape[2])
        rows = [one(b, s, int(per_class), size, threshold, float(least)) for b, s in zip(boxes, scores, strict=True)]
        shapes = ((0, size, 4), (0, size), (0, size), (0,))
        types = (_F, _F, _F, np.int32)
        return tuple(
            np.array([row[i] for row in rows], t) if rows else np.zeros(shape, t)
            for i, (shape, t) in enumerate(zip(shapes, types, strict=True))
        )

    return compute
