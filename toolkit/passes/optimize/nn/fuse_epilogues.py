"""Convolutions and products computed together with the bias, the norm and the activation behind them.

What TensorFlow's remapper makes when a graph is loaded, as a file: `_FusedConv2D`, `_FusedMatMul` and, on request,
`_FusedDepthwiseConv2dNative`. Only what TensorFlow's processors run whatever libraries it was built with is fused:
channels last, these activations, these types; depthwise convolutions run fused with oneDNN alone.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

from toolkit.graph import dtypes
from toolkit.graph.dtypes import DType
from toolkit.graph.graph import Graph
from toolkit.graph.infer import ShapeMap, infer
from toolkit.graph.node import Node, Output
from toolkit.passes.base import PassResult
from toolkit.passes.optimize.nn.channels import LAST, NORMS, channel_axis
from toolkit.passes.optimize.rewriting import Optimization
from toolkit.passes.optimize.subgraph import Subgraphs, plain_attrs, same_device

_SIMPLE = frozenset({"Relu", "Relu6", "Elu"})


@dataclass(frozen=True, slots=True)
class _Fusion:
    """What can be computed together with an op.

    Attributes:
        op: that does both.
        activations, types: for which there are kernels.
        norms: whether a FusedBatchNorm can take the bias's place.
    """

    op: str
    activations: frozenset[str]
    types: frozenset[DType]
    norms: bool = False


_FUSIONS = {
    "Conv2D": _Fusion(
        "_FusedConv2D", _SIMPLE | {"LeakyRelu"}, frozenset({dtypes.float32, dtypes.float64}), norms=True
    ),
    "MatMul": _Fusion(
        "_FusedMatMul", _SIMPLE | {"LeakyRelu", "Tanh", "Sigmoid"}, frozenset({dtypes.float32})
    ),
    "DepthwiseConv2dNative": _Fusion("_FusedDepthwiseConv2dNative", _SIMPLE, frozenset({dtypes.float32})),
}  # fmt: skip
_ACTIVATIONS = frozenset(each for fusion in _FUSIONS.values() for each in fusion.activations)


@dataclass(frozen=True)
class FuseEpilogues(Optimization):
    """Fuse bias, norm and activation into the convolution or product before them.

    The report has `fused`: how many, by op.

    Attributes:
        depthwise: depthwise convolutions too; TensorFlow runs these with oneDNN alone.
    """

    name: ClassVar[str] = "fuse_epilogues"

    depthwise: bool = False

    def apply(self, graph: Graph) -> PassResult:
        found = Subgraphs(graph, self.kept)
        fused: dict[str, int] = {}
        shapes: ShapeMap | None = None
        # The last node first: an activation takes in what is before it as a whole.
        for node in [*found.each(*_ACTIVATIONS), *found.each("BiasAdd", "Add", "AddV2", *NORMS)]:
            chain = self._chain(found, node)
            if chain is None:
                continue
            if chain.conv.op == "Conv2D":
                shapes = shapes or infer(graph, strict=False)
                if not _is_whole(graph, shapes, chain.conv):
                    continue
            _fuse(found, node, chain)
            fused[node.op] = fused.get(node.op, 0) + 1
        return found.result({"fused": dict(sorted(fused.items()))})

    def _chain(self, found: Subgraphs, node: Node) -> _Chain | None:
        """What ends in a node and can be computed as one."""
        if node.op not in _ACTIVATIONS:
            return self._biased(found, node, None)
        if found.is_fed(node) or not node.inputs or node.inputs[0].index != 0:
            return None
        bias = node.inputs[0].node
        if not found.is_inner(bias) or bias.op not in ("BiasAdd", "Add", "AddV2", *NORMS):
            return None
        chain = self._biased(found, bias, node)
        if chain is None or node.op not in _FUSIONS[chain.conv.op].activations:
            return None
        return chain

    def _biased(self, found: Subgraphs, node: Node, activation: Node | None) -> _Chain | None:
        if found.is_fed(node) or len(node.inputs) < 2:
            return None
        source, args = node.inputs[0], node.inputs[1:]
        if node.op in ("Add", "AddV2"):
            swapped = found.array(source)
            if swapped is not None:
                source, args = node.inputs[1], [source]
        conv, index = source
        fusion = _FUSIONS.get(conv.op)
        if fusion is None or index != 0 or not found.is_inner(conv) or found.is_fed(conv):
            return None
        if conv.op == "DepthwiseConv2dNative" and (not self.depthwise or any(conv.attr("explicit_paddings"))):
            return None
        if conv.output_types[0] not in fusion.types or channel_axis(conv) != LAST:
            return None
        nodes = [conv, node] if activation is None else [conv, node, activation]
        if not same_device(*nodes):
            return None
        if node.op in NORMS:
            if not fusion.norms or node.attr("is_training") or not found.reads_only_first(node):
                return None
            if channel_axis(node) != LAST or conv.output_types[0] != dtypes.float32 or node.attr("T") != dtypes.float32:
                return None
            return _Chain(conv, node, activation, args, "FusedBatchNorm", node.attr("epsilon"))
        if node.op == "BiasAdd":
            return _Chain(conv, node, activation, args, "BiasAdd", 0.0) if channel_axis(node) == LAST else None
        bias = found.array(args[0])
        weights = found.array(conv.inputs[1])
        if bias is None or weights is None or bias.ndim != 1 or bias.size != _channels(conv, weights.shape):
            return None
        return _Chain(conv, node, activation, args, "BiasAdd", 0.0)


@dataclass(slots=True)
class _Chain:
    """A convolution or product and what follows it."""

    conv: Node
    bias: Node
    activation: Node | None
    args: list[Output]
    first: str
    epsilon: float


def _fuse(found: Subgraphs, node: Node, chain: _Chain) -> None:
    """Make the last node of a chain compute it all."""
    conv, activation = chain.conv, chain.activation
    dtype = conv.output_types[0]
    attrs: dict[str, Any] = plain_attrs(conv)
    attrs.update(num_args=len(chain.args), epsilon=chain.epsilon, leakyrelu_alpha=0.2)
    attrs["fused_ops"] = [chain.first] if activation is None else [chain.first, activation.op]
    if activation is not None and activation.op == "LeakyRelu":
        attrs["leakyrelu_alpha"] = activation.attr("alpha")
    if conv.op == "Conv2D":
        attrs["TArgs"] = [dtype] * len(chain.args)
    else:
        attrs.pop("explicit_paddings", None)
        for name in ("grad_a", "grad_b"):
            attrs.pop(name, None)
    inner = [conv] if activation is None else [chain.bias, conv]
    inputs = [*conv.inputs, *chain.args]
    found.make(node, _FUSIONS[conv.op].op, inputs, attrs, inner, conv.device or node.device)


def _channels(conv: Node, shape: tuple[int, ...]) -> int:
    """How many channels an op makes with weights of a shape."""
    if conv.op == "MatMul":
        return shape[0 if conv.attr("transpose_b") else 1] if len(shape) == 2 else -1
    if len(shape) != 4:
        return -1
    return shape[2] * shape[3] if conv.op == "DepthwiseConv2dNative" else shape[3]


def _is_whole(graph: Graph, shapes: ShapeMap, conv: Node) -> bool:
    """Whether a convolution is known to have one group: of several, TensorFlow has no fused kernel."""
    data, weights = (_shape(graph, shapes, source) for source in conv.inputs[:2])
    if data is None or weights is None or len(data) != 4 or len(weights) != 4:
        return False
    return data[3] is not None and data[3] == weights[2]


def _shape(graph: Graph, shapes: ShapeMap, output: Output) -> tuple[int | None, ...] | None:
    """The shape of an output as it was before anything was fused: names and shapes are the same."""
    node = graph.get(output.node.name)
    return None if node is None else shapes[Output(node, output.index)].dims
