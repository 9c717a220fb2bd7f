"""How alike two pictures are: PSNR, SSIM (Wang et al. 2004), MS-SSIM (Wang et al. 2003)."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from toolkit.client import ops
from toolkit.client.arrays import array_ops
from toolkit.client.construction.convert import constant, convert_to_tensor
from toolkit.client.construction.scopes import control_dependencies, name_scope
from toolkit.client.construction.tensor import Tensor, TensorLike
from toolkit.client.flow.control_flow import Assert, cond
from toolkit.client.images.value_types import convert_image_dtype
from toolkit.client.math import math_ops
from toolkit.client.nn import nn_ops
from toolkit.client.nn.convolutions import depthwise_conv2d
from toolkit.graph import dtypes

#: the weights of five scales in the paper
MULTISCALE_WEIGHTS = (0.0448, 0.2856, 0.3001, 0.2363, 0.1333)


def _compatible(one: Tensor, other: Tensor) -> tuple[Tensor, Tensor, list[object]]:
    """The shapes in the step, and asserts that the last three sizes are the same.

    Raises:
        ValueError: they are known not to be.
    """
    shapes = [one.static_shape, other.static_shape]
    if all(shape.rank is not None for shape in shapes):
        sizes = [list(shape) for shape in shapes]
        if min(len(size) for size in sizes) < 3:
            raise ValueError(f"two pictures: expected three axes or more, got shapes {shapes[0]} and {shapes[1]}")
        pairs = list(zip(reversed(sizes[0]), reversed(sizes[1]), strict=False))
        alike = all(a is None or b is None or a == b for a, b in pairs[:3])
        if not alike or not all(None in (a, b) or a == b or 1 in (a, b) for a, b in pairs[3:]):
            raise ValueError(f"two pictures of shapes {shapes[0]} and {shapes[1]} cannot be compared")
    first, second = array_ops.shape_n([one, other])
    asserts: list[object] = [
        Assert(ops.greater_equal(array_ops.size(first), 3), [first, second], summarize=10),
        Assert(math_ops.reduce_all(ops.equal(first[-3:], second[-3:])), [first, second], summarize=10),
    ]
    return first, second, asserts


def psnr(a: Tensor, b: Tensor, max_val: TensorLike, name: str | None = None) -> Tensor:
    """The peak signal to noise ratio in dB, over the last three axes.

    Args:
        max_val: how far apart values can be: 255 for uint8, 1.0 for floats.
    """
    with name_scope(name, "PSNR", [a, b]):
        peak = convert_image_dtype(math_ops.cast(max_val, a.dtype.base), dtypes.float32)
        a, b = convert_image_dtype(a, dtypes.float32), convert_image_dtype(b, dtypes.float32)
        error = math_ops.reduce_mean(ops.squared_difference(a, b), [-3, -2, -1])
        highest = 20 * ops.log(peak) / ops.log(10.0)
        ratio = ops.sub(highest, np.float32(10 / np.log(10)) * ops.log(error), name="psnr")
        _, _, asserts = _compatible(a, b)
        with control_dependencies(asserts):
            return array_ops.identity(ratio)


def _gaussian(size: Tensor, sigma: Tensor) -> Tensor:
    """A window [size, size, 1, 1] of weights that add up to 1."""
    size = convert_to_tensor(size, dtypes.int32)
    sigma = convert_to_tensor(sigma)
    at = math_ops.cast(math_ops.range(size), sigma.dtype.base)
    at = at - math_ops.cast(size - 1, sigma.dtype.base) / 2.0
    weights = ops.square(at)
    weights = weights * (-0.5 / ops.square(sigma))
    weights = array_ops.reshape(weights, [1, -1]) + array_ops.reshape(weights, [-1, 1])
    weights = nn_ops.softmax(array_ops.reshape(weights, [1, -1]))
    return array_ops.reshape(weights, [size, size, 1, 1])


def _factors(
    x: Tensor, y: Tensor, mean: Callable[[Tensor], Tensor], peak: Tensor, k1: float, k2: float
) -> tuple[Tensor, Tensor]:
    """Luminance, and contrast with structure, at each place."""
    c1 = (k1 * peak) ** 2
    c2 = (k2 * peak) ** 2
    mean_x, mean_y = mean(x), mean(y)
    product = mean_x * mean_y * 2.0
    squares = ops.square(mean_x) + ops.square(mean_y)
    luminance = (product + c1) / (squares + c1)
    products = mean(x * y) * 2.0
    all_squares = mean(ops.square(x) + ops.square(y))
    c2 = c2 * 1.0  # the paper's compensation, none
    return luminance, (products - product + c2) / (all_squares - squares + c2)


def _ssim_of_channels(
    one: Tensor, other: Tensor, peak: Tensor, filter_size: int, filter_sigma: float, k1: float, k2: float,
    return_index_map: bool = False,
) -> tuple[Tensor, Tensor]:  # fmt: skip
    size = constant(filter_size, dtypes.int32)
    sigma = constant(filter_sigma, one.dtype.base)
    shapes = array_ops.shape_n([one, other])
    asserts = [
        Assert(math_ops.reduce_all(ops.greater_equal(shape[-3:-1], size)), [shape, size], summarize=8)
        for shape in shapes
    ]
    with control_dependencies(asserts):
        one = array_ops.identity(one)
    window = array_ops.tile(_gaussian(size, sigma), [1, 1, shapes[0][-1], 1])

    def mean(x: Tensor) -> Tensor:
        shape = array_ops.shape(x)
        flat = array_ops.reshape(x, array_ops.concat([[-1], shape[-3:]], 0))
        means = depthwise_conv2d(flat, window, [1, 1, 1, 1], "VALID")
        return array_ops.reshape(means, array_ops.concat([shape[:-3], array_ops.shape(means)[1:]], 0))

    luminance, structure = _factors(one, other, mean, peak, k1, k2)
    if return_index_map:
        return luminance * structure, structure
    axes = constant([-3, -2], dtypes.int32)
    return math_ops.reduce_mean(luminance * structure, axes), math_ops.reduce_mean(structure, axes)


def _prepared(one: Tensor, other: Tensor, max_val: TensorLike, asserts: list[object]) -> tuple[Tensor, Tensor, Tensor]:
    with control_dependencies(asserts):
        one = array_ops.identity(one)
    peak = convert_image_dtype(math_ops.cast(max_val, one.dtype.base), dtypes.float32)
    return convert_image_dtype(one, dtypes.float32), convert_image_dtype(other, dtypes.float32), peak


def ssim(
    img1: TensorLike, img2: TensorLike, max_val: TensorLike, filter_size: int = 11, filter_sigma: float = 1.5,
    k1: float = 0.01, k2: float = 0.03, return_index_map: bool = False,
) -> Tensor:  # fmt: skip
    """The structural similarity, averaged over channels: at most 1.

    Args:
        max_val: how far apart values can be.
        return_index_map: gives a value for each place instead of the mean.
    """
    with name_scope(None, "SSIM", [img1, img2]):
        one, other = convert_to_tensor(img1, name="img1"), convert_to_tensor(img2, name="img2")
        _, _, asserts = _compatible(one, other)
        one, other, peak = _prepared(one, other, max_val, asserts)
        found, _ = _ssim_of_channels(one, other, peak, filter_size, filter_sigma, k1, k2, return_index_map)
        return math_ops.reduce_mean(found, [-1])


def ssim_multiscale(
    img1: TensorLike, img2: TensorLike, max_val: TensorLike, power_factors: Sequence[float] = MULTISCALE_WEIGHTS,
    filter_size: int = 11, filter_sigma: float = 1.5, k1: float = 0.01, k2: float = 0.03,
) -> Tensor:  # fmt: skip
    """The structural similarity over several scales, each half as large as the one before.

    Args:
        power_factors: the weight of each scale.
    """
    with name_scope(None, "MS-SSIM", [img1, img2]):
        one, other = convert_to_tensor(img1, name="img1"), convert_to_tensor(img2, name="img2")
        first, second, asserts = _compatible(one, other)
        one, other, peak = _prepared(one, other, max_val, asserts)
        pictures = [one, other]
        heads = [shape[:-3] for shape in (first, second)]
        tails = [shape[-3:] for shape in (first, second)]
        halves = constant([2, 2, 1], dtypes.int32)
        structures: list[Tensor] = []
        found: Tensor | None = None
        for scale in range(len(power_factors)):
            with name_scope(None, f"Scale{scale}", pictures):
                if scale > 0:
                    smaller = _halved(pictures, tails, halves)
                    tails = [shape[1:] for shape in array_ops.shape_n(smaller)]
                    one, other = pictures = [
                        array_ops.reshape(x, array_ops.concat([head, tail], 0))
                        for x, head, tail in zip(smaller, heads, tails, strict=True)
                    ]
                found, structure = _ssim_of_channels(one, other, peak, filter_size, filter_sigma, k1, k2)
                structures.append(nn_ops.relu(structure))
        if found is None:
            raise ValueError("power_factors: expected a weight for one scale at least")
        all_factors = array_ops.stack([*structures[:-1], nn_ops.relu(found)], axis=-1)
        return math_ops.reduce_mean(math_ops.reduce_prod(ops.pow(all_factors, power_factors), [-1]), [-1])


def _halved(pictures: list[Tensor], tails: list[Tensor], halves: Tensor) -> list[Tensor]:
    """Means of two by two pixels; odd sizes are made even by a copy of the last row or column."""
    flat = [
        array_ops.reshape(x, array_ops.concat([[-1], tail], 0)) for x, tail in zip(pictures, tails, strict=True)
    ]  # fmt: skip
    rest = tails[0] % halves

    def padded() -> list[Tensor]:
        around = array_ops.pad(array_ops.expand_dims(rest, -1), [[1, 0], [1, 0]])
        return [array_ops.pad(x, around, mode="SYMMETRIC") for x in flat]

    even = cond(math_ops.reduce_any(ops.not_equal(rest, 0)), padded, lambda: flat)
    return [nn_ops.avg_pool(x, [1, 2, 2, 1], [1, 2, 2, 1], "VALID") for x in even]
