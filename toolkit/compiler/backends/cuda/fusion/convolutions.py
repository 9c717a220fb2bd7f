"""Convolutions with what follows them as one call: bias or batch norm, a residual, an activation.

At inference a batch norm is a factor and a shift for each filter, so that it goes into the filters and the bias, which
are made once of weights that stay (`toolkit.kernels.cuda.prepared`). The library adds and activates what it computes
before that is written.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from toolkit.compiler.backends.cuda.fusion.chains import learns, next_of, replace_chain, times_of
from toolkit.compiler.backends.cuda.operations import LibraryConvolution
from toolkit.compiler.ir.block import Block
from toolkit.compiler.ir.operation import Operation
from toolkit.compiler.ir.operations.calls import Call, Dereference
from toolkit.compiler.ir.value import Value
from toolkit.compiler.transforms.elements import ADDS, is_channels_first
from toolkit.kernels.tensors import F32

_BATCH_NORMS = ("FusedBatchNorm", "FusedBatchNormV2", "FusedBatchNormV3")
_ACTIVATIONS = ("Relu", "Relu6")
#: what gives a variable as it is
_READS = ("ReadVariableOp", "_ReadVariablesOp", "Identity")


def fuse_convolutions(
    block: Block, refused: Callable[[Operation], bool], changes_variables: Callable[[Operation], bool]
) -> None:
    """Put bias, batch norm, residual and activation behind a convolution into its call.

    Programs that learn are left alone: their filters change in each step, and a NaN must go through their relu.

    Args:
        refused: whether an operation must stay a call.
        changes_variables: whether arrays that were read may hold something else behind an operation: nothing is moved
            beyond it.
    """
    if learns(block):
        return
    for operation in block.operations:
        for region in operation.regions():
            fuse_convolutions(region, refused, changes_variables)
    times = times_of(block, changes_variables)
    for operation in block.operations:
        if operation.block is block and _is_convolution(operation) and not refused(operation):
            _fuse(operation, refused, times)


def _is_convolution(operation: Operation) -> bool:
    if not isinstance(operation, Call) or operation.op != "Conv2D" or operation.step.deref:
        return False
    values = (*operation.inputs, operation.output)
    return all(value.shape is not None and 0 not in value.shape and value.dtype == F32 for value in values)


def _fuse(convolution: Operation, refused: Callable[[Operation], bool], times: dict[Operation, int]) -> None:
    members = [convolution]
    fields: dict[str, Any] = {}
    epsilon = 0.0
    following = next_of(convolution, refused, times)
    if following is not None and (vectors := _norm(following, members[-1])) is not None:
        fields |= dict(zip(("scale", "offset", "mean", "variance"), vectors, strict=True))
        epsilon = float(following.step.node.attr("epsilon"))
        members.append(following)
    elif following is not None and _is_bias(following, convolution):
        fields["bias"] = following.inputs[1]
        members.append(following)
    following = next_of(members[-1], refused, times)
    if following is not None and following.op in ADDS and following.output.shape == convolution.output.shape:
        others = [value for value in following.inputs if value is not members[-1].output]
        if len(others) == 1 and others[0].shape == convolution.output.shape and others[0].dtype == F32:
            fields["added"] = others[0]
            members.append(following)
    following = next_of(members[-1], refused, times)
    name = "Identity"
    if following is not None and following.op in _ACTIVATIONS:
        name = following.op
        members.append(following)
    if len(members) == 1:
        return
    x, w = convolution.inputs
    replace_chain(
        members[:-1], members[-1], LibraryConvolution, x=x, w=w, epsilon=epsilon, activation=name, **fields
    )  # fmt: skip


def _is_bias(operation: Operation, convolution: Operation) -> bool:
    """Whether it adds a number to what each filter gives."""
    channels = (convolution.inputs[1].shape or ())[-1:]
    is_same_axis = is_channels_first(operation) == is_channels_first(convolution)
    return operation.op == "BiasAdd" and is_same_axis and operation.inputs[1].shape == channels


def _norm(operation: Operation, convolution: Operation) -> tuple[Value, ...] | None:
    """Scale, offset, mean and variance of a batch norm at inference whose numbers stay, as the filters do."""
    if operation.op not in _BATCH_NORMS or operation.step.node.attr("is_training"):
        return None
    x, *vectors = operation.inputs
    channels = (convolution.inputs[1].shape or ())[-1:]
    if x is not convolution.output or is_channels_first(operation) != is_channels_first(convolution):
        return None
    all_stay = all(map(stays, (convolution.inputs[1], *vectors)))
    return tuple(vectors) if all_stay and all(value.shape == channels for value in vectors) else None


def stays(value: Value) -> bool:
    """Whether it is a constant or a variable as it is: something made of it can be kept."""
    producer = value.producer
    if value.is_constant or isinstance(producer, Dereference):
        return True
    if producer is None or producer.op not in _READS:
        return False
    return producer.op != "Identity" or stays(producer.inputs[0])
