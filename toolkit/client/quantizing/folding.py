"""Batch norms go into the weights before them, as they do once a model is deployed."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple

from toolkit.client import ops
from toolkit.client.arrays import array_ops
from toolkit.client.construction.create import create_op
from toolkit.client.construction.graph import Graph
from toolkit.client.construction.operation import Operation
from toolkit.client.construction.tensor import Tensor
from toolkit.client.flow.control_flow import cond
from toolkit.client.gradients.custom import RegisterGradient
from toolkit.client.graph_editor.elements import takers
from toolkit.client.graph_editor.rewiring import reroute_ts
from toolkit.client.math import math_ops
from toolkit.client.quantizing.steps import quantization_step
from toolkit.errors import GraphError
from toolkit.graph import dtypes

_LAYERS = ("Conv2D", "DepthwiseConv2dNative", "MatMul")
_NORMS = ("FusedBatchNorm", "FusedBatchNormV2", "FusedBatchNormV3")
_GRADIENT = "FoldFusedBatchNormGrad"


class _Norm(NamedTuple):
    """A batch norm behind a layer: `spread` is what lies between, BatchToSpaceND or None."""

    layer: Operation
    spread: Operation | None
    norm: Operation
    output: Tensor


class _Moving(NamedTuple):
    """A moving average: what it is before the step, and the share by which it moves."""

    value: Tensor
    share: Tensor


def fold_batch_norms(graph: Graph, freeze_delay: int | None) -> None:
    """Replace each batch norm behind a layer by a layer whose weights are scaled, and a bias.

    Args:
        freeze_delay: the step from which moving averages are used in place of a batch's statistics; None: never.
    """
    for match in list(_matches(graph)):
        _fold(graph, match, freeze_delay)


def _matches(graph: Graph) -> Iterator[_Norm]:
    for norm in graph.get_operations():
        if norm.type not in _NORMS:
            continue
        below, reshaped = norm.inputs[0].op, False
        if below.type == "Reshape":
            below, reshaped = below.inputs[0].op, True
        if below.type == "Identity":
            below = below.inputs[0].op
        spread = below if below.type == "BatchToSpaceND" else None
        layer = below.inputs[0].op if spread is not None else below
        if layer.type not in _LAYERS:
            continue
        output = norm.outputs[0]
        if layer.type == "MatMul":
            after = [op for op in takers(output) if op.type == "Reshape"]
            if not after:
                continue
            output = after[0].outputs[0]
        elif reshaped:
            continue
        if takers(output):
            yield _Norm(layer, spread, norm, output)


def _fold(graph: Graph, match: _Norm, freeze_delay: int | None) -> None:
    layer, norm = match.layer, match.norm
    scope, slash, _ = layer.name.rpartition("/")
    gamma, beta = norm.inputs[1], norm.inputs[2]
    epsilon: float = norm.get_attr("epsilon")
    learning: bool = norm.get_attr("is_training")
    with graph.as_default():
        mean, variance = _statistics(graph, match) if learning else (norm.inputs[3], norm.inputs[4])
        with graph.name_scope(scope + slash), graph.name_scope(f"{scope}{slash}BatchNorm_Fold{slash}"):
            scale = gamma * math_ops.rsqrt(variance + epsilon)
            bias = math_ops.subtract(beta, mean * scale, name="bias")
            corrections = _corrections(graph, match, (mean, variance), epsilon, freeze_delay) if learning else None
        with graph.name_scope(scope + slash):
            weights = layer.inputs[1]
            shape = weights.static_shape.dims or ()
            depthwise = layer.type == "DepthwiseConv2dNative"

            def of_weights(x: Tensor) -> Tensor:  # each channel has several filters of its own
                return array_ops.reshape(x, shape[2:]) if depthwise else x

            if corrections is not None:
                weights = math_ops.multiply(of_weights(corrections[0]), weights, name="correction_mult")
            weights = math_ops.multiply(weights, of_weights(scale), name="mul_fold")
            made = _with_weights(match, weights)
            if corrections is not None:
                made = math_ops.multiply(corrections[1], made, name="post_conv_mul")
                made = math_ops.add(made, corrections[2], name="correction_add")
            made = math_ops.add(made, bias, name="add_fold")
        reroute_ts([made], [match.output])


def _with_weights(match: _Norm, weights: Tensor) -> Tensor:
    """The layer, and what spreads its output, with other weights."""
    made = _again(match.layer, [match.layer.inputs[0], weights])
    return made if match.spread is None else _again(match.spread, [made, *match.spread.inputs[1:]])


def _again(op: Operation, inputs: list[Tensor]) -> Tensor:
    # those of types follow from the inputs
    attrs = {key: op.get_attr(key) for key in op.node.attrs if not key.startswith(("_", "T"))}
    name = op.name.rpartition("/")[2] + "_Fold"
    return create_op(op.type, inputs, attrs, name).outputs[0]


def _statistics(graph: Graph, match: _Norm) -> tuple[Tensor, Tensor]:
    """Mean and variance of a batch; the gradient goes on through them alone."""
    norm = match.norm
    norm.set_attr("_gradient_op_type", _GRADIENT.encode())
    scope, slash, _ = norm.name.rpartition("/")
    with graph.name_scope(scope + slash):
        count = math_ops.cast(array_ops.size(norm.inputs[0]) / array_ops.size(norm.outputs[1]), dtypes.float32)
        variance = math_ops.multiply(norm.outputs[2], (count - 1) / count, name="Undo_Bessel_Correction")
    return norm.outputs[1], variance


@RegisterGradient(_GRADIENT)
def _gradient_of_statistics(op: Operation, *grads: Any) -> list[Any]:
    """Of a batch's mean and variance (n - 1 in its denominator); what is normalized, nobody takes any more."""
    x, (_, of_mean, of_variance) = op.inputs[0], grads[:3]
    count = math_ops.cast(array_ops.size(x) / array_ops.size(of_mean), dtypes.float32)
    found = of_mean / count + 2 * of_variance * (x - op.outputs[1]) / (count - 1)
    return [found, *[None] * (len(op.inputs) - 1)]


def _moving(graph: Graph, statistic: Tensor) -> _Moving:
    """The moving average of a batch's statistic.

    Raises:
        GraphError: there is none.
    """
    for difference in takers(statistic):
        if difference.type == "Sub" and difference.inputs[1] is statistic:
            for product in takers(difference.outputs[0]):
                if product.type == "Mul" and product.inputs[0] is difference.outputs[0]:
                    return _Moving(difference.inputs[0], product.inputs[1])
    raise GraphError(
        f"'{statistic.name}': the graph has no moving average of this batch norm's statistics; make the layers with "
        "is_training=True before create_training_graph, or call create_eval_graph"
    )


def _corrections(
    graph: Graph, match: _Norm, statistics: tuple[Tensor, Tensor], epsilon: float, freeze_delay: int | None
) -> tuple[Tensor, Tensor, Tensor]:
    """Factors for weights and outputs, and a bias, so that weights are scaled by moving averages and results by a
    batch's statistics until `freeze_delay`."""
    norm = match.norm
    gamma, (mean, variance) = norm.inputs[1], statistics
    means, variances = _moving(graph, norm.outputs[1]), _moving(graph, norm.outputs[2])
    with graph.name_scope("batch_norm_correction"):
        of_average = math_ops.rsqrt(variances.value + epsilon)
        of_batch = math_ops.rsqrt(variance + epsilon)
        scale = math_ops.divide(of_average, of_batch, name="scale_compute")
        scale = array_ops.identity(scale, name="correction_scale")
        back = ops.reciprocal(scale, name="reciprocal_compute")
        if freeze_delay is None:
            return scale, back, array_ops.zeros_like(mean)
        offset = math_ops.multiply(gamma, mean * of_batch - means.value * of_average, name="offset_compute")
        frozen = ops.greater_equal(quantization_step(graph), freeze_delay, name="use_moving_average")
        for moving, name in ((means, "freeze_moving_mean"), (variances, "freeze_moving_var")):
            using = list(takers(moving.share))
            kept = cond(frozen, lambda: 0.0, lambda share=moving.share: share, name=name)
            reroute_ts([kept], [moving.share], can_modify=using)
        back = cond(frozen, lambda: array_ops.ones_like(back), lambda: back, name="correction_recip")
        offset = cond(frozen, lambda: offset, lambda: array_ops.zeros_like(offset), name="correction_offset")
        return scale, back, offset
