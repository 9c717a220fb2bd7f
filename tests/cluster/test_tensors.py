"""Tensors on the wire: what TensorFlow's messages say, with and without copies."""

from __future__ import annotations

from typing import Any

import ml_dtypes
import numpy as np
import pytest

from schemas.worker_pb2 import RecvTensorResponse, RunGraphResponse
from toolkit.cluster.rpc import tensors
from toolkit.errors import InvalidArgumentError, UnimplementedError
from toolkit.formats.arrays.tensor import to_array
from toolkit.graph import dtypes
from toolkit.kernels.context import DEAD
from toolkit.kernels.resources.handles import ResourceHandle

VALUES: list[Any] = [
    np.float32(3), np.arange(12, dtype=np.int64).reshape(3, 4), np.zeros((0, 3), np.float32), np.array(b"x", object),
    np.array([[b"a"], [b"bc" * 100]], object), np.array([True, False]), np.ones((2, 1000), ml_dtypes.bfloat16),
    np.array([1 + 2j], np.complex64), np.arange(6.0).reshape(2, 3).T, np.zeros((200, 1, 3), np.uint8),
    np.array([3, -4], ml_dtypes.int4), np.zeros((2, 0), object),
]  # fmt: skip


@pytest.mark.parametrize("value", VALUES, ids=lambda value: f"{value.dtype}{list(value.shape)}")
@pytest.mark.parametrize("aligned", [False, True])
def test_a_response_is_tensorflows_message(value: Any, aligned: bool) -> None:
    data = tensors.write_response(value, aligned=aligned)
    message = RecvTensorResponse.FromString(data)
    assert np.array_equal(to_array(message.tensor), value)
    read, is_dead = tensors.read_response(data)
    assert np.array_equal(read, value) and read.dtype == value.dtype and read.shape == value.shape and not is_dead
    read, _ = tensors.read_response(message.SerializeToString())  # and as protobuf would write it
    assert np.array_equal(read, value) and read.dtype == value.dtype


def test_what_is_aligned_is_a_view() -> None:
    value = np.arange(1000, dtype=np.float32)
    data = tensors.write_response(value, aligned=True)
    read, _ = tensors.read_response(data)
    assert not read.flags.owndata and not read.flags.writeable
    shifted, _ = tensors.read_response(b"\x18\x05" + data)  # a field before it: two bytes more
    assert shifted.flags.owndata and np.array_equal(shifted, value)


def test_dead_tensors() -> None:
    for data in (tensors.write_response(None, True), tensors.write_response(DEAD)):
        assert RecvTensorResponse.FromString(data).is_dead
        assert tensors.read_response(data) == (DEAD, True)


def test_named_tensors_in_a_message() -> None:
    for value in VALUES:
        data = b"".join(tensors.named_tensor(RunGraphResponse.RECV_FIELD_NUMBER, "k:0", value))
        (named,) = RunGraphResponse.FromString(data).recv
        assert named.name == "k:0" and np.array_equal(to_array(named.tensor), value)


@pytest.mark.parametrize("value", [ResourceHandle("", "v"), np.array(ResourceHandle("", "v"), object), [1]])
def test_handles_stay_in_their_process(value: Any) -> None:
    with pytest.raises(UnimplementedError, match="only tensors are sent"):
        tensors.write_response(value)


def _response(dtype: int, size: int, content: bytes) -> bytes:
    message = RecvTensorResponse()
    message.tensor.dtype = dtype  # type: ignore[assignment]
    message.tensor.tensor_shape.dim.add(size=size)
    message.tensor.tensor_content = content
    return message.SerializeToString()


@pytest.mark.parametrize(
    "data",
    [
        _response(dtypes.float32.enum, 3, bytes(8)),
        _response(dtypes.float32.enum, -1, bytes(4)),
        _response(dtypes.float32.enum, 2**62, bytes(4)),
        _response(dtypes.bool_.enum, 1, b"\2"),
        _response(dtypes.resource.enum, 1, b"xx"),
        _response(9999, 1, bytes(4)),
        b"\x0a\xff\xff\xff\xff\x0f",
        b"\x0a\x02\xff\xff",
        b"\xff" * 20,
        b"",
    ],
)
def test_malformed_responses_are_errors(data: bytes) -> None:
    with pytest.raises(InvalidArgumentError, match="malformed"):
        tensors.read_response(data)
