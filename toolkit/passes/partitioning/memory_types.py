"""Copies between a device's memory and its host's, on the edges whose two ends want a tensor in different places.

On an accelerator some arguments stay in host memory: shapes, axes, predicates, handles, small integers, as TensorFlow's
registrations have it. An edge within one device may lead from one memory to the other, as from a placeholder to the
predicate of a Switch; edges between devices are the business of `partition`. (TensorFlow: EnsureMemoryTypes.)
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from toolkit.graph.graph import Graph
from toolkit.graph.node import Node, Output
from toolkit.kernels.facts import COPY_IN, COPY_OUT, stays_on_host
from toolkit.passes.base import PassResult


@dataclass(frozen=True, slots=True)
class MemoryTypes:
    """Attributes:
    device_type: of the device that all nodes of the graph are on.
    """

    device_type: str
    name: ClassVar[str] = "memory-types"

    def apply(self, graph: Graph) -> PassResult:
        """Make the new graph."""
        made = graph.copy()
        copies: dict[tuple[Output, str], Node] = {}
        for node in list(made):
            for position, source in enumerate(node.inputs):
                op = self._copy_for(source, node, position)
                if op is None:
                    continue
                copy = copies.get((source, op))
                if copy is None:
                    dtype = source.node.output_types[source.index].base
                    label = made.unique_name(f"{source.node.name}/{op}")
                    copy = made.add(op, label, [source], attrs={"T": dtype}, device=source.node.device)
                    copies[source, op] = copy
                node.inputs[position] = Output(copy, 0)
        return PassResult(made, bool(copies), {"copies": len(copies)})

    def _copy_for(self, source: Output, node: Node, position: int) -> str | None:
        """What must stand between two ends of an edge."""
        given = source.node.output_types[source.index]
        if given.is_ref or given.base.kind in "rsv":
            return None
        there = stays_on_host(source.node, self.device_type, source.index, output=True)
        wanted = stays_on_host(node, self.device_type, position, output=False)
        if there == wanted:
            return None
        return COPY_IN if there else COPY_OUT
