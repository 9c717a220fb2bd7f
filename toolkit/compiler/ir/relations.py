"""Relations between shapes and types that the `verify` of several operations asks for.

Each yields what is wrong, a sentence each.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Sequence
from typing import Any

from toolkit.compiler.ir.post_ops import Combine, PostOp
from toolkit.compiler.ir.value import Value

Shape = tuple[int, ...]


def shape(value: Value) -> Shape:
    """Its shape; one that goes with no other where it is not known."""
    return value.shape if value.shape is not None else (-1,)


def shapes(*values: Value) -> list[Shape]:
    """Of each its `shape`."""
    return [shape(value) for value in values]


def same(what: str, *values: Value) -> Iterator[str]:
    """All have one known shape and type."""
    first = values[0]
    for value in values:
        if value.shape is None or value.shape != first.shape or value.dtype != first.dtype:
            yield f"{what}: {text(value)} beside {text(first)}"


def text(value: Value) -> str:
    """Its type and shape, for messages."""
    return f"{value.dtype}{' of unknown shape' if value.shape is None else list(value.shape)}"


def vector(what: str, value: Value, size: int) -> Iterator[str]:
    """It has that many elements along one axis."""
    if value.shape != (size,):
        yield f"{what} is {text(value)}, not a vector of {size}"


def constant(what: str, array: Any, size: int) -> Iterator[str]:
    """An array that may be missing has that many elements."""
    if array is not None and array.size != size:
        yield f"{what} has {array.size} numbers, not {size}"


def broadcasts(given: Shape, target: Shape) -> bool:
    """Whether a shape is broadcast to another without making that larger."""
    padded = (1,) * (len(target) - len(given)) + given
    return len(padded) == len(target) and all(a in (1, b) for a, b in zip(padded, target, strict=True))


def broadcast_post_ops(post_ops: Iterable[PostOp], output: Value) -> Iterator[str]:
    """Tensors of post-ops are broadcast to the output."""
    (target,) = shapes(output)
    for post in post_ops:
        if isinstance(post, Combine) and not broadcasts(shape(post.other), target):
            yield f"{text(post.other)} is not broadcast to {list(target)}"


def windows(
    x: Shape,
    window: Sequence[int],
    y: Shape,
    *,
    strides: Sequence[int],
    padding: Sequence[tuple[int, int]],
    dilations: Sequence[int] | None = None,
) -> Iterator[str]:
    """Along each spatial axis there are as many outputs as there are places for the window."""
    rank = len(x)
    if len(y) != rank or len(window) != rank - 2 or rank < 3:
        yield f"windows {list(window)} over {list(x)} make {list(y)}"
        return
    parts = zip(x[1:-1], window, strides, dilations or (1,) * (rank - 2), padding, y[1:-1], strict=True)
    for size, k, stride, dilation, (before, behind), out in parts:
        if stride < 1 or dilation < 1 or k < 1 or min(before, behind) < 0:
            yield f"a window of {k} with stride {stride}, dilation {dilation} and padding {(before, behind)}"
        elif (size + before + behind - ((k - 1) * dilation + 1)) // stride + 1 != out:
            yield f"a window of {k} over {size} does not make {out}"


def convolution(
    x: Shape,
    w: Shape,
    y: Shape,
    *,
    strides: Sequence[int],
    dilations: Sequence[int],
    padding: Sequence[tuple[int, int]],
    groups: int,
    depthwise: bool,
) -> Iterator[str]:
    """x, TensorFlow's filter and y go together."""
    if len(w) != len(x) or len(y) != len(x) or x[0] != y[0]:
        yield f"a convolution of {list(x)} with {list(w)} makes {list(y)}"
        return
    yield from windows(x, w[:-2], y, strides=strides, padding=padding, dilations=dilations)
    if depthwise:
        if (x[-1], y[-1]) != (w[-2], w[-2] * w[-1]) or groups != w[-2]:
            yield f"a depthwise filter {list(w)} takes {x[-1]} channels to {y[-1]}"
    elif groups < 1 or x[-1] != w[-2] * groups or w[-1] % groups or y[-1] != w[-1]:
        yield f"a filter {list(w)} in {groups} groups takes {x[-1]} channels to {y[-1]}"


def product(
    a: Shape, b: Shape, y: Shape, *, transpose_left: bool, transpose_right: bool, first_column: int | None = None
) -> Iterator[str]:
    """Two matrices, or batches of them that are broadcast to each other, make a product.

    Args:
        first_column: where in b the columns start that are wanted; None where all are.
    """
    if min(len(a), len(b), len(y)) < 2:
        yield f"a product of {list(a)} and {list(b)} to {list(y)}"
        return
    rows, inner = a[-2:][::-1] if transpose_left else a[-2:]
    depth, columns = b[-2:][::-1] if transpose_right else b[-2:]
    fits = columns == y[-1] if first_column is None else columns >= y[-1] + first_column
    if inner != depth or not fits or y[-2] != rows:
        yield f"a product of {rows}x{inner} and {depth}x{columns} makes {list(y[-2:])}"
    batches = [a[:-2], b[:-2]]
    if any(not broadcasts(batch, y[:-2]) for batch in batches) or math.prod(y[:-2]) > _largest(batches):
        yield f"batches {list(a[:-2])} and {list(b[:-2])} make {list(y[:-2])}"


def _largest(batches: Sequence[Shape]) -> int:
    """How many products batches make that are broadcast to each other."""
    rank = max(map(len, batches))
    padded = [(1,) * (rank - len(batch)) + batch for batch in batches]
    return math.prod(max(sizes) for sizes in zip(*padded, strict=True))


def scales(values: Any, outputs: int) -> Iterator[str]:
    """There is one scale, or one for each channel of the output."""
    if getattr(values, "size", 1) not in (1, outputs):
        yield f"{values.size} scales for {outputs} channels"
