"""Which operations compute each example of a batch by itself: a rule for each op of the graph."""

# numpy's overloads answer arrays typed Any with Unknown
# pyright: reportUnknownVariableType=false, reportUnknownMemberType=false, reportUnknownArgumentType=false

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from toolkit.compiler.ir.elementwise import ELEMENTWISE
from toolkit.compiler.ir.operation import Operation
from toolkit.compiler.ir.value import Value


class _Example(NamedTuple):
    """An operation whose output is a batch of what its computed inputs are batches of.

    Attributes:
        computed: those inputs.
        output: the shape of what it makes.
    """

    operation: Operation
    computed: list[Value]
    output: tuple[int, ...]

    @property
    def takes_one(self) -> bool:
        """Whether only the first input is computed."""
        return self.computed == [self.operation.inputs[0]]


def is_by_example(operation: Operation, size: int) -> bool:
    """Whether an operation's output number i depends on number i of its inputs alone."""
    output = operation.output.shape if operation.outputs else None
    if not output or output[0] != size or operation.predicates:
        return False
    computed = [value for value in operation.inputs if not value.is_constant]
    if not computed or any(not value.shape or value.shape[0] != size for value in computed):
        return False
    rule = _RULES.get(operation.op)
    return rule is not None and rule(_Example(operation, computed, output))


def _elementwise(example: _Example) -> bool:
    return all(_fits(value, example.output) for value in example.operation.inputs)


def _takes_one(example: _Example) -> bool:
    return example.takes_one


def _norm(example: _Example) -> bool:
    operation = example.operation
    training = operation.step.node.attr("is_training", True)
    return example.takes_one and not training and not any(value.is_needed for value in operation.outputs[1:])


def _pool(example: _Example) -> bool:
    node = example.operation.step.node
    return node.attr("ksize")[0] == 1 and node.attr("strides")[0] == 1


def _product(example: _Example) -> bool:
    return example.takes_one and not example.operation.step.node.attr("transpose_a", False)


def _products(example: _Example) -> bool:
    return len(example.computed) == 2 and all(len(value.shape or ()) >= 3 for value in example.computed)


def _softmax(example: _Example) -> bool:
    return len(example.output) > 1


def _join(example: _Example) -> bool:
    *parts, axis = example.operation.inputs
    rank = len(example.output)
    return axis.is_constant and int(axis.constant) % rank != 0 and not any(part.is_constant for part in parts)


def _told(example: _Example) -> Any:
    """What an op's second input says of axes; None where that is not known."""
    inputs = example.operation.inputs
    if not example.takes_one or len(inputs) < 2 or not inputs[1].is_constant:
        return None
    return np.asarray(inputs[1].constant)


def _reduction(example: _Example) -> bool:
    axes, rank = _told(example), len(example.operation.inputs[0].shape or ())
    return axes is not None and all(int(axis) % rank != 0 for axis in axes.reshape(-1))


def _pad(example: _Example) -> bool:
    padding = _told(example)
    return padding is not None and not padding[0].any()


def _transpose(example: _Example) -> bool:
    axes = _told(example)
    return axes is not None and int(axes[0]) == 0


_CONVOLUTIONS = ("Conv2D", "Conv3D", "DepthwiseConv2dNative")
#: of an op, whether it computes each example by itself; of every other op that is not known
_RULES: dict[str, Callable[[_Example], bool]] = {
    **dict.fromkeys(ELEMENTWISE, _elementwise),
    **dict.fromkeys(_CONVOLUTIONS, _takes_one),
    **dict.fromkeys(("LRN", "ResizeBilinear", "ResizeNearestNeighbor", "ResizeBicubic"), _takes_one),
    **dict.fromkeys(("Reshape", "Squeeze", "ExpandDims"), _takes_one),
    **dict.fromkeys(("FusedBatchNorm", "FusedBatchNormV2", "FusedBatchNormV3"), _norm),
    **dict.fromkeys(("MaxPool", "AvgPool", "MaxPool3D", "AvgPool3D"), _pool),
    "MatMul": _product,
    **dict.fromkeys(("BatchMatMul", "BatchMatMulV2", "BatchMatMulV3"), _products),
    **dict.fromkeys(("Softmax", "LogSoftmax"), _softmax),
    "ConcatV2": _join,
    **dict.fromkeys(("Max", "Mean", "Min", "Prod", "Sum"), _reduction),
    **dict.fromkeys(("Pad", "PadV2", "MirrorPad"), _pad),
    "Transpose": _transpose,
}
#: ops whose work is multiplications
MULTIPLY = frozenset({*_CONVOLUTIONS, "MatMul"})


def _fits(value: Value, output: tuple[int, ...]) -> bool:
    """Whether a value is one of a batch, or the same for every example."""
    shape = value.shape
    if shape is None:
        return False
    if value.is_constant:
        return len(shape) < len(output) or shape[0] == 1
    return len(shape) == len(output)
