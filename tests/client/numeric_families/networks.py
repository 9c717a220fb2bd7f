# Rows are lambdas, whose arguments have no types.
# pyright: basic
"""Layers, pools, losses, recurrent cells and images."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from tests.client.numeric_families.rows import apart, row, u
from toolkit import client as gm
from toolkit.client import ops

# -- convolutions ------------------------------------------------------------------------------------------

for _strides, _padding, _more in (
    ([1, 1, 1, 1], "SAME", {}), ([1, 2, 1, 1], "VALID", {}), ([1, 1, 1, 1], "VALID", {"dilations": [1, 2, 2, 1]}),
    ([1, 2, 2, 1], "EXPLICIT", {"explicit_paddings": [0, 0, 1, 2, 0, 1, 0, 0]}),
):  # fmt: skip
    _options: dict[str, Any] = {"strides": _strides, "padding": _padding, **_more}
    _about = f"{_strides} {_padding} {_more}"
    row("Conv2D", lambda x, w, m=_options: ops.conv2d(x, w, **m), u(1, 5, 4, 2), u(2, 2, 2, 3), about=_about)
    if "explicit_paddings" not in _more:
        _strides = [1, 2, 2, 1] if _strides[1] == 2 else _strides
        _options = {**_options, "strides": _strides}
        row(
            "DepthwiseConv2dNative", lambda x, w, m=_options: ops.depthwise_conv2d_native(x, w, **m),
            u(1, 5, 4, 2), u(2, 2, 2, 2), about=_about,
        )  # fmt: skip
row(
    "Conv2D", lambda x, w: ops.conv2d(x, w, strides=[1, 1, 1, 1], padding="SAME"), u(1, 3, 3, 4), u(2, 2, 2, 4),
    about="groups",
)  # fmt: skip
_ONE = {"strides": [1, 2, 2, 1], "padding": "SAME"}
row(
    "Conv2DBackpropInput", lambda w, g: ops.conv2d_backprop_input([1, 5, 4, 2], w, g, **_ONE), u(3, 2, 2, 3),
    u(1, 3, 2, 3),
)  # fmt: skip
row(
    "Conv2DBackpropFilter", lambda x, g: ops.conv2d_backprop_filter(x, [3, 2, 2, 3], g, **_ONE), u(1, 5, 4, 2),
    u(1, 3, 2, 3),
)  # fmt: skip
row(
    "DepthwiseConv2dNativeBackpropInput",
    lambda w, g: ops.depthwise_conv2d_native_backprop_input([1, 5, 4, 2], w, g, **_ONE), u(3, 2, 2, 2), u(1, 3, 2, 4),
)  # fmt: skip
row(
    "DepthwiseConv2dNativeBackpropFilter",
    lambda x, g: ops.depthwise_conv2d_native_backprop_filter(x, [3, 2, 2, 2], g, **_ONE), u(1, 5, 4, 2), u(1, 3, 2, 4),
)  # fmt: skip
for _three in (
    {"strides": [1, 1, 2, 1, 1], "padding": "VALID"}, {"strides": [1, 1, 1, 1, 1], "padding": "SAME"},
):  # fmt: skip
    row("Conv3D", lambda x, w, m=_three: ops.conv3d(x, w, **m), u(1, 3, 4, 2, 2), u(2, 2, 1, 2, 2), about=f"{_three}")
_THREE = {"strides": [1, 1, 1, 1, 1], "padding": "SAME"}
row(
    "Conv3DBackpropInputV2", lambda w, g: ops.conv3d_backprop_input_v2([1, 3, 3, 2, 2], w, g, **_THREE),
    u(2, 2, 1, 2, 3), u(1, 3, 3, 2, 3),
)  # fmt: skip
row(
    "Conv3DBackpropFilterV2", lambda x, g: ops.conv3d_backprop_filter_v2(x, [2, 2, 1, 2, 3], g, **_THREE),
    u(1, 3, 3, 2, 2), u(1, 3, 3, 2, 3),
)  # fmt: skip
for _padding in ("SAME", "VALID"):
    row(
        "Dilation2D",
        lambda x, w, p=_padding: ops.dilation2d(x, w, strides=[1, 1, 2, 1], rates=[1, 2, 1, 1], padding=p),
        apart(1, 5, 4, 2), apart(2, 2, 2) * 0.37, about=_padding,
    )  # fmt: skip

# -- pools -------------------------------------------------------------------------------------------------

for _padding in ("SAME", "VALID"):
    _pool: dict[str, Any] = {"ksize": [1, 3, 2, 1], "strides": [1, 2, 1, 1], "padding": _padding}
    row("MaxPool", lambda x, m=_pool: ops.max_pool(x, **m), apart(1, 5, 4, 2), about=_padding)
    row("AvgPool", lambda x, m=_pool: ops.avg_pool(x, **m), u(1, 5, 4, 2), about=_padding)
    row(
        "MaxPoolV2", lambda x, p=_padding: ops.max_pool_v2(x, [1, 3, 2, 1], [1, 2, 1, 1], padding=p),
        apart(1, 5, 4, 2), about=_padding,
    )  # fmt: skip
    _pool = {"ksize": [1, 2, 2, 1, 1], "strides": [1, 1, 2, 1, 1], "padding": _padding}
    row("AvgPool3D", lambda x, m=_pool: ops.avg_pool3d(x, **m), u(1, 3, 4, 2, 2), about=_padding)
    row(
        "MaxPool3D",
        lambda x, m=_pool: ops.max_pool3d(x, **m),
        apart(1, 3, 4, 2, 1, step=0.3),
        about=_padding,
        single=True,
    )
_POOL: dict[str, Any] = {"ksize": [1, 2, 2, 1], "strides": [1, 2, 2, 1], "padding": "VALID"}
_POOL3: dict[str, Any] = {"ksize": [1, 2, 2, 2, 1], "strides": [1, 2, 2, 2, 1], "padding": "VALID"}
_IMAGE, _VOLUME = apart(1, 4, 4, 2), apart(1, 2, 4, 4, 1, step=0.3)


def _image(x: Any) -> Any:
    """What decides which element is the largest, as a constant: the op's gradient by it is 0."""
    return gm.constant(_IMAGE if x.dtype.base is gm.float64 else _IMAGE.astype(np.float32))


row("MaxPoolWithArgmax", lambda x: ops.max_pool_with_argmax(x, **_POOL)[0], _IMAGE)
row("MaxPoolGrad", lambda g: ops.max_pool_grad(x := _image(g), ops.max_pool(x, **_POOL), g, **_POOL), u(1, 2, 2, 2))
row(
    "MaxPoolGradV2",
    lambda g: ops.max_pool_grad_v2(
        x := _image(g), ops.max_pool(x, **_POOL), g, [1, 2, 2, 1], [1, 2, 2, 1], padding="VALID"
    ),
    u(1, 2, 2, 2),
)  # fmt: skip
row(
    "MaxPoolGradGrad",
    lambda g: ops.max_pool_grad_grad(x := _image(g), ops.max_pool(x, **_POOL), g, **_POOL),
    u(1, 4, 4, 2),
)
row("AvgPoolGrad", lambda g: ops.avg_pool_grad([1, 4, 4, 2], g, **_POOL), u(1, 2, 2, 2))
row("AvgPool3DGrad", lambda g: ops.avg_pool3d_grad([1, 2, 4, 4, 1], g, **_POOL3), u(1, 1, 2, 2, 1))


def _volume_grad(op: str) -> Callable[[Any], Any]:
    def build(g: Any) -> Any:
        x = gm.constant(_VOLUME.astype(np.float32))
        return ops.function(op)(x, ops.max_pool3d(x, **_POOL3), g, **_POOL3)

    return build


row("MaxPool3DGrad", _volume_grad("MaxPool3DGrad"), u(1, 1, 2, 2, 1), single=True)
row("MaxPool3DGradGrad", _volume_grad("MaxPool3DGradGrad"), u(1, 2, 4, 4, 1), single=True)
for _op in ("FractionalAvgPool", "FractionalMaxPool"):
    for _overlap in (False, True):
        row(
            _op,
            lambda x, o=_op, v=_overlap: ops.function(o)(
                x, pooling_ratio=[1.0, 1.5, 1.4, 1.0], deterministic=True, seed=3, seed2=4, overlapping=v
            )[0],
            apart(1, 5, 6, 2), about=f"{_overlap}",
        )  # fmt: skip

# -- space -------------------------------------------------------------------------------------------------

row("SpaceToDepth", lambda x: ops.space_to_depth(x, block_size=2), u(1, 4, 2, 3))
row("DepthToSpace", lambda x: ops.depth_to_space(x, block_size=2), u(1, 2, 1, 8))
row("SpaceToBatch", lambda x: ops.space_to_batch(x, [[1, 1], [0, 2]], block_size=2), u(1, 2, 4, 2))
row("BatchToSpace", lambda x: ops.batch_to_space(x, [[0, 1], [1, 0]], block_size=2), u(4, 2, 2, 2))
row("SpaceToBatchND", lambda x: ops.space_to_batch_nd(x, [2, 3], [[1, 1], [0, 2]]), u(1, 2, 4, 2))
row("BatchToSpaceND", lambda x: ops.batch_to_space_nd(x, [2, 2], [[0, 1], [1, 0]]), u(4, 2, 2, 2))

# -- norms and losses --------------------------------------------------------------------------------------

row("LRN", lambda x: ops.lrn(x, depth_radius=1, alpha=0.7, beta=0.6), u(1, 2, 2, 4), single=True)
for _op in ("FusedBatchNorm", "FusedBatchNormV2", "FusedBatchNormV3"):
    row(
        _op, lambda x, s, b, o=_op: ops.function(o)(x, s, b, [], [], is_training=True, epsilon=0.1)[0],
        u(2, 2, 2, 2), u(2), u(2), single=True, about="training",
    )  # fmt: skip
    row(
        _op,
        lambda x, s, b, o=_op: ops.function(o)(x, s, b, [0.1, -0.2], [0.8, 1.3], is_training=False, epsilon=0.1)[0],
        u(2, 2, 2, 2), u(2), u(2), single=True,
    )  # fmt: skip
    row(
        f"{_op}Grad" if _op == "FusedBatchNorm" else f"FusedBatchNormGrad{_op[-2:]}",
        lambda x, s, b, o=_op: gm.grad(
            ops.function(o)(x, s, b, [], [], is_training=True, epsilon=0.3)[0] * _WEIGHTS, x
        ),
        u(2, 2, 1, 2), u(2), u(2), single=True, first_only="TensorFlow's formula takes the mean as fixed",
    )  # fmt: skip
_WEIGHTS = np.float32(u(2, 2, 1, 2))
_SHARES = np.array([[0.2, 0.5, 0.3], [0.1, 0.3, 0.6]])
row("SoftmaxCrossEntropyWithLogits", lambda x: ops.softmax_cross_entropy_with_logits(x, _SHARES)[0], u(2, 3))
row(
    "SoftmaxCrossEntropyWithLogits", lambda y: ops.softmax_cross_entropy_with_logits(_SHARES * 3, y)[0], u(2, 3),
    about="labels",
)  # fmt: skip
row(
    "SoftmaxCrossEntropyWithLogits", lambda x: ops.softmax_cross_entropy_with_logits(x, [[0.2, 0.8]])[0], u(3, 2),
    about="the same labels for all",
)  # fmt: skip
row(
    "SoftmaxCrossEntropyWithLogits",
    lambda y: ops.softmax_cross_entropy_with_logits(gm.constant(np.arange(6.0).reshape(3, 2)), y)[0], u(1, 2),
    about="labels that are the same for all",
)  # fmt: skip
row(
    "SparseSoftmaxCrossEntropyWithLogits", lambda x: ops.sparse_softmax_cross_entropy_with_logits(x, [2, 0])[0], u(2, 3)
)
_LABELS: tuple[Any, ...] = (np.int64([[0, 0], [0, 1], [1, 0]]), np.int32([1, 2, 1]), np.int32([5, 4]))
row("CTCLoss", lambda x: ops.ctc_loss(x, *_LABELS)[0], u(5, 2, 4), first_only="TensorFlow prevents it")
row(
    "CTCLossV2", lambda x: ops.ctc_loss_v2(x, *_LABELS)[0], u(5, 2, 4), single=True, first_only="TensorFlow prevents it"
)

# -- recurrent cells ---------------------------------------------------------------------------------------

for _peephole in (False, True):
    row(
        "LSTMBlockCell",
        lambda x, c, h, w, i, f, o, b, p=_peephole: [
            ops.lstm_block_cell(x, c, h, w, i, f, o, b, use_peephole=p, cell_clip=-1.0)[k] for k in (1, 6)
        ],
        u(2, 2), u(2, 2), u(2, 2), u(4, 8), u(2), u(2), u(2), u(8), single=True, about=f"{_peephole}",
    )  # fmt: skip
    for _op in ("BlockLSTM", "BlockLSTMV2"):
        row(
            _op,
            lambda x, c, h, w, i, f, o, b, p=_peephole, n=_op: [
                ops.function(n)(gm.constant(3, "int64"), x, c, h, w, i, f, o, b, use_peephole=p, cell_clip=0.0)[k]
                for k in (1, 6)
            ],
            u(3, 2, 2), u(2, 2), u(2, 2), u(4, 8), u(2), u(2), u(2), u(8), single=True, about=f"{_peephole}",
        )  # fmt: skip
for _op, _mode in (("CudnnRNN", "rnn_tanh"), ("CudnnRNNV2", "lstm"), ("CudnnRNNV3", "gru")):
    # 2 units over 2 inputs, one layer: matrices of input and state for each gate, and 2 biases
    _gates = {"rnn_tanh": 1, "gru": 3, "lstm": 4}[_mode]
    row(
        _op,
        lambda x, h, c, w, o=_op, m=_mode: ops.function(o)(
            x, h, c, w, *([gm.constant([3, 2])] if o.endswith("V3") else []), rnn_mode=m
        )[: 3 if m == "lstm" else 2],
        u(3, 2, 2), u(1, 2, 2), u(1, 2, 2), u(_gates * (2 * 2 + 2 * 2 + 2 * 2)), single=True, about=_mode,
    )  # fmt: skip
row("GRUBlockCell", lambda *xs: ops.gru_block_cell(*xs)[3], u(2, 2), u(2, 2), u(4, 4), u(4, 2), u(4), u(2), single=True)

# -- images ------------------------------------------------------------------------------------------------

for _op in ("ResizeBilinear", "ResizeBicubic", "ResizeNearestNeighbor"):
    for _corners, _half in ((False, False), (True, False), (False, True)):
        row(
            _op,
            lambda x, o=_op, c=_corners, h=_half: ops.function(o)(x, [5, 2], align_corners=c, half_pixel_centers=h),
            u(1, 3, 4, 2), about=f"{_corners} {_half}", single=_op != "ResizeNearestNeighbor",
        )  # fmt: skip
_FOUR = np.float32([[[[0.3], [-0.6]], [[1.1], [0.4]]]])
row(
    "CropAndResize", lambda x: ops.crop_and_resize(x, [[0.1, 0.2, 0.8, 0.9], [0.5, 0.3, 0.2, 1.2]], [0, 1], [3, 4]),
    u(2, 4, 4, 1), single=True, about="image",
)  # fmt: skip
row(
    "CropAndResize",
    # of two pixels: no point gets to the next one
    lambda b: ops.crop_and_resize(_FOUR, b, [0], [3, 2]), np.array([[0.2, 0.25, 0.7, 0.75]]),
    single=True, about="boxes",
)  # fmt: skip
for _kernel in ("triangle", "lanczos3"):
    row(
        "ScaleAndTranslate",
        lambda x, k=_kernel: ops.scale_and_translate(x, [3, 5], [0.7, 1.4], [0.3, -0.2], kernel_type=k),
        u(1, 4, 4, 1), single=True, about=_kernel,
    )  # fmt: skip
row("RGBToHSV", ops.rgb_to_hsv, np.array([[0.9, 0.5, 0.2], [0.2, 0.8, 0.4], [0.3, 0.1, 0.7], [0.7, 0.2, 0.4]]))
for _padding in ("SAME", "VALID"):
    row(
        "ExtractImagePatches",
        lambda x, p=_padding: ops.extract_image_patches(
            x, ksizes=[1, 2, 2, 1], strides=[1, 2, 1, 1], rates=[1, 1, 2, 1], padding=p
        ),
        u(1, 4, 4, 2), about=_padding,
    )  # fmt: skip
    row(
        "ExtractVolumePatches",
        lambda x, p=_padding: ops.extract_volume_patches(x, ksizes=[1, 1, 2, 2, 1], strides=[1, 1, 2, 1, 1], padding=p),
        u(1, 2, 3, 3, 1), about=_padding,
    )  # fmt: skip
row(
    "IsotonicRegression",
    lambda x: ops.isotonic_regression(x, output_dtype=x.dtype)[0],
    np.array([[3.0, 1.0, 2.5, 0.5], [0.2, 0.9, 0.75, -0.4]]),
)
row("ApproxTopK", lambda x: ops.approx_top_k(x, k=2, reduction_dimension=1)[0], apart(2, 5, step=0.4), single=True)
