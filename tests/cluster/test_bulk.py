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
