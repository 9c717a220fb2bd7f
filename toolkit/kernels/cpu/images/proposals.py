"""Regions where objects may be: anchors moved by what a network says, the best of them without overlaps.

TensorFlow has this kernel for GPUs only; the meaning is that of its kernel there.
"""

# numpy's overloads answer arrays typed Any with Unknown
# pyright: reportUnknownVariableType=false, reportUnknownMemberType=false, reportUnknownArgumentType=false

from __future__ import annotations

import math
from typing import Any

from toolkit.errors import OutOfRangeError
from toolkit.kernels.cpu.common import np, require, require_scalar, shape_text
from toolkit.kernels.cpu.images.nms import box_overlap, suppress
from toolkit.kernels.registry import Compute, KernelNode, kernel
from toolkit.kernels.types import Array

F32 = np.float32
LARGEST = F32(math.log(1000 / 16))  # of the logarithm of how much an anchor may grow


def _moved(anchors: Array, deltas: Array) -> Array:
    """float32 [n, 4] corners (y, x, y, x) of anchors whose centres and sizes change by deltas (dy, dx, dh, dw)."""
    size = anchors[:, 2:] - anchors[:, :2]
    centre = anchors[:, :2] + F32(0.5) * size + size * deltas[:, :2]
    half = F32(0.5) * (size * np.exp(np.minimum(deltas[:, 2:], LARGEST)))
    return np.concatenate([centre - half, centre + half], axis=1)


def check_proposals(
    scores: Any, deltas: Any, info: Any, anchors: Any, threshold: Array, most: Array, least: Array
) -> None:
    """Refuse what is not the output of a network for a number of images, with anchors for all.

    Raises:
        InvalidArgumentError, OutOfRangeError: a shape or a number is wrong.
    """
    require(scores.ndim == 4, f"scores must be 4-D, got shape {shape_text(scores)}")
    require(deltas.size == 4 * scores.size, f"there must be four deltas for each score, got {shape_text(deltas)}")
    require(info.shape == (scores.shape[0], 5), f"image_info must be [{scores.shape[0]}, 5], got {shape_text(info)}")
    if anchors.ndim < 3 or scores.shape[3] == 0 or anchors.shape[2] // scores.shape[3] != 4:
        raise OutOfRangeError(f"Box dimensions need to be 4: anchors of shape {shape_text(anchors)}")
    require(
        anchors.size == 4 * math.prod(scores.shape[1:]),
        f"there must be an anchor for each score, got {shape_text(anchors)}",
    )
    for name, value in (("nms_threshold", threshold), ("pre_nms_topn", most), ("min_size", least)):
        require_scalar(value, name)
    require(0 <= threshold <= 1, f"nms_threshold should be between 0 and 1. Got {threshold}")
    require(most > 0, f"pre_nms_topn should be greater than 0, got {most}")


@kernel("GenerateBoundingBoxProposals")
def generate_proposals(op: KernelNode) -> Compute:
    """Of each image the boxes [post_nms_topn, 4] and their scores, filled up with zeros.

    Inputs: scores [images, height, width, anchors], deltas with four for each score, image_info [images, 5] (height,
    width, scale first), anchors [height, width, 4 * anchors].
    """
    count: int = op.attr("post_nms_topn")
    require(count > 0, f"post_nms_topn can't be 0 or less, got {count}")

    def compute(
        scores: Array, deltas: Array, info: Array, anchors: Array, threshold: Array, most: Array, least: Array
    ) -> tuple[Array, Array]:
        check_proposals(scores, deltas, info, anchors, threshold, most, least)
        places = math.prod(scores.shape[1:])
        boxes, best = np.zeros((len(scores), count, 4), F32), np.zeros((len(scores), count), F32)
        flat, moves = scores.reshape(len(scores), places), deltas.reshape(len(scores), places, 4)
        for image, (height, width, scale, *_) in enumerate(info):
            order = np.argsort(-flat[image], kind="stable")[: int(most)]
            found = _moved(anchors.reshape(-1, 4)[order], moves[image, order])
            found = np.clip(found, 0, [height, width, height, width]).astype(F32)
            kept = (found[:, 2:] - found[:, :2]).min(axis=1, initial=np.inf) >= least * scale
            found, values = found[kept], flat[image, order][kept]
            chosen = suppress(values, count, box_overlap(found), float(threshold), -np.inf)
            boxes[image, : len(chosen)], best[image, : len(chosen)] = found[chosen], values[chosen]
        return boxes, best

    return compute
