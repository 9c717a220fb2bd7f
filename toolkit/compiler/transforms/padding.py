"""Padding that the next convolution or pool can do itself."""

from __future__ import annotations

from dataclasses import replace

from toolkit.compiler.ir.block import Block
from toolkit.compiler.ir.operation import Operation
from toolkit.compiler.ir.operations.memory import Pad
from toolkit.compiler.ir.operations.pools import Pool, PoolFunction
from toolkit.compiler.ir.operations.products import Convolution
from toolkit.compiler.ir.post_ops import Apply, UnaryFunction, post_ops_of
from toolkit.compiler.ir.value import Value

Pads = tuple[tuple[int, int], ...]


def merge_padding(block: Block) -> None:
    """Give explicit padding to convolutions, and to max pools of what is never negative."""
    merged: set[Operation] = set()
    for operation in block.operations:
        if not isinstance(operation, Pad) or operation.value != 0.0:
            continue
        user = operation.output.sole_user
        pads = operation.padding
        if (
            user is None
            or user.conditions != operation.conditions
            or any(pair != (0, 0) for pair in (pads[0], pads[-1]))
        ):
            continue
        if user.inputs[0] is not operation.output:  # it is added to what a convolution gives
            continue
        source = operation.input
        if isinstance(user, Convolution) and user.filter is None:
            user.windows = replace(user.windows, padding=_together(user.windows.padding, pads[1:-1]))
        elif isinstance(user, Pool) and _can_pool(user, source, pads[1:-1]):
            user.padding = pads[1:-1]
        else:
            continue
        user.steps = operation.steps + user.steps
        user.replace_operands({operation.output: source})
        merged.add(operation)
    block.remove(merged)


def _together(own: Pads, more: Pads) -> Pads:
    return tuple((a[0] + b[0], a[1] + b[1]) for a, b in zip(own, more, strict=True))


def _can_pool(pool: Pool, source: Value, pads: Pads) -> bool:
    """A pool of non-negative numbers does not see zeros around them, if each window holds at least one number."""
    if pool.function is not PoolFunction.MAX or any(pair != (0, 0) for pair in pool.padding):
        return False
    if any(max(pair) >= size for pair, size in zip(pads, pool.window, strict=True)):
        return False
    producer = source.producer
    posts = post_ops_of(producer) if producer is not None else None
    last = posts[-1] if posts else None
    if not isinstance(last, Apply):
        return False
    is_relu = last.function is UnaryFunction.RELU and last.alpha == 0.0  # with a slope it is a leaky one
    return is_relu or (last.function is UnaryFunction.CLIP_V2 and last.alpha >= 0.0)
