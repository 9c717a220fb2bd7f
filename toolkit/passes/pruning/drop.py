"""Nodes taken out of a graph; what their readers took becomes inputs."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, ClassVar

from toolkit.errors import UsageError
from toolkit.graph.graph import Graph
from toolkit.graph.infer import ShapeMap
from toolkit.graph.metagraph import MetaGraph, TensorInfo
from toolkit.graph.node import Node, Output
from toolkit.graph.tensorref import parse_input
from toolkit.passes.base import PassResult, run_pass
from toolkit.passes.models.surroundings import shrink

#: types of which there are no values to feed
_NOT_FED = frozenset({"resource", "variant"})


@dataclass(frozen=True)
class Drop:
    """Remove nodes whatever needs them.

    A tensor of theirs that another node reads becomes a Placeholder of its type and static shape, under the node's
    name; who waits for a removed node waits no more.

    Attributes:
        nodes: their names.
    """

    name: ClassVar[str] = "drop"

    nodes: tuple[str, ...]

    def apply(self, graph: Graph) -> PassResult:
        """The report has `dropped`, how many went, and `inputs`, tensors to the placeholders in their place.

        Raises:
            GraphError: there is no such node.
            UsageError: a variable, table or other resource goes, and what reads it stays.
        """
        gone = {graph.node(name) for name in self.nodes}
        read: dict[Output, list[Node]] = {}
        for node in graph:
            if node not in gone:
                for source in node.inputs:
                    if source.node in gone:
                        read.setdefault(source, []).append(node)
        shapes = ShapeMap()
        kinds = {source: (source.dtype.base, shapes[source], source.node.device) for source in read}
        for source, (dtype, _, _) in kinds.items():
            if source.dtype.is_ref or dtype.name in _NOT_FED:
                reader = read[source][0]
                raise UsageError(
                    f"'{source.name}' ({source.node.op}) is a {'reference' if source.dtype.is_ref else dtype.name}, "
                    f"which cannot be fed, and '{reader.name}' ({reader.op}) reads it; drop what reads it, too"
                )
        out = graph.subgraph([node for node in graph if node not in gone])
        inputs: dict[Output, Node] = {}
        for source, (dtype, shape, device) in kinds.items():
            wanted = source.node.name if not source.index else f"{source.node.name}_{source.index}"
            attrs = {"dtype": dtype, "shape": shape}
            inputs[source] = out.add("Placeholder", out.unique_name(wanted), attrs=attrs, device=device)
        for node in graph:
            if node not in gone:
                out.node(node.name).inputs = [
                    inputs[source].output() if source in inputs else Output(out.node(source.node.name), source.index)
                    for source in node.inputs
                ]
        named = {source.name: made.name + ":0" for source, made in inputs.items()}
        return PassResult(out, bool(gone), {"dropped": len(gone), "inputs": named})


def drop_nodes(meta: MetaGraph, names: tuple[str, ...]) -> tuple[MetaGraph, dict[str, Any]]:
    """A MetaGraph without some nodes, and without what speaks of them; the report is that of `Drop` and of `shrink`.

    Raises:
        GraphError, UsageError: as `Drop.apply`.
    """
    result = run_pass(Drop(names), meta.graph)
    gone = frozenset(names)

    def stays(info: TensorInfo) -> bool:
        return not any(parse_input(name).node in gone for name in info.parts().values())

    signatures = {
        key: replace(each, outputs={label: info for label, info in each.outputs.items() if stays(info)})
        for key, each in meta.signatures.items()
    }
    smaller, report = shrink(replace(meta, signatures=signatures), result.graph)
    smaller.signatures = {key: each for key, each in smaller.signatures.items() if each.outputs}
    return smaller, {**report, **result.report}
