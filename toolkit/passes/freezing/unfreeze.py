"""Constants to variables, so that what was frozen can be trained again."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import Any, ClassVar

from schemas.tensor_pb2 import TensorProto
from toolkit.errors import UsageError, about_option, did_you_mean
from toolkit.formats.arrays import tensor
from toolkit.formats.bundle.patterns import matcher
from toolkit.graph import dtypes
from toolkit.graph.graph import Graph
from toolkit.graph.node import ENTER_OPS, Edge, Node, Output
from toolkit.graph.shape import SCALAR, Shape
from toolkit.passes.base import PassResult
from toolkit.passes.freezing.saver_nodes import assignment, read_of


@dataclass(slots=True)
class Thawed:
    """A constant that is a variable now.

    Attributes:
        variable: its node, of the constant's name.
        read: its value, which whoever took the constant takes.
        initializer, initial: the operation that sets it to zeros, and these.
        value: what the constant was.
    """

    variable: Node
    read: Output
    initializer: Node
    initial: Output
    value: TensorProto


@dataclass(frozen=True)
class Unfreeze:
    """Make variables of constants: of floats by default, of whatever a pattern matches.

    Attributes:
        min_bytes: how large a constant is at least.
        only: patterns of names; with them, types do not count.
        keep: patterns of constants that stay.
        reference: make reference variables (VariableV2) instead of resources.
        made: takes the variables that were made.
    """

    name: ClassVar[str] = "unfreeze"

    min_bytes: int = 1024
    only: tuple[str, ...] = ()
    keep: tuple[str, ...] = ()
    reference: bool = False
    made: list[Thawed] = field(default_factory=list[Thawed], compare=False)

    def apply(self, graph: Graph) -> PassResult:
        """The graph with variables, each with an operation that sets it to zeros.

        The report has `variables` (name to bytes), `reads` (tensor that was to tensor that is) and `left`, constants
        that would have been chosen but are made anew in each iteration of a loop.

        Raises:
            UsageError: a pattern matches no constant.
        """
        self._check(graph)
        out = graph.copy()
        has_loops = any(node.op in ENTER_OPS for node in out.nodes)
        consumers = out.consumers()
        only, keep = matcher(self.only) if self.only else None, matcher(self.keep)
        report: dict[str, Any] = {"variables": {}, "reads": {}, "left": []}
        gone: list[Node] = []
        for node in list(out.nodes):
            if node.op != "Const" or keep(node.name):
                continue
            dtype, value = node.attr("dtype"), node.attr("value")
            dims = tensor.shape_of(value)
            size = math.prod(dims) * (dtype.size or 1)
            is_wanted = only(node.name) if only is not None else dtype.is_floating
            if not is_wanted or size < (self.min_bytes if only is None else 0):
                continue
            if node.control_inputs and has_loops:
                report["left"].append(node.name)
                continue
            thawed = self._thaw(out, node, consumers[node.id], Shape(dims))
            self.made.append(thawed)
            gone.append(node)
            report["variables"][thawed.variable.name] = size
            report["reads"][f"{thawed.variable.name}:0"] = thawed.read.name
        out.remove(gone)
        return PassResult(out, bool(gone), report)

    def _check(self, graph: Graph) -> None:
        names = [node.name for node in graph if node.op == "Const"]
        for option, patterns in (("--only", self.only), ("--keep", self.keep)):
            with about_option(option):
                for pattern in patterns:
                    if not any(map(matcher([pattern]), names)):
                        raise UsageError(f"no constant matches '{pattern}'{did_you_mean(pattern, names)}")

    def _thaw(self, graph: Graph, node: Node, edges: list[Edge], shape: Shape) -> Thawed:
        name, dtype = node.name, node.attr("dtype")
        graph.rename(node, graph.unique_name(f"{name}/frozen"))
        op = "VariableV2" if self.reference else "VarHandleOp"
        attrs: dict[str, Any] = {"dtype": dtype, "shape": shape, "shared_name": "" if self.reference else name}
        attrs["container"] = ""
        variable = graph.add(op, name, attrs=attrs, device=node.device)
        if self.reference:
            kept = {"T": dtype, "_class": [f"loc:@{name}"]}
            reader = graph.add(
                "Identity", graph.unique_name(f"{name}/read"), [variable], attrs=kept, device=node.device
            )
        else:
            reader = read_of(graph, variable).node
        reader.control_inputs = list(node.control_inputs)
        for edge in edges:
            if edge.is_control:
                edge.dst.control_inputs = [reader if src is node else src for src in edge.dst.control_inputs]
            else:
                edge.dst.inputs[edge.dst_input] = reader.output()
        initial = _zeros(graph, f"{name}/Initializer/zeros", variable, shape)
        assign = assignment(graph, f"{name}/Assign", variable, initial)
        return Thawed(variable, reader.output(), assign, initial, node.attr("value"))


def _zeros(graph: Graph, name: str, variable: Node, shape: Shape) -> Output:
    dtype = variable.attr("dtype")

    def constant(what: str, value: Any, kind: dtypes.DType) -> Node:
        attrs = {"dtype": kind, "value": value}
        return graph.add("Const", graph.unique_name(f"{name}/{what}"), attrs=attrs, device=variable.device)

    zero = TensorProto(dtype=dtype.enum)
    zero.tensor_shape.SetInParent()
    if shape == SCALAR:
        return constant("Const", zero, dtype).output()
    sizes = tensor.from_array(shape.as_list(), dtypes.int32)
    parts = [constant("shape_as_tensor", sizes, dtypes.int32), constant("Const", zero, dtype)]
    attrs = {"T": dtype, "index_type": dtypes.int32}
    return graph.add("Fill", graph.unique_name(name), parts, attrs=attrs, device=variable.device).output()
