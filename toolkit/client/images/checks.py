"""What is a picture: judged at once where the shape says it, in the step otherwise."""

from __future__ import annotations

from typing import Any

from toolkit.client.arrays import array_ops
from toolkit.client.checks.assertions import assert_equal, assert_greater_equal, assert_positive
from toolkit.client.construction.tensor import Tensor
from toolkit.client.flow.control_flow import Assert, with_dependencies

#: what asserts of the graph say; TensorFlow's graphs have these texts
_POSITIVE = "inner 3 dims of 'image.shape' must be > 0."
_RANK = "'image' must be at least three-dimensional."
_GRAY = "Last dimension of a grayscale image should be size 1."
_GRAY_RANK = "A grayscale image must be at least two-dimensional."


def check(condition: Any, message: str, argument: str) -> list[Any]:
    """An Assert where the condition is a tensor, nothing where it holds.

    Args:
        message: what the Assert says.
        argument: what was given and what is asked of it, for the error.

    Raises:
        ValueError: it does not hold.
    """
    if isinstance(condition, Tensor):
        return [Assert(condition, [message])]
    if not condition:
        raise ValueError(argument)
    return []


def at_least_3d(image: Tensor) -> list[Any]:
    """Asserts that a picture has three axes or more, the last three of them not empty.

    Raises:
        ValueError: it is known not to.
    """
    shape = image.static_shape
    if shape.rank is not None and shape.rank < 3:
        raise ValueError(f"image: expected [height, width, channels] or a batch of such, got shape {shape}")
    inner = [None, None, None] if shape.rank is None else list(shape)[-3:]
    if 0 in inner:
        raise ValueError(f"image: expected pixels and channels, got shape {shape}")
    if shape.rank is not None and None not in inner:
        return []
    return [
        assert_positive(array_ops.shape(image)[-3:], [_POSITIVE]),
        assert_greater_equal(array_ops.rank(image), 3, message=_RANK),
    ]


def checked(image: Tensor) -> Tensor:
    """The picture, once it is known to be one."""
    return with_dependencies(at_least_3d(image), image)


def checked_gray(image: Tensor) -> Tensor:
    """The picture, once it is known to have one channel.

    Raises:
        ValueError: it is known not to.
    """
    shape = image.static_shape
    if shape.rank is not None and shape.rank < 2:
        raise ValueError(f"images: expected at least two axes, got shape {shape}")
    if shape.is_fully_defined:
        if shape[-1] != 1:
            raise ValueError(f"images: expected one channel, got shape {shape}")
        return with_dependencies([], image)
    asserts = [
        assert_equal(array_ops.shape(image)[-1], 1, message=_GRAY),
        assert_greater_equal(array_ops.rank(image), 3, message=_GRAY_RANK),
    ]
    return with_dependencies(asserts, image)


def rank_is_unknown(image: Tensor) -> bool:
    """Whether one picture and a batch have to be told apart in the step.

    Raises:
        ValueError: it is neither.
    """
    rank = image.static_shape.rank
    if rank not in (None, 3, 4):
        raise ValueError(f"image: expected three or four axes, got shape {image.static_shape}")
    return rank is None


def sizes(image: Tensor, rank: int) -> list[Any]:
    """The sizes along the axes: numbers where they are known, tensors where not."""
    shape = image.static_shape
    if shape.is_fully_defined:
        return list(shape)
    known = list(shape.with_rank(rank))
    asked = array_ops.unstack(array_ops.shape(image), rank)
    return [there if size is None else size for size, there in zip(known, asked, strict=True)]


def as_batch(image: Tensor) -> tuple[Tensor, bool]:
    """A batch of one made of one picture, and whether it was a batch already.

    Raises:
        ValueError: it is neither.
    """
    if rank_is_unknown(image):
        image = array_ops.expand_dims(image, 0)
        image.set_shape([None] * 4)
        return image, False
    if image.static_shape.rank == 3:
        return array_ops.expand_dims(image, 0), False
    return image, True
