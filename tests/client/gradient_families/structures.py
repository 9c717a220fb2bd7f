"""Gradients of images, of sparse and ragged tensors, of lists and arrays."""

from __future__ import annotations

from typing import Any

import numpy as np

from tests.client.gradient_families.algebra import general
from tests.client.gradient_families.networks import IMAGE, VOLUME
from tests.client.gradient_families.rows import X, case, floats
from toolkit import client as gm
from toolkit.client import ops
from toolkit.client.construction.tensor import Tensor

# -- images -----------------------------------------------------------------------------------------------

case(
    "CropAndResize",
    lambda x, b: ops.crop_and_resize(x, b, [0, 1, 0], [3, 4]),
    IMAGE,
    np.float32([[0.1, 0.2, 0.8, 0.9], [0, 0, 1, 1], [0.5, 0.3, 0.2, 1.2]]),
)
case(
    "ScaleAndTranslate",
    lambda x: ops.scale_and_translate(x, [4, 9], [0.7, 1.4], [0.3, -0.2], kernel_type="triangle"),
    IMAGE,
)
_TURN = np.float32([[0.9, 0.1, 0.2, -0.1, 0.8, 0.3, 0.01, 0.02]])
for _how in ("NEAREST", "BILINEAR"):
    case(
        f"ImageProjectiveTransformV2 {_how}",
        lambda x, h=_how: ops.image_projective_transform_v2(x, _TURN, [5, 4], interpolation=h),
        IMAGE,
    )
    case(
        f"ImageProjectiveTransformV3 {_how}",
        lambda x, h=_how: ops.image_projective_transform_v3(x, _TURN, [5, 4], 0.5, interpolation=h),
        IMAGE,
    )
case("RGBToHSV", ops.rgb_to_hsv, floats(40, 3, low=0.05))
for _padding in ("SAME", "VALID"):
    case(
        f"ExtractImagePatches {_padding}",
        lambda x, p=_padding: ops.extract_image_patches(
            x, ksizes=[1, 3, 2, 1], strides=[1, 2, 1, 1], rates=[1, 1, 2, 1], padding=p
        ),
        IMAGE,
    )
    case(
        f"ExtractVolumePatches {_padding}",
        lambda x, p=_padding: ops.extract_volume_patches(x, ksizes=[1, 2, 2, 3, 1], strides=[1, 1, 2, 1, 1], padding=p),
        VOLUME,
    )

# -- sparse and ragged ------------------------------------------------------------------------------------

_I = np.int64([[0, 1], [1, 0], [1, 2]])
_J = np.int64([[0, 1], [1, 1]])
_V, _W = floats(3), floats(2)
_SHAPE = np.int64([2, 3])
case("SparseReorder", lambda v: ops.sparse_reorder(_I[::-1].copy(), v, _SHAPE)[1], _V)
case("SparseAdd", lambda v, w: ops.sparse_add(_I, v, _SHAPE, _J, w, _SHAPE, 0.0)[1], _V, _W)
case("SparseTensorDenseAdd", lambda v, d: ops.sparse_tensor_dense_add(_I, v, _SHAPE, d), _V, floats(2, 3))
for _axes in ([0], [-1], [0, 1]):
    for _keep in (False, True):
        case(
            f"SparseReduceSum {_axes} {_keep}",
            lambda v, a=_axes, k=_keep: ops.sparse_reduce_sum(_I, v, _SHAPE, a, keep_dims=k),
            _V,
        )
case(
    "SparseSlice",
    lambda v: ops.sparse_slice(_I, v, _SHAPE, gm.constant([0, 1], "int64"), gm.constant([2, 2], "int64"))[1],
    _V,
)
for _dtype in (np.float32, np.complex64):
    for _aa in (False, True):
        for _ab in (False, True):
            _b = (
                general(*((4, 2) if _ab else (2, 4)), dtype=_dtype)
                if _aa
                else general(*((4, 3) if _ab else (3, 4)), dtype=_dtype)
            )
            case(
                f"SparseTensorDenseMatMul {_dtype.__name__} {_aa} {_ab}",
                lambda v, b, a=_aa, c=_ab: ops.sparse_tensor_dense_mat_mul(_I, v, _SHAPE, b, adjoint_a=a, adjoint_b=c),
                general(3, dtype=_dtype).astype(_dtype),
                _b.astype(_dtype),
            )
for _op in ("SparseDenseCwiseMul", "SparseDenseCwiseDiv"):
    for _dense in (floats(2, 3, low=0.5), floats(1, 3, low=0.5), floats(3, low=0.5)):
        case(f"{_op} {_dense.shape}", lambda v, o=_op, d=_dense: ops.function(o)(_I, v, _SHAPE, d), _V)
case("SparseSoftmax", lambda v: ops.sparse_softmax(_I, v, _SHAPE), _V)
case(
    "SparseFillEmptyRows",
    lambda v, d: ops.sparse_fill_empty_rows(_I, v, gm.constant([4, 3], "int64"), d)[1],
    _V,
    np.float32(0.7),
)
case("SparseToDense", lambda v, d: ops.sparse_to_dense(_I, _SHAPE, v, d), _V, np.float32(0.7))
_SPLITS = np.int64([0, 2, 2, 5])
case("RaggedTensorToSparse", lambda v: ops.ragged_tensor_to_sparse([_SPLITS], v)[1], floats(5))
case(
    "RaggedTensorToTensor",
    lambda v, d: ops.ragged_tensor_to_tensor(
        gm.constant([-1, 2], "int64"), v, d, [_SPLITS], row_partition_types=["ROW_SPLITS"]
    ),
    floats(5),
    np.float32(0.3),
)
case(
    "RaggedTensorToTensor rows",
    lambda v, d: ops.ragged_tensor_to_tensor(
        gm.constant([-1, 4, 2], "int64"),
        v,
        d,
        [gm.constant(3, "int64"), gm.constant([0, 0, 2, 2, 2], "int64")],
        row_partition_types=["FIRST_DIM_SIZE", "VALUE_ROWIDS"],
    ),
    floats(5, 2),
    floats(2),
)
case("RaggedGather", lambda v: ops.ragged_gather([_SPLITS], v, [2, 0, 2], OUTPUT_RAGGED_RANK=1)[-1], floats(5, 2))
case(
    "RaggedFillEmptyRows",
    lambda v, d: ops.ragged_fill_empty_rows(gm.constant([0, 0, 2], "int64"), v, gm.constant(4, "int64"), d)[1],
    floats(3),
    np.float32(0.5),
)


def _through_variant(v: Tensor) -> Tensor:
    variant = ops.ragged_tensor_to_variant([_SPLITS], v, batched_input=True)
    return ops.ragged_tensor_from_variant(
        variant, input_ragged_rank=0, output_ragged_rank=1, Tvalues=v.dtype, Tsplits=gm.int64
    )[-1]


case("RaggedTensorToVariant", _through_variant, floats(5))
case(
    "Optional",
    lambda x, y: [
        t * t
        for t in ops.optional_get_value(
            ops.optional_from_value([x, y]), output_types=[x.dtype, y.dtype], output_shapes=[None, None]
        )
    ],
    X,
    X + 1,
)

# -- lists and arrays -------------------------------------------------------------------------------------


def a_list(x: Tensor, y: Tensor) -> Tensor:
    made = ops.empty_tensor_list([2], 5, element_dtype=x.dtype)
    return ops.tensor_list_push_back(ops.tensor_list_push_back(made, x), y)


def _item(handle: Tensor, index: int, like: Tensor) -> Tensor:
    return ops.tensor_list_get_item(handle, index, [2], element_dtype=like.dtype)


def _stacked(handle: Tensor, like: Tensor) -> Tensor:
    return ops.tensor_list_stack(handle, [2], element_dtype=like.dtype)


_A, _B, _M = floats(2), floats(2), floats(3, 2)
case("TensorListPushBack", lambda x, y: _stacked(a_list(x, y), x), _A, _B)


def _popped(x: Tensor, y: Tensor) -> list[Tensor]:
    rest, last = ops.tensor_list_pop_back(a_list(x * y, y), [2], element_dtype=x.dtype)
    return [_stacked(rest, x), last]


case("TensorListPopBack", _popped, _A, _B)
case("TensorListFromTensor", lambda m: _stacked(ops.tensor_list_from_tensor(m, [2]), m), _M)
case("TensorListGetItem", lambda m: _item(ops.tensor_list_from_tensor(m, [2]), 1, m), _M)
case(
    "TensorListGetItem twice",
    lambda m: _item(t := ops.tensor_list_from_tensor(m, [2]), 1, m) * _item(t, 0, m),
    _M,
)
case(
    "TensorListSetItem",
    lambda m, x: _stacked(ops.tensor_list_set_item(ops.tensor_list_from_tensor(m, [2]), 1, x), x),
    _M,
    _A,
)
case("TensorListResize", lambda m: _item(ops.tensor_list_resize(ops.tensor_list_from_tensor(m, [2]), 2), 1, m), _M)
case(
    "TensorListGather",
    lambda m: ops.tensor_list_gather(ops.tensor_list_from_tensor(m, [2]), [2, 0], [2], element_dtype=m.dtype),
    _M,
)
case("TensorListScatter", lambda m: _stacked(ops.tensor_list_scatter(m, [1, 0, 2], [2]), m), _M)
case("TensorListScatterV2", lambda m: _stacked(ops.tensor_list_scatter_v2(m, [1, 0, 2], [2], 3), m), _M)
case(
    "TensorListScatterIntoExistingList",
    lambda m, n: _stacked(
        ops.tensor_list_scatter_into_existing_list(ops.tensor_list_from_tensor(m, [2]), n, [2, 0]), m
    ),
    _M,
    floats(2, 2),
)
case(
    "TensorListConcat",
    lambda m: ops.tensor_list_concat_v2(
        ops.tensor_list_split(m, [-1, 2], gm.constant([1, 2], "int64")),
        [-1, 2],
        gm.constant([], "int64"),
        element_dtype=m.dtype,
    )[0],
    _M,
)


def _array(size: int, like: Tensor) -> Any:
    return ops.tensor_array_v3(size, dtype=like.dtype, clear_after_read=False)


def _read_written(x: Tensor, y: Tensor) -> Tensor:
    handle, flow = _array(2, x)
    flow = ops.tensor_array_write_v3(handle, 1, y * x, ops.tensor_array_write_v3(handle, 0, x, flow))
    first, again = (ops.tensor_array_read_v3(handle, 0, flow, dtype=x.dtype) for _ in range(2))
    return first * ops.tensor_array_read_v3(handle, 1, flow, dtype=x.dtype) + again


def _gathered(m: Tensor) -> Tensor:
    handle, flow = _array(3, m)
    flow = ops.tensor_array_scatter_v3(handle, [2, 0, 1], m, flow)
    return ops.tensor_array_gather_v3(handle, [1, 2], flow, dtype=m.dtype)


def _concatenated(m: Tensor) -> Tensor:
    handle, flow = _array(2, m)
    flow = ops.tensor_array_split_v3(handle, m, gm.constant([1, 2], "int64"), flow)
    return ops.tensor_array_concat_v3(handle, flow, dtype=m.dtype)[0]


case("TensorArrayRead", _read_written, _A, _B, v1=True)
case("TensorArrayGather", _gathered, _M, v1=True)
case("TensorArrayConcat", _concatenated, _M, v1=True)

case(
    "IsotonicRegression",
    lambda x: ops.isotonic_regression(x, output_dtype=x.dtype)[0],
    np.array([[3.0, 1.0, 2.5, 0.5], [0.2, 0.9, 0.8, -0.4]], np.float32),
    dynamic=False,
)
case(
    "StatelessParameterizedTruncatedNormal",
    lambda mean, deviation, low, high: ops.stateless_parameterized_truncated_normal(
        gm.constant([4, 2]), gm.constant([3, 5]), mean, deviation, low, high
    ),
    np.array([0.1, -0.3]), np.array([1.0, 1.5]), np.array([-1.0, -2.0]), np.array([1.5, 0.8]),
)  # fmt: skip


def _composite(x: Tensor, y: Tensor) -> Any:
    packed = ops.composite_tensor_variant_from_components([x * 2.0, y], metadata=b"")
    return ops.composite_tensor_variant_to_components(packed, metadata=b"", Tcomponents=[x.dtype, y.dtype])


case("CompositeTensorVariantFromComponents", _composite, _A, _B)
