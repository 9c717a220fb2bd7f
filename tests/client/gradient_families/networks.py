"""Gradients of reductions, of what moves elements, of layers, and of quantization."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from tests.client.gradient_families.rows import DEPRECATED, NO_KERNEL, OTHER_ORDER, RNG, X, case, floats
from toolkit import client as gm
from toolkit.client import ops
from toolkit.client.construction.tensor import Tensor

# -- reductions and segments ------------------------------------------------------------------------------

for _keep in (False, True):
    case(f"EuclideanNorm {_keep}", lambda x, k=_keep: ops.euclidean_norm(x, [1], keep_dims=k), floats(2, 3, 4))
for _exclusive in (False, True):
    for _reverse in (False, True):
        case(
            f"CumulativeLogsumexp {_exclusive} {_reverse}",
            lambda x, e=_exclusive, r=_reverse: ops.exp(ops.cumulative_logsumexp(x, 1, exclusive=e, reverse=r)) * x,
            floats(2, 4),
        )
case("NthElement", lambda x: ops.nth_element(x, 2, reverse=True), np.float32([[3, 1, 1, 2], [5, 5, 5, 0]]))
case(
    "ApproxTopK",
    lambda x: ops.approx_top_k(x, k=2, reduction_dimension=1)[0],
    RNG.permutation(42).reshape(3, 7, 2).astype(np.float32),
    why_differences=NO_KERNEL,
)
_SEGMENTS = np.int32([0, 0, 2, 2, 2])
_ROWS = np.float32([[1, 2], [1, -3], [0, 4], [2, 0], [3, 0]])
for _op in ("SegmentMax", "SegmentMin", "SegmentProd", "SegmentSum", "SegmentMean"):
    case(_op, lambda x, o=_op: ops.function(o)(x, _SEGMENTS), _ROWS)
for _op in ("UnsortedSegmentProd", "UnsortedSegmentMax", "UnsortedSegmentSum"):
    case(_op, lambda x, o=_op: ops.function(o)(x, [1, 0, 1, -1, 0], 4), _ROWS + 1)
for _op in ("SparseSegmentSum", "SparseSegmentMean", "SparseSegmentSqrtN"):
    case(
        f"{_op}WithNumSegments",
        lambda x, o=_op: ops.function(o + "WithNumSegments")(x, [0, 3, 3, 1], [0, 0, 2, 2], 4),
        _ROWS,
    )

# -- moving elements --------------------------------------------------------------------------------------

case("Roll", lambda x: ops.roll(x, [1, -1], [0, 1]), floats(3, 4))
case("Reverse", lambda x: ops.function("Reverse")(x, [True, False]), floats(3, 4))
case("TensorScatterSub", lambda x, u: ops.tensor_scatter_sub(x, [[0], [2], [0]], u), floats(4, 2), floats(3, 2))
for _op in ("TensorScatterMax", "TensorScatterMin"):
    case(_op, lambda x, u, o=_op: ops.function(o)(x, [[0], [2], [0]], u), np.float32([1, 2, 3]), np.float32([1, 4, 1]))
case(
    "ScatterNdNonAliasingAdd",
    lambda x, u: ops.scatter_nd_non_aliasing_add(x, [[0], [2]], u),
    floats(4, 2),
    floats(2, 2),
)
case(
    "TensorStridedSliceUpdate",
    lambda x, v: ops.tensor_strided_slice_update(x, [1], [4], [2], v),
    floats(5, 2),
    floats(2, 2),
)

# -- neural networks --------------------------------------------------------------------------------------

IMAGE, VOLUME = floats(2, 6, 6, 3), floats(1, 4, 5, 4, 2)
_K2, _S2 = {"ksize": [1, 2, 2, 1], "strides": [1, 2, 2, 1]}, {"padding": "SAME"}
_K3 = {"ksize": [1, 2, 2, 2, 1], "strides": [1, 2, 2, 2, 1], "padding": "SAME"}


def second(build: Callable[..., Tensor]) -> Callable[..., Tensor]:
    """The gradient of a gradient: y's by its first argument, weighted, as the tensor to go through."""

    def made(x: Tensor, *rest: Tensor) -> Tensor:
        y = build(x, *rest)
        return gm.grad(y * y * y, x)[0]  # type: ignore[return-value]

    return made


case("AvgPool3DGrad", second(lambda x: ops.avg_pool3d(x, **_K3)), VOLUME)
case("MaxPool3DGrad", second(lambda x: ops.max_pool3d(x, **_K3)), VOLUME)
case("MaxPoolGrad", second(lambda x: ops.max_pool(x, **_K2, **_S2)), IMAGE)
case("MaxPoolGradV2", second(lambda x: ops.max_pool_v2(x, [1, 2, 2, 1], [1, 2, 2, 1], **_S2)), IMAGE)
case("MaxPoolGradGrad", second(second(lambda x: ops.max_pool(x, **_K2, **_S2))), IMAGE)
case("MaxPool3DGradGrad", second(second(lambda x: ops.max_pool3d(x, **_K3))), VOLUME)
case(
    "Conv3DBackprop",
    second(lambda x, w: ops.conv3d(x, w, strides=[1, 1, 1, 1, 1], padding="SAME")),
    VOLUME,
    floats(2, 2, 2, 2, 2),
)
case("SeluGrad", second(ops.selu), X)
case(
    "Dilation2D",
    lambda x, w: ops.dilation2d(x, w, strides=[1, 1, 2, 1], rates=[1, 2, 1, 1], padding="SAME"),
    IMAGE,
    floats(2, 2, 3),
)
for _op in ("FractionalAvgPool", "FractionalMaxPool"):
    for _overlap in (False, True):
        case(
            f"{_op} {_overlap}",
            lambda x, o=_op, v=_overlap: ops.function(o)(
                x, pooling_ratio=[1.0, 1.5, 1.4, 1.0], deterministic=True, seed=3, seed2=4, overlapping=v
            )[0],
            IMAGE,
        )


def _old_batch_norm(x: Tensor, m: Tensor, v: Tensor, b: Tensor, g: Tensor) -> Any:
    """Only graphs of before version 9 have it."""
    gm.get_default_graph().core.versions.producer = 8
    return ops.batch_norm_with_global_normalization(
        x, m, v, b, g, variance_epsilon=0.01, scale_after_normalization=True
    )


case(
    "BatchNormWithGlobalNormalization",
    _old_batch_norm,
    floats(1, 2, 2, 3),
    floats(3),
    floats(3, low=1, high=2),
    floats(3),
    floats(3),
    why_differences=DEPRECATED,
)
for _training in (False, True):
    for _op in ("FusedBatchNorm", "FusedBatchNormV2", "FusedBatchNormV3"):
        case(
            f"{_op}Grad {_training}",
            second(
                lambda x, s, b, m, v, o=_op, t=_training: ops.function(o)(x, s, b, m, v, is_training=t, epsilon=0.01)[0]
            )
            if not _training
            else second(lambda x, s, b, o=_op: ops.function(o)(x, s, b, [], [], is_training=True, epsilon=0.01)[0]),
            IMAGE,
            floats(3),
            floats(3),
            *(() if _training else (floats(3), floats(3, low=0.5))),
        )
case(
    "CTCLoss",
    lambda x: ops.ctc_loss(x, gm.constant([[0, 0], [0, 1], [1, 0]], "int64"), [1, 2, 0], [5, 4])[0],
    floats(5, 2, 4),
)
_LSTM = (floats(3, 2, 4), floats(2, 3), floats(2, 3), floats(7, 12), floats(3), floats(3), floats(3), floats(12))
for _op in ("BlockLSTM", "BlockLSTMV2"):
    for _peephole in (False, True):
        case(
            f"{_op} {_peephole}",
            lambda x, c, h, w, wi, wf, wo, b, o=_op, p=_peephole: [
                ops.function(o)(gm.constant(3, "int64"), x, c, h, w, wi, wf, wo, b, use_peephole=p)[i] for i in (1, 6)
            ],
            *_LSTM,
            why_differences=OTHER_ORDER if _op == "BlockLSTMV2" else "",
        )
for _op, _mode in (("CudnnRNN", "lstm"), ("CudnnRNNV2", "gru"), ("CudnnRNNV3", "lstm"), ("CudnnRNNV3", "gru")):
    # 2 layers of 2 units over 3 inputs: matrices of 3 and 2 inputs and 2 of states of each gate, and 2 biases
    _gates = 4 if _mode == "lstm" else 3
    case(
        f"{_op} {_mode}",
        lambda x, h, c, w, o=_op, m=_mode: ops.function(o)(
            x, h, c, w, *([gm.constant([4, 2])] if o.endswith("V3") else []), rnn_mode=m
        )[: 3 if m == "lstm" else 2],
        floats(4, 2, 3),
        floats(2, 2, 2),
        floats(2, 2, 2),
        floats(_gates * (2 * 3 + 2 * 2 + 2 * (2 * 2) + 4 * 2)),
        why_differences=NO_KERNEL,
    )

# -- quantization -----------------------------------------------------------------------------------------

case("FakeQuantWithMinMaxArgs", lambda x: ops.fake_quant_with_min_max_args(x, min=-0.5, max=0.6), floats(4, 3))
case("FakeQuantWithMinMaxVars", ops.fake_quant_with_min_max_vars, floats(4, 3), np.float32(-0.5), np.float32(0.6))
case(
    "FakeQuantWithMinMaxVarsPerChannel",
    ops.fake_quant_with_min_max_vars_per_channel,
    floats(4, 3),
    np.float32([-0.5, -0.3, -0.9]),
    np.float32([0.5, 0.3, 0.9]),
)
case("QuantizeAndDequantizeV2", lambda x: ops.quantize_and_dequantize_v2(x, -0.5, 0.5, range_given=True), floats(4, 3))
case(
    "QuantizeAndDequantizeV3", lambda x: ops.quantize_and_dequantize_v3(x, -0.5, 0.5, 8, range_given=True), floats(4, 3)
)
case(
    "QuantizeAndDequantizeV4",
    lambda x, a, b: ops.quantize_and_dequantize_v4(x, a, b, range_given=True),
    floats(4, 3),
    np.float32(-0.5),
    np.float32(0.5),
)
