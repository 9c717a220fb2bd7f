"""Gradients of image ops."""

from __future__ import annotations

from typing import Any

import numpy as np

from toolkit.client import ops
from toolkit.client.arrays import array_ops
from toolkit.client.construction.convert import constant
from toolkit.client.construction.operation import Operation
from toolkit.client.construction.tensor import Tensor
from toolkit.client.gradients.registry import Gradient, gradient, no_gradient
from toolkit.client.math import math_ops
from toolkit.graph import dtypes

no_gradient(
    "HSVToRGB", "DrawBoundingBoxes", "ResizeBilinearGrad", "NonMaxSuppression", "NonMaxSuppressionV2",
    "NonMaxSuppressionWithOverlaps", "SampleDistortedBoundingBox", "SampleDistortedBoundingBoxV2", "ExtractGlimpse",
    "GenerateBoundingBoxProposals", "RandomCrop",
)  # fmt: skip

_DIFFERENTIABLE = {dtypes.float16, dtypes.float32, dtypes.float64}


def _sizes(image: Tensor) -> Any:
    return image.static_shape.as_list() if image.static_shape.is_fully_defined else array_ops.shape(image)


@gradient("CropAndResize")
def crop_and_resize(op: Operation, grad: Tensor) -> list[Gradient]:
    image, boxes, indices, _ = op.inputs
    by_image: Gradient = None
    if image.dtype.base in _DIFFERENTIABLE:
        by_image = ops.crop_and_resize_grad_image(
            grad, boxes, indices, _sizes(image), T=image.dtype.base, method=op.get_attr("method")
        )
    # by the boxes there is one for bilinear sampling; it is taken for the nearest neighbour too
    return [by_image, ops.crop_and_resize_grad_boxes(grad, image, boxes, indices), None, None]


@gradient("ScaleAndTranslate")
def scale_and_translate(op: Operation, grad: Tensor) -> list[Gradient]:
    image, _, scale, translation = op.inputs
    attrs = {name: op.get_attr(name) for name in ("kernel_type", "antialias")}
    return [ops.scale_and_translate_grad(grad, image, scale, translation, **attrs), None, None, None]


@gradient("ImageProjectiveTransformV2", "ImageProjectiveTransformV3")
def projective_transform(op: Operation, grad: Tensor) -> list[Gradient]:
    """The gradient as an image, transformed back."""
    image, transforms = op.inputs[:2]
    sizes = array_ops.shape(image)[1:3]
    flat = array_ops.reshape(transforms, [-1, 8])
    ones = array_ops.ones_like(flat[:, :1])
    matrices = array_ops.reshape(array_ops.concat([flat, ones], 1), [-1, 3, 3])
    inverse = array_ops.reshape(ops.matrix_inverse(matrices), [-1, 9])
    back = (inverse / inverse[:, 8:9])[:, :8]
    attrs = {name: op.get_attr(name) for name in ("interpolation", "fill_mode")}
    rest = [constant(0.0)] if op.type.endswith("V3") else []
    return [ops.function(op.type)(grad, back, sizes, *rest, **attrs)] + [None] * (len(op.inputs) - 1)


@gradient("RGBToHSV")
def rgb_to_hsv(op: Operation, grad: Tensor) -> Gradient:
    """Hue is n / 6d, saturation d / M and value M, where M is the largest channel, d its distance to the smallest one
    and n the difference of the two others; ties count as in the forward op."""
    rgb = op.inputs[0]
    red, green, blue = (rgb[..., i] for i in range(3))
    largest = _masks(
        rgb,
        ops.logical_and(ops.greater_equal(red, blue), ops.greater_equal(red, green)),
        ops.logical_and(ops.greater(green, red), ops.greater_equal(green, blue)),
        ops.logical_and(ops.greater(blue, red), ops.greater(blue, green)),
    )
    smallest = _masks(
        rgb,
        ops.logical_and(ops.less(red, blue), ops.less(red, green)),
        ops.logical_and(ops.less_equal(green, red), ops.less(green, blue)),
        ops.logical_and(ops.less_equal(blue, red), ops.less_equal(blue, green)),
    )
    top = math_ops.reduce_sum(rgb * largest, -1, keepdims=True)
    bottom = math_ops.reduce_sum(rgb * smallest, -1, keepdims=True)
    distance = top - bottom
    # when a channel is the largest, n is the next one less the one after
    following = _turned(largest, 1)
    n_by = following - _turned(largest, 2)
    n = math_ops.reduce_sum(rgb * n_by, -1, keepdims=True)
    six = constant(np.array(6, rgb.dtype.base.numpy))
    by_hue = ops.div_no_nan(n_by, six * distance) - ops.div_no_nan(n * (largest - smallest), six * distance * distance)
    by_saturation = ops.div_no_nan(bottom * largest, top * top) - ops.div_no_nan(smallest, top)
    hue, saturation, value = (grad[..., i : i + 1] for i in range(3))
    return hue * by_hue + saturation * by_saturation + value * largest


def _masks(rgb: Tensor, *channels: Tensor) -> Tensor:
    return math_ops.cast(array_ops.stack(channels, -1), rgb.dtype.base)


def _turned(mask: Tensor, by: int) -> Tensor:
    """The mask moved on by a number of channels, around the end."""
    return ops.roll(mask, constant(by), constant(-1))


@gradient("ExtractImagePatches")
def image_patches(op: Operation, grad: Tensor) -> Gradient:
    return _patches(op, grad, 2, {name: op.get_attr(name) for name in ("ksizes", "strides", "rates", "padding")})


@gradient("ExtractVolumePatches")
def volume_patches(op: Operation, grad: Tensor) -> Gradient:
    return _patches(op, grad, 3, {name: op.get_attr(name) for name in ("ksizes", "strides", "padding")})


def _patches(op: Operation, grad: Tensor, dimensions: int, attrs: dict[str, object]) -> Tensor:
    """Patches of an image of positions say where each gradient belongs; position 0 is padding."""
    x = op.inputs[0]
    sizes = array_ops.shape(x)
    inner = sizes[1 : 1 + dimensions]
    count = math_ops.reduce_prod(inner)
    positions = array_ops.reshape(
        math_ops.range(1, count + 1), array_ops.concat([constant([1]), inner, constant([1])], 0)
    )
    where = array_ops.reshape(ops.function(op.type)(math_ops.cast(positions, dtypes.int64), **attrs), [-1])
    channels = sizes[-1]
    flat = array_ops.reshape(grad, array_ops.stack([sizes[0], array_ops.size(where), channels]))
    rows = math_ops.unsorted_segment_sum(array_ops.transpose(flat, [1, 0, 2]), where, count + 1)
    return array_ops.reshape(array_ops.transpose(rows[1:], [1, 0, 2]), sizes)
