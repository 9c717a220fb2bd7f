"""What multiplies or shifts channels: scales and offsets per channel, and the weights that can take them in.

A value y of `channels` channels along one axis becomes `scale * y + offset`, both float64 vectors or None. All that is
computed here is computed in float64 and rounded once, when it is stored.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from toolkit.graph import dtypes
from toolkit.graph.node import Node, Output
from toolkit.passes.optimize.subgraph import FLOATS, Subgraphs

Array = Any
#: the axis of channels, where they come last
LAST = -1


@dataclass(frozen=True, slots=True)
class Weighted:
    """Where an op with weights has what.

    Attributes:
        data, weights: positions of its inputs.
        rank: of its output; None where it may be any.
        out, into: the axes of the weights that make the channels of the output, and that meet those of the input.
        windows: axes of the weights along which they slide over the input.
    """

    data: int
    weights: int
    rank: int | None
    out: tuple[int, ...]
    into: tuple[int, ...]
    windows: tuple[int, ...] = ()


_WEIGHTED = {
    "Conv2D": Weighted(0, 1, 4, (3,), (2,), (0, 1)),
    "Conv3D": Weighted(0, 1, 5, (4,), (3,), (0, 1, 2)),
    "DepthwiseConv2dNative": Weighted(0, 1, 4, (2, 3), (2,), (0, 1)),
    "Conv2DBackpropInput": Weighted(2, 1, 4, (2,), (3,), (0, 1)),
    "Conv3DBackpropInputV2": Weighted(2, 1, 5, (3,), (4,), (0, 1, 2)),
    "MatMul": Weighted(0, 1, 2, (1,), (0,)),
    "BatchMatMulV2": Weighted(0, 1, None, (1,), (0,)),
    "BatchMatMulV3": Weighted(0, 1, None, (1,), (0,)),
}
WEIGHTED = frozenset(_WEIGHTED)
_TURNED = {
    "MatMul": ("transpose_a", "transpose_b"),
    "BatchMatMulV2": ("adj_x", "adj_y"),
    "BatchMatMulV3": ("adj_x", "adj_y"),
}


def weighted(node: Node) -> Weighted | None:
    """Where a node has its weights; None for ops without, and for types that are no floats."""
    found = _WEIGHTED.get(node.op)
    if found is None or node.output_types[0] not in FLOATS:
        return None
    if node.op in _TURNED and node.attr(_TURNED[node.op][1]):
        return Weighted(0, 1, found.rank, found.into, found.out)
    return found


def channel_axis(node: Node) -> int:
    """The axis of channels that the node's data_format says: LAST or 1."""
    return 1 if node.attr_or("data_format", b"NHWC").startswith((b"NC",)) else LAST


def per_channel(array: Array, channels: int, axis: int, rank: int | None) -> Array | None:
    """A constant that is broadcast against a value as one number per channel; None where it varies along another axis.

    Args:
        array: of any shape; scalars are one number for all channels.
        rank: of the value; None where it is not known.

    Returns:
        float64 [channels].
    """
    import numpy as np

    if array.size == 1:
        if rank is not None and array.ndim > rank:
            return None
        if rank is None and array.ndim > 1:
            return None
        return np.full(channels, array.reshape(()), np.float64)
    if array.size != channels:
        return None
    if axis == LAST:
        fits = array.shape[-1] == channels and array.ndim <= (1 if rank is None else rank)
    else:
        fits = rank is not None and array.ndim in (rank - 1, rank) and array.shape[axis - rank] == channels
    return array.reshape(-1).astype(np.float64) if fits else None


@dataclass(slots=True)
class Affine:
    """A node that scales and shifts the channels of one input.

    Attributes:
        source: what it scales.
        axis: of the channels, LAST or 1; None where the constants are broadcast, so that the value decides.
        scale, shift: constants as they are, or None.
    """

    node: Node
    source: Output
    axis: int | None
    scale: Array | None
    shift: Array | None


_BROADCAST = frozenset({"Mul", "Add", "AddV2", "Sub", "RealDiv", "Div"})
NORMS = frozenset({"FusedBatchNorm", "FusedBatchNormV2", "FusedBatchNormV3"})
AFFINE = (*sorted(_BROADCAST), "BiasAdd", *sorted(NORMS), "BatchNormWithGlobalNormalization")


def affine(found: Subgraphs, node: Node) -> Affine | None:
    """What a node does to channels, where it does only that and its constants are known."""
    if node.op not in AFFINE or not node.inputs or node.output_types[0] not in FLOATS:
        return None
    if node.op in NORMS:
        return _fused_norm(found, node)
    if node.op == "BatchNormWithGlobalNormalization":
        return _global_norm(found, node)
    if node.op == "BiasAdd":
        bias = _floats(found.array(node.inputs[1]))
        return None if bias is None or bias.ndim != 1 else Affine(node, node.inputs[0], channel_axis(node), None, bias)
    return _arithmetic(found, node)


def _arithmetic(found: Subgraphs, node: Node) -> Affine | None:
    import numpy as np

    left, right = node.inputs
    first, second = _floats(found.array(left)), _floats(found.array(right))
    if (first is None) == (second is None):
        return None
    if second is not None:
        if node.op == "Mul":
            return Affine(node, left, None, second, None)
        if node.op in ("RealDiv", "Div"):
            if not second.all():
                return None
            return Affine(node, left, None, 1.0 / second.astype(np.float64), None)
        return Affine(node, left, None, None, -second.astype(np.float64) if node.op == "Sub" else second)
    assert first is not None
    if node.op == "Mul":
        return Affine(node, right, None, first, None)
    if node.op in ("Add", "AddV2"):
        return Affine(node, right, None, None, first)
    if node.op == "Sub":  # c - y
        return Affine(node, right, None, np.array(-1.0), first)
    return None


def _fused_norm(found: Subgraphs, node: Node) -> Affine | None:
    if node.attr("is_training") or not found.reads_only_first(node):
        return None
    scale, offset, mean, variance = (_floats(found.array(source)) for source in node.inputs[1:])
    return _norm(node, channel_axis(node), scale, offset, mean, variance, node.attr("epsilon"))


def _global_norm(found: Subgraphs, node: Node) -> Affine | None:
    import numpy as np

    mean, variance, offset, scale = (_floats(found.array(source)) for source in node.inputs[1:])
    if scale is not None and not node.attr("scale_after_normalization"):
        scale = np.ones_like(scale)
    return _norm(node, LAST, scale, offset, mean, variance, node.attr("variance_epsilon"))


def _norm(node: Node, axis: int, scale: Array, offset: Array, mean: Array, variance: Array, epsilon: float) -> Any:
    import numpy as np

    given = (scale, offset, mean, variance)
    if any(each is None or each.ndim != 1 or each.shape != scale.shape for each in given):
        return None
    scale, offset, mean, variance = (each.astype(np.float64) for each in given)
    with np.errstate(all="ignore"):
        factor = scale / np.sqrt(variance + np.float32(epsilon))
        shift = offset - mean * factor
    if not (np.isfinite(factor).all() and np.isfinite(shift).all()):
        return None
    return Affine(node, node.inputs[0], axis, factor, shift)


def _floats(array: Array | None) -> Array | None:
    """The array, where it holds finite floats."""
    import numpy as np

    if array is None or dtypes.from_numpy(array.dtype) not in FLOATS:
        return None
    return array if np.isfinite(array.astype(np.float64)).all() else None
