"""What kernels of several operations may be made of: which operations they compute, and how operands lie there."""

# numpy's arrays of an unknown type
# pyright: reportUnknownArgumentType=false, reportUnknownVariableType=false

from __future__ import annotations

import math
from typing import Any

import numpy as np

from toolkit.compiler.backends.cuda.operations import NormGradientStep, NormStep
from toolkit.compiler.ir.operation import Operation
from toolkit.compiler.ir.operations.calls import Call
from toolkit.compiler.transforms.elements import is_channels_first
from toolkit.kernels.facts import stays_on_host
from toolkit.kernels.gpu.elementwise import nests, row_nests
from toolkit.kernels.gpu.operators.norms import BATCH_NORM_STEP

#: rows that are too few for all of a GPU, and elements of a tensor that one kernel takes whatever its rows are
_FEW_ROWS, _SMALL = 128, 1 << 14
_DEVICE = "GPU"
#: what repeats a tensor, the gradients of sums and means
_SPREADS = ("Tile", "BroadcastTo")
#: operations that are there to be fused; alone they are a kernel of one step
STEPS = (NormStep, NormGradientStep)
#: batch norms at inference, whose five inputs are a tensor and a number for each channel
BATCH_NORMS = frozenset({"FusedBatchNorm", "FusedBatchNormV2", "FusedBatchNormV3"})


def is_row_reduction(operation: Operation) -> bool:
    """Whether it reduces the last axis of a tensor whose rows can be held in registers, or is a softmax of it."""
    if not isinstance(operation, Call) or not operation.inputs or len(operation.outputs) != 1:
        return False
    given, shape = operation.inputs[0], operation.inputs[0].shape
    if given.dtype is None or not row_nests.is_reduction(operation.op, given.dtype.name) or operation.step.deref:
        return False
    if not shape or 0 in shape or not 1 < shape[-1] <= row_nests.LONGEST_ROW or operation.output.dtype != given.dtype:
        return False
    rows = math.prod(shape[:-1])
    if rows < _FEW_ROWS and rows * shape[-1] > _SMALL:
        return False
    if operation.op in row_nests.ROW_OPS:
        return operation.output.shape == shape
    axes: Any = operation.inputs[1].constant
    is_known = isinstance(axes, np.ndarray | np.generic) and len(operation.inputs) == 2
    wanted = [int(axis) % len(shape) for axis in axes.reshape(-1)] if is_known else []
    return wanted == [len(shape) - 1] and operation.output.shape in (shape[:-1], row_shape(shape))


def is_elementwise(operation: Operation) -> bool:
    """Whether the generator writes it, and all of it is in the device's memory."""
    if isinstance(operation, STEPS):
        return True
    if not isinstance(operation, Call) or not operation.outputs:
        return False
    target, node = operation.outputs[0].shape, operation.step.node
    values = (*operation.inputs, operation.outputs[0])
    if target is None or 0 in target or any(value.shape is None or value.dtype is None for value in values):
        return False
    if operation.step.deref or len(operation.inputs) != len(node.input_types):
        return False
    if any(stays_on_host(node, _DEVICE, index, output=False) for index in range(len(operation.inputs))):
        return False
    if stays_on_host(node, _DEVICE, 0, output=True):
        return False
    if operation.op in BATCH_NORMS:
        if node.attr("is_training", True) or any(value.is_needed for value in operation.outputs[1:]):
            return False
    elif len(operation.outputs) != 1:
        return False
    if not nests.is_writable(step_op(operation), types_of(operation), operation.outputs[0].dtype.name):
        return False
    return all(strides_of(operation, index) is not None for index in range(len(operation.inputs)))


def strides_of(operation: Operation, index: int, target: tuple[int, ...] | None = None) -> tuple[int, ...] | None:
    """How an input lies under a shape, in elements for each dimension; None where it is not broadcast to it.

    Args:
        target: the shape; by default the output's.
    """
    shape = operation.inputs[index].shape
    target = operation.outputs[0].shape if target is None else target
    assert target is not None and shape is not None
    if isinstance(operation, STEPS) and len(shape) == 1:
        axis = 1 if operation.channels_first else len(target) - 1
        return tuple(int(at == axis) for at in range(len(target)))
    per_channel = (index == 1 and operation.op.startswith("BiasAdd")) or (index > 0 and operation.op in BATCH_NORMS)
    if per_channel and len(shape) == 1:
        axis = 1 if is_channels_first(operation) else len(target) - 1
        return tuple(int(at == axis) for at in range(len(target))) if shape[0] == target[axis] else None
    if operation.op == "Select" and index == 0 and len(shape) == 1 < len(target):  # a condition for each row
        return tuple(int(at == 0) for at in range(len(target))) if shape[0] == target[0] else None
    if len(shape) > len(target):
        return None
    padded = (1,) * (len(target) - len(shape)) + shape
    if any(size not in (1, whole) for size, whole in zip(padded, target, strict=True)):
        return None
    return nests.broadcast_strides(shape, target)


def step_op(operation: Operation) -> str:
    """What the generator calls it."""
    return BATCH_NORM_STEP if operation.op in BATCH_NORMS else operation.op


def types_of(operation: Operation) -> list[str]:
    return [value.dtype.name for value in operation.inputs]


def is_spread(operation: Operation) -> bool:
    """Whether it repeats a tensor along axes of one place: kernels read the one where they need the others."""
    if not isinstance(operation, Call) or operation.op not in _SPREADS or operation.step.deref:
        return False
    given, shape = operation.inputs[0], operation.output.shape
    if given.shape is None or not shape or 0 in shape or not operation.inputs[1].is_constant:
        return False
    if given.dtype is None or not nests.is_writable("Cast", [given.dtype.name], given.dtype.name):
        return False
    return strides_of(operation, 0) is not None


def is_turned(operation: Operation) -> bool:
    """Whether it gives a tensor another shape, which is known."""
    return isinstance(operation, Call) and operation.op == row_nests.RESHAPE and operation.output.shape is not None


def row_shape(shape: tuple[int, ...]) -> tuple[int, ...]:
    """Of one number for each row."""
    return (*shape[:-1], 1)
