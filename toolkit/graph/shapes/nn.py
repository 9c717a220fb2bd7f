"""Shapes of neural-network ops: convolutions, pools, normalisation, losses."""

from __future__ import annotations

from typing import Any

from toolkit.errors import GraphmillError
from toolkit.graph.shape import SCALAR, UNKNOWN, Dim, Shape, of_rank
from toolkit.graph.shapes.registry import ShapeContext, axis_of, merge_dims, shape_function


def window_size(
    size: Dim, window: Dim, stride: int, padding: str, dilation: int = 1, pads: Any = None, *, fits: bool = False
) -> Dim:
    """The number of positions of a sliding window.

    Args:
        fits: at least one window must fit, which TensorFlow asks of convolutions and pools before a run; kernels make
            an empty output where it is not much too large.

    Raises:
        GraphmillError: the window is larger than the input.
    """
    if stride < 1 or dilation < 1:
        raise GraphmillError(f"strides and dilations must be at least 1; they are {stride} and {dilation}")
    if size is None:
        return None
    if padding == "SAME":
        return -(-size // stride)
    if window is None:
        return None
    extent = (window - 1) * dilation + 1
    padded = size + (sum(pads) if padding == "EXPLICIT" and pads else 0)
    if padded - extent + (0 if fits else stride) < 0:
        raise GraphmillError(f"a window of size {extent} does not fit into size {padded}")
    return (padded - extent + stride) // stride


def _axes(layout: str, spatial: int) -> tuple[int, int, list[int]]:
    """Where batch, channels and the spatial axes are: NHWC, NCHW, NDHWC, NCDHW (also HWNC, CHWN)."""
    if layout in ("NHWC", "NDHWC", "NWC"):
        return 0, spatial + 1, list(range(1, spatial + 1))
    if layout in ("NCHW", "NCDHW", "NCW", "NCHW_VECT_C"):
        return 0, 1, list(range(2, spatial + 2))
    if layout == "HWNC":
        return 2, 3, [0, 1]
    if layout == "CHWN":
        return 3, 0, [1, 2]
    raise GraphmillError(f"the layout {layout} is not supported")


def _place(layout: str, batch: Dim, channels: Dim, inner: list[Dim]) -> Shape:
    n, depth, spatial = _axes(layout, len(inner))
    sizes: list[Dim] = [None] * (len(inner) + 2)
    sizes[n], sizes[depth] = batch, channels
    for axis, size in zip(spatial, inner, strict=True):
        sizes[axis] = size
    return Shape(sizes)


def optional_list(c: ShapeContext, name: str) -> list[int]:
    """A list of integers, empty where the op has no such attribute."""
    return list(c.attr(name)) if name in c.node.op_def.attrs else []


def _explicit(c: ShapeContext, padding: str, rank: int) -> list[int]:
    """The attribute `explicit_paddings`, two for each axis where the padding is explicit."""
    pads = optional_list(c, "explicit_paddings")
    if padding == "EXPLICIT" and (len(pads) != 2 * rank or min(pads) < 0):
        raise GraphmillError(f"explicit_paddings must be {2 * rank} numbers, none negative; they are {pads}")
    if padding != "EXPLICIT" and pads:
        raise GraphmillError(f"explicit_paddings are only for the padding EXPLICIT; they are {pads}")
    return pads


def conv_shape(c: ShapeContext, spatial: int, *, depthwise: bool = False) -> Shape:
    """Of a convolution over so many spatial axes."""
    layout = c.text("data_format") if "data_format" in c.node.op_def.attrs else "NHWC"
    source, kernel = c.rank(0, spatial + 2), c.rank(1, spatial + 2)
    strides: list[int] = c.attr("strides")
    if len(strides) != spatial + 2:
        raise GraphmillError(f"there must be {spatial + 2} strides, not {len(strides)}")
    dilations = optional_list(c, "dilations") or [1] * (spatial + 2)
    if len(dilations) != spatial + 2:
        raise GraphmillError(f"there must be {spatial + 2} dilations, not {len(dilations)}")
    padding = c.text("padding")
    pads = _explicit(c, padding, spatial + 2)
    batch, depth, axes = _axes(layout, spatial)
    channels, filters = source[depth], kernel[spatial + 1]
    if depthwise:
        depth_in = merge_dims(channels, kernel[spatial], "input channels and kernel depth")
        out = None if depth_in is None or filters is None else depth_in * filters
    else:
        per_group = kernel[spatial]
        if channels is not None and per_group is not None:
            if not per_group or channels % per_group:
                raise GraphmillError(f"{channels} input channels do not fit a kernel of depth {per_group}")
            groups = channels // per_group
            if filters is not None and groups and filters % groups:
                raise GraphmillError(f"{filters} filters cannot be divided into {groups} groups")
        out = filters
    inner = [
        window_size(source[a], kernel[i], strides[a], padding, dilations[a], pads[2 * a : 2 * a + 2], fits=True)
        for i, a in enumerate(axes)
    ]
    return _place(layout, source[batch], out, inner)


@shape_function("Conv2D", "_FusedConv2D")
def conv2d(c: ShapeContext) -> list[Shape]:
    return [conv_shape(c, 2)]


@shape_function("Conv3D")
def conv3d(c: ShapeContext) -> list[Shape]:
    return [conv_shape(c, 3)]


@shape_function("Conv")
def conv(c: ShapeContext) -> list[Shape]:
    source, kernel = c.inputs[0].rank, c.inputs[1].rank
    if source is None or kernel is None:
        return [UNKNOWN if source is None else of_rank(source)]
    inner = source - (c.attr("batch_dims") - 1)
    if inner not in (4, 5):
        raise GraphmillError(f"the input must have rank 4 or 5 with one batch axis; it has {inner}")
    if kernel != inner:
        raise GraphmillError(f"the filter must have rank {inner}, as the input has; it has {kernel}")
    return [of_rank(source)]


@shape_function("FusedPadConv2D", "FusedResizeAndPadConv2D")
def fused_pad_conv(c: ShapeContext) -> list[Shape]:
    """[N,H,W,C], perhaps resized, then padded, then a convolution."""
    source, index, strides = c.rank(0, 4), len(c.inputs) - 2, c.numbers("strides", 4)
    sizes: list[Dim] = list(source)
    if index == 2:
        merge_dims(c.rank(1, 1)[0], 2, "length of 'size' and 2")
        sizes[1:3] = c.vector(1, 2) or [None, None]
    rows = c.rank(index, 2)
    merge_dims(rows[0], 4, "rows of 'paddings' and the rank of the input")
    merge_dims(rows[1], 2, "columns of 'paddings' and 2")
    kernel = c.rank(index + 1, 4)
    merge_dims(sizes[3], kernel[2], "input channels and kernel depth")
    pads = c.pairs(index, 4)
    for axis in range(4):
        size, (before, after) = sizes[axis], pads[axis] if pads else (None, None)
        sizes[axis] = None if size is None or before is None or after is None else size + before + after
    inner = [window_size(sizes[i], kernel[i - 1], strides[i], c.text("padding"), 1, []) for i in (1, 2)]
    return [_place("NHWC", sizes[0], kernel[3], inner)]


@shape_function("DepthwiseConv2dNative", "_FusedDepthwiseConv2dNative")
def depthwise(c: ShapeContext) -> list[Shape]:
    return [conv_shape(c, 2, depthwise=True)]


def _given_sizes(c: ShapeContext, index: int, rank: int) -> Shape:
    shape = c.constant_shape(index)
    return shape.with_rank(rank)


@shape_function("Conv2DBackpropInput")
def conv2d_backprop_input(c: ShapeContext) -> list[Shape]:
    shape = _given_sizes(c, 0, 4) if c.rank(0, 1)[0] != 2 else c.constant_shape(0)
    if shape.rank == 2:  # only height and width are given
        batch, depth, axes = _axes(c.text("data_format"), 2)
        kernel, grad = c.rank(1, 4), c.rank(2, 4)
        sizes: list[Dim] = [None] * 4
        sizes[batch], sizes[depth] = grad[batch], kernel[2]
        sizes[axes[0]], sizes[axes[1]] = shape[0], shape[1]
        return [Shape(sizes)]
    return [shape]


@shape_function("Conv2DBackpropFilter", "DepthwiseConv2dNativeBackpropFilter")
def conv2d_backprop_filter(c: ShapeContext) -> list[Shape]:
    return [_given_sizes(c, 1, 4)]


@shape_function("DepthwiseConv2dNativeBackpropInput")
def depthwise_backprop_input(c: ShapeContext) -> list[Shape]:
    return [_given_sizes(c, 0, 4)]


@shape_function("Conv2DBackpropFilterV2")
def conv2d_backprop_filter_v2(c: ShapeContext) -> list[Shape]:
    return [c.rank(1, 4)]


@shape_function("Conv2DBackpropInputV2")
def conv2d_backprop_input_v2(c: ShapeContext) -> list[Shape]:
    return [c.rank(0, 4)]


@shape_function("Conv3DBackpropInputV2")
def conv3d_backprop_input(c: ShapeContext) -> list[Shape]:
    return [_given_sizes(c, 0, 5)]


@shape_function("Conv3DBackpropFilterV2")
def conv3d_backprop_filter(c: ShapeContext) -> list[Shape]:
    return [_given_sizes(c, 1, 5)]


@shape_function("Conv3DBackpropInput")
def conv3d_backprop_input_v1(c: ShapeContext) -> list[Shape]:
    return [c.rank(0, 5)]


@shape_function("Conv3DBackpropFilter")
def conv3d_backprop_filter_v1(c: ShapeContext) -> list[Shape]:
    return [c.rank(1, 5)]


@shape_function("Dilation2D")
def dilation2d(c: ShapeContext) -> list[Shape]:
    source, kernel = c.rank(0, 4), c.rank(1, 3)
    strides, rates, padding = c.numbers("strides", 4), c.numbers("rates", 4), c.text("padding")
    depth = merge_dims(source[3], kernel[2], "input channels and kernel depth")
    inner = [window_size(source[i], kernel[i - 1], strides[i], padding, rates[i]) for i in (1, 2)]
    return [Shape([source[0], *inner, depth])]


@shape_function("Dilation2DBackpropInput")
def dilation2d_backprop_input(c: ShapeContext) -> list[Shape]:
    return [c.inputs[0]]


@shape_function("Dilation2DBackpropFilter")
def dilation2d_backprop_filter(c: ShapeContext) -> list[Shape]:
    return [c.inputs[1]]


def pool_shape(c: ShapeContext, spatial: int, sizes: list[int] | None, strides: list[int] | None) -> Shape:
    """Of a pool over so many spatial axes."""
    rank = spatial + 2
    layout = c.text("data_format") if "data_format" in c.node.op_def.attrs else "NHWC"
    source = c.rank(0, 5 if layout == "NCHW_VECT_C" else rank)
    if sizes is None or strides is None:
        return of_rank(rank)
    if len(sizes) != rank or len(strides) != rank:
        raise GraphmillError(f"ksize and strides must have {rank} elements; they have {len(sizes)} and {len(strides)}")
    padding = c.text("padding")
    pads = _explicit(c, padding, rank)
    batch, depth, axes = _axes(layout, spatial)
    inner = [window_size(source[a], sizes[a], strides[a], padding, 1, pads[2 * a : 2 * a + 2], fits=True) for a in axes]
    channels = source[depth]
    if channels is not None and c.node.op != "AvgPool":  # an average over channels is not a thing
        if sizes[depth] < 1:
            raise GraphmillError(f"ksize must be positive; it is {sizes[depth]} for channels")
        if channels % sizes[depth] and padding == "VALID":
            raise GraphmillError(f"{channels} channels cannot be pooled by {sizes[depth]}")
        channels = window_size(channels, sizes[depth], strides[depth], padding, fits=True)
    if layout == "NCHW_VECT_C":
        return Shape([source[0], source[1], *inner, source[4]])
    return _place(layout, source[batch], channels, inner)


@shape_function("MaxPool", "AvgPool")
def pool(c: ShapeContext) -> list[Shape]:
    return [pool_shape(c, 2, c.attr("ksize"), c.attr("strides"))]


@shape_function("MaxPoolV2")
def max_pool_v2(c: ShapeContext) -> list[Shape]:
    return [pool_shape(c, 2, c.integers(1), c.integers(2))]


@shape_function("MaxPool3D", "AvgPool3D")
def pool3d(c: ShapeContext) -> list[Shape]:
    return [pool_shape(c, 3, c.attr("ksize"), c.attr("strides"))]


@shape_function("MaxPoolWithArgmax")
def max_pool_with_argmax(c: ShapeContext) -> list[Shape]:
    out = pool_shape(c, 2, c.attr("ksize"), c.attr("strides"))
    return [out, out]


@shape_function("MaxPoolGrad", "MaxPoolGradV2")
def max_pool_grad(c: ShapeContext) -> list[Shape]:
    return [c.rank(0, 4)]


@shape_function("MaxPoolGradWithArgmax")
def max_pool_grad_with_argmax(c: ShapeContext) -> list[Shape]:
    return [c.rank(0, 4)]


@shape_function("MaxPoolGradGrad", "MaxPoolGradGradV2", "MaxPoolGradGradWithArgmax")
def max_pool_grad_grad(c: ShapeContext) -> list[Shape]:
    if c.node.op == "MaxPoolGradGradWithArgmax":
        return [pool_shape(c, 2, c.attr("ksize"), c.attr("strides"))]
    return [_pooled_again(c, 2)]


def _pooled_again(c: ShapeContext, spatial: int) -> Shape:
    """The gradient of a pool's gradient: like its output, and the pooled gradient like its input."""
    c.rank(0, spatial + 2).merge(c.rank(2, spatial + 2))
    out = c.rank(1, spatial + 2)
    if c.node.op.endswith("V2"):
        return out
    return out.merge(pool_shape(c, spatial, c.attr("ksize"), c.attr("strides")))


@shape_function("AvgPoolGrad")
def avg_pool_grad(c: ShapeContext) -> list[Shape]:
    return [_given_sizes(c, 0, 4)]


@shape_function("AvgPool3DGrad")
def avg_pool3d_grad(c: ShapeContext) -> list[Shape]:
    return [_given_sizes(c, 0, 5)]


@shape_function("MaxPool3DGrad")
def max_pool3d_grad(c: ShapeContext) -> list[Shape]:
    return [c.rank(0, 5)]


@shape_function("MaxPool3DGradGrad")
def max_pool3d_grad_grad(c: ShapeContext) -> list[Shape]:
    return [_pooled_again(c, 3)]


@shape_function("FractionalMaxPool", "FractionalAvgPool")
def fractional_pool(c: ShapeContext) -> list[Shape]:
    source, ratios = c.rank(0, 4), c.attr("pooling_ratio")
    if len(ratios) != 4:
        raise GraphmillError(f"pooling_ratio must have 4 elements; it has {len(ratios)}")
    if not all(ratio >= 1 for ratio in ratios):
        raise GraphmillError(f"pooling_ratio must be at least 1; it is {ratios}")
    sizes = [None if d is None else int(d / r) for d, r in zip(source, ratios, strict=True)]
    rows, columns = ((None if d is None else d + 1) for d in sizes[1:3])
    return [Shape(sizes), Shape([rows]), Shape([columns])]


@shape_function("FractionalMaxPoolGrad")
def fractional_max_pool_grad(c: ShapeContext) -> list[Shape]:
    return [c.rank(0, 4)]


@shape_function("FractionalAvgPoolGrad")
def fractional_avg_pool_grad(c: ShapeContext) -> list[Shape]:
    # TensorFlow looks at the value alone, not at the length.
    return [c.constant_shape(0) if c.constant(0) is not None else of_rank(4)]


@shape_function("BiasAdd")
def bias_add(c: ShapeContext) -> list[Shape]:
    source, bias = c.inputs[0], c.rank(1, 1)
    first = c.text("data_format") == "NCHW"
    source = c.rank_at_least(0, 3 if first else 2)
    if source.dims is None:
        return [UNKNOWN]
    axis = 1 if first else len(source.dims) - 1
    sizes = list(source.dims)
    sizes[axis] = merge_dims(sizes[axis], bias[0], "channels and the length of the bias")
    return [Shape(sizes)]


@shape_function("BiasAddV1")
def bias_add_v1(c: ShapeContext) -> list[Shape]:
    return [bias_shape(c)]


def bias_shape(c: ShapeContext) -> Shape:
    """Of input 0 with the bias in input 1 added along its last axis."""
    source, bias = c.rank_at_least(0, 2), c.rank(1, 1)
    if source.dims is None:
        return UNKNOWN
    return Shape([*source.dims[:-1], merge_dims(source.dims[-1], bias[0], "channels and the length of the bias")])


@shape_function("BiasAddGrad")
def bias_add_grad(c: ShapeContext) -> list[Shape]:
    first = c.text("data_format") == "NCHW"
    source = c.rank_at_least(0, 3 if first else 2)
    return [Shape([None if source.dims is None else source.dims[1 if first else -1]])]


@shape_function("FusedBatchNorm", "FusedBatchNormV2", "FusedBatchNormV3", "_FusedBatchNormEx")
def fused_batch_norm(c: ShapeContext) -> list[Shape]:
    layout, training = c.text("data_format"), c.attr("is_training")
    spatial = len(layout) - 2
    source = c.rank(0, spatial + 2)
    _, axis, _ = _axes(layout, spatial)
    channels = source[axis]
    for index in range(1, 3 if training else 5):
        channels = merge_dims(channels, c.rank(index, 1)[0], "channels and the length of scale, offset, mean, variance")
    sizes = list(source)
    sizes[axis] = channels
    vector = Shape([channels])
    rest = [UNKNOWN] if c.node.num_outputs == 6 else []
    return [Shape(sizes), vector, vector, vector, vector, *rest]


@shape_function("FusedBatchNormGrad", "FusedBatchNormGradV2", "FusedBatchNormGradV3")
def fused_batch_norm_grad(c: ShapeContext) -> list[Shape]:
    layout, training = c.text("data_format"), c.attr("is_training")
    spatial = len(layout) - 2
    grad, source = c.rank(0, spatial + 2), c.rank(1, spatial + 2)
    _, axis, _ = _axes(layout, spatial)
    channels = merge_dims(grad[axis], source[axis], "channels")
    for index in (2, 3, 4):
        channels = merge_dims(channels, c.rank(index, 1)[0], "channels and the length of scale, mean, variance")
    sizes = list(grad)
    sizes[axis] = channels
    vector = Shape([channels])
    empty = Shape([0]) if training else vector
    return [Shape(sizes), vector, vector, empty, empty]


@shape_function("BatchNormWithGlobalNormalization")
def batch_norm_global(c: ShapeContext) -> list[Shape]:
    source = c.rank(0, 4)
    last = source[3]
    for index in range(1, 5):
        last = merge_dims(last, c.rank(index, 1)[0], "channels")
    return [Shape([*source.slice(0, 3), last])]


@shape_function("BatchNormWithGlobalNormalizationGrad")
def batch_norm_global_grad(c: ShapeContext) -> list[Shape]:
    source = c.rank(0, 4)
    last = source[3]
    for index in range(1, 4):
        last = merge_dims(last, c.rank(index, 1)[0], "channels")
    source = source.merge(c.rank(4, 4))
    last = merge_dims(last, source[3], "channels")
    return [Shape([*source.slice(0, 3), last])] + [Shape([last])] * 4


@shape_function("LRN")
def lrn(c: ShapeContext) -> list[Shape]:
    return [c.rank(0, 4)]


@shape_function("LRNGrad")
def lrn_grad(c: ShapeContext) -> list[Shape]:
    return [c.rank(0, 4).merge(c.inputs[1]).merge(c.inputs[2])]


@shape_function("Softmax", "LogSoftmax")
def softmax(c: ShapeContext) -> list[Shape]:
    return [c.rank_at_least(0, 1)]


@shape_function("SoftmaxCrossEntropyWithLogits")
def softmax_cross_entropy(c: ShapeContext) -> list[Shape]:
    from toolkit.graph.shape import broadcast

    logits, labels = c.inputs
    if (logits.rank == 2 and labels.rank == 2) or logits.rank is None or labels.rank is None:
        first, second = c.rank_at_most(0, 2), c.rank_at_most(1, 2)
        both = (
            broadcast(first.with_rank(2), second.with_rank(2))
            if 2 in (first.rank, second.rank)
            else Shape([None, None])
        )
    else:
        both = broadcast(logits, labels)
        if both.rank != 2:
            raise GraphmillError(f"logits of shape {logits} and labels of shape {labels} must have rank 2")
    return [both.slice(0, 1), both]


@shape_function("SparseSoftmaxCrossEntropyWithLogits")
def sparse_softmax_cross_entropy(c: ShapeContext) -> list[Shape]:
    logits, labels = c.rank(0, 2), c.rank(1, 1)
    batch = merge_dims(logits[0], labels[0], "batch sizes of logits and labels")
    return [Shape([batch]), Shape([batch, logits[1]])]


@shape_function("L2Loss")
def l2_loss(c: ShapeContext) -> list[Shape]:
    return [SCALAR]


@shape_function("InTopK", "InTopKV2")
def in_top_k(c: ShapeContext) -> list[Shape]:
    predictions, targets = c.rank(0, 2), c.rank(1, 1)
    return [Shape([merge_dims(predictions[0], targets[0], "batch sizes of predictions and targets")])]


def _top_k(c: ShapeContext, k: int | None) -> list[Shape]:
    source = c.rank_at_least(0, 1)
    if k is not None and k < 0:
        raise GraphmillError(f"k must not be negative; it is {k}")
    if source.dims is None:
        return [UNKNOWN, UNKNOWN]
    last = source.dims[-1]
    if last is not None and k is not None and last < k:
        raise GraphmillError(f"the last axis of {source} has fewer than k = {k} elements")
    out = Shape([*source.dims[:-1], k])
    return [out, out]


@shape_function("TopK")
def top_k(c: ShapeContext) -> list[Shape]:
    return _top_k(c, c.attr("k"))


@shape_function("TopKV2")
def top_k_v2(c: ShapeContext) -> list[Shape]:
    return _top_k(c, c.integer(1))


@shape_function("NthElement")
def nth_element(c: ShapeContext) -> list[Shape]:
    source = c.rank_at_least(0, 1)
    n = c.integer(1)
    if n is not None and source.dims is not None and source.dims[-1] is not None and source.dims[-1] <= n:
        raise GraphmillError(f"the last axis of {source} must have more than n = {n} elements")
    return [source.slice(0, -1)]


@shape_function("ApproxTopK")
def approx_top_k(c: ShapeContext) -> list[Shape]:
    source, k, axis = c.inputs[0], c.attr("k"), c.attr("reduction_dimension")
    if not 0 <= c.attr("recall_target") <= 1:
        raise GraphmillError(f"recall_target must lie in [0, 1]; it is {c.attr('recall_target')}")
    if source.dims is None:
        return [UNKNOWN, UNKNOWN]
    sizes = list(source.dims)
    axis = axis_of(axis, len(sizes), "reduction_dimension")
    size = sizes[axis]
    if size is not None and size < k:
        raise GraphmillError(f"axis {axis} of {source} has fewer than k = {k} elements")
    sizes[axis] = k if c.attr("aggregate_to_topk") else None
    return [Shape(sizes), Shape(sizes)]


@shape_function("CTCLoss", "CTCLossV2")
def ctc_loss(c: ShapeContext) -> list[Shape]:
    inputs, indices, values, lengths = c.rank(0, 3), c.rank(1, 2), c.rank(2, 1), c.rank(3, 1)
    merge_dims(indices[0], values[0], "numbers of label indices and values")
    batch = merge_dims(inputs[1], lengths[0], "batch sizes of inputs and sequence lengths")
    return [Shape([batch]), Shape([inputs[0], batch, inputs[2]])]


@shape_function("CTCGreedyDecoder")
def ctc_greedy(c: ShapeContext) -> list[Shape]:
    inputs, lengths = c.rank(0, 3), c.rank(1, 1)
    batch = merge_dims(inputs[1], lengths[0], "batch sizes of inputs and sequence lengths")
    return [Shape([None, 2]), Shape([None]), Shape([2]), Shape([batch, 1])]


@shape_function("CTCBeamSearchDecoder")
def ctc_beam(c: ShapeContext) -> list[Shape]:
    inputs, lengths, paths = c.rank(0, 3), c.rank(1, 1), c.attr("top_paths")
    batch = merge_dims(inputs[1], lengths[0], "batch sizes of inputs and sequence lengths")
    return [
        *[Shape([None, 2])] * paths, *[Shape([None])] * paths, *[Shape([2])] * paths, Shape([batch, paths])
    ]  # fmt: skip


@shape_function("QuantizedBatchNormWithGlobalNormalization")
def quantized_batch_norm(c: ShapeContext) -> list[Shape]:
    """[N,H,W,C] and the range of its numbers; mean, variance, beta and gamma have C numbers."""
    source = c.rank(0, 4)
    channels = source[3]
    for index in (3, 6, 9, 12):
        channels = merge_dims(channels, c.rank(index, 1)[0], "channels")
    return [Shape([source[0], source[1], source[2], channels]), SCALAR, SCALAR]
