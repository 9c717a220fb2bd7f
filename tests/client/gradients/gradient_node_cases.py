"""One operation each, for comparing the nodes that gradients add: what is built, and for which shapes.

Each row is built with known sizes, with an unknown first size, and with unknown ranks.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from toolkit import client as gm
from toolkit.client import ops
from toolkit.client.construction.tensor import Tensor

Build = Callable[[], tuple[list[Tensor], list[Tensor]]]
CASES: dict[str, Build] = {}


def _make(build: Callable[..., Any], sizes: list[Any]) -> Build:
    def built() -> tuple[list[Tensor], list[Tensor]]:
        xs: list[Tensor] = []
        for i, size in enumerate(sizes):
            shape, dtype = size if isinstance(size, tuple) else (size, "float32")
            xs.append(gm.placeholder(dtype, shape, name=f"x{i}"))
        made = build(*xs)
        ys = made if isinstance(made, list) else [made]
        return [y for y in ys if y.dtype.base.kind == "f"], [x for x in xs if x.dtype.base.kind == "f"]

    return built


def _changed(size: Any, change: Callable[[Any], Any]) -> Any:
    return (change(size[0]), size[1]) if isinstance(size, tuple) else change(size)


def add(name: str, build: Callable[..., Any], *sizes: Any, dyn: bool = True) -> None:
    """A row; a size is a list, or a list and a type. `dyn`: also with sizes that are not known."""
    assert name not in CASES
    CASES[name] = _make(build, list(sizes))
    if dyn:
        CASES[f"{name} partial"] = _make(build, [_changed(s, lambda d: [None, *d[1:]] if d else d) for s in sizes])
        CASES[f"{name} unknown"] = _make(build, [_changed(s, lambda d: None) for s in sizes])


add("CheckNumerics", lambda x: ops.check_numerics(x, message="m"), [2, 3])
for op in (
    "Neg",
    "Abs",
    "Reciprocal",
    "Square",
    "Sqrt",
    "Rsqrt",
    "Exp",
    "Expm1",
    "Log",
    "Log1p",
    "Tanh",
    "Sinh",
    "Cosh",
    "Asinh",
    "Acosh",
    "Atanh",
    "Sin",
    "Cos",
    "Tan",
    "Asin",
    "Acos",
    "Atan",
    "Erf",
    "Erfc",
    "Sigmoid",
    "Sign",
    "Softplus",
    "Softsign",
    "Relu",
    "Relu6",
    "Elu",
    "Selu",
    "LeakyRelu",
    "Softmax",
    "LogSoftmax",
    "L2Loss",
    "Lgamma",
    "Digamma",
    "Erfinv",
    "Ndtri",
    "Identity",
    "ZerosLike",
    "Floor",
    "StopGradient",
    "Inv",
    "Rint",
    "Round",
    "Ceil",
):
    add(op, ops.function(op), [2, 3])
for op in (
    "AddV2",
    "Sub",
    "Mul",
    "RealDiv",
    "DivNoNan",
    "Maximum",
    "Minimum",
    "SquaredDifference",
    "Pow",
    "FloorMod",
    "Atan2",
    "Xdivy",
    "Xlogy",
    "Xlog1py",
    "MulNoNan",
    "Igamma",
    "Add",
    "Div",
    "FloorDiv",
    "TruncateDiv",
):
    add(op, ops.function(op), [2, 3], [2, 3])
    add(op + " bcast", ops.function(op), [2, 3], [3])
    add(op + " scalar", ops.function(op), [2, 3], [])
    add(op + " one", ops.function(op), [1, 3], [2, 1])
    add(op + " by a constant", lambda x, op=op: ops.function(op)(x, 2.0), [2, 3])
    add(op + " of a constant", lambda x, op=op: ops.function(op)(2.0, x), [2, 3])
for op in ("Sum", "Mean", "Max", "Min", "Prod"):
    for ax in (0, [1], [0, 2], [-1], [0, 1, 2], []):
        for keep in (False, True):
            add(
                f"{op} {ax} {keep}",
                lambda x, op=op, ax=ax, keep=keep: ops.function(op)(x, gm.constant(ax, "int32"), keep_dims=keep),
                [2, 3, 4],
            )
    add(op + " dyn axis", lambda x, a, op=op: ops.function(op)(x, a), [2, 3], ([1], "int32"))
for ta in (False, True):
    for tb in (False, True):
        add(
            f"MatMul {ta}{tb}",
            lambda a, b, ta=ta, tb=tb: ops.mat_mul(a, b, transpose_a=ta, transpose_b=tb),
            [3, 2] if ta else [2, 3],
            [4, 3] if tb else [3, 4],
        )
        for o in ("BatchMatMul", "BatchMatMulV2"):
            add(
                f"{o} {ta}{tb}",
                lambda a, b, o=o, ta=ta, tb=tb: ops.function(o)(a, b, adj_x=ta, adj_y=tb),
                [5, 3, 2] if ta else [5, 2, 3],
                [5, 4, 3] if tb else [5, 3, 4],
            )
add("BatchMatMulV2 b", lambda a, b: ops.batch_mat_mul_v2(a, b), [5, 2, 3], [3, 4])
add("AddN", lambda a, b: ops.add_n([a, b]), [2, 3], [2, 3])
add("BiasAdd", lambda a, b: ops.bias_add(a, b), [2, 3], [3])
add("BiasAdd nchw", lambda a, b: ops.bias_add(a, b, data_format="NCHW"), [2, 3, 4, 4], [3])
add("Cast", lambda a: ops.cast(a, DstT=gm.float64), [2, 3])
add("Cumsum", lambda a: ops.cumsum(a, 1), [2, 3])
add("Cumprod", lambda a: ops.cumprod(a, 1), [2, 3])
add("SegmentSum", lambda a, i: ops.segment_sum(a, i), [4, 3], ([4], "int32"))
add("SegmentMean", lambda a, i: ops.segment_mean(a, i), [4, 3], ([4], "int32"))
add("UnsortedSegmentSum", lambda a, i: ops.unsorted_segment_sum(a, i, 5), [4, 3], ([4], "int32"))
add("UnsortedSegmentMax", lambda a, i: ops.unsorted_segment_max(a, i, 5), [4, 3], ([4], "int32"))
add("SparseSegmentSum", lambda a, j, i: ops.sparse_segment_sum(a, j, i), [4, 3], ([4], "int32"), ([4], "int32"))
add("SparseSegmentMean", lambda a, j, i: ops.sparse_segment_mean(a, j, i), [4, 3], ([4], "int32"), ([4], "int32"))
add("Select", lambda c, a, b: ops.select(c, a, b), ([2, 3], "bool"), [2, 3], [2, 3])
add("SelectV2", lambda c, a, b: ops.select_v2(c, a, b), ([2, 3], "bool"), [2, 3], [3])
add("ArgMax", lambda a: ops.cast(ops.arg_max(a, 1), DstT=gm.float32), [2, 3])
# arrays
add("Reshape", lambda a: ops.reshape(a, [3, 2]), [2, 3])
add("ExpandDims", lambda a: ops.expand_dims(a, 1), [2, 3])
add("Squeeze", lambda a: ops.squeeze(a, squeeze_dims=[1]), [2, 1, 3])
add("Transpose", lambda a: ops.transpose(a, [1, 0]), [2, 3])
for n in (2, 3):
    add(f"ConcatV2 {n}", lambda *a: ops.concat_v2(list(a), 1), *[[2, 3]] * n)
add("ConcatV2 neg", lambda *a: ops.concat_v2(list(a), -1), [2, 3], [2, 4])
add("ConcatV2 0", lambda *a: ops.concat_v2(list(a), 0), [2, 3], [4, 3])
add("Concat", lambda *a: ops.concat(1, list(a)), [2, 3], [2, 3])
add("Split", lambda a: list(ops.split(1, a, num_split=3)), [2, 3])
add("SplitV", lambda a: list(ops.split_v(a, [1, 2], 1, num_split=2)), [2, 3])
add("Split one", lambda a: ops.split(1, a, num_split=3)[1], [2, 3])
add("Pack", lambda a, b: ops.pack([a, b], axis=1), [2, 3], [2, 3])
add("Unpack", lambda a: list(ops.unpack(a, num=3, axis=1)), [2, 3])
add("Unpack one", lambda a: ops.unpack(a, num=3, axis=1)[0], [2, 3])
add("Tile", lambda a: ops.tile(a, [2, 1]), [2, 3])
add("Pad", lambda a: ops.pad(a, [[1, 1], [0, 2]]), [2, 3])
add("PadV2", lambda a: ops.pad_v2(a, [[1, 1], [0, 2]], 1.0), [2, 3])
add("MirrorPad", lambda a: ops.mirror_pad(a, [[1, 1], [0, 1]], mode="REFLECT"), [2, 3])
add("Slice", lambda a: ops.slice(a, [0, 1], [2, 1]), [2, 3])
add("StridedSlice", lambda a: a[0:1, ::2], [2, 3])
add("StridedSlice2", lambda a: a[:, 1], [2, 3])
add("Slice dyn", lambda a, b, s: ops.slice(a, b, s), [2, 3], ([2], "int32"), ([2], "int32"))
add("Gather", lambda a, i: ops.gather(a, i), [4, 3], ([5], "int32"), dyn=True)
add("GatherV2", lambda a, i: ops.gather_v2(a, i, 0), [4, 3], ([5], "int32"))
add("GatherV2 1", lambda a, i: ops.gather_v2(a, i, 1), [4, 3], ([5], "int32"))
add("GatherNd", lambda a, i: ops.gather_nd(a, i), [4, 3], ([5, 2], "int32"))
add("GatherNd1", lambda a, i: ops.gather_nd(a, i), [4, 3], ([5, 1], "int32"))
add("ScatterNd", lambda i, u: ops.scatter_nd(i, u, [8, 3]), ([4, 1], "int32"), [4, 3])
add("Reverse", lambda a: ops.reverse_v2(a, [0]), [2, 3])
add("ReverseSequence", lambda a, l: ops.reverse_sequence(a, l, seq_dim=1, batch_dim=0), [2, 3], ([2], "int32"))
add("DynamicPartition", lambda a, p: list(ops.dynamic_partition(a, p, num_partitions=2)), [4, 3], ([4], "int32"))
add(
    "DynamicStitch",
    lambda i, j, a, b: ops.dynamic_stitch([i, j], [a, b]),
    ([2], "int32"),
    ([3], "int32"),
    [2, 3],
    [3, 3],
)
add("Diag", lambda a: ops.diag(a), [3])
add("DiagPart", lambda a: ops.diag_part(a), [3, 3], dyn=False)
add("MatrixDiag", lambda a: ops.matrix_diag(a), [2, 3], dyn=False)
add("MatrixDiagPart", lambda a: ops.matrix_diag_part(a), [2, 3, 3], dyn=False)
add("MatrixBandPart", lambda a: ops.matrix_band_part(a, 1, 0), [3, 3])
add("TopKV2", lambda a: ops.function("TopKV2")(a, 2)[0], [4, 3])
add("BroadcastTo", lambda a: ops.broadcast_to(a, [4, 2, 3]), [2, 3])
add("Fill", lambda a: ops.fill([2, 3], a), [])
add("OneHot", lambda i, a, b: ops.one_hot(i, 3, a, b), ([4], "int32"), [], [], dyn=False)
add("IdentityN", lambda a, b: list(ops.identity_n([a, b])), [2, 3], [2])
add("PlaceholderWithDefault", lambda a: ops.placeholder_with_default(a, shape=[2, 3]), [2, 3])
add("PreventGradient-no", lambda a: a * 1.0, [2, 3])
add("SpaceToDepth", lambda a: ops.space_to_depth(a, block_size=2), [1, 4, 4, 2])
add("DepthToSpace", lambda a: ops.depth_to_space(a, block_size=2), [1, 2, 2, 4])
add("SpaceToBatchND", lambda a: ops.space_to_batch_nd(a, [2, 2], [[0, 0], [0, 0]]), [1, 4, 4, 2])
add("BatchToSpaceND", lambda a: ops.batch_to_space_nd(a, [2, 2], [[0, 0], [0, 0]]), [4, 2, 2, 2])
add("LinSpace", lambda a, b: ops.lin_space(a, b, 5), [], [], dyn=False)
add("ClipByValue", lambda a, b, c: ops.clip_by_value(a, b, c), [2, 3], [], [])
# nn
ONES = [1, 1, 1, 1]
add("Conv2D", lambda x, w: ops.conv2d(x, w, strides=ONES, padding="SAME"), [2, 8, 8, 3], [3, 3, 3, 4])
add(
    "Conv2D s2",
    lambda x, w: ops.conv2d(x, w, strides=[1, 2, 2, 1], padding="VALID", dilations=[1, 1, 1, 1]),
    [2, 8, 8, 3],
    [3, 3, 3, 4],
)
add(
    "Conv2DBackpropInput",
    lambda w, x: ops.conv2d_backprop_input([2, 8, 8, 3], w, x, strides=ONES, padding="SAME"),
    [3, 3, 3, 4],
    [2, 8, 8, 4],
)
add(
    "Conv2DBackpropFilter",
    lambda x, g: ops.conv2d_backprop_filter(x, [3, 3, 3, 4], g, strides=ONES, padding="SAME"),
    [2, 8, 8, 3],
    [2, 8, 8, 4],
)
add(
    "DepthwiseConv2dNative",
    lambda x, w: ops.depthwise_conv2d_native(x, w, strides=ONES, padding="SAME"),
    [2, 8, 8, 3],
    [3, 3, 3, 2],
)
add("Conv3D", lambda x, w: ops.conv3d(x, w, strides=[1] * 5, padding="SAME"), [2, 4, 4, 4, 3], [3, 3, 3, 3, 2])
add("MaxPool", lambda x: ops.max_pool(x, ksize=[1, 2, 2, 1], strides=[1, 2, 2, 1], padding="SAME"), [2, 8, 8, 3])
add("AvgPool", lambda x: ops.avg_pool(x, ksize=[1, 2, 2, 1], strides=[1, 2, 2, 1], padding="SAME"), [2, 8, 8, 3])
add(
    "MaxPool3D",
    lambda x: ops.max_pool3d(x, ksize=[1, 2, 2, 2, 1], strides=[1, 2, 2, 2, 1], padding="SAME"),
    [2, 4, 4, 4, 3],
)
add(
    "AvgPool3D",
    lambda x: ops.avg_pool3d(x, ksize=[1, 2, 2, 2, 1], strides=[1, 2, 2, 2, 1], padding="SAME"),
    [2, 4, 4, 4, 3],
)
add("LRN", lambda x: ops.lrn(x), [2, 4, 4, 3])
add("Xent", lambda x, y: ops.softmax_cross_entropy_with_logits(x, y)[0], [2, 3], [2, 3])
add("SparseXent", lambda x, y: ops.sparse_softmax_cross_entropy_with_logits(x, y)[0], [2, 3], ([2], "int32"))
for v in ("", "V2", "V3"):
    for tr in (True, False):

        def fb(x, s, o, v=v, tr=tr):
            mean = gm.constant([], "float32") if tr else gm.constant([0.0] * 3)
            var = gm.constant([], "float32") if tr else gm.constant([1.0] * 3)
            return ops.function("FusedBatchNorm" + v)(x, s, o, mean, var, is_training=tr)[0]

        add(f"FusedBatchNorm{v} {tr}", fb, [2, 4, 4, 3], [3], [3])
add("Dilation2D", lambda x, w: ops.dilation2d(x, w, strides=ONES, rates=ONES, padding="SAME"), [2, 8, 8, 3], [3, 3, 3])
add("ResizeBilinear", lambda x: ops.resize_bilinear(x, [4, 4]), [2, 8, 8, 3])
add("ResizeNN", lambda x: ops.resize_nearest_neighbor(x, [4, 4]), [2, 8, 8, 3])
add("ResizeBicubic", lambda x: ops.resize_bicubic(x, [4, 4]), [2, 8, 8, 3])
add(
    "CropAndResize",
    lambda x, b, i: ops.crop_and_resize(x, b, i, [2, 2]),
    [2, 8, 8, 3],
    [4, 4],
    ([4], "int32"),
    dyn=False,
)
for g in (
    "ReluGrad",
    "EluGrad",
    "SeluGrad",
    "Relu6Grad",
    "SoftplusGrad",
    "TanhGrad",
    "SigmoidGrad",
    "SqrtGrad",
    "RsqrtGrad",
    "InvGrad",
    "ReciprocalGrad",
    "LeakyReluGrad",
):
    add(g, ops.function(g), [2, 3], [2, 3])
add("BiasAddGrad", lambda a: ops.bias_add_grad(a), [2, 3])
add(
    "MaxPoolGrad",
    lambda x, o, g: ops.max_pool_grad(x, o, g, ksize=[1, 2, 2, 1], strides=[1, 2, 2, 1], padding="SAME"),
    [2, 8, 8, 3],
    [2, 4, 4, 3],
    [2, 4, 4, 3],
)
add(
    "AvgPoolGrad",
    lambda g: ops.avg_pool_grad([2, 8, 8, 3], g, ksize=[1, 2, 2, 1], strides=[1, 2, 2, 1], padding="SAME"),
    [2, 4, 4, 3],
)
add("StridedSliceGrad", lambda g: ops.strided_slice_grad([4, 3], [0, 0], [2, 3], [1, 1], g), [2, 3])
add("Einsum", lambda a, b: ops.einsum([a, b], equation="ij,jk->ik"), [2, 3], [3, 4])
add("MatrixInverse", lambda a: ops.matrix_inverse(a), [3, 3])
add("Cholesky", lambda a: ops.cholesky(a), [3, 3])
add("MatrixDeterminant", lambda a: ops.matrix_determinant(a), [3, 3])
add("MatrixSolve", lambda a, b: ops.matrix_solve(a, b), [3, 3], [3, 2])
add("MatrixTriangularSolve", lambda a, b: ops.matrix_triangular_solve(a, b), [3, 3], [3, 2])
