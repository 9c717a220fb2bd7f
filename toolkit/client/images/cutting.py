"""Parts of pictures, and pictures with a margin."""

from __future__ import annotations

import builtins
from typing import Any

from toolkit.client import ops
from toolkit.client.arrays import array_ops
from toolkit.client.construction.convert import convert_to_tensor
from toolkit.client.construction.scopes import name_scope
from toolkit.client.construction.static_values import static_value
from toolkit.client.construction.tensor import Tensor, TensorLike
from toolkit.client.flow.control_flow import Assert, with_dependencies
from toolkit.client.images.checks import as_batch, at_least_3d, check, sizes
from toolkit.client.math import math_ops
from toolkit.client.math.casts import limits
from toolkit.client.random import random_ops
from toolkit.graph import dtypes


def central_crop(image: TensorLike, central_fraction: Any) -> Tensor:
    """The middle of a picture, or of each of a batch.

    Args:
        central_fraction: how much of height and width is kept, a number or a tensor, above 0 and at most 1.

    Raises:
        ValueError: the fraction is out of range; neither a picture nor a batch.
    """
    with name_scope(None, "central_crop", [image]):
        image = convert_to_tensor(image, name="image")
        known = static_value(central_fraction)
        fraction = None if known is None else float(known)
        if fraction is None:
            inside = ops.logical_or(central_fraction > 0.0, central_fraction <= 1.0)
            image = with_dependencies(check(inside, "central_fraction must be within (0, 1]", ""), image)
        elif not 0.0 < fraction <= 1.0:
            raise ValueError(f"central_fraction: expected a number above 0 and at most 1, got {fraction}")
        elif fraction == 1.0:
            return image
        at_least_3d_checked(image)
        rank = image.static_shape.rank
        if rank not in (3, 4):
            raise ValueError(f"image: expected three or four axes, got shape {image.static_shape}")
        first = rank - 3
        found = [_size(image, first), _size(image, first + 1)]
        known_sizes = list(image.static_shape)
        starts = [_margin(size, fraction, central_fraction) for size in found]
        lengths = [size - start * 2 for size, start in zip(found, starts, strict=True)]
        begin = array_ops.stack([*[0] * first, *starts, 0])
        size = array_ops.stack([*[-1] * first, *lengths, -1])
        cut = array_ops.slice(image, begin, size)
        cut.set_shape([*known_sizes[:first], *(_known(length) for length in lengths), known_sizes[-1]])
        return cut


def at_least_3d_checked(image: Tensor) -> None:
    """Adds the nodes that check a picture; nothing depends on them."""
    with_dependencies(at_least_3d(image), image)


def _size(image: Tensor, axis: int) -> Any:
    known = list(image.static_shape)[axis]
    return array_ops.shape(image)[axis] if known is None else known


def _margin(size: Any, fraction: float | None, given: Any) -> Any:
    """What is left out on either side."""
    if fraction is None or isinstance(size, Tensor):
        wide = math_ops.cast(size, dtypes.float64)
        return math_ops.cast((wide - wide * math_ops.cast(given, dtypes.float64)) / 2, dtypes.int32)
    return int((float(size) - float(size) * fraction) / 2)


def _known(size: Any) -> Any:
    return None if isinstance(size, Tensor) else size


def pad_to_bounding_box(
    image: TensorLike, offset_height: Any, offset_width: Any, target_height: Any, target_width: Any
) -> Tensor:
    """A picture of the target size, with the given one at an offset in it and zeros around.

    Raises:
        ValueError: it does not fit.
    """
    with name_scope(None, "pad_to_bounding_box", [image]):
        image, was_batch = as_batch(convert_to_tensor(image, name="image"))
        batch, height, width, depth = sizes(image, 4)
        after_width = target_width - offset_width - width
        after_height = target_height - offset_height - height
        asserts = at_least_3d(image)
        asserts += check(offset_height >= 0, "offset_height must be >= 0", f"offset_height: {offset_height} is below 0")
        asserts += check(offset_width >= 0, "offset_width must be >= 0", f"offset_width: {offset_width} is below 0")
        asserts += check(
            after_width >= 0,
            "width must be <= target - offset",
            f"a width of {width} at {offset_width} does not fit into target_width {target_width}",
        )
        asserts += check(
            after_height >= 0,
            "height must be <= target - offset",
            f"a height of {height} at {offset_height} does not fit into target_height {target_height}",
        )
        image = with_dependencies(asserts, image)
        flat = [0, 0, offset_height, after_height, offset_width, after_width, 0, 0]
        padded = array_ops.pad(image, array_ops.reshape(array_ops.stack(flat), [4, 2]))
        padded.set_shape([_known(size) for size in (batch, target_height, target_width, depth)])
        return padded if was_batch else array_ops.squeeze(padded, [0])


def crop_to_bounding_box(
    image: TensorLike, offset_height: Any, offset_width: Any, target_height: Any, target_width: Any
) -> Tensor:
    """The part of a picture that has the target size and begins at an offset.

    Raises:
        ValueError: it goes beyond the picture.
    """
    with name_scope(None, "crop_to_bounding_box", [image]):
        image, was_batch = as_batch(convert_to_tensor(image, name="image"))
        asserts = at_least_3d(image)
        batch, height, width, depth = sizes(image, 4)
        asserts += check(offset_width >= 0, "offset_width must be >= 0.", f"offset_width: {offset_width} is below 0")
        asserts += check(
            offset_height >= 0, "offset_height must be >= 0.", f"offset_height: {offset_height} is below 0"
        )
        asserts += check(target_width > 0, "target_width must be > 0.", f"target_width: {target_width} is not above 0")
        asserts += check(
            target_height > 0, "target_height must be > 0.", f"target_height: {target_height} is not above 0"
        )
        asserts += check(
            width >= target_width + offset_width,
            "width must be >= target + offset.",
            f"{target_width} columns from {offset_width} on go beyond a width of {width}",
        )
        asserts += check(
            height >= target_height + offset_height,
            "height must be >= target + offset.",
            f"{target_height} rows from {offset_height} on go beyond a height of {height}",
        )
        image = with_dependencies(asserts, image)
        begin = array_ops.stack([0, offset_height, offset_width, 0])
        first, last = array_ops.shape(image)[0], array_ops.shape(image)[3]
        cut = array_ops.slice(image, begin, array_ops.stack([first, target_height, target_width, last]))
        cut.set_shape([_known(size) for size in (batch, target_height, target_width, depth)])
        return cut if was_batch else array_ops.squeeze(cut, [0])


def larger(x: Any, y: Any) -> Any:
    return ops.maximum(x, y) if isinstance(x, Tensor) or isinstance(y, Tensor) else builtins.max(x, y)


def _smaller(x: Any, y: Any) -> Any:
    return ops.minimum(x, y) if isinstance(x, Tensor) or isinstance(y, Tensor) else builtins.min(x, y)


def _same(x: Any, y: Any) -> Any:
    return ops.equal(x, y) if isinstance(x, Tensor) or isinstance(y, Tensor) else x == y


def targets(image: Tensor, target_height: Any, target_width: Any) -> list[Any]:
    """Asserts that a picture is one, and that its target size is above 0.

    Raises:
        ValueError: it is known not to be.
    """
    asserts = at_least_3d(image)
    asserts += check(target_width > 0, "target_width must be > 0.", f"target_width: {target_width} is not above 0")
    asserts += check(target_height > 0, "target_height must be > 0.", f"target_height: {target_height} is not above 0")
    return asserts


def resize_with_crop_or_pad(image: TensorLike, target_height: Any, target_width: Any) -> Tensor:
    """The target size, by cutting the margins off or by zeros around, along each axis on its own.

    Raises:
        ValueError: the target is empty; neither a picture nor a batch.
    """
    with name_scope(None, "resize_image_with_crop_or_pad", [image]):
        image, was_batch = as_batch(convert_to_tensor(image, name="image"))
        asserts = targets(image, target_height, target_width)
        image = with_dependencies(asserts, image)
        if isinstance(target_height, Tensor):
            target_height = with_dependencies(asserts, target_height)
        if isinstance(target_width, Tensor):
            target_width = with_dependencies(asserts, target_width)
        _, height, width, _ = sizes(image, 4)
        wider = target_width - width
        crop_width, pad_width = larger(-wider // 2, 0), larger(wider // 2, 0)
        higher = target_height - height
        crop_height, pad_height = larger(-higher // 2, 0), larger(higher // 2, 0)
        cut_height = _smaller(target_height, height)
        cut = crop_to_bounding_box(image, crop_height, crop_width, cut_height, _smaller(target_width, width))
        resized = pad_to_bounding_box(cut, pad_height, pad_width, target_height, target_width)
        _, rows, columns, _ = sizes(resized, 4)
        asserts = check(_same(rows, target_height), "resized height is not correct.", f"{rows} rows came out")
        asserts += check(_same(columns, target_width), "resized width is not correct.", f"{columns} columns came out")
        resized = with_dependencies(asserts, resized)
        return resized if was_batch else array_ops.squeeze(resized, [0])


def random_crop(value: TensorLike, size: TensorLike, seed: int | None = None, name: str | None = None) -> Tensor:
    """A part of a tensor of the given size, at an offset drawn anew in every step.

    Args:
        size: the size along every axis, [rank].
    """
    with name_scope(name, "random_crop", [value, size]) as scope:
        value = convert_to_tensor(value, name="value")
        size = convert_to_tensor(size, dtypes.int32, name="size")
        shape = array_ops.shape(value)
        fits = Assert(
            math_ops.reduce_all(shape >= size), ["Need value.shape >= size, got ", shape, size], summarize=1000
        )
        shape = with_dependencies([fits], shape)
        limit = shape - size + 1
        highest = limits(size.dtype.base)[1]
        drawn = random_ops.random_uniform(
            array_ops.shape(shape), maxval=highest, dtype=size.dtype.base, seed=seed
        )  # fmt: skip
        return array_ops.slice(value, drawn % limit, size, name=scope)
