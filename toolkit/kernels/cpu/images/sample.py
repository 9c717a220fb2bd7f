"""Random crops that keep enough of an object: SampleDistortedBoundingBox and its relatives."""

# numpy's overloads answer arrays typed Any with Unknown
# pyright: reportUnknownVariableType=false, reportUnknownMemberType=false, reportUnknownArgumentType=false

from __future__ import annotations

from typing import Any, NamedTuple

from toolkit.errors import InvalidArgumentError
from toolkit.graph import dtypes
from toolkit.kernels.context import StepContext
from toolkit.kernels.cpu.common import np, require, require_scalar, shape_text
from toolkit.kernels.cpu.random.basic import guarded
from toolkit.kernels.cpu.random.stateless import from_seed
from toolkit.kernels.random.philox import WordStream
from toolkit.kernels.registry import SIGNED, Compute, KernelNode, Kind, kernel
from toolkit.kernels.types import Array

_TYPES = {"T": SIGNED | {dtypes.uint8}}
_F = np.float32


class _Rectangle(NamedTuple):
    left: int
    top: int
    right: int
    bottom: int

    @property
    def area(self) -> int:
        return (self.right - self.left) * (self.bottom - self.top)

    def shared(self, other: _Rectangle) -> int:
        """The area of the intersection."""
        width = min(self.right, other.right) - max(self.left, other.left)
        height = min(self.bottom, other.bottom) - max(self.top, other.top)
        return width * height if width >= 0 and height >= 0 else 0


def _round(value: Any) -> int:
    """To the nearest, ties to even, as lrintf in an int: the lower half of its 64 bits, 0 where it has not so many."""
    rounded = np.rint(_F(value))
    if not abs(rounded) < 2.0**63:
        return 0
    return (int(rounded) + 2**31) % 2**32 - 2**31


def _random_crop(width: int, height: int, least: Any, most: Any, ratio: Any, words: WordStream) -> _Rectangle | None:
    """A rectangle of a random size with the given width / height, or None when there is none with such an area.

    Args:
        least, most: areas as fractions of the image.
    """
    if most <= 0 or ratio <= 0 or width <= 0 or height <= 0 or least > most:
        return None
    smallest, largest = _F(_F(least * _F(width)) * _F(height)), _F(_F(most * _F(width)) * _F(height))
    crop = _round(np.sqrt(_F(smallest / ratio)))
    tallest = _round(np.sqrt(_F(largest / ratio)))
    if _round(_F(tallest) * ratio) > width:
        tallest = int((width + 0.5 - float(_F(0.0000001))) / float(ratio))
    tallest = min(tallest, height)
    crop = min(crop, tallest)
    if crop < tallest:
        crop += words.uniform32(tallest - crop + 1)
    wide = _round(_F(crop) * ratio)
    if _F(wide * crop) < smallest:  # rounding may have made it a little too small
        crop += 1
        wide = _round(_F(crop) * ratio)
    if _F(wide * crop) > largest:
        crop -= 1
        wide = _round(_F(crop) * ratio)
    area = _F(wide * crop)
    if area < smallest or area > largest or not 0 < wide <= width or not 0 < crop <= height:
        return None
    top = words.uniform32(height - crop) if crop < height else 0
    left = words.uniform32(width - wide) if wide < width else 0
    return _Rectangle(left, top, left + wide, top + crop)


def _covers(crop: _Rectangle, boxes: list[_Rectangle], least: Any) -> bool:
    """Whether the crop has at least that fraction of one of the boxes."""
    if crop.area < 1:
        return False
    return any(box.area >= 1 and _F(crop.shared(box)) / _F(box.area) >= least for box in boxes)


class _Sampler:
    """The attributes of a node, checked."""

    def __init__(self, op: KernelNode):
        self.attempts: int = op.attr("max_attempts")
        self.whole_image: bool = op.attr("use_image_if_no_bounding_boxes")
        self.ratios = [_F(v) for v in op.attr("aspect_ratio_range")]
        self.areas = [_F(v) for v in op.attr("area_range")]
        for what, values in (("Aspect ratio range", self.ratios), ("Area range", self.areas)):
            if len(values) != 2:
                raise InvalidArgumentError(f"{what} field must specify 2 dimensions", node=op.name)
            if not all(value > 0 for value in values):
                raise InvalidArgumentError(f"{what} must be non-negative: {values}", node=op.name)
        if not all(value <= 1 for value in self.areas):
            raise InvalidArgumentError(f"Area range must be less then or equal to 1.0: {self.areas}", node=op.name)
        if self.attempts <= 0:
            raise InvalidArgumentError(f"Max attempts must be non-negative: {self.attempts}", node=op.name)

    def boxes(self, size: Array, boxes: Array) -> tuple[int, int, list[_Rectangle]]:
        """Height, width, and the boxes in pixels."""
        require(size.shape == (3,), f"image_size must contain 3 elements, not shape {shape_text(size)}")
        height, width = int(size[0]), int(size[1])
        require(0 <= height < 2**31 - 1 and 0 <= width < 2**31 - 1, "image height and width must fit int32")
        require(
            boxes.ndim == 3 and boxes.shape[2] == 4,
            f"input boxes must be 3-dimensional [batch, num_boxes, coords]: {shape_text(boxes)}",
        )
        require(((boxes >= 0) & (boxes <= 1)).all(), "All bounding box coordinates must be in [0.0, 1.0]")
        scaled = (boxes.reshape(-1, 4) * np.array([height, width, height, width], np.float32)).astype(np.int32)
        found = [_Rectangle(x0, y0, x1, y1) for y0, x0, y1, x1 in scaled.tolist()]
        if not found:
            require(
                self.whole_image,
                "No bounding boxes provided as input. One must enable use_image_if_no_bounding_boxes if you wish to "
                "not provide any bounding boxes.",
            )
            found = [_Rectangle(0, 0, width, height)]
        return height, width, found

    def sample(self, size: Array, boxes: Array, covered: Any, words: WordStream) -> tuple[Array, Array, Array]:
        """begin [3], size [3] for Slice, and the box [1, 1, 4] as fractions."""
        height, width, found = self.boxes(size, boxes)
        crop = _Rectangle(0, 0, width, height)
        for _ in range(self.attempts):
            point = np.uint32(words.take(1)[0] & 0x7FFFFF | 127 << 23).view(np.float32) - _F(1)
            ratio = _F(_F(point * _F(self.ratios[1] - self.ratios[0])) + self.ratios[0])
            tried = _random_crop(width, height, self.areas[0], self.areas[1], ratio, words)
            if tried is not None and _covers(tried, found, covered):
                crop = tried
                break
        dtype = size.dtype
        begin = np.array([crop.top, crop.left, 0]).astype(dtype)
        extent = np.array([crop.bottom - crop.top, crop.right - crop.left, -1]).astype(dtype)
        edges = np.array([crop.top, crop.left, crop.bottom, crop.right], np.float32)
        with np.errstate(all="ignore"):
            box = edges / np.array([height, width, height, width], np.float32)
        return begin, extent, box.reshape(1, 1, 4)


def _covered(value: Any) -> Any:
    require(value > 0, f"Min object covered must be non-negative: {value}")
    return _F(value)


@kernel("SampleDistortedBoundingBox", "SampleDistortedBoundingBoxV2", types=_TYPES, kind=Kind.STATEFUL)
def sample_distorted_bounding_box(op: KernelNode) -> Compute:
    sampler, generator = _Sampler(op), guarded(op)
    fixed = _covered(op.attr("min_object_covered")) if op.op == "SampleDistortedBoundingBox" else None

    def compute(step: StepContext, size: Array, boxes: Array, least: Array | None = None) -> Any:
        if least is not None:
            require_scalar(least, "min_object_covered")
        covered = fixed if least is None else _covered(least)
        words = WordStream(generator(step).reserve(sampler.attempts))
        return sampler.sample(size, boxes, covered, words)

    return compute


@kernel("StatelessSampleDistortedBoundingBox", types=_TYPES)
def stateless_sample_distorted_bounding_box(op: KernelNode) -> Compute:
    sampler = _Sampler(op)

    def compute(size: Array, boxes: Array, least: Array, seed: Array) -> Any:
        require_scalar(least, "min_object_covered")
        return sampler.sample(size, boxes, _covered(least), WordStream(from_seed(seed)))

    return compute
