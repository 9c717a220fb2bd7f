"""Channels-first graphs, computed channels last.

oneDNN and our kernels are fast where channels lie last. Operations with data_format NCHW or NCDHW therefore run as
their channels-last twins: the node's step is replaced by one with data_format, strides, window sizes, dilations and
paddings in the other order. What does not care where channels are (elementwise, joining, padding, reductions)
follows when its input lies channels last already, so tensors are transposed at the edges of such islands only;
transposes in the graph that undo each other there disappear, and constants are transposed once. So do those that
converters of other formats put around each convolution.
"""

# numpy's overloads answer arrays typed Any with Unknown
# pyright: reportUnknownVariableType=false, reportUnknownMemberType=false, reportUnknownArgumentType=false

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Container, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from toolkit.compiler.ir.block import Block
from toolkit.compiler.ir.operation import Operation
from toolkit.compiler.ir.operations.calls import Call
from toolkit.compiler.ir.operations.memory import Alias, Permute
from toolkit.compiler.ir.value import Value
from toolkit.compiler.steps import Step
from toolkit.compiler.transforms.elements import data_format, is_float
from toolkit.graph.attrs import encode
from toolkit.graph.node import Node
from toolkit.kernels import registry
from toolkit.kernels.registry import KernelNode

_TWINS = {"NCHW": "NHWC", "NCDHW": "NDHWC"}
_PER_AXIS = ("strides", "ksize", "dilations")  # attributes with a number for each axis
Order = tuple[int, ...]  # which axis each axis of the channels-last tensor is in the channels-first one
Remap = Callable[[Any, Order], Any]


def _by_axis(entries: Any, order: Order) -> Any:
    """Sizes, offsets or amounts of padding, one for each axis; None when they are not that many."""
    return np.ascontiguousarray(entries[list(order)]) if len(entries) == len(order) else None


def _axes(axes: Any, order: Order) -> Any:
    """Numbers of axes."""
    places = np.asarray([order.index(axis) for axis in range(len(order))], axes.dtype)
    return np.asarray(places[axes % len(order)])


@dataclass(frozen=True, slots=True)
class _Rule:
    """How operations of a kind are made channels last.

    Attributes:
        images: the slice of the inputs that are images; those that have fewer axes are broadcast.
        outputs: how many of the first outputs are images; None for all.
        constants: inputs that must be constants, and how each changes.
        starts: it is worth transposing for; others only follow.
    """

    images: tuple[int | None, ...] = (0, 1)
    outputs: int | None = 1
    constants: tuple[tuple[int, Remap], ...] = ()
    starts: bool = False


_ALL = (0, None)
_SIZES = ((0, _by_axis),)
_RULES: dict[str, _Rule] = {
    **dict.fromkeys(
        ("Conv2D", "Conv3D", "DepthwiseConv2dNative", "MaxPool", "MaxPool3D", "AvgPool", "AvgPool3D", "FusedBatchNorm",
         "FusedBatchNormV2", "FusedBatchNormV3"),
        _Rule(starts=True),
    ),
    **dict.fromkeys(
        ("Conv2DBackpropInput", "Conv3DBackpropInputV2", "DepthwiseConv2dNativeBackpropInput"),
        _Rule((2, 3), constants=_SIZES, starts=True),
    ),
    **dict.fromkeys(
        ("Conv2DBackpropFilter", "Conv3DBackpropFilterV2", "DepthwiseConv2dNativeBackpropFilter"),
        _Rule((0, 3, 2), 0, starts=True),
    ),
    **dict.fromkeys(
        ("FusedBatchNormGrad", "FusedBatchNormGradV2", "FusedBatchNormGradV3"), _Rule((0, 2), starts=True)
    ),
    **dict.fromkeys(("MaxPoolGrad", "MaxPool3DGrad"), _Rule((0, 3), starts=True)),
    **dict.fromkeys(("AvgPoolGrad", "AvgPool3DGrad"), _Rule((1, 2), constants=_SIZES, starts=True)),
    **dict.fromkeys(("BiasAdd", "DepthToSpace", "SpaceToDepth"), _Rule()),
    "BiasAddGrad": _Rule(outputs=0),
    # without a data_format
    **dict.fromkeys(
        ("Abs", "Ceil", "Cos", "Elu", "Erf", "Exp", "Expm1", "Floor", "LeakyRelu", "Log", "Log1p", "Neg", "OnesLike",
         "Reciprocal", "Relu", "Relu6", "Rint", "Round", "Rsqrt", "Selu", "Sigmoid", "Sign", "Sin", "Softplus",
         "Softsign", "Sqrt", "Square", "Tanh", "ZerosLike",
         "Add", "AddN", "AddV2", "DivNoNan", "Maximum", "Minimum", "Mul", "Pow", "RealDiv", "SquaredDifference", "Sub",
         "ClipByValue",
         "EluGrad", "LeakyReluGrad", "ReciprocalGrad", "Relu6Grad", "ReluGrad", "RsqrtGrad", "SeluGrad", "SigmoidGrad",
         "SoftplusGrad", "SoftsignGrad", "SqrtGrad", "TanhGrad"),
        _Rule(_ALL),
    ),
    "ConcatV2": _Rule((0, -1), constants=((-1, _axes),)),
    **dict.fromkeys(("Max", "Mean", "Min", "Prod", "Sum"), _Rule(constants=((1, _axes),))),
    **dict.fromkeys(("MirrorPad", "Pad", "PadV2", "Tile"), _Rule(constants=((1, _by_axis),))),
    "Slice": _Rule(constants=((1, _by_axis), (2, _by_axis))),
    "Split": _Rule((1, 2), None, constants=((0, _axes),)),
    "SplitV": _Rule(outputs=None, constants=((2, _axes),)),
    "L2Loss": _Rule(outputs=0),
}  # fmt: skip
_REDUCTIONS = frozenset({"Max", "Mean", "Min", "Prod", "Sum"})
_PADS = frozenset({"Pad", "PadV2"})


def turn_channels_last(block: Block, excluded: Container[str]) -> None:
    """Rewrite what is channels first; `Block.turned` says how many operations that were.

    Args:
        excluded: names of nodes that must run by their own kernels.
    """
    if any(_is_concerned(operation) for operation in block):
        _Turning(block, excluded).run()


def _is_concerned(operation: Operation) -> bool:
    return operation.op == "Transpose" or (operation.op in _RULES and data_format(operation) in _TWINS)


class _Turning:
    """The rewriting of one block.

    Attributes:
        last: tensors that are there channels last, by their channels-first values.
        before: copies in front of the operations that want them.
    """

    def __init__(self, block: Block, excluded: Container[str]):
        self.block = block
        self.excluded = excluded
        self.last: dict[Value, Value] = {}
        self.before: dict[Operation, list[Operation]] = {}
        self._made_by: dict[Value, Operation] = {}  # turned operations, by the values that they made before
        self._copies: dict[tuple[Value, int, object], Value] = {}

    def run(self) -> None:
        for operation in self.block.operations:
            if not isinstance(operation, Call):
                continue
            if operation.op == "Transpose":
                self._meet_transpose(operation)
            elif operation.op in _RULES and operation.name not in self.excluded:
                self._meet(operation, _RULES[operation.op])
        after: dict[Operation, list[Operation]] = {}
        for value, operation in self._made_by.items():
            if value.is_needed:  # by somebody who wants it channels first
                source = self.last[value]
                back = _inverse(_order(source))
                after.setdefault(operation, []).append(_moved(source, value, back, operation))
        self.block.weave(self.before, after)

    def _meet_transpose(self, operation: Operation) -> None:
        x, axes = operation.inputs
        if not axes.is_constant or not _is_image(x):
            return
        order = tuple(int(axis) % len(_shape(x)) for axis in axes.constant)
        if order == _order(x) and x in self.last:
            self.block.replace_value(operation.output, self.last[x])
        elif order == _order(x):
            self._copies[x, len(order), operation.conditions] = operation.output
        elif order == _inverse(_order(x)):
            self.last[operation.output] = x

    def _meet(self, operation: Call, rule: _Rule) -> None:
        images = operation.inputs[slice(*rule.images)]
        rank = max((len(value.shape or ()) for value in images), default=0)
        formatted = "data_format" in operation.step.node.op_def.attrs
        if rank not in (4, 5) or (formatted and data_format(operation) not in _TWINS):
            return
        whole = [value for value in images if len(value.shape or ()) == rank]
        outputs = operation.outputs[: rule.outputs]
        if not all(map(is_float, images)) or not all(map(is_float, outputs)):
            return
        native = sum(value.size for value in whole if value in self.last)
        foreign = sum(value.size for value in whole if value not in self.last and _is_work(value))
        if not (rule.starts or _leads(operation)) and (not native or foreign > native):
            return
        order = _order(whole[0])
        inputs = list(operation.inputs)
        for index, remap in rule.constants:
            turned = _remapped(inputs[index], remap, order)
            if turned is None:
                return
            inputs[index] = turned
        if operation.op in _REDUCTIONS and not operation.step.node.attr("keep_dims", False):
            if not _keeps_order(np.asarray(operation.inputs[1].constant), order):
                return
            outputs = []
        inputs[slice(*rule.images)] = [self._channels_last(value, rank, operation) for value in images]
        operation.inputs = tuple(inputs)
        if formatted:
            operation.steps[-1] = _twin(operation.step, order)
        self._set_outputs(operation, outputs, order)

    def _set_outputs(self, operation: Operation, images: Sequence[Value], order: Order) -> None:
        for index, value in enumerate(images):
            turned = Value(value.dtype, tuple(_shape(value)[axis] for axis in order))
            operation.outputs[index] = turned
            turned.producer, value.producer = operation, None
            self.last[value] = turned
            self._made_by[value] = operation
        self.block.turned += 1

    def _channels_last(self, value: Value, rank: int, user: Operation) -> Value:
        """A tensor as its user wants it; broadcast ones get all axes."""
        if value in self.last and len(_shape(value)) == rank:
            return self.last[value]
        if value.size == 1:
            return value
        shape = (1,) * (rank - len(_shape(value))) + _shape(value)
        order: Order = (0, *range(2, rank), 1)
        if value.is_constant:
            turned = np.ascontiguousarray(np.asarray(value.constant).reshape(shape).transpose(order))
            return Value(value.dtype, turned.shape, turned)
        key = (value, rank, user.conditions)
        if key not in self._copies:
            self._copies[key] = Value(value.dtype, tuple(shape[axis] for axis in order))
            source = value
            if len(_shape(value)) < rank and not _is_alias(shape, order):
                source = Value(value.dtype, shape)
                self._put(user, Alias(input=value, outputs=[source], steps=[user.step]))
            self._put(user, _moved(source, self._copies[key], order, user))
        return self._copies[key]

    def _put(self, user: Operation, operation: Operation) -> None:
        operation.conditions = user.conditions
        self.before.setdefault(user, []).append(operation)


def _remapped(value: Value, remap: Remap, order: Order) -> Value | None:
    """A constant that says something of axes, for channels last."""
    if not isinstance(value.constant, np.ndarray | np.generic):
        return None
    turned = remap(np.asarray(value.constant), order)
    return None if turned is None else Value(turned.dtype, turned.shape, turned)


def _moved(source: Value, target: Value, order: Order, beside: Operation) -> Operation:
    """A transposed copy, or another shape for the same elements where they keep their order."""
    same = _is_alias([_shape(target)[axis] for axis in _inverse(order)], order)
    steps, conditions = [beside.step], beside.conditions
    if same:
        return Alias(input=source, outputs=[target], steps=steps, conditions=conditions)
    return Permute(input=source, axes=order, outputs=[target], steps=steps, conditions=conditions)


def _twin(step: Step, order: Order) -> Step:
    """The step of a node that does the same channels last."""
    node = step.node
    changed: dict[str, Any] = {"data_format": _TWINS[KernelNode(node).text("data_format")]}
    for name in _PER_AXIS:
        entries = node.attr(name, None) if name in node.op_def.attrs else None
        if entries:
            changed[name] = [entries[axis] for axis in order]
    explicit = node.attr("explicit_paddings", None)
    if explicit:
        changed["explicit_paddings"] = [explicit[2 * axis + side] for axis in order for side in (0, 1)]
    twin = Node(node.graph, node.id, node.name, node.op, node.device, node.source)
    twin.inputs, twin.control_inputs = node.inputs, node.control_inputs
    twin.changed_attrs = {**(node.changed_attrs or {}), **{name: encode(value) for name, value in changed.items()}}
    return dataclasses.replace(step, node=twin, compute=registry.get(twin).factory(KernelNode(twin)))


def _leads(operation: Operation) -> bool:
    """Whether an operation pads what is convolved or pooled, which can do that itself."""
    user = operation.output.sole_user if operation.op in _PADS else None
    return user is not None and user.op in _RULES and _RULES[user.op].starts and data_format(user) in _TWINS


def _is_image(value: Value) -> bool:
    return is_float(value) and len(_shape(value)) in (4, 5)


def _shape(value: Value) -> tuple[int, ...]:
    assert value.shape is not None
    return value.shape


def _order(value: Value) -> Order:
    return (0, *range(2, len(_shape(value))), 1)


def _inverse(order: Order) -> Order:
    return tuple(order.index(axis) for axis in range(len(order)))


def _is_alias(shape: Sequence[int], order: Order) -> bool:
    """Whether elements lie in memory after the transposition as they did before."""
    wide = [axis for axis in order if shape[axis] != 1]
    return wide == sorted(wide)


def _is_work(value: Value) -> bool:
    """Whether making it channels last takes a copy while the program runs."""
    return not value.is_constant and not _is_alias(_shape(value), _order(value))


def _keeps_order(reduced: Any, order: Order) -> bool:
    """Whether the axes that a reduction leaves have the same order channels last."""
    gone = {int(axis) % len(order) for axis in reduced.reshape(-1)}
    left = [axis for axis in order if axis not in gone]
    return left == sorted(left)
