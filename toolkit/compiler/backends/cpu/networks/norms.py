"""Batch norms of training steps, forward and backward, channels last."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from toolkit.compiler.backends.cpu.elementwise.operations import Ufunc
from toolkit.compiler.backends.cpu.emission.emit import Emitter
from toolkit.compiler.backends.cpu.emission.primitives import refusals
from toolkit.compiler.ir.block import Block
from toolkit.compiler.ir.operation import Operation
from toolkit.compiler.ir.operations.norms import BatchNorm, BatchNormGradient
from toolkit.compiler.ir.value import Value
from toolkit.compiler.transforms.elements import is_channels_first, is_float
from toolkit.kernels.cpu.onednn import memory
from toolkit.kernels.cpu.onednn.batch_norm import backward, forward
from toolkit.kernels.cpu.onednn.primitive import Arg
from toolkit.kernels.tensors import F32

_FORWARD = frozenset({"FusedBatchNorm", "FusedBatchNormV2", "FusedBatchNormV3"})
_BACKWARD = frozenset({"FusedBatchNormGrad", "FusedBatchNormGradV2", "FusedBatchNormGradV3"})


def lower_batch_norms(block: Block, refused: Callable[[Operation], bool], least: int) -> None:
    """Turn those of so many elements with statistics of the batch into `BatchNorm` and `BatchNormGradient`."""
    for operation in block.operations:
        if operation.op in _FORWARD and not refused(operation) and _is_fit(operation, operation.inputs[0], least):
            _lower_forward(block, operation)
        elif (
            operation.op in _BACKWARD
            and not refused(operation)
            and _is_fit(operation, operation.inputs[1], least)
            # two placeholders: kernels make scalars of them, of which shape functions say that they are empty
            and not any(placeholder.is_needed for placeholder in operation.outputs[3:])
        ):
            _lower_backward(operation)


def _is_fit(operation: Operation, x: Value, least: int) -> bool:
    node = operation.step.node
    if not node.attr("is_training", True) or float(node.attr("exponential_avg_factor", 1.0)) != 1.0:
        return False
    if operation.output.shape is None:  # what was given does not go together
        return False
    if not is_float(x) or x.shape is None or len(x.shape) not in (4, 5) or x.size < least:
        return False
    needed = 3 if x is operation.inputs[0] else 5
    return not is_channels_first(operation) and all(map(is_float, operation.inputs[:needed]))


def _lower_forward(block: Block, operation: Operation) -> None:
    x, scale, offset = operation.inputs[:3]
    y, mean, unbiased, saved_mean, saved_variance, *rest = operation.outputs
    assert y.shape is not None
    block.replace_value(mean, saved_mean)
    for placeholder in rest:
        block.replace_value(placeholder, Value(F32, (0,), np.zeros(0, np.float32)))
    norm = operation.become(
        BatchNorm, outputs=[y, saved_mean, saved_variance], input=x, scale=scale, offset=offset,
        epsilon=_epsilon(operation),
    )  # fmt: skip
    if not unbiased.is_needed:
        return
    count = y.size // y.shape[-1]
    correction = np.float32(count / max(count - 1, 1))
    correct = Ufunc(
        function=np.multiply.__name__, arguments=(saved_variance,), constants=(correction,),
        outputs=[unbiased], steps=[norm.step], conditions=norm.conditions,
    )  # fmt: skip
    block.insert_after(norm, [correct])


def _lower_backward(operation: Operation) -> None:
    gradient, x, scale, mean, variance = operation.inputs[:5]
    operation.become(
        BatchNormGradient, outputs=operation.outputs[:3], gradient=gradient, input=x, scale=scale, mean=mean,
        variance=variance, epsilon=_epsilon(operation),
    )  # fmt: skip


def _epsilon(operation: Operation) -> float:
    return float(operation.step.node.attr("epsilon", 1e-4))


def write_batch_norm(emitter: Emitter, operation: BatchNorm) -> None:
    """y = (x - mean) / sqrt(variance + epsilon) * scale + offset; the variance is the biased one."""
    x, scale, offset = operation.input, operation.scale, operation.offset
    y, mean, variance = operation.outputs
    assert x.shape is not None
    desc, vector = memory.channels_last(x.shape, F32), memory.dense((x.shape[-1],), F32)
    with refusals(operation):
        primitive = forward(x.shape, operation.epsilon, training=True)
    emitter.execute(
        primitive,
        [(Arg.SRC, x, desc), (Arg.SCALE, scale, vector), (Arg.SHIFT, offset, vector), (Arg.DST, y, desc),
         (Arg.MEAN, mean, vector), (Arg.VARIANCE, variance, vector)],
    )  # fmt: skip


def write_batch_norm_gradient(emitter: Emitter, operation: BatchNormGradient) -> None:
    """The gradients by x, scale and offset."""
    dy, x, scale = operation.gradient, operation.input, operation.scale
    mean, variance = operation.mean, operation.variance
    dx, d_scale, d_offset = operation.outputs
    assert x.shape is not None
    desc, vector = memory.channels_last(x.shape, F32), memory.dense((x.shape[-1],), F32)
    with refusals(operation):
        primitive = backward(x.shape, operation.epsilon)
    emitter.execute(
        primitive,
        [(Arg.SRC, x, desc), (Arg.DIFF_DST, dy, desc), (Arg.MEAN, mean, vector), (Arg.VARIANCE, variance, vector),
         (Arg.SCALE, scale, vector), (Arg.DIFF_SRC, dx, desc), (Arg.DIFF_SCALE, d_scale, vector),
         (Arg.DIFF_SHIFT, d_offset, vector)],
    )  # fmt: skip
