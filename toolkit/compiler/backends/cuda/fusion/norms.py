"""Batch norms of training steps taken apart: one pass over memory for the statistics, one for what follows from them.

What is computed of each element stands as an operation of its own, which is fused with what is around it: the residual
and the relu behind a norm, the gradient of the relu before that of the norm. Where a relu's result was the only use of
a norm, its gradient's sums and products find out again from x which elements it let through, so that they read nothing
but the gradient and x.
"""

from __future__ import annotations

from collections.abc import Callable

from toolkit.compiler.backends.cuda.operations import ChannelGradients, ChannelMoments, NormGradientStep, NormStep
from toolkit.compiler.ir.block import Block
from toolkit.compiler.ir.operation import Operation
from toolkit.compiler.ir.operations.calls import Call, call_of
from toolkit.compiler.ir.value import Value
from toolkit.compiler.transforms.elements import is_channels_first
from toolkit.kernels.tensors import F32

_NORMS = ("FusedBatchNorm", "FusedBatchNormV2", "FusedBatchNormV3")
_GRADIENTS = ("FusedBatchNormGrad", "FusedBatchNormGradV2", "FusedBatchNormGradV3")


def split_norms(block: Block, refused: Callable[[Operation], bool]) -> None:
    """Take batch norms of training steps and their gradients apart, in loops too.

    Args:
        refused: whether an operation must stay a call.
    """
    made: dict[Value, NormStep] = {}  # by what a norm gives
    for operation in block.operations:
        for region in operation.regions():
            split_norms(region, refused)
        if refused(operation):
            continue
        if _is_norm(operation):
            step = _split_norm(block, operation)
            made[step.output] = step
        elif _is_gradient(operation):
            _split_gradient(block, operation, made)


def _is_norm(operation: Operation) -> bool:
    if not isinstance(operation, Call) or operation.op not in _NORMS or operation.step.deref:
        return False
    node = operation.step.node
    if not node.attr("is_training") or node.attr("exponential_avg_factor", 1.0) != 1.0:
        return False
    return _fits(operation, operation.inputs[0], operation.inputs[1:3])


def _is_gradient(operation: Operation) -> bool:
    if not isinstance(operation, Call) or operation.op not in _GRADIENTS or operation.step.deref:
        return False
    dy, x, *vectors = operation.inputs
    if not operation.step.node.attr("is_training") or any(value.is_needed for value in operation.outputs[3:]):
        return False
    return dy.shape == x.shape and dy.dtype == F32 and _fits(operation, x, vectors[:3])


def _fits(operation: Operation, x: Value, vectors: tuple[Value, ...] | list[Value]) -> bool:
    """Whether x is a batch of images, and the others have a number for each channel."""
    if x.dtype != F32 or x.shape is None or 0 in x.shape or len(x.shape) not in (4, 5):
        return False
    channels = x.shape[1] if is_channels_first(operation) else x.shape[-1]
    return all(value.shape == (channels,) and value.dtype == F32 for value in vectors)


def _vector(like: Value) -> Value:
    return Value(F32, like.shape)


def _split_norm(block: Block, operation: Operation) -> NormStep:
    """Its statistics, and the step for each element."""
    x, scale, offset, *_ = operation.inputs
    first, epsilon = is_channels_first(operation), float(operation.step.node.attr("epsilon"))
    y, *rest = operation.outputs
    factor = _vector(scale)
    steps, conditions = operation.steps, operation.conditions
    moments = ChannelMoments(
        x=x, scale=scale, epsilon=epsilon, channels_first=first, outputs=[*rest, factor], steps=steps,
        conditions=conditions,
    )  # fmt: skip
    block.insert_before(operation, [moments])
    step = operation.become(
        NormStep, x=x, mean=rest[0], factor=factor, offset=offset, channels_first=first, outputs=[y]
    )
    return step


def _split_gradient(block: Block, operation: Operation, made: dict[Value, NormStep]) -> None:
    """The sums of the gradient, and the step for each element."""
    dy, x, scale, mean, variance, *_ = operation.inputs
    first, epsilon = is_channels_first(operation), float(operation.step.node.attr("epsilon"))
    dx, d_scale, d_offset, *_ = operation.outputs
    steps, conditions = operation.steps, operation.conditions
    relu = _relu_of(operation, dy, x, made)
    if relu is not None:
        gradient, norm = relu
        # what the relu was given, once more, where its gradient is
        again = Value(F32, x.shape)
        block.insert_before(
            gradient,
            [
                NormStep(
                    x=x, mean=norm.mean, factor=norm.factor, offset=norm.offset, channels_first=first, outputs=[again],
                    steps=norm.steps, conditions=gradient.conditions,
                )
            ],
        )  # fmt: skip
        gradient.replace_operands({gradient.inputs[1]: again})
    inverse, shift, slope, size = (_vector(scale) for _ in range(4))
    sums = ChannelGradients(
        dy=dy if relu is None else relu[0].inputs[0], x=x, scale=scale, mean=mean, variance=variance,
        factor=None if relu is None else relu[1].factor, offset=None if relu is None else relu[1].offset,
        epsilon=epsilon, channels_first=first, outputs=[d_scale, d_offset, inverse, shift, slope, size], steps=steps,
        conditions=conditions,
    )  # fmt: skip
    block.insert_before(operation, [sums])
    operation.become(
        NormGradientStep, dy=dy, x=x, mean=mean, shift=shift, slope=slope, size=size, channels_first=first, outputs=[dx]
    )  # fmt: skip


def _relu_of(
    operation: Operation, dy: Value, x: Value, made: dict[Value, NormStep]
) -> tuple[Operation, NormStep] | None:
    """The relu's gradient that makes dy for this norm alone, and the norm, if that relu is all that took it."""
    gradient = call_of(dy, "ReluGrad")
    if gradient is None or dy.sole_user is not operation or gradient.conditions != operation.conditions:
        return None
    relu = call_of(gradient.inputs[1], "Relu")
    norm = made.get(relu.inputs[0]) if relu is not None else None
    if norm is None or norm.x is not x or norm.conditions != operation.conditions:
        return None
    given = gradient.inputs[0].producer
    # what is elementwise itself is written with the relu's gradient by one kernel
    return (gradient, norm) if given is None or given.op not in ("AddN", "Add", "AddV2") else None
