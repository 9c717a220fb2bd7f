"""Layers and what follows them, found from their last operation backwards."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

from toolkit.client.construction.graph import Graph
from toolkit.client.construction.operation import Operation
from toolkit.client.construction.tensor import Tensor
from toolkit.client.graph_editor.elements import takers

_LAYERS = ("Conv2D", "MatMul", "DepthwiseConv2dNative")
_SUMS = ("Add", "AddV2")
ACTIVATIONS = ("Relu", "Relu6", "Identity")
RELUS = ("Relu", "Relu6")


@dataclass(frozen=True)
class LayerFound:
    """A product or convolution with what is behind it.

    Attributes:
        weights: its second argument.
        bias: the last sum with a bias, batch norms' included.
        bypass: a sum of that with something else.
        activation: what is rounded last.
        after: a sum of the activation with something else.
    """

    op: Operation
    weights: Tensor
    bias: Operation | None = None
    bypass: Operation | None = None
    activation: Operation | None = None
    after: Operation | None = None


def _layer(op: Operation) -> LayerFound | None:
    """A layer whose weights are variables, or products of those that batch norms leave."""
    if op.type not in _LAYERS:
        return None
    for weights in reversed(op.inputs):
        maker = weights.op
        if maker.type in ("ReadVariableOp", "Mul") or (maker.type == "Identity" and _of_variable(maker)):
            return LayerFound(op, weights)
    return None


def _of_variable(read: Operation) -> bool:
    below = read.inputs[0].op
    if below.type == "ConcatV2":
        below = below.inputs[0].op
    if below.type == "Identity":
        below = below.inputs[0].op
    return below.type in ("Variable", "VariableV2")


def _output(op: Operation) -> LayerFound | None:
    return _layer(op.inputs[0].op if op.type == "BatchToSpaceND" else op)


def _with_bias(op: Operation) -> LayerFound | None:
    if op.type in (*_SUMS, "BiasAdd"):
        for value in op.inputs:
            found = _output(value.op)
            if found is not None:
                return replace(found, bias=op)
    return None


def _corrected(op: Operation) -> LayerFound | None:
    """Behind a batch norm that went into the weights while it learns: a product and two sums."""
    if op.type in _SUMS:
        for value in op.inputs:
            inner = value.op
            for factor in inner.inputs if inner.type in _SUMS else ():
                for last in factor.op.inputs if factor.op.type == "Mul" else ():
                    found = _output(last.op)
                    if found is not None:
                        return replace(found, bias=op)
    return None


def _linear(op: Operation) -> LayerFound | None:
    found = _with_bias(op) or _corrected(op)
    return _corrected(op.inputs[0].op) if found is None and op.type == "Identity" else found


def _bypassed(op: Operation) -> LayerFound | None:
    if op.type in _SUMS:
        for value in op.inputs:
            found = _linear(value.op)
            if found is not None:
                return replace(found, bypass=op)
    return None


def _activated(op: Operation) -> LayerFound | None:
    if op.type not in ACTIVATIONS or not op.inputs:
        return None
    below = op.inputs[0].op
    found = _linear(below) or _bypassed(below) or _layer(below)
    return None if found is None else replace(found, activation=op)


def _feeds_batch_norm(op: Operation) -> bool:
    """An Identity whose only user normalizes what a layer gives: nothing is rounded between them."""
    using = takers(op.outputs[0])
    return op.type == "Identity" and len(using) == 1 and using[0].type.startswith("FusedBatchNorm")


def layers(graph: Graph) -> Iterator[LayerFound]:
    """Each layer once, with as much behind it as there is."""
    seen: set[Operation] = set()
    operations = list(graph.get_operations())

    def new(found: LayerFound | None) -> bool:
        if found is None or found.op in seen:
            return False
        seen.add(found.op)
        return True

    for op in operations:
        for value in op.inputs if op.type in _SUMS else ():
            found = _activated(value.op)
            if found is not None and new(found):
                yield replace(found, after=op)
                break
    for op in operations:
        found = _activated(op)
        if found is not None and not _feeds_batch_norm(op) and new(found):
            yield found
    for op in operations:
        found = _with_bias(op) or _corrected(op)
        if found is not None and new(found):
            yield replace(found, bias=None, activation=op)
    for op in operations:
        for value in op.inputs if op.type in _LAYERS else ():
            found = _output(value.op)
            if found is not None and new(found):
                yield replace(found, activation=found.op)
