"""Fused convolutions, products and norms taken apart into the ops that they were made of.

For runtimes and converters that do not know TensorFlow's internal ops, and for other passes: what is apart can be
folded, quantized and differentiated. The last op has the fused one's name.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

from toolkit.graph import dtypes
from toolkit.graph.graph import Graph
from toolkit.graph.node import Node, Output
from toolkit.passes.base import PassResult
from toolkit.passes.optimize.rewriting import Optimization
from toolkit.passes.optimize.subgraph import Subgraphs, plain_attrs

_FUSED = {
    "_FusedConv2D": "Conv2D",
    "_FusedMatMul": "MatMul",
    "_FusedDepthwiseConv2dNative": "DepthwiseConv2dNative",
}
_ACTIVATIONS = frozenset({"Relu", "Relu6", "Elu", "LeakyRelu", "Tanh", "Sigmoid"})


@dataclass(frozen=True)
class UnfuseEpilogues(Optimization):
    """Take fused ops apart.

    The report has `unfused`, how many by op, and `left`, the names of those with a part that is no op of its own.
    """

    name: ClassVar[str] = "unfuse_epilogues"

    def apply(self, graph: Graph) -> PassResult:
        found = Subgraphs(graph, self.kept)
        unfused: dict[str, int] = {}
        left: list[str] = []
        for node in found.each(*_FUSED, *_OTHERS):
            op = node.op
            take_apart = _OTHERS.get(op, _unfuse)
            if not found.is_fed(node) and take_apart(found, node):
                unfused[op] = unfused.get(op, 0) + 1
            else:
                left.append(node.name)
        report: dict[str, Any] = {"unfused": unfused}
        return found.result({**report, "left": left} if left else report)


def _unfuse(found: Subgraphs, node: Node) -> bool:
    op, dtype, name = _FUSED[node.op], node.output_types[0], node.name
    names = [each.decode() for each in node.attr("fused_ops")]
    attrs = plain_attrs(node)
    alpha = node.attr("leakyrelu_alpha")
    epsilon = node.attr("epsilon")
    arguments = node.inputs[2 : 2 + node.attr("num_args")]
    steps = _steps(names, arguments)
    if not steps:
        return False
    wanted = node.graph.op_def(op).attrs
    conv_attrs = {key: value for key, value in attrs.items() if key in wanted}
    layout = attrs.get("data_format")
    inputs = node.inputs[:2]
    value = found.add(op, f"{name}/{op}", inputs, attrs=conv_attrs, device=node.device).output()
    found.wait(value.node, node.control_inputs)
    for position, (step, args) in enumerate(steps):
        more: dict[str, Any] = {"T": dtype}
        made = step
        if step == "FusedBatchNorm":
            made = "FusedBatchNormV3"
            more.update(U=dtypes.float32, epsilon=epsilon, is_training=False)
        elif step == "Add":
            made = "AddV2"
        elif step == "LeakyRelu":
            more["alpha"] = alpha
        if layout is not None and step in ("BiasAdd", "FusedBatchNorm"):
            more["data_format"] = layout
        value = _step(found, node, made, [value, *args], more, last=position == len(steps) - 1)
    return True


def _step(found: Subgraphs, node: Node, op: str, inputs: list[Output], attrs: dict[str, Any], *, last: bool) -> Output:
    """A node of its own, or the fused one itself in the end."""
    if last:
        found.make(node, op, inputs, attrs)
        return node.output()
    return found.add(op, f"{node.name}/{op}", inputs, attrs=attrs, device=node.device).output()


def _steps(names: list[str], arguments: list[Output]) -> list[tuple[str, list[Output]]] | None:
    """The ops behind the first with their arguments; None where one of them is not known."""
    left = list(arguments)
    out: list[tuple[str, list[Output]]] = []
    for name in names:
        count = {"BiasAdd": 1, "FusedBatchNorm": 4, "Add": 1}.get(name, 0 if name in _ACTIVATIONS else -1)
        if count < 0 or count > len(left):
            return None
        out.append((name, left[:count]))
        left = left[count:]
    return out if not left else None


def _unfuse_norm(found: Subgraphs, node: Node) -> bool:
    """FusedBatchNormV3, what is added, Relu."""
    activation = node.text("activation_mode")
    if activation not in ("Identity", "Relu") or not found.reads_only_first(node):
        return False
    attrs, side = plain_attrs(node), node.inputs[5:]
    wanted = node.graph.op_def("FusedBatchNormV3").attrs
    norm_attrs = {key: value for key, value in attrs.items() if key in wanted}
    steps = [*(["AddV2"] if side else []), *(["Relu"] if activation == "Relu" else [])]
    if not steps:
        found.make(node, "FusedBatchNormV3", node.inputs[:5], norm_attrs)
        return True
    dtype = node.output_types[0]
    norm = found.add("FusedBatchNormV3", f"{node.name}/norm", node.inputs[:5], attrs=norm_attrs, device=node.device)
    found.wait(norm, node.control_inputs)
    value = norm.output()
    for position, step in enumerate(steps):
        inputs = [value, *side] if step == "AddV2" else [value]
        value = _step(found, node, step, inputs, {"T": dtype}, last=position == len(steps) - 1)
    return True


def _unfuse_window(found: Subgraphs, node: Node) -> bool:
    """ResizeBilinear, MirrorPad, Conv2D."""
    dtype, value, weights, paddings = node.output_types[0], node.inputs[0], node.inputs[-1], node.inputs[-2]
    if node.op == "FusedResizeAndPadConv2D":
        attrs = {"T": dtype, "align_corners": node.attr("resize_align_corners")}
        resized = found.add(
            "ResizeBilinear", f"{node.name}/resized", [value, node.inputs[1]], attrs=attrs, device=node.device
        )
        found.wait(resized, node.control_inputs)
        value = resized.output()
        if dtype != dtypes.float32:  # the op gives float32 whatever it is given
            cast = {"SrcT": dtypes.float32, "DstT": dtype}
            value = found.add("Cast", f"{node.name}/cast", [value], attrs=cast, device=node.device).output()
    pad = {"T": dtype, "Tpaddings": dtypes.int32, "mode": node.attr("mode")}
    padded = found.add("MirrorPad", f"{node.name}/padded", [value, paddings], attrs=pad, device=node.device)
    found.wait(padded, node.control_inputs)
    attrs = {"T": dtype, "strides": node.attr("strides"), "padding": node.attr("padding")}
    found.make(node, "Conv2D", [padded.output(), weights], attrs)
    return True


_OTHERS = {
    "_FusedBatchNormEx": _unfuse_norm,
    "FusedPadConv2D": _unfuse_window,
    "FusedResizeAndPadConv2D": _unfuse_window,
}
