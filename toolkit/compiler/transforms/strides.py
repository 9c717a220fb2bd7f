"""Strides moved up: what only 1x1 convolutions of stride 2 read need not be computed at the other places.

A residual network's blocks end at full resolution although the next stage looks at every other row and column. The
stride moves through the last 1x1 convolution to the 3x3 before it, and the residual is subsampled; the numbers are
the same, computed where they are looked at.
"""

from __future__ import annotations

from toolkit.compiler.ir.block import Block
from toolkit.compiler.ir.operation import Operation
from toolkit.compiler.ir.operations.memory import Subsample
from toolkit.compiler.ir.post_ops import Apply, Combine
from toolkit.compiler.ir.value import Value
from toolkit.compiler.transforms.elements import substitute


def push_strides(block: Block) -> None:
    """Move strides of 1x1 convolutions to the convolutions that make their input."""
    before: dict[Operation, list[Operation]] = {}
    for operation in reversed(block.operations):
        if operation.kind == "conv":
            before[operation] = _push(operation)
    block.weave(before)


def _push(producer: Operation) -> list[Operation]:
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
    for post in producer.attrs["posts"]:
        if isinstance(post, Combine) and post.other.shape == shape and post.other not in moved:
            part = Value(post.other.dtype, smaller)
            taken = Subsample(input=post.other, strides=strides, outputs=[part], steps=[producer.step])
            taken.guard = producer.guard
            parts.append(taken)
            moved[post.other] = part
    x = producer.inputs[0]
    substitute(producer, moved)
    producer.set_inputs([x, *producer.inputs[1:]])  # what is convolved may also be what is added
    producer.attrs["strides"] = tuple(a * b for a, b in zip(producer.attrs["strides"], strides, strict=True))
    value.shape = smaller
    for user in value.users:
        user.attrs["strides"] = (1,) * len(strides)
    return parts


def _common_stride(value: Value) -> tuple[int, ...] | None:
    """The stride of all who read a value, when all are 1x1 convolutions with the same one above 1."""
    if value.is_result or value.is_predicate or not value.users:
        return None
    found: set[tuple[int, ...]] = set()
    for user in value.users:
        is_pointwise = (
            user.kind == "conv"
            and user.inputs[0] is value
            and user.inputs.count(value) == 1
            and all(size == 1 for size in user.attrs["filter"].shape[:-2])
            and all(pair == (0, 0) for pair in user.attrs["pads"])
            and not user.attrs["depthwise"]
        )
        if not is_pointwise:
            return None
        found.add(tuple(user.attrs["strides"]))
    strides = next(iter(found))
    return strides if len(found) == 1 and max(strides) > 1 else None


def _keeps_places(producer: Operation, strides: tuple[int, ...], smaller: tuple[int, ...]) -> bool:
    """Whether the producer with the longer stride has outputs of the right number with its padding as it is."""
    attrs = producer.attrs
    x = producer.inputs[0].shape
    assert x is not None
    for axis, more in enumerate(strides):
        stride = attrs["strides"][axis] * more
        span = (attrs["filter"].shape[axis] - 1) * attrs["dilations"][axis] + 1
        if (x[axis + 1] + sum(attrs["pads"][axis]) - span) // stride + 1 != smaller[axis + 1]:
            return False
    return True


def _can_subsample(producer: Operation, shape: tuple[int, ...]) -> bool:
    for post in producer.attrs["posts"]:
        if isinstance(post, Apply):
            continue
        other = post.other.shape
        if other is None or (other != shape and any(size != 1 for size in other[:-1])):
            return False
        if other == shape and (post.other.is_constant or post.other.producer is None):
            return False
    return True
