"""CropAndResize: boxes cut from images, (N, H, W, C), and resized, with the gradients.

Boxes are (y1, x1, y2, x2) in units of the image's size minus one; a box may be flipped or reach outside, where the
crop takes the extrapolation value. Everything is computed in float32.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from toolkit.errors import OutOfRangeError
from toolkit.graph import dtypes
from toolkit.kernels.cpu.common import np, require, require_rank, require_room, shape_text, to_ints
from toolkit.kernels.registry import REAL, Compute, KernelNode, kernel
from toolkit.kernels.types import Array

_F = np.float32


@dataclass(frozen=True, slots=True)
class Samples:
    """Where the crops' pixels lie on one axis, [boxes, out].

    Attributes:
        inside: whether a position is in the image.
        low, high: the pixels around it (0 where outside); far: how far from low to high, float32.
        nearest: the nearest pixel.
        ratio: input pixels per crop pixel of a box of the image's size.
    """

    inside: Array
    low: Array
    high: Array
    far: Array
    nearest: Array
    ratio: Array


def samples(start: Array, end: Array, size: int, out: int) -> Samples:
    """The positions of `out` samples from `start` to `end` (the middle when it is one)."""
    extent = _F(size - 1)
    ratio = extent / _F(out - 1) if out > 1 else _F(0)
    if out > 1:
        step = (end - start) * extent / _F(out - 1)
        at = (start * extent)[:, None] + np.arange(out, dtype=_F) * step[:, None]
    else:
        at = (_F(0.5) * (start + end) * extent)[:, None]
    inside = (at >= 0) & (at <= extent)
    at = np.where(inside, at, _F(0))
    floor = np.floor(at)
    return Samples(
        inside,
        floor.astype(np.int64),
        np.ceil(at).astype(np.int64),
        at - floor,
        np.floor(at + _F(0.5)).astype(np.int64),
        ratio,
    )


def _check_boxes(boxes: Array, index: Array, batch: int) -> None:
    if index.size and (index.min() < 0 or index.max() >= batch):
        raise OutOfRangeError(f"box_index has values outside [0, {batch})")


def _check_shapes(boxes: Any, index: Any) -> None:
    require(
        np.ndim(boxes) == 2 and boxes.shape[1] == 4, f"boxes must have shape [num_boxes,4], got {shape_text(boxes)}"
    )
    require(
        np.ndim(index) == 1 and index.shape[0] == boxes.shape[0],
        f"box_ind must have one entry for each of the {boxes.shape[0]} boxes, got {shape_text(index)}",
    )


def check_crop(image: Any, boxes: Any, index: Any, crop: Array) -> tuple[int, int]:
    """Height and width of crops.

    Raises:
        InvalidArgumentError: images, boxes or sizes are none.
    """
    require_rank(image, 4, "input image")
    require(min(image.shape[1:3]) > 0, f"image dimensions must be positive, got {shape_text(image)}")
    require(np.ndim(crop) == 1 and np.size(crop) == 2, f"crop_size must have two elements, got {shape_text(crop)}")
    height, width = to_ints(crop)
    require(height > 0 and width > 0, f"crop dimensions must be positive, got {height} x {width}")
    _check_shapes(boxes, index)
    return height, width


def check_crop_of_image(grads: Any, boxes: Any, index: Any, image_size: Array) -> tuple[int, int, int, int]:
    """The shape of the images that crops were cut from.

    Raises:
        InvalidArgumentError: it is none, or gradients or boxes do not fit.
    """
    require_rank(grads, 4, "grads image")
    require(min(grads.shape[1:3]) > 0, f"grads dimensions must be positive, got {shape_text(grads)}")
    require(
        np.ndim(image_size) == 1 and np.size(image_size) == 4,
        f"image_size must have four elements, got {shape_text(image_size)}",
    )
    batch, height, width, channels = to_ints(image_size)
    shape = batch, height, width, channels
    require(min(height, width) > 0, f"image dimensions must be positive, got {list(shape)}")
    require(channels == grads.shape[3], f"image_size and grads are incompatible: {channels} and {grads.shape[3]}")
    require(boxes.shape[:1] == grads.shape[:1], f"boxes and grads have {boxes.shape[:1]} and {grads.shape[:1]} rows")
    _check_shapes(boxes, index)
    return shape


def check_crop_of_boxes(grads: Any, image: Any, boxes: Any, index: Any) -> None:
    """Refuse gradients that are none of crops of images.

    Raises:
        InvalidArgumentError: the shapes say so.
    """
    require_rank(grads, 4, "grads image")
    require(min(grads.shape[1:3]) > 0, f"grads dimensions must be positive, got {shape_text(grads)}")
    require_rank(image, 4, "input image")
    require(min(image.shape[1:3]) > 0, f"image dimensions must be positive, got {shape_text(image)}")
    require(image.shape[3] == grads.shape[3], f"image and grads have {image.shape[3]} and {grads.shape[3]} channels")
    require(boxes.shape[:1] == grads.shape[:1], f"boxes and grads have {boxes.shape[:1]} and {grads.shape[:1]} rows")
    _check_shapes(boxes, index)


def _corners(boxes: Array) -> tuple[Array, Array, Array, Array]:
    return boxes[:, 0], boxes[:, 1], boxes[:, 2], boxes[:, 3]


def crop_method(op: KernelNode) -> bool:
    """True for nearest.

    Raises:
        InvalidArgumentError: it is neither that nor bilinear.
    """
    method = op.text("method")
    require(method in ("bilinear", "nearest"), f"method must be 'bilinear' or 'nearest', not '{method}'")
    return method == "nearest"


@kernel("CropAndResize", types={"T": REAL})
def crop_and_resize(op: KernelNode) -> Compute:
    is_nearest = crop_method(op)
    outside = _F(op.attr("extrapolation_value"))

    def compute(image: Array, boxes: Array, index: Array, crop: Array) -> Array:
        height, width = check_crop(image, boxes, index, crop)
        _check_boxes(boxes, index, image.shape[0])
        require_room((len(boxes), height, width, image.shape[3]), _F)
        y1, x1, y2, x2 = _corners(boxes)
        rows = samples(y1, y2, image.shape[1], height)
        columns = samples(x1, x2, image.shape[2], width)
        example = index[:, None, None]

        def pixels(row: Array, column: Array) -> Array:
            return image[example, row[:, :, None], column[:, None, :]].astype(_F)

        if is_nearest:
            crops = pixels(rows.nearest, columns.nearest)
        else:
            far_y, far_x = rows.far[:, :, None, None], columns.far[:, None, :, None]
            top, bottom = (
                near + (pixels(row, columns.high) - near) * far_x
                for row, near in ((r, pixels(r, columns.low)) for r in (rows.low, rows.high))
            )
            crops = top + (bottom - top) * far_y
        inside = rows.inside[:, :, None] & columns.inside[:, None, :]
        return np.where(inside[..., None], crops, outside)

    return compute


@kernel("CropAndResizeGradImage", types={"T": [dtypes.float16, dtypes.float32, dtypes.float64]})
def gradient_of_image(op: KernelNode) -> Compute:
    is_nearest = crop_method(op)
    dtype = op.attr("T").numpy

    def compute(grads: Array, boxes: Array, index: Array, image_size: Array) -> Array:
        shape = check_crop_of_image(grads, boxes, index, image_size)
        _check_boxes(boxes, index, shape[0])
        y1, x1, y2, x2 = _corners(boxes)
        rows, columns = samples(y1, y2, shape[1], grads.shape[1]), samples(x1, x2, shape[2], grads.shape[2])
        weight = (rows.inside[:, :, None] & columns.inside[:, None, :])[..., None].astype(_F)
        out = np.zeros(shape, np.float64 if dtype == np.float64 else _F)
        if is_nearest:
            taps = [(rows.nearest, columns.nearest, weight)]
        else:
            far_y, far_x = rows.far[:, :, None, None], columns.far[:, None, :, None]
            taps = [
                (row, column, weight * by_y * by_x)
                for row, by_y in ((rows.low, 1 - far_y), (rows.high, far_y))
                for column, by_x in ((columns.low, 1 - far_x), (columns.high, far_x))
            ]
        for row, column, share in taps:
            np.add.at(out, (index[:, None, None], row[:, :, None], column[:, None, :]), grads * share)
        return out.astype(dtype)

    return compute


@kernel("CropAndResizeGradBoxes", types={"T": REAL})
def gradient_of_boxes(op: KernelNode) -> Compute:
    require(op.text("method") == "bilinear", "method must be 'bilinear'")

    def compute(grads: Array, image: Array, boxes: Array, index: Array) -> Array:
        check_crop_of_boxes(grads, image, boxes, index)
        _check_boxes(boxes, index, image.shape[0])
        y1, x1, y2, x2 = _corners(boxes)
        height, width = grads.shape[1:3]
        rows, columns = samples(y1, y2, image.shape[1], height), samples(x1, x2, image.shape[2], width)

        def pixels(row: Array, column: Array) -> Array:
            return image[index[:, None, None], row[:, :, None], column[:, None, :]].astype(_F)

        top_left, top_right = pixels(rows.low, columns.low), pixels(rows.low, columns.high)
        bottom_left, bottom_right = pixels(rows.high, columns.low), pixels(rows.high, columns.high)
        far_y, far_x = rows.far[:, :, None, None], columns.far[:, None, :, None]
        inside = (rows.inside[:, :, None] & columns.inside[:, None, :])[..., None]
        by_y = (1 - far_x) * (bottom_left - top_left) + far_x * (bottom_right - top_right)
        by_x = (1 - far_y) * (top_right - top_left) + far_y * (bottom_right - bottom_left)
        # per crop row and per crop column, what a move of the sampled position changes
        along_y = np.where(inside, grads * by_y, _F(0)).sum(axis=(2, 3))
        along_x = np.where(inside, grads * by_x, _F(0)).sum(axis=(1, 3))
        parts: list[Array] = []
        for along, out, size, scale in (
            (along_y, height, image.shape[1], rows.ratio),
            (along_x, width, image.shape[2], columns.ratio),
        ):
            extent = _F(size - 1)
            end = np.arange(out, dtype=_F) * scale if out > 1 else np.full(1, _F(0.5) * extent)
            parts.append(np.stack([(along * (extent - end)).sum(axis=1), (along * end).sum(axis=1)], axis=1))
        return np.stack([parts[0][:, 0], parts[1][:, 0], parts[0][:, 1], parts[1][:, 1]], axis=1).astype(_F)

    return compute
