"""Shapes of the gradients of recurrent cells and of layers of them: batch, cells and gates of cells."""

from __future__ import annotations

from toolkit.graph.shape import Dim, Shape
from toolkit.graph.shapes.registry import ShapeContext, shape_function


@shape_function("BlockLSTMGrad", "BlockLSTMGradV2")
def layer_gradient(c: ShapeContext) -> list[Shape]:
    """The gradients of x, cs_prev, h_prev, w, the three peepholes and b have their shapes."""
    ranks = (3, 2, 2, 2, 1, 1, 1, 1)
    return [c.rank(1 + i, rank) for i, rank in enumerate(ranks)]


@shape_function("LSTMBlockCellGrad")
def lstm_gradient(c: ShapeContext) -> list[Shape]:
    batch, cells = c.rank(0, 2)[0], c.rank(1, 2)[1]
    peephole = Shape([cells])
    return [Shape([batch, cells]), Shape([batch, _times(cells, 4)]), peephole, peephole, peephole]


@shape_function("GRUBlockCellGrad")
def gru_gradient(c: ShapeContext) -> list[Shape]:
    x, cells, gates = c.rank(0, 2), c.rank(1, 2)[1], c.rank(2, 2)[1]
    state = Shape([x[0], cells])
    return [x, state, state, Shape([x[0], gates])]


def _times(size: Dim, factor: int) -> Dim:
    return None if size is None else size * factor
