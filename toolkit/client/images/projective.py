"""Pictures rotated, moved and seen from elsewhere, by transforms of eight numbers.

A transform [a0, a1, a2, b0, b1, b2, c0, c1] says where the pixel (x, y) of the result comes from:
((a0 x + a1 y + a2) / k, (b0 x + b1 y + b2) / k) with k = c0 x + c1 y + 1. What comes from outside the picture is 0.
"""

from __future__ import annotations

from toolkit.client import ops
from toolkit.client.arrays import array_ops
from toolkit.client.construction.convert import constant, convert_to_tensor
from toolkit.client.construction.scopes import name_scope
from toolkit.client.construction.tensor import Tensor, TensorLike
from toolkit.client.math import math_ops
from toolkit.graph import dtypes

#: types of pixels that ImageProjectiveTransformV2 knows
_PIXELS = (dtypes.uint8, dtypes.int32, dtypes.int64, dtypes.float16, dtypes.float32, dtypes.float64)


def _batch(image: Tensor) -> Tensor:
    """A picture [rows, columns] or [rows, columns, channels], or a batch of them, as a batch.

    Raises:
        TypeError: pixels of another type, or a rank that is not known or not among these.
    """
    if image.dtype.base not in _PIXELS:
        raise TypeError(f"images: pixels of type {image.dtype.name} cannot be moved; cast them first")
    match image.static_shape.rank:
        case 2:
            return image[None, :, :, None]
        case 3:
            return image[None, :, :, :]
        case 4:
            return image
        case None:
            raise TypeError("images: how many dimensions they have has to be known; say so with set_shape")
        case rank:
            raise TypeError(f"images: expected 2, 3 or 4 dimensions, got {rank}")


def _as_given(result: Tensor, image: Tensor) -> Tensor:
    """A batch in the rank of the picture that it was made of."""
    match image.static_shape.rank:
        case 2:
            return result[0, :, :, 0]
        case 3:
            return result[0, :, :, :]
        case _:
            return result


def _rows(given: Tensor, name: str) -> Tensor:
    """One row, or rows, as a matrix.

    Raises:
        TypeError: neither, or a rank that is not known.
    """
    match given.static_shape.rank:
        case 1:
            return given[None]
        case 2:
            return given
        case rank:
            raise TypeError(f"{name}: expected 1 or 2 dimensions, got {'an unknown rank' if rank is None else rank}")


def rotate(images: TensorLike, angles: TensorLike, interpolation: str = "NEAREST", name: str | None = None) -> Tensor:
    """Pictures turned counter-clockwise around their middle, by radians.

    Args:
        images: [rows, columns], [rows, columns, channels] or [batch, rows, columns, channels].
        angles: a number, or one for each picture.
        interpolation: "NEAREST" or "BILINEAR".

    Raises:
        TypeError: of pixels that cannot be moved, or of a rank that is not known.
    """
    with name_scope(name, "rotate"):
        image = convert_to_tensor(images)
        batch = _batch(image)
        height = math_ops.cast(array_ops.shape(batch)[1], dtypes.float32)[None]
        width = math_ops.cast(array_ops.shape(batch)[2], dtypes.float32)[None]
        turned = transform(batch, angles_to_projective_transforms(angles, height, width), interpolation)
        return _as_given(turned, image)


def translate(
    images: TensorLike, translations: TensorLike, interpolation: str = "NEAREST", name: str | None = None
) -> Tensor:
    """Pictures moved by [dx, dy], one for all or one for each."""
    with name_scope(name, "translate"):
        return transform(images, translations_to_projective_transforms(translations), interpolation)


def angles_to_projective_transforms(
    angles: TensorLike, image_height: TensorLike, image_width: TensorLike, name: str | None = None
) -> Tensor:
    """Transforms [n, 8] that turn pictures of a size around their middle.

    Raises:
        TypeError: angles are neither a number nor a vector.
    """
    with name_scope(name, "angles_to_projective_transforms"):
        given = convert_to_tensor(angles, dtypes.float32, name="angles")
        if given.static_shape.rank not in (0, 1):
            raise TypeError(f"angles: expected a number or a vector, got a tensor of shape {given.static_shape}")
        turns = given if given.static_shape.rank else given[None]
        # the middle stays where it is: half of what the far corner would be moved by
        w, h = _FarEdge(image_width), _FarEdge(image_height)
        x = (w.less() - (ops.cos(turns) * w.less() - ops.sin(turns) * h.less())) / 2.0
        y = (h.less() - (ops.sin(turns) * w.less() + ops.cos(turns) * h.less())) / 2.0
        count = array_ops.shape(turns)[0]
        columns = [
            ops.cos(turns)[:, None], -ops.sin(turns)[:, None], x[:, None],
            ops.sin(turns)[:, None], ops.cos(turns)[:, None], y[:, None],
            array_ops.zeros((count, 2), dtypes.float32),
        ]  # fmt: skip
        return array_ops.concat(columns, axis=1)


class _FarEdge:
    """The last row or column of a size, computed anew each time it is used, as in TensorFlow's graphs."""

    def __init__(self, size: TensorLike):
        self._size = size

    def less(self) -> Tensor:
        return self._size - 1


def translations_to_projective_transforms(translations: TensorLike, name: str | None = None) -> Tensor:
    """Transforms [n, 8] that move pictures by [dx, dy].

    Raises:
        TypeError: translations are neither a pair nor rows of pairs.
    """
    with name_scope(name, "translations_to_projective_transforms"):
        moves = _rows(convert_to_tensor(translations, dtypes.float32, name="translations"), "translations")
        count = array_ops.shape(moves)[0]
        columns = [
            array_ops.ones((count, 1), dtypes.float32), array_ops.zeros((count, 1), dtypes.float32), -moves[:, 0, None],
            array_ops.zeros((count, 1), dtypes.float32), array_ops.ones((count, 1), dtypes.float32), -moves[:, 1, None],
            array_ops.zeros((count, 2), dtypes.float32),
        ]  # fmt: skip
        return array_ops.concat(columns, axis=1)


def transform(
    images: TensorLike, transforms: TensorLike, interpolation: str = "NEAREST", output_shape: TensorLike | None = None,
    name: str | None = None,
) -> Tensor:  # fmt: skip
    """Pictures whose pixels come from where transforms say.

    Args:
        transforms: [8], or [n, 8] with one for each picture. Nothing is learned about them: they have no gradient.
        output_shape: [rows, columns] of the result; those of the pictures by default.

    Raises:
        TypeError: of pixels that cannot be moved, or of a rank that is not known.
        ValueError: `output_shape` is not two numbers.
    """
    with name_scope(name, "transform"):
        image = convert_to_tensor(images, name="images")
        given = convert_to_tensor(transforms, dtypes.float32, name="transforms")
        batch = _batch(image)
        size = array_ops.shape(batch)[1:3] if output_shape is None else output_shape
        size = convert_to_tensor(size, dtypes.int32, name="output_shape")
        if size.static_shape.rank not in (None, 1) or (
            size.static_shape.rank and size.static_shape[0] not in (None, 2)
        ):
            raise ValueError(f"output_shape: expected [rows, columns], got a tensor of shape {size.static_shape}")
        moved = ops.image_projective_transform_v2(
            images=batch, output_shape=size, transforms=_rows(given, "transforms"), interpolation=interpolation.upper()
        )
        return _as_given(moved, image)


def compose_transforms(*transforms: TensorLike) -> Tensor:
    """One transform for several, the first of them done first.

    Raises:
        AssertionError: there is none.
    """
    if not transforms:
        raise AssertionError("compose_transforms: give at least one transform")
    with name_scope("compose_transforms"):
        product = flat_transforms_to_matrices(transforms[0])
        for each in transforms[1:]:
            product = math_ops.matmul(product, flat_transforms_to_matrices(each))
        return matrices_to_flat_transforms(product)


def flat_transforms_to_matrices(transforms: TensorLike) -> Tensor:
    """Matrices [n, 3, 3] in homogeneous coordinates, from pixels of the result to those of the picture.

    Raises:
        ValueError: `transforms` has neither 1 nor 2 dimensions.
    """
    with name_scope("flat_transforms_to_matrices"):
        given = convert_to_tensor(transforms, name="transforms")
        if given.static_shape.rank not in (1, 2):
            raise ValueError(f"transforms: expected 1 or 2 dimensions, got a tensor of shape {given.static_shape}")
        rows = array_ops.reshape(given, constant([-1, 8]))
        count = array_ops.shape(rows)[0]
        whole = array_ops.concat([rows, array_ops.ones([count, 1])], axis=1)
        return array_ops.reshape(whole, constant([-1, 3, 3]))


def matrices_to_flat_transforms(transform_matrices: TensorLike) -> Tensor:
    """Transforms [n, 8] of matrices [3, 3] or [n, 3, 3].

    Raises:
        ValueError: `transform_matrices` has neither 2 nor 3 dimensions.
    """
    with name_scope("matrices_to_flat_transforms"):
        given = convert_to_tensor(transform_matrices, name="transform_matrices")
        if given.static_shape.rank not in (2, 3):
            raise ValueError(
                f"transform_matrices: expected 2 or 3 dimensions, got a tensor of shape {given.static_shape}"
            )
        rows = array_ops.reshape(given, constant([-1, 9]))
        rows = rows / rows[:, 8:9]
        return rows[:, :8]
