"""Large tensors between tasks of one machine."""

from __future__ import annotations

import socket

import ml_dtypes
import numpy as np
import pytest

from schemas.worker_pb2 import RecvTensorResponse
from toolkit.cluster.rpc import tensors
from toolkit.cluster.rpc.bulk import BULK, LEAST, BulkReceiver, BulkSender
from toolkit.errors import InvalidArgumentError, UnavailableError


def test_what_is_offered_is_fetched_once() -> None:
    sender, receiver = BulkSender(), BulkReceiver()
    try:
        for dtype in (np.float32, ml_dtypes.bfloat16, np.int64, np.bool_):
            value = np.ones((LEAST, 2), dtype).T  # with gaps, as far as its rows go
            data = tensors.write_response(value, bulk=sender)
            assert len(data) < 200 and RecvTensorResponse.FromString(data).transport_options.type_url == BULK
            found, is_dead = tensors.read_response(data, receiver)
            assert found.dtype == value.dtype and np.array_equal(found, value) and not is_dead
            with pytest.raises(UnavailableError, match="could not be fetched"):
                tensors.read_response(data, receiver)
        small = tensors.write_response(np.ones(3), bulk=sender)
        assert tensors.read_response(small, receiver)[0].tolist() == [1, 1, 1]
    finally:
        sender.close()
        receiver.close()


def test_wrong_tickets_and_closed_senders() -> None:
    sender, receiver = BulkSender(), BulkReceiver()
    where = sender.offer(np.zeros(4, np.uint8))
    assert where is not None
    with socket.create_connection(("127.0.0.1", int.from_bytes(where[:2], "big"))) as stranger:
        stranger.sendall(bytes(16))
        assert stranger.recv(1) == b""
    found = np.ones(4, np.uint8)
    receiver.fetch(where, found)
    assert not found.any()
    gone = sender.offer(np.zeros(4, np.uint8))
    sender.close()
    assert gone is not None and sender.offer(np.zeros(4, np.uint8)) is None
    with pytest.raises(UnavailableError):
        receiver.fetch(gone, found)
    receiver.close()


def test_offers_that_nobody_fetches_are_dropped() -> None:
    sender, receiver = BulkSender(), BulkReceiver()
    places = [sender.offer(np.full(4, number, np.uint8)) for number in range(70)]
    found = np.empty(4, np.uint8)
    receiver.fetch(places[-1] or b"", found)
    assert found[0] == 69
    with pytest.raises(UnavailableError):
        receiver.fetch(places[0] or b"", found)
    sender.close()
    receiver.close()


def test_malformed_offers() -> None:
    receiver = BulkReceiver()
    message = RecvTensorResponse()
    message.transport_options.type_url = BULK
    with pytest.raises(InvalidArgumentError, match="malformed"):
        tensors.read_response(message.SerializeToString(), receiver)
    message.tensor.dtype = 7  # type: ignore[assignment]
    message.tensor.tensor_shape.SetInParent()
    with pytest.raises(InvalidArgumentError, match="cannot be string"):
        tensors.read_response(message.SerializeToString(), receiver)


def test_texts_that_look_like_offers_are_none() -> None:
    receiver = BulkReceiver()
    data = tensors.write_response(np.array(BULK.encode(), object))
    assert not tensors.is_offer(data) and tensors.read_response(data, receiver)[0][()] == BULK.encode()


@pytest.mark.parametrize("is_bulk", [False, True])
@pytest.mark.parametrize("kind", ["bfloat16", "half"])
def test_float32_in_16_bits(kind: str, is_bulk: bool) -> None:
    sender, receiver = BulkSender(), BulkReceiver()
    try:
        value = np.linspace(-3, 3, LEAST, dtype=np.float32).reshape(2, -1)
        data = tensors.write_response(value, narrow=kind, aligned=True, bulk=sender if is_bulk else None)
        assert is_bulk or len(data) < value.nbytes * 0.51
        found, _ = tensors.read_response(data, receiver)
        exact = value.view(np.uint32) & np.uint32(0xFFFF0000) if kind == "bfloat16" else None
        wanted = value.astype(np.float16).astype(np.float32) if exact is None else exact.view(np.float32)
        assert found.dtype == np.float32 and np.array_equal(found, wanted)
        for other in (np.ones(4, np.float32), np.ones(LEAST, np.float64), np.ones((3, 300), np.int32)):
            data = tensors.write_response(other, narrow=kind, bulk=sender)
            found, _ = tensors.read_response(data, receiver)
            assert found.dtype == other.dtype and np.array_equal(found, other)
    finally:
        sender.close()
        receiver.close()
