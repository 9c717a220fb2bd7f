"""Which calls have to do with products of 16-bit factors: products, what hands on their operands, sums over these."""

# numpy's arrays of an unknown type
# pyright: reportUnknownArgumentType=false, reportUnknownVariableType=false

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from toolkit.compiler.backends.cuda.operations import LibraryConvolution
from toolkit.compiler.backends.cuda.parts.operations import JoinRows
from toolkit.compiler.backends.cuda.precision.depthwise import DEPTHWISE, DepthwiseCall
from toolkit.compiler.backends.cuda.precision.operations import ConvolutionGradient, ProductsCall
from toolkit.compiler.ir.block import Block
from toolkit.compiler.ir.operation import Operation
from toolkit.compiler.ir.operations.calls import Call
from toolkit.compiler.ir.value import Value
from toolkit.compiler.transforms.elements import is_channels_first
from toolkit.kernels.tensors import F32

#: ops whose kernels give what they take, in its type: the inputs that are so, None for all but the last one
_HAND_ON: dict[str, tuple[int, ...] | None] = {
    "Identity": (0,), "Reshape": (0,), "Squeeze": (0,), "ExpandDims": (0,), "Transpose": (0,), "Pad": (0,),
    "ConcatV2": None, "MaxPool": (0,), "AvgPool": (0,), "MaxPoolGrad": (0, 1, 2), "AvgPoolGrad": (1,),
}  # fmt: skip
_SUMS = ("Sum", "Mean", "BiasAddGrad")
_MATRICES = ("MatMul", "BatchMatMul", "BatchMatMulV2")
_CONVOLUTIONS = ("Conv2D", "Conv3D")
#: ops of gradients: by what, and the place of the other operand
_GRADIENTS = {
    "Conv2DBackpropInput": ("input", 1), "Conv2DBackpropFilter": ("filter", 0),
    "Conv3DBackpropInputV2": ("input", 1), "Conv3DBackpropFilterV2": ("filter", 0),
}  # fmt: skip

Refused = Callable[[Operation], bool]


def _is_open(operation: Operation, refused: Refused) -> bool:
    """Whether it is a call that may become something else, of tensors of the device."""
    return isinstance(operation, Call) and not operation.step.deref and not refused(operation)


def _is_dense(value: Value) -> bool:
    return value.dtype == F32 and value.shape is not None and 0 not in value.shape


def replace_products(block: Block, refused: Refused) -> None:
    """Put operations whose result may have another type in the place of calls of products and convolutions."""
    for operation in block.operations:
        if not _is_open(operation, refused) or len(operation.outputs) != 1 or not _is_dense(operation.output):
            continue
        node = operation.step.node
        if operation.op in _MATRICES:
            a, b = operation.inputs
            if _is_dense(a) and _is_dense(b):
                names = ("transpose_a", "transpose_b") if operation.op == "MatMul" else ("adj_x", "adj_y")
                turns = [bool(node.attr(name)) for name in names]
                operation.become(ProductsCall, a=a, b=b, turn_a=turns[0], turn_b=turns[1])
        elif operation.op in _CONVOLUTIONS:
            x, w = operation.inputs
            if _is_dense(x) and _is_dense(w):
                operation.become(LibraryConvolution, x=x, w=w, epsilon=0.0, activation="Identity")
        elif operation.op in _GRADIENTS:
            by, index = _GRADIENTS[operation.op]
            first, dy = operation.inputs[index], operation.inputs[2]
            if _is_dense(first) and _is_dense(dy):
                operation.become(ConvolutionGradient, by=by, first=first, dy=dy)
        elif operation.op in DEPTHWISE:
            makes, places = DEPTHWISE[operation.op]
            first, second = (operation.inputs[at] for at in places)
            if _is_dense(first) and _is_dense(second):
                operation.become(DepthwiseCall, makes=makes, first=first, second=second)


def handed_on(operation: Operation, refused: Refused) -> list[Value]:
    """The operands that are given in their type, rearranged, joined or pooled; none where something else is done."""
    if isinstance(operation, JoinRows):
        return list(operation.parts) if all(map(_is_wide_or_narrow, (*operation.parts, operation.output))) else []
    if operation.op not in _HAND_ON or not _is_open(operation, refused) or len(operation.outputs) != 1:
        return []
    places = _HAND_ON[operation.op]
    found = operation.inputs[:-1] if places is None else [operation.inputs[at] for at in places]
    return list(found) if all(map(_is_wide_or_narrow, (*found, operation.output))) else []


def _is_wide_or_narrow(value: Value) -> bool:
    return value.shape is not None and value.dtype is not None and value.dtype.kind in "fV"


def reductions(operation: Operation, refused: Refused) -> bool:
    """Whether it is a call of a sum or mean over known axes."""
    if operation.op not in _SUMS or not _is_open(operation, refused) or len(operation.outputs) != 1:
        return False
    x, out = operation.inputs[0], operation.output
    return _is_wide_or_narrow(x) and bool(x.size) and _is_dense(out) and bool(axes_of(operation))


def axes_of(operation: Operation) -> tuple[int, ...]:
    """The axes that a sum goes over; none where they are not known."""
    rank = len(operation.inputs[0].shape or ())
    if operation.op == "BiasAddGrad":
        channel = 1 if is_channels_first(operation) else rank - 1
        return tuple(axis for axis in range(rank) if axis != channel)
    axes: Any = operation.inputs[1].constant
    if not isinstance(axes, np.ndarray | np.generic) or not rank:
        return ()
    return tuple(sorted({int(axis) % rank for axis in axes.reshape(-1)}))
