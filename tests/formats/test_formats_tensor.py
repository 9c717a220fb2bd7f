"""Tensors of every type against TensorFlow's make_tensor_proto, make_ndarray and its runtime."""

from __future__ import annotations

import math
from types import ModuleType
from typing import Any

import ml_dtypes
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from schemas.resource_handle_pb2 import ResourceHandleProto
from schemas.tensor_pb2 import TensorProto, VariantTensorDataProto
from toolkit.errors import GraphError, GraphmillError
from toolkit.formats.arrays.tensor import from_array, to_array
from toolkit.graph import dtypes
from toolkit.graph.constants import constant_dims, constant_ints
from toolkit.graph.dtypes import DType
from toolkit.graph.shape import Shape

STORABLE = [dtype for dtype in dtypes.ALL if dtype.kind not in "rv"]
#: TensorFlow's Python cannot write or read single values of these; the runtime can
NO_PYTHON = {"float8_e4m3fnuz", "float8_e4m3b11fnuz", "float8_e5m2fnuz"}
SHAPES = hnp.array_shapes(min_dims=0, max_dims=3, min_side=0, max_side=4)


def bits_of(array: Any) -> Any:
    """The array's bytes: equal also where NaNs are."""
    if array.dtype.name in ("int4", "uint4", "int2", "uint2"):
        return array.astype(np.int8).tolist()  # the unused bits of each byte mean nothing
    return array.tolist() if array.dtype == object else np.ascontiguousarray(array).tobytes()


def assert_same(actual: Any, expected: Any, dtype: DType | None = None) -> None:
    """Equal bit for bit; values that went through a Python float (not packed) may have another NaN, as they have
    in TensorFlow."""
    assert actual.shape == expected.shape
    if dtype is not None and dtype.kind in "fc":
        wide = np.complex128 if dtype.is_complex else np.float64
        with np.errstate(invalid="ignore"):  # signalling NaNs
            np.testing.assert_array_equal(actual.astype(wide), expected.astype(wide))
    else:
        assert bits_of(actual) == bits_of(expected)


@st.composite
def arrays(draw: st.DrawFn, dtype: DType) -> Any:
    """Arrays of one type, every bit pattern of it."""
    shape = draw(SHAPES)
    count = math.prod(shape)
    if dtype.kind == "s":
        out = np.empty(count, object)
        out[:] = draw(st.lists(st.binary(max_size=5), min_size=count, max_size=count))
        return out.reshape(shape)
    if dtype.kind == "b":
        return draw(hnp.arrays(np.bool_, shape))
    if dtype.name in ("int4", "uint4", "int2", "uint2", "float4_e2m1fn"):
        bits = int(dtype.name.strip("floatuin_em")[:1])
        codes = draw(hnp.arrays(np.int8, shape, elements=st.integers(-(2 ** (bits - 1)), 2 ** (bits - 1) - 1)))
        if dtype.kind == "f":
            return (codes & 15).view(dtype.numpy)
        return (codes if dtype.kind == "i" else codes & (2**bits - 1)).astype(dtype.numpy)
    data = draw(st.binary(min_size=count * dtype.size, max_size=count * dtype.size))
    return np.frombuffer(data, dtype.numpy).reshape(shape)


def tf_proto(proto: TensorProto) -> Any:
    from tensorflow.core.framework import tensor_pb2

    return tensor_pb2.TensorProto.FromString(proto.SerializeToString())


@pytest.mark.parametrize("dtype", STORABLE, ids=str)
@settings(max_examples=40, deadline=None)
@given(data=st.data())
def test_round_trip(dtype: DType, data: st.DataObject) -> None:
    array = data.draw(arrays(dtype))
    proto = from_array(array, dtype)
    assert proto.dtype == dtype.enum
    back = to_array(TensorProto.FromString(proto.SerializeToString()))
    assert back.dtype == dtype.numpy
    assert_same(back, array, None if proto.tensor_content else dtype)


@pytest.mark.tensorflow
@pytest.mark.parametrize("dtype", STORABLE, ids=str)
@settings(max_examples=40, deadline=None)
@given(data=st.data())
def test_we_write_what_tensorflow_writes(tf: ModuleType, dtype: DType, data: st.DataObject) -> None:
    array = data.draw(arrays(dtype))
    if dtype.name in NO_PYTHON and array.size < 2:
        return
    expected = tf.compat.v1.make_tensor_proto(array, tf.dtypes.as_dtype(dtype.enum), shape=array.shape)
    ours = from_array(array, dtype)
    assert ours.SerializeToString(deterministic=True) == expected.SerializeToString(deterministic=True)
    if dtype.name not in NO_PYTHON:
        decoded = tf.compat.v1.make_ndarray(expected)
        if dtype.is_quantized:
            decoded = decoded.view(dtype.numpy) if decoded.size else decoded.astype(dtype.numpy)
        assert_same(to_array(ours), decoded, None if ours.tensor_content else dtype)


def _tensor(name: str, dims: list[int], **fields: Any) -> TensorProto:
    proto = TensorProto(dtype=dtypes.from_name(name).enum)  # type: ignore[arg-type]
    proto.tensor_shape.SetInParent()
    for size in dims:
        proto.tensor_shape.dim.add(size=size)
    for key, value in fields.items():
        if isinstance(value, bytes):
            setattr(proto, key, value)
        else:
            getattr(proto, key).extend(value)
    return proto


#: messages that are written by hand or by other tools
PROTOS = {
    "repeat": _tensor("float32", [2, 2], float_val=[1, 2]),
    "repeat one": _tensor("int64", [3], int64_val=[-7]),
    "no values": _tensor("float64", [2]),
    "too many values": _tensor("float32", [2], float_val=[1, 2, 3]),
    "values in an empty tensor": _tensor("float32", [0], float_val=[2]),
    "scalar": _tensor("int32", [], int_val=[5]),
    "negative zero repeats": _tensor("float32", [4], float_val=[1, -0.0]),
    "int8 wraps": _tensor("int8", [2], int_val=[300, -1]),
    "uint8 wraps": _tensor("uint8", [2], int_val=[300, -1]),
    "uint16 wraps": _tensor("uint16", [2], int_val=[70000, 1]),
    "int4 packed": _tensor("int4", [3], tensor_content=b"\x01\x0f\x07"),
    "int4 wraps": _tensor("int4", [3], int_val=[200, 15, 8]),
    "uint4 wraps": _tensor("uint4", [3], int_val=[15, 16, -1]),
    "int2 wraps": _tensor("int2", [3], int_val=[-2, 1, 3]),
    "uint2 wraps": _tensor("uint2", [3], int_val=[-2, 1, 5]),
    "uint32": _tensor("uint32", [2], uint32_val=[4000000000]),
    "uint64": _tensor("uint64", [2], uint64_val=[2**63]),
    "half": _tensor("float16", [3], half_val=[15360, 0xFC00]),
    "bfloat16": _tensor("bfloat16", [3], half_val=[16256, 0x7F80]),
    "complex64": _tensor("complex64", [3], scomplex_val=[1, 2]),
    "complex64, half a value": _tensor("complex64", [3], scomplex_val=[1, 2, 3]),
    "complex128": _tensor("complex128", [2], dcomplex_val=[1, 2, 3, 4]),
    "complex64 packed": _tensor("complex64", [1], tensor_content=np.complex64(1 + 2j).tobytes()),
    "float8": _tensor("float8_e5m2", [3], float8_val=b"<="),
    "float8 fnuz": _tensor("float8_e4m3fnuz", [2], float8_val=b"@"),
    "float4": _tensor("float4_e2m1fn", [2], float8_val=b"\x02"),
    "bool": _tensor("bool", [3], bool_val=[False, True]),
    "bool packed": _tensor("bool", [3], tensor_content=b"\x00\x01\x01"),
    "strings": _tensor("string", [3], string_val=[b"a", b"b\0"]),
    "strings packed": _tensor("string", [2], tensor_content=b"\x01\x02abc"),
    "no strings": _tensor("string", [2]),
}


@pytest.mark.parametrize("name", ["complex64", "complex128", "float16", "bfloat16", "int4", "uint8", "float8_e5m2"])
def test_arrays_whose_elements_are_not_beside_each_other(name: str) -> None:
    """A number that stands for all, every second element, from the end to the beginning."""
    dtype = dtypes.from_name(name)
    whole = np.arange(1, 7).astype(dtype.numpy)
    for array in (np.broadcast_to(whole[:1].reshape(()), (3,)), whole[::2], whole[::-1]):
        np.testing.assert_array_equal(to_array(from_array(array, dtype)), array)


@pytest.mark.tensorflow
@pytest.mark.parametrize("proto", PROTOS.values(), ids=PROTOS.keys())
def test_we_read_what_the_runtime_reads(tf: ModuleType, proto: TensorProto) -> None:
    from tensorflow.core.framework import attr_value_pb2

    v1 = tf.compat.v1
    value = attr_value_pb2.AttrValue(tensor=tf_proto(proto))
    kind = attr_value_pb2.AttrValue(type=proto.dtype)
    with v1.Graph().as_default() as graph:
        dtype = tf.dtypes.as_dtype(proto.dtype)
        const = graph.create_op("Const", [], [dtype], attrs={"value": value, "dtype": kind}).outputs[0]
        with v1.Session(graph=graph) as session:
            expected = np.asarray(session.run(const))
    assert_same(to_array(proto), expected)


@pytest.mark.parametrize(
    ("proto", "message"),
    [
        (_tensor("float32", [2, 3], tensor_content=b"1234"), r"shape \[2, 3\] takes 24 bytes, .* holds 4"),
        (_tensor("int4", [4], tensor_content=b"12"), r"takes 4 bytes, .* holds 2"),
        (_tensor("bool", [2], tensor_content=b"\x00\x02"), "bytes other than 0 and 1"),
        (_tensor("string", [2], tensor_content=b"\x01\x05abc"), r"2 strings take 8 bytes, .* holds 5"),
        (_tensor("string", [3], tensor_content=b"\x01\x80"), "ends within the lengths of 3 strings"),
        (_tensor("float32", [-1, 3]), r"fully defined shape, not \[\?,3\]"),
        (_tensor("resource", [], tensor_content=b"x"), "cannot be packed"),
        (TensorProto(), "has no data type"),
    ],
)
def test_malformed_tensors(proto: TensorProto, message: str) -> None:
    with pytest.raises(GraphError, match=message):
        to_array(proto)


def test_a_number_that_is_no_type() -> None:
    with pytest.raises(GraphmillError, match="99 is not a data type"):
        to_array(TensorProto(dtype=99))  # type: ignore[arg-type]


def test_reading_packed_content_makes_no_second_copy() -> None:
    array = to_array(from_array(np.arange(1000, dtype=np.float32)))
    assert not array.flags.owndata
    assert not array.flags.writeable
    assert to_array(_tensor("float32", [1000, 1000], float_val=[3.0])).strides == (0, 0)


def test_resources_and_variants() -> None:
    handle = ResourceHandleProto(name="v", container="c")
    proto = from_array(handle, dtypes.resource)
    assert proto.resource_handle_val[0] == handle
    assert to_array(proto)[()] == handle
    variant = VariantTensorDataProto(type_name="list")
    many = np.empty(2, object)
    many[:] = [variant, variant]
    assert to_array(from_array(many, dtypes.variant)).tolist() == [variant, variant]


# -- Python values ---------------------------------------------------------------------------------------


@pytest.mark.tensorflow
@pytest.mark.parametrize(
    ("value", "dtype"),
    [
        (1, None), (1.5, None), (True, None), ([1, 2], None), ([[1.0], [2.0]], None), (2**40, None), ([], None),
        (1j, None), ("text", None), (b"\xff", None), (["a", "bc"], None), ([1, 2], "int64"), ([1, 2], "float32"),
        (1, "bfloat16"), ([1.5, 2.5], "float16"), ([1, 2, 3], "uint8"), (np.float64(1.5), None),
        (np.arange(3), None), (np.float32([1, 2]), "float64"), ([True, False], "bool"), ("é", None), ([1, 2.5], None),
    ],
)  # fmt: skip
def test_python_values(tf: ModuleType, value: Any, dtype: str | None) -> None:
    expected = tf.compat.v1.make_tensor_proto(value, dtype and tf.dtypes.as_dtype(dtype))
    ours = from_array(value, None if dtype is None else dtypes.from_name(dtype))
    assert ours.SerializeToString(deterministic=True) == expected.SerializeToString(deterministic=True)


@pytest.mark.tensorflow
@pytest.mark.parametrize(("value", "shape"), [(0.5, [2, 3]), ([1, 2], [5]), ([1, 2, 3, 4], [2, 2]), (7, [])])
def test_a_shape_of_its_own(tf: ModuleType, value: Any, shape: list[int]) -> None:
    expected = tf.compat.v1.make_tensor_proto(value, shape=shape)
    ours = from_array(value, shape=Shape(shape))
    assert ours.SerializeToString(deterministic=True) == expected.SerializeToString(deterministic=True)
    assert to_array(ours).shape == tuple(shape)


@pytest.mark.parametrize(
    ("value", "dtype", "message"),
    [
        ([[1], [1, 2]], None, "not a tensor"),
        (300, "uint8", "300 does not fit into uint8"),
        ([0, -1], "uint32", "-1 does not fit into uint32"),
        (8, "int4", "8 does not fit into int4"),
        (1.5, "int32", "values with a fraction cannot become int32"),
        ("a", "float32", "str cannot become float32"),
        (1, "string", "int64 cannot become string"),
        (1j, "float32", "complex values cannot become float32"),
        ([b"a", 1], "string", "holds bytes or str, not int"),
    ],
)
def test_values_that_do_not_fit(value: Any, dtype: str | None, message: str) -> None:
    with pytest.raises(GraphError, match=message):
        from_array(value, None if dtype is None else dtypes.from_name(dtype))


def test_more_values_than_the_shape_takes() -> None:
    with pytest.raises(GraphError, match=r"3 values do not fit into the shape \[2\]"):
        from_array([1, 2, 3], shape=[2])


def test_types_of_ml_dtypes() -> None:
    array = np.array([1, 2], ml_dtypes.bfloat16)
    assert from_array(array).dtype == dtypes.bfloat16.enum


# -- constants without numpy -----------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["int8", "uint8", "int16", "uint16", "int32", "uint32", "int64", "uint64"])
@settings(max_examples=30, deadline=None)
@given(data=st.data())
def test_constant_ints(name: str, data: st.DataObject) -> None:
    array = data.draw(arrays(dtypes.from_name(name)))
    proto = from_array(array, dtypes.from_name(name))
    assert constant_ints(proto) == array.reshape(-1).tolist()
    assert constant_dims(proto) == list(array.shape)


def test_constant_ints_says_none_to_the_rest() -> None:
    assert constant_ints(from_array(1.5)) is None
    assert constant_ints(from_array(np.zeros(5000, np.int32))) is None
    assert constant_ints(_tensor("int32", [2], tensor_content=b"123")) is None
    assert constant_ints(_tensor("int32", [-1])) is None
    assert constant_ints(_tensor("int32", [3], int_val=[4])) == [4, 4, 4]
    assert constant_ints(_tensor("int32", [2])) == [0, 0]
