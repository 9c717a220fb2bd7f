"""What several families of gradients need."""

from __future__ import annotations

from collections.abc import Generator
from contextlib import contextmanager
from typing import Any

from toolkit.client import array_ops, math_ops, ops
from toolkit.client.convert import constant
from toolkit.client.tensor import Tensor
from toolkit.graph.shape import Shape

#: the scopes of the calls of `gradients` under way, the innermost last
_sources: list[str] = []


@contextmanager
def gradients_of(scope: str) -> Generator[None]:
    """While a call of `gradients` makes its nodes in this scope."""
    _sources.append(scope.rstrip("/"))
    try:
        yield
    finally:
        _sources.pop()


def gradient_source() -> str:
    """A name for the call of `gradients` under way, unlike that of any other call in the graph."""
    return _sources[-1] if _sources else "gradients"


def conj(x: Tensor) -> Tensor:
    """The conjugate; real tensors are their own."""
    return ops.conj(x) if x.dtype.base.is_complex else x


def known_value(tensor: Tensor) -> Any:
    """The value of a small integer tensor if it is known now: a number or nested lists without gaps; else None."""
    value = tensor.graph.shapes.constant(tensor.output)
    return None if _has_gap(value) else value


def _has_gap(value: Any) -> bool:
    return value is None or (isinstance(value, list) and any(map(_has_gap, value)))  # type: ignore[arg-type]


def shape_of(tensor: Tensor) -> Tensor:
    """The run-time shape; a Const when it is known."""
    return array_ops.shape(tensor)


def reduce_broadcast(x: Tensor, y: Tensor, gx: Tensor | None, gy: Tensor | None) -> list[Tensor | None]:
    """Gradients of the broadcast inputs from those of what they were broadcast to: sums over what was repeated."""
    need_x = gx is not None and may_be_repeated(x.static_shape, y.static_shape)
    need_y = gy is not None and may_be_repeated(y.static_shape, x.static_shape)
    if not need_x and not need_y:
        return [gx, gy]
    sx, sy = shape_of(x), shape_of(y)
    rx, ry = ops.broadcast_gradient_args(sx, sy)
    if need_x:
        gx = array_ops.reshape(math_ops.reduce_sum(gx, rx), sx)
    if need_y:
        gy = array_ops.reshape(math_ops.reduce_sum(gy, ry), sy)
    return [gx, gy]


def may_be_repeated(mine: Shape, other: Shape) -> bool:
    """Whether broadcasting against `other` may repeat something of `mine`."""
    if mine.dims is None or other.dims is None:
        return True
    if len(other.dims) > len(mine.dims):
        return True
    for a, b in zip(reversed(mine.dims), reversed(other.dims), strict=False):
        if b == 1 or (a is not None and a != 1) or (a is not None and a == b):
            continue
        return True
    return False


def axis_list(value: Any) -> list[int] | None:
    """The known value of an axis input, a number or a list, as a list."""
    return None if value is None else list(value) if isinstance(value, list) else [value]  # type: ignore[arg-type]


def kept_dims(shape: Tensor, axes: Tensor) -> Tensor:
    """The shape of a reduction's result with the reduced axes kept as 1."""
    sizes, reduced = known_value(shape), axis_list(known_value(axes))
    if sizes is not None and reduced is not None:
        chosen = {axis % max(len(sizes), 1) for axis in reduced}
        return constant([1 if i in chosen else size for i, size in enumerate(sizes)], shape.dtype.base)
    shape = math_ops.cast(shape, "int32")
    axes = array_ops.reshape(math_ops.cast(axes, "int32"), [-1])
    rank = array_ops.size(shape)
    positive = (axes + rank) % rank
    return ops.dynamic_stitch(
        [math_ops.range(rank), positive], [shape, array_ops.fill(array_ops.shape(positive), constant(1))]
    )


def broadcast_mul(vector: Tensor, matrix: Tensor) -> Tensor:
    """Each row of `matrix` times an element of `vector`."""
    return array_ops.expand_dims(vector, -1) * matrix
