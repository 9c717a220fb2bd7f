"""What random networks are made of, beside the pieces of the compiler's own random graphs."""

# functions over tensors of the client, whose parameters have no types
# pyright: reportUnknownVariableType=false, reportUnknownMemberType=false, reportUnknownArgumentType=false
# pyright: reportUnknownParameterType=false, reportMissingParameterType=false, reportUnknownLambdaType=false

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from tests.compiler.operations.rows import numbers, positive
from tests.compiler.random.random_graphs import Builder, dims
from toolkit import client as gm
from toolkit.graph import dtypes

ops = gm.ops
_QUINT8, _QINT32 = dtypes.from_name("quint8"), dtypes.from_name("qint32")
#: what a piece adds: (builder, tensor, how) -> tensor, None where it does not fit
PIECES: list[Callable[[Builder, Any, int], Any]] = []


def piece(function: Callable[[Builder, Any, int], Any]) -> Callable[[Builder, Any, int], Any]:
    """Register a piece."""
    PIECES.append(function)
    return function


def _image(x: Any) -> bool:
    return len(dims(x)) == 4 and min(dims(x)[1:3]) >= 3


@piece
def channels_first(builder: Builder, x: Any, how: int) -> Any:
    """A convolution, normalisation or pool between transposes, with channels first."""
    if not _image(x):
        return None
    c = dims(x)[-1]
    y = ops.transpose(x, [0, 3, 1, 2])
    kind = how % 4
    if kind == 0:
        y = ops.conv2d(y, numbers(3, 3, c, 8) / np.float32(9), strides=[1, 1, 1, 1], padding="SAME", data_format="NCHW")
        y = ops.relu(ops.bias_add(y, numbers(8), data_format="NCHW"))
    elif kind == 1:
        y = ops.max_pool(y, ksize=[1, 1, 2, 2], strides=[1, 1, 2, 2], padding="VALID", data_format="NCHW")
    elif kind == 2:
        scale = positive(c)
        y = ops.fused_batch_norm_v3(y, scale, scale, scale, scale, is_training=False, data_format="NCHW")[0]
    else:
        y = ops.bias_add(ops.tanh(y), numbers(c), data_format="NCHW")
    return ops.transpose(y, [0, 2, 3, 1]) if how % 3 else y


@piece
def trained_norm(builder: Builder, x: Any, how: int) -> Any:
    if not _image(x):
        return None
    c = dims(x)[-1]
    empty = np.zeros(0, np.float32)
    found = ops.fused_batch_norm_v3(x, positive(c), numbers(c), empty, empty, is_training=True, epsilon=1e-3)
    return found[0] if how % 3 else ops.relu(found[0] + 0.1)


@piece
def local_norm(builder: Builder, x: Any, how: int) -> Any:
    return ops.lrn(x, depth_radius=1 + how % 4, bias=1.0, alpha=0.01, beta=0.5) if _image(x) else None


@piece
def resized(builder: Builder, x: Any, how: int) -> Any:
    if not _image(x):
        return None
    size = np.array([(4, 8), (13, 5), (1, 1), (7, 24)][how % 4], np.int32)
    function = (ops.resize_bilinear, ops.resize_nearest_neighbor)[(how >> 2) % 2]
    flags = [{}, {"align_corners": True}, {"half_pixel_centers": True}][(how >> 3) % 3]
    return function(x, size, **flags)


@piece
def dilated(builder: Builder, x: Any, how: int) -> Any:
    if not _image(x) or min(dims(x)[1:3]) < 6:
        return None
    w = numbers(3, 3, dims(x)[-1], 6) / np.float32(9)
    return ops.conv2d(x, w, strides=[1, 1, 1, 1], padding=("SAME", "VALID")[how % 2], dilations=[1, 2, 2, 1])


@piece
def turned_convolution(builder: Builder, x: Any, how: int) -> Any:
    """The gradient of a convolution as a layer."""
    if not _image(x):
        return None
    n, h, w, c = dims(x)
    stride = 1 + how % 2
    shape = np.array([n, h * stride, w * stride, 5], np.int32)
    filters = numbers(3, 3, 5, c) / np.float32(9)
    return ops.conv2d_backprop_input(shape, filters, x, strides=[1, stride, stride, 1], padding="SAME")


@piece
def gathered(builder: Builder, x: Any, how: int) -> Any:
    shape = dims(x)
    if not shape:
        return None
    axis = how % len(shape)
    at = np.random.default_rng(how).integers(0, shape[axis], 1 + how % 5).astype((np.int32, np.int64)[how % 2])
    if how % 7 == 0:
        at = ops.cast(ops.clip_by_value(builder.feed("count"), 0, shape[axis] - 1), DstT=gm.int32)
    return ops.gather_v2(x, at, axis)


@piece
def padded(builder: Builder, x: Any, how: int) -> Any:
    rank = len(dims(x))
    if not rank or int(np.prod(dims(x))) > 20_000:
        return None
    paddings = np.random.default_rng(how).integers(0, 3, (rank, 2)).astype(np.int32)
    if how % 3 == 0:
        return ops.pad_v2(x, paddings, np.float32(0.5))
    if how % 3 == 1 and min(dims(x)) > 2:
        return ops.mirror_pad(x, paddings % 2, mode=("REFLECT", "SYMMETRIC")[how % 2])
    return ops.pad(x, paddings)


@piece
def chosen(builder: Builder, x: Any, how: int) -> Any:
    y = builder.like(x, how)
    flag = (ops.greater, ops.less_equal, ops.equal, ops.not_equal)[how % 4](x, y * 0.5)
    return ops.select_v2(flag, x, ops.tanh(y)) if how % 3 else ops.select(flag, y, x)


@piece
def clipped(builder: Builder, x: Any, how: int) -> Any:
    return (
        lambda: ops.clip_by_value(x, -1.0, 2.0), lambda: ops.minimum(ops.maximum(x, -0.5), 6.0),
        lambda: ops.floor(x), lambda: ops.sign(x), lambda: ops.rint(x), lambda: ops.log1p(ops.abs(x)),
        lambda: ops.div_no_nan(x, ops.floor(x)), lambda: ops.floor_mod(x, np.float32(1.5)),
        lambda: ops.xdivy(x, x + 1.0), lambda: ops.softsign(x), lambda: ops.selu(x), lambda: ops.inv(x),
        lambda: ops.log(x), lambda: ops.sqrt(x), lambda: ops.exp(x), lambda: ops.pow(ops.abs(x), np.float32(0.3)),
        lambda: ops.reciprocal(x), lambda: ops.select_v2(ops.is_nan(x), ops.zeros_like(x), x),
        lambda: ops.cast(ops.cast(x, DstT=gm.int32), DstT=gm.float32),
        lambda: ops.cast(ops.cast(x, DstT=gm.float64), DstT=gm.float32), lambda: ops.erf(x), lambda: ops.expm1(x),
        lambda: ops.fake_quant_with_min_max_args(x), lambda: ops.cast(ops.cast(x, DstT=gm.bfloat16), DstT=gm.float32),
    )[how % 24]()  # fmt: skip


@piece
def along(builder: Builder, x: Any, how: int) -> Any:
    """Sums, largest ones and orders along an axis."""
    shape = dims(x)
    if not shape:
        return None
    axis = how % len(shape)
    axes = np.array(axis, np.int32)
    kinds = (
        lambda: ops.cumsum(x, axes, exclusive=bool(how % 2), reverse=bool((how >> 1) % 2)),
        lambda: ops.cumprod(ops.tanh(x), axes), lambda: ops.prod(ops.tanh(x), [axis], keep_dims=True),
        lambda: ops.min(x, [axis]), lambda: ops.cast(ops.arg_max(x, axes), DstT=gm.float32),
        lambda: ops.reverse_v2(x, [axis]), lambda: ops.cast(ops.any(ops.greater(x, 0.0), [axis]), DstT=gm.float32),
        lambda: ops.top_kv2(x, min(2, shape[-1]))[0] if len(shape) < 3 else None,
        lambda: ops.tile(x, np.array([1 + (at == axis) for at in range(len(shape))], np.int32)),
        lambda: ops.pack([x, ops.tanh(x)], axis=axis), lambda: ops.unpack(x, num=shape[axis], axis=axis)[0],
    )  # fmt: skip
    return kinds[(how >> 4) % len(kinds)]()


@piece
def contracted(builder: Builder, x: Any, how: int) -> Any:
    shape = dims(x)
    if len(shape) == 2:
        return ops.einsum([x, numbers(shape[1], 7)], equation="ab,bc->ac") / np.float32(shape[1])
    if len(shape) == 3:
        return ops.einsum([x, ops.tanh(builder.like(x, how))], equation="abc,adc->abd") / np.float32(shape[2])
    return None


@piece
def segments(builder: Builder, x: Any, how: int) -> Any:
    shape = dims(x)
    if len(shape) < 2:
        return None
    ids = np.random.default_rng(how).integers(-1 if how % 5 == 0 else 0, 4, shape[0]).astype(np.int32)
    function = (ops.unsorted_segment_sum, ops.unsorted_segment_max, ops.unsorted_segment_prod)[how % 3]
    return function(ops.tanh(x), ids, 4)


@piece
def quantized(builder: Builder, x: Any, how: int) -> Any:
    """There and back again through 8 bits."""
    if not dims(x):
        return None
    low, high = np.float32(-2), np.float32(3)
    kept = ops.quantize_v2(x, low, high, T=_QUINT8, mode=("MIN_FIRST", "MIN_COMBINED")[how % 2])
    return ops.dequantize(*kept, mode=("MIN_FIRST", "MIN_COMBINED")[how % 2])


@piece
def quantized_product(builder: Builder, x: Any, how: int) -> Any:
    shape = dims(x)
    if len(shape) != 2:
        return None
    low, high = np.float32(-2), np.float32(2)
    a = ops.quantize_v2(x, low, high, T=_QUINT8, mode="MIN_FIRST")
    b = ops.quantize_v2(numbers(shape[1], 5), low, high, T=_QUINT8, mode="MIN_FIRST")
    y = ops.quantized_mat_mul(a[0], b[0], a[1], a[2], b[1], b[2], Toutput=_QINT32)
    return ops.dequantize(*y, mode="MIN_FIRST")


@piece
def windows_moved(builder: Builder, x: Any, how: int) -> Any:
    if not _image(x):
        return None
    n, h, w, c = dims(x)
    kinds = (
        lambda: ops.depth_to_space(x, block_size=2) if c % 4 == 0 else None,
        lambda: ops.space_to_depth(x[:, : h // 2 * 2, : w // 2 * 2], block_size=2),
        lambda: ops.space_to_batch_nd(x[:, : h // 2 * 2, : w // 2 * 2], [2, 2], [[0, 0], [0, 0]]),
        lambda: ops.extract_image_patches(
            x, ksizes=[1, 2, 2, 1], strides=[1, 2, 2, 1], rates=[1, 1, 1, 1], padding="VALID"
        ) if n * h * w * c < 20_000 else None,
        lambda: ops.crop_and_resize(x, numbers(2, 4) * 0.2 + [0, 0, 1, 1], np.zeros(2, np.int32), [3, 3]),
    )  # fmt: skip
    return kinds[how % 5]()


@piece
def of_shape(builder: Builder, x: Any, how: int) -> Any:
    """Sizes that are computed."""
    if not dims(x):
        return None
    shape = ops.shape(x)
    if how % 2:
        return ops.reshape(ops.reshape(x, [-1]), shape)
    return x + ops.fill(shape, np.float32(0.25)) * ops.cast(ops.rank(x), DstT=gm.float32)
