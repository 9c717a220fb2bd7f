"""Boxes in pictures: [y1, x1, y2, x2], chosen, drawn, cut out."""

from __future__ import annotations

from typing import Any, NamedTuple

from toolkit.client import ops
from toolkit.client.arrays import array_ops
from toolkit.client.construction.convert import convert_to_tensor
from toolkit.client.construction.scopes import name_scope
from toolkit.client.construction.tensor import Tensor, TensorLike
from toolkit.client.flow import functional_ops
from toolkit.graph import dtypes


class SampleDistortedBoundingBoxV2(NamedTuple):
    """A part of a picture: where it begins and how large it is, for slices, and its box."""

    begin: Tensor
    size: Tensor
    bboxes: Tensor


class CombinedNonMaxSuppression(NamedTuple):
    """What is left of boxes of many classes, and how much of it is valid."""

    nmsed_boxes: Tensor
    nmsed_scores: Tensor
    nmsed_classes: Tensor
    valid_detections: Tensor


_LOWEST = float("-inf")


def non_max_suppression(
    boxes: TensorLike, scores: TensorLike, max_output_size: TensorLike, iou_threshold: TensorLike = 0.5,
    score_threshold: TensorLike = _LOWEST, name: str | None = None,
) -> Tensor:  # fmt: skip
    """The numbers of the best boxes, [n], none of which overlaps a better one too much.

    Args:
        boxes: [boxes, 4].
        scores: [boxes].
        max_output_size: at most so many.
        iou_threshold: intersection over union above which a box is left out.
    """
    with name_scope(name, "non_max_suppression"):
        overlap = convert_to_tensor(iou_threshold, name="iou_threshold")
        least = convert_to_tensor(score_threshold, name="score_threshold")
        return ops.non_max_suppression_v3(boxes, scores, max_output_size, overlap, least)


def non_max_suppression_with_scores(
    boxes: TensorLike, scores: TensorLike, max_output_size: TensorLike, iou_threshold: TensorLike = 0.5,
    score_threshold: TensorLike = _LOWEST, soft_nms_sigma: TensorLike = 0.0, name: str | None = None,
) -> tuple[Tensor, Tensor]:  # fmt: skip
    """As `non_max_suppression`, with the scores that are left; a sigma above 0 lowers scores instead of leaving out."""
    with name_scope(name, "non_max_suppression_with_scores"):
        overlap = convert_to_tensor(iou_threshold, name="iou_threshold")
        least = convert_to_tensor(score_threshold, name="score_threshold")
        sigma = convert_to_tensor(soft_nms_sigma, name="soft_nms_sigma")
        chosen, left, _ = ops.non_max_suppression_v5(
            boxes, scores, max_output_size, overlap, least, sigma, pad_to_max_output_size=False
        )
        return chosen, left


def non_max_suppression_overlaps(
    overlaps: TensorLike, scores: TensorLike, max_output_size: TensorLike, overlap_threshold: TensorLike = 0.5,
    score_threshold: TensorLike = _LOWEST, name: str | None = None,
) -> Tensor:  # fmt: skip
    """As `non_max_suppression`, by overlaps that are given, [boxes, boxes]."""
    with name_scope(name, "non_max_suppression_overlaps"):
        limit = convert_to_tensor(overlap_threshold, name="overlap_threshold")
        return ops.non_max_suppression_with_overlaps(overlaps, scores, max_output_size, limit, score_threshold)


def non_max_suppression_padded(
    boxes: Tensor, scores: Tensor, max_output_size: TensorLike, iou_threshold: TensorLike = 0.5,
    score_threshold: TensorLike = _LOWEST, pad_to_max_output_size: bool = False, name: str | None = None,
    sorted_input: bool = False, canonicalized_coordinates: bool = False, tile_size: int = 512,
) -> tuple[Tensor, Tensor]:  # fmt: skip
    """The numbers of the best boxes, and how many there are, of one picture or of a batch.

    Args:
        boxes: [..., boxes, 4].
        scores: [..., boxes].
        pad_to_max_output_size: the result is filled up with 0.
        sorted_input, canonicalized_coordinates, tile_size: hints for TensorFlow's way to compute it, without effect.

    Raises:
        ValueError: a batch without `pad_to_max_output_size`.
    """
    del sorted_input, canonicalized_coordinates, tile_size
    with name_scope(name, "non_max_suppression_padded"):
        boxes, scores = convert_to_tensor(boxes, name="boxes"), convert_to_tensor(scores, name="scores")
        rank = boxes.static_shape.rank
        overlap = convert_to_tensor(iou_threshold, name="iou_threshold")
        least = convert_to_tensor(score_threshold, name="score_threshold")
        if rank in (None, 2):
            return ops.non_max_suppression_v4(
                boxes, scores, max_output_size, overlap, least, pad_to_max_output_size=pad_to_max_output_size
            )
        if not pad_to_max_output_size:
            raise ValueError("boxes of several pictures need pad_to_max_output_size=True: they may choose as many each")

        def of_one(picture: Any) -> tuple[Tensor, Tensor]:
            return ops.non_max_suppression_v4(*picture, max_output_size, overlap, least, pad_to_max_output_size=True)

        batch = array_ops.shape(boxes)[:-2]
        count = array_ops.shape(boxes)[-2]
        flat = array_ops.reshape(boxes, array_ops.stack([-1, count, 4]))
        flat_scores = array_ops.reshape(scores, array_ops.stack([-1, count]))
        chosen, valid = functional_ops.map_fn(of_one, (flat, flat_scores), dtype=(dtypes.int32, dtypes.int32))
        shape = array_ops.concat([batch, array_ops.expand_dims(max_output_size, 0)], 0)
        return array_ops.reshape(chosen, shape), array_ops.reshape(valid, batch)


def combined_non_max_suppression(
    boxes: TensorLike, scores: TensorLike, max_output_size_per_class: TensorLike, max_total_size: TensorLike,
    iou_threshold: TensorLike = 0.5, score_threshold: TensorLike = _LOWEST, pad_per_class: bool = False,
    clip_boxes: bool = True, name: str | None = None,
) -> Any:  # fmt: skip
    """The best boxes of each class, for each picture of a batch: boxes, scores, classes, and how many are valid.

    Args:
        boxes: [batch, boxes, classes or 1, 4].
        scores: [batch, boxes, classes].
    """
    with name_scope(name, "combined_non_max_suppression"):
        overlap = convert_to_tensor(iou_threshold, dtypes.float32, name="iou_threshold")
        least = convert_to_tensor(score_threshold, dtypes.float32, name="score_threshold")
        total = convert_to_tensor(max_total_size)
        found = ops.combined_non_max_suppression(
            boxes, scores, max_output_size_per_class, total, overlap, least, pad_per_class=pad_per_class,
            clip_boxes=clip_boxes,
        )  # fmt: skip
        return CombinedNonMaxSuppression(*found)


def sample_distorted_bounding_box(
    image_size: TensorLike, bounding_boxes: TensorLike, seed: int | None = None, seed2: int | None = None,
    min_object_covered: TensorLike = 0.1, aspect_ratio_range: Any = None, area_range: Any = None,
    max_attempts: int | None = None, use_image_if_no_bounding_boxes: bool | None = None, name: str | None = None,
) -> Any:  # fmt: skip
    """A part of a picture, drawn by chance, that shows enough of an object: begin, size, and the box of it.

    Args:
        image_size: [height, width, channels].
        bounding_boxes: [batch, boxes, 4], from 0 to 1.
        min_object_covered: how much of a box it has to show.
        aspect_ratio_range, area_range: of the part; [0.75, 1.33] and [0.05, 1] where they are None.
    """
    with name_scope(name, "sample_distorted_bounding_box"):
        found = ops.sample_distorted_bounding_box_v2(
            image_size,
            bounding_boxes,
            min_object_covered,
            seed=seed or 0,
            seed2=seed2 or 0,
            aspect_ratio_range=[0.75, 1.33] if aspect_ratio_range is None else list(aspect_ratio_range),
            area_range=[0.05, 1] if area_range is None else list(area_range),
            max_attempts=100 if max_attempts is None else max_attempts,
            use_image_if_no_bounding_boxes=bool(use_image_if_no_bounding_boxes),
            name=name,
        )
        return SampleDistortedBoundingBoxV2(*found)


def draw_bounding_boxes(
    images: TensorLike, boxes: TensorLike, name: str | None = None, colors: TensorLike = None
) -> Tensor:
    """Pictures with the outlines of boxes, [batch, boxes, 4] from 0 to 1; `colors` [colors, channels]."""
    if colors is None:
        return ops.draw_bounding_boxes(images, boxes, name=name)
    return ops.draw_bounding_boxes_v2(images, boxes, colors, name=name)
