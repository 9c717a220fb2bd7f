"""Rounding put into a graph, where it will be when the graph runs in whole numbers."""

from __future__ import annotations

from dataclasses import dataclass, field

from toolkit.client import ops
from toolkit.client.construction.context import get_default_graph
from toolkit.client.construction.graph import Graph
from toolkit.client.construction.operation import Operation
from toolkit.client.construction.tensor import Tensor
from toolkit.client.flow.control_flow import cond
from toolkit.client.graph_editor.elements import takers
from toolkit.client.graph_editor.rewiring import reroute_ts
from toolkit.client.quantizing.folding import fold_batch_norms
from toolkit.client.quantizing.layers import ACTIVATIONS, RELUS, LayerFound, layers
from toolkit.client.quantizing.ranges import Rounding, rounded
from toolkit.client.quantizing.steps import quantization_step
from toolkit.errors import ArgumentValueError

_ROUNDED = ("FakeQuantWithMinMaxVars", "FakeQuantWithMinMaxArgs", "FakeQuantWithMinMaxVarsPerChannel")
_ELEMENTWISE = ("Add", "AddV2", "Mul")
_PASSED_THROUGH = ("Reshape", "Identity", "BatchToSpaceND", "SpaceToBatchND", "MaxPool", "Max")


@dataclass
class _Rewriting:
    """One graph while it is rewritten."""

    graph: Graph
    weights: Rounding
    activations: Rounding
    delay: int | None
    scope: str
    done: set[Operation] = field(default_factory=set[Operation])

    def round(
        self, name: str, producer: Operation, how: Rounding, *, averaged: bool = True, narrow_range: bool = False,
        init_min: float = -6.0, producers: bool = True, consumers: bool = False,
    ) -> None:  # fmt: skip
        """Let what takes an operation's result take it rounded.

        Args:
            name: of the variables' scope.
            producers, consumers: it, or all that take it, have to be in the scope of the rewriting.
        """
        using = list(takers(producer.outputs[0]))
        if producers and not producer.name.startswith(self.scope):
            return
        if consumers and not all(op.name.startswith(self.scope) for op in using):
            return
        value = producer.outputs[0]
        if _is_rounded(value):
            return
        outer = self.graph.get_name_scope()
        name = name.removeprefix(f"{outer}/") if outer else name
        found = rounded(value, how, name, averaged=averaged, narrow_range=narrow_range, init_min=init_min)
        if self.delay:
            begun = ops.greater_equal(quantization_step(self.graph), self.delay, name=f"{name}/activate_quant")
            found = cond(begun, lambda: found, lambda: value, name=f"{name}/delayed_quant")
        if using:
            reroute_ts([found], [value], can_modify=using)

    def layer(self, layer: LayerFound) -> None:
        context = layer.op.name.rpartition("/")[0]
        around = context.rpartition("/")[0] if layer.bypass is not None else context
        self.round(
            _within(context, "weights_quant"), layer.weights.op, self.weights, averaged=False, narrow_range=True,
            producers=False, consumers=True,
        )  # fmt: skip
        if layer.activation is not None:
            self.round(_within(around, "act_quant"), layer.activation, self.activations, init_min=0.0)
            self.done.add(layer.activation)
        if layer.bypass is not None and layer.bias is not None:
            self.round(_within(context, "conv_quant"), layer.bias, self.activations, consumers=True)
            self.done.add(layer.bias)
            self.unless(ACTIVATIONS, _within(around, "add_quant"), layer.bypass, consumers=True)
        if layer.after is not None:
            around = layer.after.name.rpartition("/")[0]
            self.unless(RELUS, _within(around, "post_activation_bypass_quant"), layer.after, consumers=False)

    def unless(self, followed_by: tuple[str, ...], name: str, sum_: Operation, consumers: bool) -> None:
        """Round a sum, but where an activation follows, which is rounded itself."""
        if not any(op.type in followed_by for op in takers(sum_.outputs[0])):
            self.round(name, sum_, self.activations, consumers=consumers)
            self.done.add(sum_)

    def rest(self) -> None:
        """Round sums and products of what is rounded."""
        how = self.activations._replace(symmetric=False)
        for op in list(self.graph.get_operations()):
            if self.needs(op):
                self.round(f"{op.name}/activation_{op.type}_quant", op, how)

    def needs(self, op: Operation) -> bool:
        if op in self.done or op.type not in _ELEMENTWISE:
            return False
        using = takers(op.outputs[0])
        if len(using) == 1 and using[0].type in RELUS:
            return False
        for value in op.inputs:
            below = value.op
            while below.type in _PASSED_THROUGH:
                below = below.inputs[0].op
            if below.type == "FakeQuantWithMinMaxVars" or "delayed_quant/Merge" in below.name:
                return True
            if below.type in _ELEMENTWISE and any(self.needs(each.op) for each in below.inputs):
                return True
        return False


def _within(context: str, name: str) -> str:
    return f"{context}/{name}" if context else name


def _is_rounded(value: Tensor) -> bool:
    """Whether something rounds it already."""
    waiting = list(takers(value))
    while waiting:
        op = waiting.pop()
        if op.type in _ROUNDED:
            return True
        if op.type in ("Reshape", "Identity"):
            waiting += [each for output in op.outputs for each in takers(output)]
    return False


def _rewrite(
    graph: Graph | None, training: bool, weight_bits: int = 8, activation_bits: int = 8, symmetric: bool = False,
    delay: int | None = None, freeze_delay: int | None = None, scope: str | None = None,
) -> None:  # fmt: skip
    graph = get_default_graph() if graph is None else graph
    training_ops = sorted(
        {op.type for op in graph.get_operations() if op.type.startswith(("Apply", "ResourceApply", "SparseApply"))}
        | {op.type for op in graph.get_operations() if op.type.startswith("ResourceSparseApply")}
    )
    if training_ops:
        raise ValueError(f"rewrite the graph before optimizers are added to it; there are {', '.join(training_ops)}")
    for what, bits in (("weight_bits", weight_bits), ("activation_bits", activation_bits)):
        if not 2 <= bits <= 16:
            raise ArgumentValueError(f"{what}: expected 2 to 16 bits, got {bits}")
    scope = scope or ""
    with graph.as_default():
        fold_batch_norms(graph, freeze_delay)
        rewriting = _Rewriting(
            graph, Rounding(weight_bits, symmetric, training), Rounding(activation_bits, symmetric, training), delay,
            scope if scope.endswith("/") or not scope else f"{scope}/",
        )  # fmt: skip
        for layer in list(layers(graph)):
            rewriting.layer(layer)
        rewriting.rest()


def create_training_graph(input_graph: Graph | None = None, quant_delay: int = 0) -> None:
    """Let a graph learn with weights and activations rounded to 8 bits; optimizers and gradients come afterwards.

    Args:
        input_graph: None: the default graph.
        quant_delay: the step from which tensors are rounded; until then only their ranges are measured.

    Raises:
        ValueError: the graph has an optimizer.
    """
    _rewrite(input_graph, True, delay=quant_delay)


def create_eval_graph(input_graph: Graph | None = None) -> None:
    """Let a graph compute with rounded weights and activations, within the ranges that a checkpoint brings.

    Args:
        input_graph: None: the default graph.

    Raises:
        ValueError: the graph has an optimizer.
    """
    _rewrite(input_graph, False)


def experimental_create_training_graph(
    input_graph: Graph | None = None, weight_bits: int = 8, activation_bits: int = 8, symmetric: bool = False,
    quant_delay: int = 0, freeze_bn_delay: int | None = None, scope: str | None = None,
) -> None:  # fmt: skip
    """`create_training_graph` with more to choose.

    Args:
        weight_bits, activation_bits: 2 to 16.
        symmetric: ranges reach as far below 0 as above.
        freeze_bn_delay: the step from which batch norms use their moving averages; None: never.
        scope: only what is in this scope.
    """
    _rewrite(input_graph, True, weight_bits, activation_bits, symmetric, quant_delay, freeze_bn_delay, scope)


def experimental_create_eval_graph(
    input_graph: Graph | None = None, weight_bits: int = 8, activation_bits: int = 8, symmetric: bool = False,
    quant_delay: int | None = None, scope: str | None = None,
) -> None:  # fmt: skip
    """`create_eval_graph` with more to choose; see `experimental_create_training_graph`."""
    _rewrite(input_graph, False, weight_bits, activation_bits, symmetric, quant_delay, None, scope)
