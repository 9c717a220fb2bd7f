"""Pictures flipped, turned and transposed, by chance or always."""

from __future__ import annotations

from collections.abc import Callable

from toolkit.client import ops
from toolkit.client.arrays import array_ops
from toolkit.client.construction.convert import convert_to_tensor
from toolkit.client.construction.scopes import name_scope
from toolkit.client.construction.tensor import Tensor, TensorLike
from toolkit.client.flow.control_flow import case, cond
from toolkit.client.images.checks import checked, rank_is_unknown
from toolkit.client.math import math_ops
from toolkit.client.random import random_ops
from toolkit.graph import dtypes

Turn = Callable[[], Tensor]


def _by_rank(image: Tensor, one: Turn, batch: Turn) -> Tensor:
    """What is done to a picture, or to a batch; decided in the step where the rank is not known."""
    if rank_is_unknown(image):
        return cond(ops.equal(array_ops.rank(image), 3), one, batch)
    return one() if image.static_shape.rank == 3 else batch()


def _with_shape_of(image: Tensor, result: Tensor) -> Tensor:
    result.set_shape([None] * 3 if image.static_shape.rank is None else image.static_shape)
    return result


def _flip(image: TensorLike, axis: int, scope: str) -> Tensor:
    with name_scope(None, scope, [image]):
        image = checked(convert_to_tensor(image, name="image"))
        return _by_rank(
            image,
            lambda: _with_shape_of(image, array_ops.reverse(image, [axis])),
            lambda: array_ops.reverse(image, [axis + 1]),
        )


def flip_left_right(image: TensorLike) -> Tensor:
    """The picture, or each picture of a batch, mirrored from left to right."""
    return _flip(image, 1, "flip_left_right")


def flip_up_down(image: TensorLike) -> Tensor:
    """The picture, or each picture of a batch, upside down."""
    return _flip(image, 0, "flip_up_down")


def _random_flip(image: TensorLike, axis: int, seed: int | None, scope_name: str) -> Tensor:
    with name_scope(None, scope_name, [image]) as scope:
        image = checked(convert_to_tensor(image, name="image"))

        def one() -> Tensor:
            mirrored = ops.less(random_ops.random_uniform([], 0, 1.0, seed=seed), 0.5)
            flipped = cond(mirrored, lambda: array_ops.reverse(image, [axis]), lambda: image, name=scope)
            return _with_shape_of(image, flipped)

        def batch() -> Tensor:
            count = array_ops.shape(image)[0]
            drawn = random_ops.random_uniform([count], 0, 1.0, seed=seed)
            flips = math_ops.cast(ops.round(array_ops.reshape(drawn, [count, 1, 1, 1])), image.dtype.base)
            flipped = array_ops.reverse(image, [axis + 1])
            return flips * flipped + (1 - flips) * image

        return _by_rank(image, one, batch)


def random_flip_left_right(image: TensorLike, seed: int | None = None) -> Tensor:
    """Mirrored with probability 1/2, each picture of a batch on its own."""
    return _random_flip(image, 1, seed, "random_flip_left_right")


def random_flip_up_down(image: TensorLike, seed: int | None = None) -> Tensor:
    """Upside down with probability 1/2, each picture of a batch on its own."""
    return _random_flip(image, 0, seed, "random_flip_up_down")


def rot90(image: TensorLike, k: TensorLike = 1, name: str | None = None) -> Tensor:
    """Turned counter-clockwise by `k` times 90 degrees."""
    with name_scope(name, "rot90", [image, k]) as scope:
        image = checked(convert_to_tensor(image, name="image"))
        k = convert_to_tensor(k, dtypes.int32, name="k")
        if k.static_shape.rank not in (None, 0):
            raise ValueError(f"k: expected one number, got a tensor of shape {k.static_shape}")
        turns = k % 4

        return _by_rank(image, lambda: _turned(image, turns, 0, scope), lambda: _turned(image, turns, 1, scope))


def _turned(image: Tensor, turns: Tensor, first: int, scope: str) -> Tensor:
    """By `turns` quarters; `first` is the axis of rows."""
    rows, columns = first, first + 1
    swapped = [*range(first), columns, rows, first + 2]
    quarters: list[tuple[Tensor, Turn]] = [
        (ops.equal(turns, 1), lambda: array_ops.transpose(array_ops.reverse(image, [columns]), swapped)),
        (ops.equal(turns, 2), lambda: array_ops.reverse(image, [rows, columns])),
        (ops.equal(turns, 3), lambda: array_ops.reverse(array_ops.transpose(image, swapped), [columns])),
    ]
    result = case(quarters, default=lambda: image, exclusive=True, name=scope)
    known = list(image.static_shape.with_rank(first + 3))
    result.set_shape([*known[:first], None, None, known[-1]])
    return result


def transpose(image: TensorLike, name: str | None = None) -> Tensor:
    """Rows become columns."""
    with name_scope(name, "transpose", [image]):
        image = checked(convert_to_tensor(image, name="image"))
        label = name or "transpose"
        return _by_rank(
            image,
            lambda: array_ops.transpose(image, [1, 0, 2], name=label),
            lambda: array_ops.transpose(image, [0, 2, 1, 3], name=label),
        )
