"""What several families of gradients need."""

from __future__ import annotations

from collections.abc import Generator
from contextlib import contextmanager
from typing import Any

from toolkit.client import ops
from toolkit.client.arrays import array_ops
from toolkit.client.construction.tensor import Tensor
from toolkit.client.math import math_ops
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
    """Gradients of the broadcast inputs from those of what they were broadcast to: sums over what was repeated.

    The axes are worked out now where the shapes tell, else in the step (BroadcastGradientArgs).
    """
    if gx is None and gy is None:
        return [None, None]
    sizes = [shape_of(x), shape_of(y)]
    known = _repeated_axes(x.static_shape, y.static_shape)
    axes: list[Any] = list(ops.broadcast_gradient_args(*sizes)) if known is None else list(known)
    ranks = [x.static_shape.rank or 0, y.static_shape.rank or 0]
    needed = [known is None or bool(known[i]) or ranks[i] < ranks[1 - i] for i in (0, 1)]
    reduced: list[Tensor | None] = []
    for grad, size, along, must in zip((gx, gy), sizes, axes, needed, strict=True):
        if grad is not None and must:
            grad = array_ops.reshape(math_ops.reduce_sum(grad, along, keepdims=True), size)
        reduced.append(grad)
    return reduced


def _repeated_axes(x: Shape, y: Shape) -> tuple[list[int], list[int]] | None:
    """Along which axes broadcasting repeats x and y; None where that depends on sizes not known yet."""
    if x.dims is None or y.dims is None:
        return None
    rank = max(len(x.dims), len(y.dims))
    first: list[int] = []
    second: list[int] = []
    wide = [[1] * (rank - len(dims)) + list(dims) for dims in (x.dims, y.dims)]
    for axis, (a, b) in enumerate(zip(*wide, strict=True)):
        if a == 1 and b != 1:
            first.append(axis)
        elif b == 1 and a != 1:
            second.append(axis)
        elif a is None or b is None:
            return None
    return first, second


def same_known_shape(*tensors: Any) -> bool:
    """Whether dense tensors have one and the same shape, all of whose sizes are known."""
    if not all(isinstance(tensor, Tensor) for tensor in tensors):
        return False
    first = tensors[0].static_shape
    return first.is_fully_defined and all(tensor.static_shape.dims == first.dims for tensor in tensors[1:])


def axis_list(value: Any) -> list[int] | None:
    """The known value of an axis input, a number or a list, as a list."""
    return None if value is None else list(value) if isinstance(value, list) else [value]  # type: ignore[arg-type]


def kept_dims(shape: Tensor, axes: Tensor) -> Any:
    """The shape of a reduction's result with the reduced axes kept as 1; a list where it is known."""
    sizes, reduced = known_value(shape), axis_list(known_value(axes))
    if sizes is not None and reduced is not None:
        return kept_sizes(sizes, reduced)
    shape = math_ops.cast(shape, "int32")
    axes = math_ops.cast(axes, "int32")
    rank = array_ops.size(shape)
    positive = (axes + rank) % rank
    count = array_ops.shape(positive)
    every = math_ops.range(rank)
    return ops.dynamic_stitch([every, positive], [shape, array_ops.ones(count, "int32")])


def kept_sizes(sizes: list[int], axes: list[int]) -> list[int]:
    """Known sizes with those of the reduced axes as 1."""
    chosen = {axis % max(len(sizes), 1) for axis in axes}
    return [1 if i in chosen else size for i, size in enumerate(sizes)]


def broadcast_mul(vector: Tensor, matrix: Tensor) -> Tensor:
    """Each row of `matrix` times an element of `vector`."""
    return array_ops.expand_dims(vector, -1) * matrix
