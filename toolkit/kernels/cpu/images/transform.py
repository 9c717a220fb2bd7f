"""ImageProjectiveTransformV2/V3: each output pixel (x, y) takes the input at ((a0 x + a1 y + a2) / k,
(b0 x + b1 y + b2) / k) with k = c0 x + c1 y + 1; a transform is [a0, a1, a2, b0, b1, b2, c0, c1]."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from toolkit.graph import dtypes
from toolkit.kernels.cpu.common import np, require, require_rank, require_scalar, shape_text, to_ints
from toolkit.kernels.registry import Compute, KernelNode, kernel
from toolkit.kernels.types import Array

_F = np.float32
_TYPES = {
    dtypes.uint8, dtypes.int32, dtypes.int64, dtypes.float16, dtypes.bfloat16, dtypes.float32, dtypes.float64,
}  # fmt: skip


def _constant(at: Array, size: int) -> Array:
    return at


def _nearest(at: Array, size: int) -> Array:
    return np.clip(at, _F(0), _F(size - 1))


def _reflect(at: Array, size: int) -> Array:
    """... 1 0 | 0 1 2 | 2 1 ..."""
    if size <= 1:
        return np.zeros_like(at)
    period = _F(2 * size)
    below = at < 0
    low = np.where(at < -period, period * np.trunc(-at / period) + at, at)
    low = np.where(low < -size, low + period, -low - _F(1))
    high = at - period * np.trunc(at / period)
    high = np.where(high >= size, period - high - _F(1), high)
    return _nearest(np.where(below, low, np.where(at > size - 1, high, at)), size)


def _wrap(at: Array, size: int) -> Array:
    """... 1 2 | 0 1 2 | 0 1 ..."""
    if size <= 1:
        return np.zeros_like(at)
    period, extent = _F(size), _F(size - 1)
    low = at + period * (np.trunc(-at / extent) + _F(1))
    high = at - period * np.trunc(at / extent)
    return _nearest(np.where(at < 0, low, np.where(at > extent, high, at)), size)


_MODES: dict[str, Callable[[Array, int], Array]] = {
    "CONSTANT": _constant,
    "NEAREST": _nearest,
    "REFLECT": _reflect,
    "WRAP": _wrap,
}


def transform_methods(op: KernelNode) -> tuple[str, str]:
    """What lies outside of images, and how pixels between pixels are made.

    Raises:
        InvalidArgumentError: there are no such.
    """
    mode, interpolation = op.text("fill_mode"), op.text("interpolation")
    require(mode in _MODES, f"Invalid mode {mode}, expected REFLECT, WRAP, CONSTANT or NEAREST.")
    require(
        interpolation in ("NEAREST", "BILINEAR"),
        f"Invalid interpolation {interpolation}, expected NEAREST or BILINEAR.",
    )
    return mode, interpolation


def check_transform(images: Any, transforms: Any, size: Array, fill: Array | None) -> tuple[int, int]:
    """Height and width of the result.

    Raises:
        InvalidArgumentError: they are none, or there is no transform for each image.
    """
    require_rank(images, 4, "Input images")
    require(
        np.ndim(transforms) == 2 and (transforms.shape[0] in (images.shape[0], 1)) and transforms.shape[1] == 8,
        f"Input transform should be num_images x 8 or 1 x 8, got {shape_text(transforms)}",
    )
    require(np.ndim(size) == 1, f"output shape must be 1-dimensional, got {shape_text(size)}")
    require(np.size(size) == 2, f"output shape must have two elements, got {shape_text(size)}")
    height, width = to_ints(size)
    require(height > 0 and width > 0, f"output image must be of non-zero size, got {height} x {width}")
    if fill is not None:
        require_scalar(fill, "fill_value")
    return height, width


@kernel("ImageProjectiveTransformV2", "ImageProjectiveTransformV3", types={"dtype": _TYPES})
def image_projective_transform(op: KernelNode) -> Compute:
    """images (N, H, W, C); transforms (N or 1, 8); V3 is given the value outside, V2 takes 0."""
    mode_name, interpolation = transform_methods(op)
    mode = _MODES[mode_name]
    given = op.op == "ImageProjectiveTransformV3"

    def compute(images: Array, transforms: Array, size: Array, fill: Array | None = None) -> Array:
        height, width = check_transform(images, transforms, size, fill)
        outside = _F(fill if given else 0).astype(images.dtype)
        t = transforms.astype(_F)[:, :, None, None]
        y, x = np.arange(height, dtype=_F)[:, None], np.arange(width, dtype=_F)
        k = t[:, 6] * x + t[:, 7] * y + _F(1)
        vanishes = k == 0
        k = np.where(vanishes, _F(1), k)
        rows, columns = images.shape[1:3]
        at_x = mode((t[:, 0] * x + t[:, 1] * y + t[:, 2]) / k, columns)
        at_y = mode((t[:, 3] * x + t[:, 4] * y + t[:, 5]) / k, rows)
        example = np.arange(images.shape[0])[:, None, None]

        def pixels(row: Array, column: Array) -> Array:
            if not images.size:
                return np.full((len(images), height, width, images.shape[3]), outside)
            inside = (row >= 0) & (row < rows) & (column >= 0) & (column < columns)
            picked = images[
                example, np.where(inside, row, 0).astype(np.int64), np.where(inside, column, 0).astype(np.int64)
            ]
            return np.where(inside[..., None], picked, outside)

        if interpolation == "NEAREST":
            # halves go away from zero
            out = pixels(*(np.trunc(at + np.copysign(_F(0.5), at)) for at in (at_y, at_x)))
        else:
            low_x, low_y = np.floor(at_x), np.floor(at_y)
            right, below = (at_x - low_x)[..., None], (at_y - low_y)[..., None]
            left, above = (low_x + _F(1) - at_x)[..., None], (low_y + _F(1) - at_y)[..., None]
            upper, lower = (
                left * pixels(row, low_x).astype(_F) + right * pixels(row, low_x + _F(1)).astype(_F)
                for row in (low_y, low_y + _F(1))
            )
            out = (above * upper + below * lower).astype(images.dtype)
        return np.where(vanishes[..., None], outside, out)

    return compute
