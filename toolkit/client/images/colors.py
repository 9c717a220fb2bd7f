"""Brightness, contrast, gamma, hue, saturation, the losses of JPEG: changed by so much, or by chance."""

from __future__ import annotations

from typing import Any

from toolkit.client import ops
from toolkit.client.arrays import array_ops
from toolkit.client.construction.convert import constant, convert_to_tensor
from toolkit.client.construction.scopes import name_scope
from toolkit.client.construction.tensor import Tensor, TensorLike
from toolkit.client.flow.control_flow import with_dependencies
from toolkit.client.images.checks import check, checked
from toolkit.client.images.value_types import as_floats, convert_image_dtype
from toolkit.client.math import math_ops
from toolkit.client.random import random_ops
from toolkit.graph import dtypes

#: the axes of one picture, as per_image_standardization lists them
_PICTURE = [-1, -2, -3]


def adjust_brightness(image: TensorLike, delta: TensorLike) -> Tensor:
    """`delta` added, on a scale from 0 to 1."""
    with name_scope(None, "adjust_brightness", [image, delta]) as scope:
        image = convert_to_tensor(image, name="image")
        floats = as_floats(image)
        adjusted = math_ops.add(floats, math_ops.cast(delta, floats.dtype.base), name=scope)
        return convert_image_dtype(adjusted, image.dtype.base, saturate=True)


def adjust_contrast(images: TensorLike, contrast_factor: TensorLike) -> Tensor:
    """The distance from each channel's mean times the factor."""
    with name_scope(None, "adjust_contrast", [images, contrast_factor]) as scope:
        images = convert_to_tensor(images, name="images")
        adjusted = ops.adjust_contrastv2(as_floats(images), contrast_factor, name=scope)
        return convert_image_dtype(adjusted, images.dtype.base, saturate=True)


def adjust_gamma(image: TensorLike, gamma: Any = 1, gain: Any = 1) -> Tensor:
    """gain * image ** gamma.

    Raises:
        ValueError: gamma is negative.
    """
    with name_scope(None, "adjust_gamma", [image, gamma, gain]):
        image = convert_to_tensor(image, name="image")
        floats = as_floats(image)
        asserts = check(
            gamma >= 0, "Gamma should be a non-negative real number.", f"gamma: expected 0 or more, got {gamma}"
        )
        if asserts:
            gamma = with_dependencies(asserts, gamma)
        return convert_image_dtype(gain * floats**gamma, image.dtype.base, saturate=True)


def adjust_hue(image: TensorLike, delta: TensorLike, name: str | None = None) -> Tensor:
    """The hue of RGB pictures turned by `delta` of the circle, from -1 to 1."""
    with name_scope(name, "adjust_hue", [image]):
        image = convert_to_tensor(image, name="image")
        return convert_image_dtype(ops.adjust_hue(as_floats(image), delta), image.dtype.base)


def adjust_saturation(image: TensorLike, saturation_factor: TensorLike, name: str | None = None) -> Tensor:
    """The saturation of RGB pictures times a factor."""
    with name_scope(name, "adjust_saturation", [image]):
        image = convert_to_tensor(image, name="image")
        return convert_image_dtype(ops.adjust_saturation(as_floats(image), saturation_factor), image.dtype.base)


def adjust_jpeg_quality(
    image: TensorLike, jpeg_quality: TensorLike, dct_method: str = "", name: str | None = None
) -> Tensor:
    """What a picture is after it has been a JPEG file of some quality, 0 to 100."""
    with name_scope(name, "adjust_jpeg_quality", [image]):
        image = convert_to_tensor(image, name="image")
        channels = list(image.static_shape.with_rank(3))[-1]
        whole = convert_image_dtype(image, dtypes.uint8, saturate=True)
        if not isinstance(jpeg_quality, Tensor):
            jpeg_quality = constant(jpeg_quality, dtypes.int32)
        encoded = ops.encode_jpeg_variable_quality(whole, jpeg_quality)
        decoded = ops.decode_jpeg(encoded, channels=channels or 0, dct_method=dct_method)
        return convert_image_dtype(decoded, image.dtype.base, saturate=True)


def per_image_standardization(image: TensorLike) -> Tensor:
    """Each picture with mean 0 and standard deviation 1; a flat one is only not divided by 0."""
    with name_scope(None, "per_image_standardization", [image]) as scope:
        image = checked(convert_to_tensor(image, name="image"))
        image = math_ops.cast(image, dtypes.float32)
        count = math_ops.reduce_prod(array_ops.shape(image)[-3:])
        mean = math_ops.reduce_mean(image, _PICTURE, keepdims=True)
        deviation = _deviation(image)
        least = ops.rsqrt(math_ops.cast(count, dtypes.float32))
        adjusted = ops.maximum(deviation, least)
        return math_ops.divide(image - mean, adjusted, name=scope)


def _deviation(image: Tensor) -> Tensor:
    """The standard deviation of each picture."""
    with name_scope("reduce_std"):
        with name_scope("reduce_variance"):
            offset = image - math_ops.reduce_mean(image, _PICTURE, keepdims=True)
            variance = math_ops.reduce_mean(ops.square(offset), _PICTURE, keepdims=True)
        return ops.sqrt(variance)


# -- by chance -----------------------------------------------------------------------------------------------------


def _check_range(lower: float, upper: float) -> None:
    if upper <= lower or lower < 0:
        raise ValueError(f"lower, upper: expected 0 <= lower < upper, got {lower} and {upper}")


def random_brightness(image: TensorLike, max_delta: float, seed: int | None = None) -> Tensor:
    """Brighter or darker by up to `max_delta`.

    Raises:
        ValueError: it is negative.
    """
    if max_delta < 0:
        raise ValueError(f"max_delta: expected 0 or more, got {max_delta}")
    return adjust_brightness(image, random_ops.random_uniform([], -max_delta, max_delta, seed=seed))


def random_contrast(image: TensorLike, lower: float, upper: float, seed: int | None = None) -> Tensor:
    """Contrast by a factor from `lower` to `upper`.

    Raises:
        ValueError: that is no range of factors.
    """
    _check_range(lower, upper)
    return adjust_contrast(image, random_ops.random_uniform([], lower, upper, seed=seed))


def random_saturation(image: TensorLike, lower: float, upper: float, seed: int | None = None) -> Tensor:
    """Saturation by a factor from `lower` to `upper`.

    Raises:
        ValueError: that is no range of factors.
    """
    _check_range(lower, upper)
    return adjust_saturation(image, random_ops.random_uniform([], lower, upper, seed=seed))


def random_hue(image: TensorLike, max_delta: float, seed: int | None = None) -> Tensor:
    """The hue turned by up to `max_delta` of the circle.

    Raises:
        ValueError: that is not from 0 to 0.5.
    """
    if not 0 <= max_delta <= 0.5:
        raise ValueError(f"max_delta: expected a number from 0 to 0.5, got {max_delta}")
    return adjust_hue(image, random_ops.random_uniform([], -max_delta, max_delta, seed=seed))


def random_jpeg_quality(
    image: TensorLike, min_jpeg_quality: int, max_jpeg_quality: int, seed: int | None = None
) -> Tensor:
    """The losses of a JPEG file of some quality.

    Raises:
        ValueError: the qualities are no range within 0 to 100.
    """
    if not 0 <= min_jpeg_quality < max_jpeg_quality <= 100:
        raise ValueError(
            f"min_jpeg_quality, max_jpeg_quality: expected a range within 0 to 100, got {min_jpeg_quality} and "
            f"{max_jpeg_quality}"
        )
    quality = random_ops.random_uniform([], min_jpeg_quality, max_jpeg_quality, dtypes.int32, seed)
    return adjust_jpeg_quality(image, quality)
