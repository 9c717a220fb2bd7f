"""Attention and its gradients as graphs of cuDNN's frontend; see `cudnn_graphs`.

Scores are scaled, masked and exponentiated in float32; statistics are natural logarithms. The mask is the graph's bias,
in float32: as 16 bits -1e9 would be -inf in float16, and a row of these NaN.
"""

from __future__ import annotations

import math
from typing import Any

from toolkit.kernels.cuda.libraries.attention import (
    Attention,
    AttentionGradient,
    AttentionSizes,
    FourStrides,
    packed_strides,
)

#: names of tensors in a graph
Q, K, V, OUT, MASK, STATISTICS, D_OUT, DQ, DK, DV = range(1, 11)
_TYPES = {"float16": "HALF", "bfloat16": "BFLOAT16"}


class _Graph:
    """A graph and how its tensors lie."""

    def __init__(self, cudnn: Any, attention: Attention, device: dict[str, Any]):
        self._cudnn = cudnn
        self.sizes = attention.sizes
        self._dtype = getattr(cudnn.data_type, _TYPES[attention.dtype])
        self._wide = cudnn.data_type.FLOAT
        self.graph = cudnn.pygraph(
            io_data_type=self._dtype, intermediate_data_type=self._wide, compute_data_type=self._wide, **device
        )

    def tensor(self, uid: int, part: str, strides: FourStrides) -> Any:
        """An operand of the attention's type."""
        dim = list(self.sizes.shape(part))
        return self.graph.tensor(dim=dim, stride=list(strides), data_type=self._dtype, uid=uid)

    def mask(self, attention: Attention) -> Any:
        """What is added to the scores, None where nothing is; axes along which it is broadcast have one place."""
        if attention.mask is None:
            return None
        dim = [size if step else 1 for size, step in zip(self.sizes.shape("scores"), attention.mask, strict=True)]
        steps = [step or math.prod(dim[at:]) for at, step in enumerate(attention.mask)]
        return self.graph.tensor(dim=dim, stride=steps, data_type=self._wide, uid=MASK)

    def statistics(self) -> Any:
        dim, strides = _rows(self.sizes)
        return self.graph.tensor(dim=dim, stride=strides, data_type=self._wide, uid=STATISTICS)

    def result(self, made: Any, uid: int, part: str, strides: FourStrides) -> None:
        made.set_output(True).set_uid(uid).set_data_type(self._dtype)
        made.set_dim(list(self.sizes.shape(part))).set_stride(list(strides))

    def row_result(self, made: Any) -> None:
        dim, strides = _rows(self.sizes)
        made.set_output(True).set_uid(STATISTICS).set_data_type(self._wide).set_dim(dim).set_stride(strides)

    def planned(self, most_workspace: int) -> Any:
        """The graph with its plan built."""
        graph, mode = self.graph, self._cudnn.heur_mode
        graph.validate()
        graph.build_operation_graph()
        graph.create_execution_plans([mode.A, mode.FALLBACK])
        graph.deselect_workspace_greater_than(most_workspace)
        graph.build_plans()
        return graph


def _rows(sizes: AttentionSizes) -> tuple[list[int], list[int]]:
    """How statistics lie, which have one number for each row."""
    shape = (*sizes[:3], 1)
    return list(shape), list(packed_strides(shape))


def build_attention(cudnn: Any, attention: Attention, most_workspace: int, **device: Any) -> Any:
    """The graph of an attention, its plan built.

    Args:
        most_workspace: bytes; engines that want more are passed over.
        device: `handle`, or `device_property` for a GPU that is not here.

    Raises:
        cudnn.cudnnGraphNotSupportedError: no engine takes it.
    """
    a, of = attention, _Graph(cudnn, attention, device)
    out, statistics = of.graph.sdpa(
        q=of.tensor(Q, "q", a.q), k=of.tensor(K, "k", a.k), v=of.tensor(V, "v", a.v), attn_scale=a.scale,
        bias=of.mask(a), use_causal_mask=a.causal, generate_stats=a.statistics,
    )  # fmt: skip
    of.result(out, OUT, "out", a.out)
    if a.statistics:
        of.row_result(statistics)
    return of.planned(most_workspace)


def build_gradient(cudnn: Any, gradient: AttentionGradient, most_workspace: int, **device: Any) -> Any:
    """The graph of an attention's gradients, its plan built; see `build_attention`."""
    g, a = gradient, gradient.forward
    of = _Graph(cudnn, a, device)
    made = of.graph.sdpa_backward(
        q=of.tensor(Q, "q", a.q), k=of.tensor(K, "k", a.k), v=of.tensor(V, "v", a.v), o=of.tensor(OUT, "out", a.out),
        dO=of.tensor(D_OUT, "out", g.d_out), stats=of.statistics(), attn_scale=a.scale, bias=of.mask(a),
        use_causal_mask=a.causal, use_deterministic_algorithm=a.deterministic,
    )  # fmt: skip
    places = ((DQ, "q", g.dq), (DK, "k", g.dk), (DV, "v", g.dv))
    for each, (uid, part, strides) in zip(made, places, strict=True):
        of.result(each, uid, part, strides)
    return of.planned(most_workspace)
