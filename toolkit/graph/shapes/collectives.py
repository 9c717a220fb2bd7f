"""Shapes of what the devices of a group make of a tensor of each."""

from __future__ import annotations

from toolkit.graph.shape import Shape
from toolkit.graph.shapes.registry import ShapeContext, shape_function


@shape_function(
    "CollectiveReduce", "CollectiveReduceV2", "CollectiveAllToAllV2", "CollectiveBcastSendV2", "NcclAllReduce",
    "NcclBroadcast", "NcclReduce",
)  # fmt: skip
def unchanged(c: ShapeContext) -> list[Shape]:
    """The first input's, whatever the others and the attributes say, as in TensorFlow."""
    return [c.inputs[0]]


@shape_function("CollectiveGather")
def gathered(c: ShapeContext) -> list[Shape]:
    """Rows of all members, one behind the other."""
    shape, size = c.rank_at_least(0, 1), c.attr("group_size")
    if shape.dims is None:
        return [shape]
    rows = shape.dims[0]
    return [Shape([None if rows is None else rows * size, *shape.dims[1:]])]


@shape_function("CollectiveGatherV2", "CollectiveReduceScatterV2")
def other_rows(c: ShapeContext) -> list[Shape]:
    """How many rows come out only the group's size says, which is a tensor."""
    shape = c.rank_at_least(0, 1)
    return [shape if shape.dims is None else Shape([None, *shape.dims[1:]])]


@shape_function("CollectiveBcastSend", "CollectiveBcastRecv")
def declared(c: ShapeContext) -> list[Shape]:
    return [c.attr("shape")]


@shape_function("CollectiveBcastRecvV2")
def received(c: ShapeContext) -> list[Shape]:
    return [c.constant_shape(3)]
