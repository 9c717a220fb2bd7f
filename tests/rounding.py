"""How far the outputs of a graph in float32 may be from the exact ones, node by node: a running error analysis.

Beside its value every tensor has the root of the mean square that its error may reach, number by number, where each
operation rounds as `tests.tolerance` says (J. H. Wilkinson, "Error analysis revisited", 1986, calls this a running
error analysis; independent errors add as the roots of their squares, those that reach a node by two ways add plainly).
Kernels propagate errors themselves: a product is linear in each of its arguments, so that of squares it gives sums of
squares; what moves numbers moves errors; what takes each number by itself is asked at both ends of the error.

Whoever computes the same graph in another order, with fused multiply-add, with epilogues in registers or with scales
multiplied into weights, stays within `tolerance.LIKELY` times that.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
import pytest

from tests import tolerance
from toolkit.graph.node import Node
from toolkit.kernels import registry
from toolkit.runtime.sessions.graphs import core_graph

#: roundings of an exponential, a logarithm, an error function and their kin: theirs are good to a few units
_FUNCTION = 8.0

#: what moves numbers, exactly
MOVES = frozenset(
    (
        "Identity", "Reshape", "Transpose", "ConcatV2", "Pad", "Slice", "StridedSlice", "ExpandDims", "Squeeze",
        "Tile", "Split", "SplitV", "Pack", "Unpack", "Gather", "GatherV2", "BatchToSpaceND", "SpaceToBatchND",
        "DepthToSpace", "SpaceToDepth", "BroadcastTo", "ReverseV2", "MirrorPad", "Neg",
        "StopGradient", "Snapshot", "Select", "SelectV2",
    )
)  # fmt: skip
_PRODUCTS = frozenset(
    (
        "Mul", "MatMul", "BatchMatMul", "BatchMatMulV2", "Conv2D", "DepthwiseConv2dNative", "Conv3D",
        "Conv2DBackpropInput", "Conv2DBackpropFilter", "DepthwiseConv2dNativeBackpropInput",
        "DepthwiseConv2dNativeBackpropFilter",
    )
)  # fmt: skip
_SUMS = frozenset({"Sum", "Mean", "AvgPool", "AvgPool3D", "Cumsum"})
_TOTALS = frozenset({"Add", "AddV2", "Sub", "AddN", "BiasAdd", "BiasAddV1"})
_LARGEST = frozenset({"MaxPool", "MaxPool3D", "Max"})
#: of one or two numbers, monotonous between both ends of an error; with the roundings of each
_EACH: dict[str, float] = {
    **dict.fromkeys(("Relu", "Abs", "Maximum", "Minimum"), 0.0),
    **dict.fromkeys(("Square", "Sqrt", "RealDiv", "Div", "SquaredDifference", "LeakyRelu", "Reciprocal", "Inv"), 2.0),
    **dict.fromkeys(
        ("Tanh", "Sigmoid", "Softsign", "Exp", "Expm1", "Log", "Log1p", "Rsqrt", "Erf"),
        _FUNCTION,
    ),
}  # fmt: skip


class NotDerivedError(Exception):
    """A node for which there is no rule."""


class Number:
    """A tensor with the error of each of its numbers; None where it is exact."""

    def __init__(self, value: Any, error: Any = None):
        self.value = value
        self.is_float = isinstance(value, np.ndarray | np.generic) and value.dtype == np.float32
        self.error = error

    @property
    def errors(self) -> Any:
        """Of a float tensor, zeros included; any other tensor itself, for those who are called with both."""
        if not self.is_float:
            return self.value
        return np.zeros_like(self.value) if self.error is None else self.error


Compute = Callable[..., Any]


def _list(outputs: Any) -> list[Any]:
    return list(outputs) if isinstance(outputs, list | tuple) else [outputs]


def _with(inputs: Sequence[Number], change: Callable[[Number], Any]) -> list[Any]:
    return [change(each) if each.is_float else each.value for each in inputs]


def _moved(compute: Compute, inputs: Sequence[Number], values: list[Any]) -> list[Any]:
    return [np.abs(each) for each in _list(compute(*_with(inputs, lambda n: n.errors)))]


def _product(compute: Compute, inputs: Sequence[Number], values: list[Any]) -> list[Any]:
    """Squares go through the product itself; so does a count of the products of a sum."""
    factors = [index for index, each in enumerate(inputs) if each.is_float]
    sizes = _with(inputs, lambda n: np.abs(n.value))
    count = float(np.max(compute(*_with(inputs, lambda n: np.ones_like(n.value)))))
    error = tolerance.unit() * math.sqrt(count) * compute(*sizes)
    for changed in factors:
        if inputs[changed].error is not None:
            given = [inputs[changed].errors if i == changed else size for i, size in enumerate(sizes)]
            error = error + (compute(*given) if count == 1 else _root_of_squares(compute, given, factors))
    return [error]


def _root_of_squares(compute: Compute, given: list[Any], factors: Sequence[int]) -> Any:
    """Of what a sum of products adds; scaled, for squares of errors would leave the range of float32."""
    scales = {index: float(given[index].max(initial=0.0)) or 1.0 for index in factors}
    squares = [np.square(each / scales[i]) if i in scales else each for i, each in enumerate(given)]
    return np.sqrt(compute(*squares)) * np.float32(math.prod(scales.values()))


def _sum(compute: Compute, inputs: Sequence[Number], values: list[Any]) -> list[Any]:
    """What is summed may carry one and the same error, of a mean that was subtracted: these add plainly."""
    count = max(1.0, inputs[0].value.size / max(1, values[0].size))
    sizes = compute(*_with(inputs, lambda n: np.abs(n.value)))
    return [compute(*_with(inputs, lambda n: n.errors)) + tolerance.unit() * math.sqrt(count + 1) * sizes]


def _total(compute: Compute, inputs: Sequence[Number], values: list[Any]) -> list[Any]:
    roundings = tolerance.unit() * math.sqrt(max(1, len(inputs) - 1)) * np.abs(values[0])
    return [_signless(compute, inputs) + roundings]


def _signless(compute: Compute, inputs: Sequence[Number]) -> Any:
    """The sum of the errors, also where the node subtracts."""
    total: Any = 0.0
    for index, each in enumerate(inputs):
        if each.is_float and each.error is not None:
            alone = [e.errors if i == index else np.zeros_like(e.value) for i, e in enumerate(inputs)]
            total = total + np.abs(compute(*alone))
    return total


def _largest(compute: Compute, inputs: Sequence[Number], values: list[Any]) -> list[Any]:
    return [compute(*_with(inputs, lambda n: n.errors))]


def _each(roundings: Callable[..., Any]) -> Callable[..., list[Any]]:
    """Of numbers one by one; `roundings` of the function itself, by its arguments."""

    def rule(compute: Compute, inputs: Sequence[Number], values: list[Any]) -> list[Any]:
        error = tolerance.unit() * roundings(*(each.value for each in inputs)) * np.abs(values[0])
        for index, each in enumerate(inputs):
            if each.error is None:
                continue
            ends = [
                compute(*[n.value + (sign * n.error if i == index else 0) for i, n in enumerate(inputs)])
                for sign in (1, -1)
            ]
            error = error + np.maximum(*(np.abs(end - values[0]) for end in ends))
        return [error]

    return rule


def _softmax(compute: Compute, inputs: Sequence[Number], values: list[Any]) -> list[Any]:
    """Differences of logarithms are those of the inputs, less their mean under the result."""
    (probable,) = values
    errors = inputs[0].errors
    shared = np.sum(probable * errors, -1, keepdims=True)
    roundings = _FUNCTION + math.sqrt(probable.shape[-1])
    shift = np.abs(inputs[0].value - inputs[0].value.max(-1, keepdims=True))  # the difference is rounded before exp
    return [probable * (errors + shared + tolerance.unit() * (roundings + shift))]


def _norm(compute: Compute, inputs: Sequence[Number], values: list[Any]) -> list[Any]:
    """With given statistics; scale and shift may have become one, or part of weights."""
    x, scale, offset, mean, variance = inputs
    if mean.value.size == 0 or any(each.error is not None for each in inputs[1:]):
        raise NotDerivedError("a batch norm that measures")
    zero = np.zeros_like(mean.value)
    moved = _list(compute(x.errors, np.abs(scale.value), zero, zero, variance.value))[0]
    sizes = (np.abs(x.value), np.abs(scale.value), np.abs(offset.value), -np.abs(mean.value), variance.value)
    return [moved + 4 * tolerance.unit() * _list(compute(*sizes))[0], *[None] * (len(values) - 1)]


def _erfc(x: Any) -> Any:
    return np.vectorize(math.erfc, otypes=[np.float64])(x)


_RULES: dict[str, Callable[..., list[Any]]] = {
    **dict.fromkeys(MOVES, _moved),
    **dict.fromkeys(_PRODUCTS, _product),
    **dict.fromkeys(_SUMS, _sum),
    **dict.fromkeys(_TOTALS, _total),
    **dict.fromkeys(_LARGEST, _largest),
    **{op: _each(lambda *_, count=count: count) for op, count in _EACH.items()},
    # through exp of a square, and of a product, whose own rounding is as much of the result as they are large
    # and a rounding of 1, for gelu may be computed with 1 + erf in its place (`graphmill help numerics`)
    "Erfc": _each(lambda x: _FUNCTION + np.square(x) + 1 / np.maximum(_erfc(x), tolerance.SMALLEST)),
    # oneDNN's softplus is off by up to 32 roundings of 1 (2e-6, over all of -20 to 20), however small the result; what
    # is allowed in the end is 16 times as much as this
    "Softplus": _each(lambda x: _FUNCTION + 4 / np.maximum(np.logaddexp(x, 0), tolerance.SMALLEST)),
    # the gate of a hard swish, relu6(x + 3), is 6 clip(x / 6 + 1/2) for oneDNN: the sum of two numbers of 1/2, of which
    # one has two roundings, is rounded to a number of at most 1, and all are six times as large
    "Relu6": _each(lambda x: np.where((x > 0) & (x < 6), 6 * (0.5 + 0.5 + 1) / np.maximum(x, tolerance.SMALLEST), 0)),
    # exp(x) - 1: a rounding of a number of about 1
    **dict.fromkeys(("Elu", "Selu"), _each(lambda x: _FUNCTION + 1 / np.maximum(np.abs(x), tolerance.SMALLEST))),
    "Pow": _each(lambda x, y: _FUNCTION + np.abs(y * np.log(np.abs(x)))),
    "FusedBatchNormV3": _norm,
    "Softmax": _softmax,
}


def own(op: str, compute: Compute, inputs: Sequence[Any], values: list[Any]) -> list[Any] | None:
    """How far the roundings of one node reach, in float32, of exact inputs, for each output; None without a rule."""
    rule = _RULES.get(op)
    if rule is None:
        return None
    try:
        return [0.0 if each is None else each for each in rule(compute, [Number(each) for each in inputs], values)]
    except NotDerivedError:
        return None


def allowed(graph: Any, fetches: Sequence[Any], feeds: Mapping[Any, Any]) -> list[Any] | None:
    """How far two computations of the fetches in float32 may be apart; 0 for what is no float.

    Args:
        fetches: outputs, or their names.
        feeds: outputs, or their names, to arrays.

    Returns:
        For each fetch an array of its shape; None where the graph has nodes without a rule.
    """
    try:
        with pytest.MonkeyPatch.context() as patch:
            patch.setenv("GRAPHMILL_ONEDNN", "off")  # the definitions
            return _allowed(graph, fetches, feeds)
    except NotDerivedError:
        return None


def _allowed(graph: Any, fetches: Sequence[Any], feeds: Mapping[Any, Any]) -> list[Any]:
    nodes: dict[str, Node] = {node.name: node for node in core_graph(graph).nodes}
    found = {_endpoint(name): Number(np.asarray(value)) for name, value in feeds.items()}

    def known(name: str, index: int) -> Number:
        wanted = [nodes[name]]  # without recursion: what is on the stack waits for what is above it
        while wanted:
            node = wanted[-1]
            if node.is_control_flow:  # a value of its own in every iteration
                raise NotDerivedError(node.op)
            missing = [o.node for o in node.inputs if (o.node.name, o.index) not in found]
            if missing:
                wanted += missing
                continue
            wanted.pop()
            if (node.name, 0) not in found:
                found.update(_run(node, [found[o.node.name, o.index] for o in node.inputs]))
        return found[name, index]

    results: list[Any] = []
    with np.errstate(all="ignore"):
        for fetch in fetches:
            number = known(*_endpoint(fetch))
            results.append(2 * tolerance.LIKELY * (number.errors + tolerance.SMALLEST) if number.is_float else 0.0)
    return results


def _endpoint(tensor: Any) -> tuple[str, int]:
    name, _, index = (tensor if isinstance(tensor, str) else tensor.name).partition(":")
    return name, int(index or 0)


def _run(node: Node, inputs: Sequence[Number]) -> dict[tuple[str, int], Number]:
    entry = registry.get(node, "CPU")
    if entry.kind is not registry.Kind.PURE:
        raise NotDerivedError(node.op)
    compute = entry.factory(registry.KernelNode(node))
    values = _list(compute(*(each.value for each in inputs)))
    errors: list[Any] = [None] * len(values)
    if any(isinstance(value, np.ndarray) and value.dtype.kind == "f" for value in values) and inputs:
        if any(each.is_float and each.value.dtype != np.float32 for each in inputs):
            raise NotDerivedError(node.op)
        rule = _RULES.get(node.op)
        floats = any(each.is_float for each in inputs)
        if rule is None and floats:
            raise NotDerivedError(node.op)
        if rule is not None and floats:
            errors = rule(compute, inputs, values)
    return {(node.name, i): Number(value, error) for i, (value, error) in enumerate(zip(values, errors, strict=True))}
