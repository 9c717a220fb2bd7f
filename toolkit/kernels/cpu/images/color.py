"""Colour: contrast, hue, saturation, RGB to HSV and back. Colours are the last dimension, in [0, 1] by convention."""

from __future__ import annotations

from typing import Any

from toolkit.errors import FailedPreconditionError
from toolkit.graph import dtypes
from toolkit.kernels.cpu.common import np, require, require_scalar, shape_text, wide
from toolkit.kernels.registry import FLOATING, Compute, KernelNode, kernel, simple
from toolkit.kernels.types import Array

_CONTRAST_TYPES = {
    dtypes.uint8, dtypes.int8, dtypes.int16, dtypes.int32, dtypes.float32, dtypes.float64,
}  # fmt: skip
_ADJUST_TYPES = {"T": [dtypes.float16, dtypes.float32]}


def _hue(rgb: Array, top: Array, span: Array) -> Array:
    """The hue in [0, 1), 0 for greys; `top` is the largest channel, `span` that minus the least."""
    red, green, blue = rgb[..., 0], rgb[..., 1], rgb[..., 2]
    kind = rgb.dtype.type
    is_color = span > 0
    norm = kind(1) / (kind(6) * np.where(is_color, span, kind(1)))
    hue = np.where(
        red == top,
        norm * (green - blue),
        np.where(green == top, norm * (blue - red) + kind(2 / 6), norm * (red - green) + kind(4 / 6)),
    )
    hue = np.where(is_color, hue, kind(0))
    return np.where(hue < 0, hue + kind(1), hue)


def _fractions(hue: Array) -> Array:
    """How near each channel of a hue is to the largest, in [0, 1]: (..., 3)."""
    six = hue * hue.dtype.type(6)
    one, two = hue.dtype.type(1), hue.dtype.type(2)
    channels = (np.abs(six - 3) - one, two - np.abs(six - 2), two - np.abs(six - 4))
    return np.clip(np.stack(channels, axis=-1), 0, 1)


def rgb_to_hsv(rgb: Array) -> Array:
    top, low = rgb.max(axis=-1), rgb.min(axis=-1)
    span = top - low
    kind = rgb.dtype.type
    saturation = np.where(top > 0, span / np.where(top > 0, top, kind(1)), kind(0))
    return np.stack([_hue(rgb, top, span), saturation, top], axis=-1)


def hsv_to_rgb(hsv: Array) -> Array:
    saturation, value = hsv[..., 1:2], hsv[..., 2:3]
    return ((1 - saturation) + saturation * _fractions(hsv[..., 0])) * value


def check_colors(images: Any) -> None:
    """Refuse what has no three channels.

    Raises:
        FailedPreconditionError, InvalidArgumentError: it has not.
    """
    require(np.ndim(images) >= 1, "input must be at least 1D")
    if images.shape[-1] != 3:
        raise FailedPreconditionError(f"input must have 3 channels but input only has {images.shape[-1]} channels.")


@simple("RGBToHSV", types={"T": FLOATING})
def rgb_to_hsv_kernel(images: Array) -> Array:
    check_colors(images)
    return rgb_to_hsv(wide(images)).astype(images.dtype, copy=False)


@simple("HSVToRGB", types={"T": FLOATING})
def hsv_to_rgb_kernel(images: Array) -> Array:
    check_colors(images)
    return hsv_to_rgb(wide(images)).astype(images.dtype, copy=False)


def check_adjusted(images: Any, amount: Any, name: str) -> None:
    """Refuse what are no images with three channels and an amount.

    Raises:
        InvalidArgumentError: they are not.
    """
    require(np.ndim(images) >= 3, f"input must be at least 3-D, got shape {shape_text(images)}")
    require_scalar(amount, name)
    require(images.shape[-1] == 3, f"input must have 3 channels but instead has {images.shape[-1]} channels.")


@simple("AdjustHue", types=_ADJUST_TYPES)
def adjust_hue(images: Array, delta: Array) -> Array:
    """Turns the hue by `delta`, 1 being once around; the largest and the least channel stay."""
    check_adjusted(images, delta, "delta")
    rgb = wide(images)
    top, low = rgb.max(axis=-1), rgb.min(axis=-1)
    hue = np.mod(_hue(rgb, top, top - low) + delta, np.float32(1))
    return (low[..., None] + (top - low)[..., None] * _fractions(hue)).astype(images.dtype, copy=False)


@simple("AdjustSaturation", types=_ADJUST_TYPES)
def adjust_saturation(images: Array, scale: Array) -> Array:
    check_adjusted(images, scale, "scale")
    hsv = rgb_to_hsv(wide(images))
    hsv[..., 1] = np.clip(hsv[..., 1] * scale, 0, 1)
    return hsv_to_rgb(hsv).astype(images.dtype, copy=False)


def _contrast(images: Array, factor: Array) -> Array:
    """Every channel's distance from its mean over the image, multiplied."""
    mean = images.mean(axis=(-3, -2), keepdims=True, dtype=np.float64).astype(np.float32)
    return (images - mean) * factor + mean


def check_contrast(images: Any, *values: tuple[Any, str]) -> None:
    """Refuse what are no images, or no scalars.

    Raises:
        InvalidArgumentError: they are not.
    """
    require(np.ndim(images) >= 3, f"input must be at least 3-D, got shape {shape_text(images)}")
    for value, name in values:
        require_scalar(value, name)


@simple("AdjustContrastv2", types=_ADJUST_TYPES)
def adjust_contrast_v2(images: Array, factor: Array) -> Array:
    check_contrast(images, (factor, "contrast_factor"))
    return _contrast(wide(images), factor).astype(images.dtype, copy=False) if images.size else images


@kernel("AdjustContrast", types={"T": _CONTRAST_TYPES})
def adjust_contrast(op: KernelNode) -> Compute:
    """The old op: float32 out, between bounds."""

    def compute(images: Array, factor: Array, least: Array, most: Array) -> Array:
        check_contrast(images, (factor, "contrast_factor"), (least, "min_value"), (most, "max_value"))
        x = images.astype(np.float32)
        return np.minimum(np.maximum(_contrast(x, factor), least), most) if x.size else x

    return compute
