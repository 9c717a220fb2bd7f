"""Shapes of the gradients of recurrent cells and of layers of them: batch, cells and gates of cells."""

from __future__ import annotations

from toolkit.graph.shape import SCALAR, UNKNOWN, Dim, Shape
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


@shape_function("CudnnRNN", "CudnnRNNV2", "CudnnRNNV3")
def cudnn_rnn(c: ShapeContext) -> list[Shape]:
    """Outputs are as states, as wide for each direction; the last memory is a scalar where cells have none. What is
    for the gradient has any shape."""
    is_third, has_memory = c.node.op == "CudnnRNNV3", c.text("rnn_mode") == "lstm"
    x, h = c.rank(0, 3), c.rank(1, 3)
    if is_third and has_memory:
        c.rank(2, 3)
    c.rank(3, 1)
    if is_third:
        c.rank(4, 1)
    output = Shape([x[0], x[1], _times(h[2], 2 if c.text("direction") == "bidirectional" else 1)])
    memory = c.inputs[2 if is_third else 1] if has_memory else SCALAR
    return [output, c.inputs[1], memory, UNKNOWN] + [UNKNOWN] * (c.node.op != "CudnnRNN")


@shape_function("CudnnRNNBackprop", "CudnnRNNBackpropV2", "CudnnRNNBackpropV3")
def cudnn_rnn_gradient(c: ShapeContext) -> list[Shape]:
    return c.inputs[:4]


@shape_function("CudnnRNNParamsSize")
def cudnn_rnn_params_size(c: ShapeContext) -> list[Shape]:
    for index in range(3):
        c.rank(index, 0)
    return [Shape([1])]


@shape_function("CudnnRNNParamsToCanonical", "CudnnRNNParamsToCanonicalV2")
def cudnn_rnn_params_to_canonical(c: ShapeContext) -> list[Shape]:
    c.rank(3, 1)
    second = c.node.op.endswith("V2")
    weights = c.attr("num_params_weights" if second else "num_params")
    biases = c.attr("num_params_biases" if second else "num_params")
    return [Shape([None, None])] * weights + [Shape([None])] * biases


@shape_function("CudnnRNNCanonicalToParams", "CudnnRNNCanonicalToParamsV2")
def cudnn_rnn_canonical_to_params(c: ShapeContext) -> list[Shape]:
    return [Shape([None])]


def _times(size: Dim, factor: int) -> Dim:
    return None if size is None else size * factor
