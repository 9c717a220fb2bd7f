"""Newer ops replaced by the older ones that they took the place of."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

from toolkit.graph.check import colocations
from toolkit.graph.dtypes import DType
from toolkit.graph.graph import Graph
from toolkit.graph.node import Output
from toolkit.passes.base import PassResult
from toolkit.passes.optimize.rewriting import Optimization
from toolkit.passes.optimize.subgraph import Subgraphs, plain_attrs

_ARRAYS = ("TensorArrayV3", "TensorArrayGradV3")
#: the last version of graphs in which TensorFlow takes the ops of version 2
_LAST_VERSION = 25
_ARRAY_OPS = tuple(f"TensorArray{what}V3" for what in (
    "Write", "Read", "Gather", "Scatter", "Concat", "Split", "Size", "Close",
))  # fmt: skip


@dataclass(frozen=True)
class BackportConcatV2(Optimization):
    """ConcatV2 becomes Concat, which takes its axis first.

    The report has `changed`: how many. An axis of 64 bits, which Concat does not take, is left.
    """

    name: ClassVar[str] = "backport_concatv2"

    def apply(self, graph: Graph) -> PassResult:
        found = Subgraphs(graph, self.kept)
        changed = 0
        for node in found.each("ConcatV2"):
            if node.inputs[-1].dtype.base.name != "int32":
                continue
            attrs = plain_attrs(node)
            attrs.pop("Tidx", None)
            found.make(node, "Concat", [node.inputs[-1], *node.inputs[:-1]], attrs)
            changed += 1
        return found.result({"changed": changed})


@dataclass(frozen=True)
class BackportTensorArrayV3(Optimization):
    """The ops of TensorArrays become those of version 2, whose handles are texts; the flow they begin with is 1.

    The graph says that it is of version 25, the last in which TensorFlow takes these ops. The report has `changed`: how
    many. A graph in which a handle goes into a function, or through an op of several types, is left as it is.
    """

    name: ClassVar[str] = "backport_tensor_array_v3"
    in_functions: ClassVar[bool] = False

    def apply(self, graph: Graph) -> PassResult:
        import numpy as np

        found = Subgraphs(graph, self.kept)
        changed = 0
        if _reach_functions(found):
            return PassResult(graph, False, {"changed": 0})
        for node in [*found.each(*_ARRAYS), *found.each(*_ARRAY_OPS)]:
            op = f"{node.op[:-1]}2"
            wanted = node.graph.op_def(op).attrs
            attrs: dict[str, Any] = {key: value for key, value in plain_attrs(node).items() if key in wanted}
            if node.op in _ARRAYS:
                flow = found.add_constant(f"{node.name}/replacement_flow_node", np.float32(1), [node])
                found.redirect(Output(node, 1), flow.output())
            found.make(node, op, node.inputs, attrs)
            changed += 1
        if changed:
            found.graph.versions.producer = min(found.graph.versions.producer, _LAST_VERSION)
        return _with_text_handles(found, {"changed": changed})


def _reach_functions(found: Subgraphs) -> bool:
    pending = [node for node in found.graph if node.op in _ARRAYS]
    seen = set(pending)
    while pending:
        for user in found.takers(pending.pop().output()):
            if user in seen or user.op.startswith("TensorArray"):
                continue
            if not isinstance(user.attr_or("T", None), DType):
                return True
            seen.add(user)
            pending.append(user)
    return False


def _with_text_handles(found: Subgraphs, report: dict[str, Any]) -> PassResult:
    """Handles were resources; whatever hands them on hands on texts.

    As nothing else says now that an array and its users must be on one device, their colocation does.
    """
    from toolkit.graph import dtypes

    pending = [(node, node.name) for node in found.graph if node.op in ("TensorArrayV2", "TensorArrayGradV2")]
    seen = {node for node, _ in pending}
    while pending:
        node, array = pending.pop()
        for user in found.takers(node.output()):
            if user.op.startswith("TensorArray"):
                others = [name for name in colocations(user) if name != array]
                user.attrs["_class"] = [f"loc:@{name}" for name in (*others, array)]
            if user in seen or user.op.startswith("TensorArray"):
                continue
            if isinstance(dtype := user.attr_or("T", None), DType) and dtype.name == "resource":
                user.attrs["T"] = dtypes.string
                seen.add(user)
                pending.append((user, array))
    return found.result(report)
