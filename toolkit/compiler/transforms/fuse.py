"""Fusion: elementwise operations after a primitive become its post-ops, so that no tensor is written in between."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from toolkit.compiler.ir.block import Block
from toolkit.compiler.ir.operation import Operation
from toolkit.compiler.ir.operations.elementwise import Activation, Elementwise
from toolkit.compiler.ir.operations.products import Convolution, MatMul
from toolkit.compiler.ir.post_ops import Apply, BinaryFunction, Combine, PostOp, UnaryFunction, operands_of
from toolkit.compiler.ir.value import Value
from toolkit.compiler.transforms.elements import frame_of, is_float, posts_of, scalar_of
from toolkit.kernels.tensors import F32

#: what takes up what follows it
Host = Convolution | MatMul | Elementwise
_MOST = 8  # post-ops of a primitive

Refused = Callable[[Operation], bool]
#: whether a product may take these post-ops besides those that it has
Takes = Callable[[MatMul, Sequence[PostOp]], bool]


def fuse_epilogues(block: Block, refused: Refused, takes: Takes) -> None:
    """Let every convolution, matrix product and elementwise primitive take up what follows it."""
    for operation in block.operations:
        if isinstance(operation, Host) and operation.block is block:
            while _absorb_next(block, operation, refused, takes):
                pass


def _absorb_next(block: Block, host: Host, refused: Refused, takes: Takes | None = None) -> bool:
    value = host.output
    user = value.sole_user
    if user is None or len(user.outputs) < 1 or user.block is not block or refused(user):
        return False
    if isinstance(user, Host) or user.conditions != host.conditions:
        return False
    posts = posts_of(user, value)
    if posts is None or not _fits(host.output, [*host.post_ops, *posts]):
        return False
    if value in operands_of(posts):  # nobody will have it any more
        return False
    if takes is not None and isinstance(host, MatMul) and not takes(host, posts):
        return False
    for post in posts:
        if isinstance(host, Elementwise) or not _fold(host, post):
            host.post_ops = (*host.post_ops, post)
    host.set_outputs([user.output])
    host.steps += user.steps
    block.move_before(user, host)
    block.erase(user)
    return True


def _fits(output: Value, post_ops: Sequence[PostOp]) -> bool:
    """Whether a primitive that makes this output can do all of that to it."""
    if len(post_ops) > _MOST:
        return False
    assert output.shape is not None
    frame = frame_of(output.shape)
    return all(
        not isinstance(post, Combine)
        or (is_float(post.other) and post.other.shape is not None and frame.layout(post.other.shape) is not None)
        for post in post_ops
    )


def _fold(host: Convolution | MatMul, post: PostOp) -> bool:
    """Scale and shift known beforehand go into constant weights and the bias; says whether that could be done."""
    if host.post_ops:
        return False
    has_weights = host.weights is not None
    channels = host.output.shape[-1] if host.output.shape else 1
    if isinstance(post, Apply):
        if post.function is not UnaryFunction.LINEAR:
            return False
        if post.alpha != 1.0:
            if not has_weights or not math.isfinite(post.alpha):  # infinite weights make NaN where a sum is infinite
                return False
            _scale(host, np.float32(post.alpha))
        if post.beta:
            _shift(host, np.full(channels, post.beta, np.float32))
        return True
    vector = _channel_vector(post.other, channels)
    if vector is None:
        return False
    match post.function:
        case BinaryFunction.ADD:
            _shift(host, vector)
        case BinaryFunction.SUB:
            _shift(host, -vector)
        case BinaryFunction.MUL if has_weights and bool(np.isfinite(vector).all()):
            _scale(host, vector)
        case _:
            return False
    return True


def _channel_vector(value: Value, channels: int) -> Any:
    """A constant that has one number for each channel (the last axis), as a vector; None if it is not that."""
    if not value.is_constant or value.shape is None or value.dtype != F32:
        return None
    array = np.asarray(value.constant)
    if array.size == channels and array.shape[-1:] == (channels,):
        return array.reshape(-1)
    number = scalar_of(value)
    return None if number is None else np.full(channels, number, np.float32)


def _shift(host: Convolution | MatMul, vector: Any) -> None:
    host.bias = vector if host.bias is None else host.bias + vector


def _scale(host: Convolution | MatMul, factor: Any) -> None:
    if isinstance(host, Convolution) and host.windows.depthwise and np.ndim(factor):
        factor = factor.reshape(host.weights.shape[-2:])
    host.weights = host.weights * factor
    if host.bias is not None:
        host.bias = host.bias * np.reshape(factor, -1)


def lower_elementwise(block: Block, refused: Refused, least: int) -> None:
    """What is left of elementwise operations becomes `Elementwise`, which takes up what follows it.

    Args:
        least: elements of an output.
    """
    for operation in block.operations:
        made = _lower_one(operation, least) if operation.block is block and not refused(operation) else None
        while made is not None and _absorb_next(block, made, refused):
            pass


def _lower_one(operation: Operation, least: int) -> Elementwise | None:
    if isinstance(operation, Host) or not operation.outputs or not operation.inputs:
        return None
    subject = _subject(operation)
    if subject is None or not is_float(operation.output):
        return None
    if operation.output.size < least and not isinstance(operation, Activation):
        return None
    post_ops = posts_of(operation, subject)
    if post_ops is None or not _fits(operation.output, post_ops):
        return None
    # without the outputs of a batch norm that nobody needs
    return operation.become(Elementwise, input=subject, post_ops=tuple(post_ops), outputs=operation.outputs[:1])


def _subject(operation: Operation) -> Value | None:
    """The input of the output's shape that is computed; the others are broadcast to it."""
    shape = operation.output.shape
    if operation.op in ("AddN", "SigmoidGrad", "TanhGrad"):
        first = operation.inputs[0]
        return first if is_float(first) and not first.is_constant else None
    for value in operation.inputs:
        if is_float(value) and value.shape == shape and not value.is_constant:
            return value
    return None
