"""What the nodes of a step have cost, as TensorFlow's CostGraphDef tells it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from schemas import cost_graph_pb2
from toolkit.graph.attrs import shape_to_proto
from toolkit.graph.graph import Graph
from toolkit.graph.shape import Shape
from toolkit.runtime.probes.trace import Span


def cost_graph(spans: Sequence[Span], partitions: Mapping[str, Graph]) -> cost_graph_pb2.CostGraphDef:
    """The nodes of a graph's partitions with what was measured of them.

    Args:
        spans: kernels that ran; of one that ran several times, in a loop, the costs add up.
        partitions: what each device runs, by its name.
    """
    found = cost_graph_pb2.CostGraphDef()
    ran: dict[tuple[str, str], list[Span]] = {}
    for span in spans:
        ran.setdefault((span.device, span.node), []).append(span)
    number = 0
    for device, graph in partitions.items():
        first = number
        for node in graph.nodes:
            entry = found.node.add(name=node.name, device=device, id=number)
            number += 1
            for src, index in node.inputs:
                entry.input_info.add(preceding_node=first + src.id, preceding_port=index)
            entry.control_input.extend(first + src.id for src in node.control_inputs)
            measured = ran.get((device, node.name), ())
            entry.compute_cost = int(sum(span.duration_us for span in measured))
            entry.is_final = node.op == "_Retval"
            if measured:
                for dtype, (_, shape, size) in zip(node.output_types, measured[-1].shapes, strict=False):
                    output = entry.output_info.add(size=size, alias_input_port=-1, dtype=dtype.enum)
                    shape_to_proto(Shape(shape), output.shape)
    return found
