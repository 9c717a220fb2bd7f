"""Padding that the next convolution or pool can do itself."""

from __future__ import annotations

from toolkit.compiler.ir.block import Block
from toolkit.compiler.ir.operation import Operation
from toolkit.compiler.ir.operations.memory import Pad
from toolkit.compiler.ir.operations.pools import Pool, PoolFunction
from toolkit.compiler.ir.post_ops import Apply, UnaryFunction, post_ops_of
from toolkit.compiler.ir.value import Value


def merge_padding(block: Block) -> None:
    """Give explicit padding to convolutions, and to max pools of what is never negative."""
    merged: set[Operation] = set()
    for operation in block.operations:
        if not isinstance(operation, Pad) or operation.value != 0.0:
            continue
        user = operation.output.sole_user
        pads = operation.padding
        if user is None or user.guard != operation.guard or any(pair != (0, 0) for pair in (pads[0], pads[-1])):
            continue
        if user.inputs[0] is not operation.output:  # it is added to what a convolution gives
            continue
        if isinstance(user, Pool):
            if not _can_pool(user, operation.input, pads[1:-1]):
                continue
            user.padding = pads[1:-1]
            user.steps = operation.steps + user.steps
            user.input = operation.input
            merged.add(operation)
        elif user.kind == "conv":
            user.attrs["pads"] = tuple(
                (own[0] + more[0], own[1] + more[1]) for own, more in zip(user.attrs["pads"], pads[1:-1], strict=True)
            )
            user.steps = operation.steps + user.steps
            user.set_inputs([operation.input if v is operation.output else v for v in user.inputs])
            merged.add(operation)
    block.remove(merged)


def _can_pool(pool: Pool, source: Value, pads: tuple[tuple[int, int], ...]) -> bool:
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
