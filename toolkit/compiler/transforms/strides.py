"""Strides moved up: what only 1x1 convolutions of stride 2 read need not be computed at the other places.

A residual network's blocks end at full resolution although the next stage looks at every other row and column. The
stride moves through the last 1x1 convolution to the 3x3 before it, and the residual is subsampled; the numbers are
the same, computed where they are looked at.
"""

from __future__ import annotations

from dataclasses import replace

from toolkit.compiler.ir.block import Block
from toolkit.compiler.ir.operation import Operation
from toolkit.compiler.ir.operations.memory import Subsample
from toolkit.compiler.ir.operations.products import Convolution
from toolkit.compiler.ir.post_ops import Apply, Combine
from toolkit.compiler.ir.value import Value


def push_strides(block: Block) -> None:
    """Move strides of 1x1 convolutions to the convolutions that make their input."""
    before: dict[Operation, list[Operation]] = {}
    for operation in reversed(block.operations):
        if isinstance(operation, Convolution) and operation.filter is None:
            before[operation] = _push(operation)
    block.weave(before)


def _push(producer: Convolution) -> list[Operation]:
    """Give a convolution the stride of those that read it; returns what must be subsampled before it."""
    value = producer.output
    strides = _common_stride(value)
    if strides is None or value.shape is None:
        return []
    shape = value.shape
    smaller = (shape[0], *(-(-size // s) for size, s in zip(shape[1:-1], strides, strict=True)), shape[-1])
    if not _keeps_places(producer, strides, smaller) or not _can_subsample(producer, shape):
        return []
    parts: list[Operation] = []
    moved: dict[Value, Value] = {}
    for post in producer.post_ops:
        if isinstance(post, Combine) and post.other.shape == shape and post.other not in moved:
            part = Value(post.other.dtype, smaller)
            taken = Subsample(input=post.other, strides=strides, outputs=[part], steps=[producer.step])
            taken.conditions = producer.conditions
            parts.append(taken)
            moved[post.other] = part
    producer.post_ops = tuple(  # and no other operand: what is convolved may also be what is added
        replace(post, other=moved.get(post.other, post.other)) if isinstance(post, Combine) else post
        for post in producer.post_ops
    )
    longer = tuple(a * b for a, b in zip(producer.windows.strides, strides, strict=True))
    producer.windows = replace(producer.windows, strides=longer)
    value.shape = smaller
    for user in value.users:
        assert isinstance(user, Convolution)
        user.windows = replace(user.windows, strides=(1,) * len(strides))
    return parts


def _common_stride(value: Value) -> tuple[int, ...] | None:
    """The stride of all who read a value, when all are 1x1 convolutions with the same one above 1."""
    if value.is_result or value.is_predicate or not value.users:
        return None
    found: set[tuple[int, ...]] = set()
    for user in value.users:
        if not isinstance(user, Convolution) or user.input is not value or user.inputs.count(value) != 1:
            return None
        is_constant = user.filter is None and all(size == 1 for size in user.filter_shape[:-2])
        if not is_constant or user.windows.depthwise or any(pair != (0, 0) for pair in user.windows.padding):
            return None
        found.add(user.windows.strides)
    strides = next(iter(found))
    return strides if len(found) == 1 and max(strides) > 1 else None


def _keeps_places(producer: Convolution, strides: tuple[int, ...], smaller: tuple[int, ...]) -> bool:
    """Whether the producer with the longer stride has outputs of the right number with its padding as it is."""
    windows, x = producer.windows, producer.input.shape
    assert x is not None
    for axis, more in enumerate(strides):
        stride = windows.strides[axis] * more
        span = (producer.filter_shape[axis] - 1) * windows.dilations[axis] + 1
        if (x[axis + 1] + sum(windows.padding[axis]) - span) // stride + 1 != smaller[axis + 1]:
            return False
    return True


def _can_subsample(producer: Convolution, shape: tuple[int, ...]) -> bool:
    for post in producer.post_ops:
        if isinstance(post, Apply):
            continue
        other = post.other.shape
        if other is None or (other != shape and any(size != 1 for size in other[:-1])):
            return False
        if other == shape and (post.other.is_constant or post.other.producer is None):
            return False
    return True
