"""Large tensors between tasks of one machine."""

from __future__ import annotations

import socket
import threading
import weakref
from collections.abc import Iterator

import ml_dtypes
import numpy as np
import pytest

from schemas.worker_pb2 import RecvTensorResponse
from tests import patience
from toolkit.cluster.rpc import tensors
from toolkit.cluster.rpc.bulk import BULK, LEAST, BulkReceiver, BulkSender
from toolkit.cluster.rpc.server import LOOPBACK
from toolkit.cluster.rpc.tickets import MOST_TICKETS, TicketListener
from toolkit.errors import InvalidArgumentError, UnavailableError


@pytest.fixture
def listener() -> Iterator[TicketListener]:
    made = TicketListener(LOOPBACK)
    yield made
    made.close()


@pytest.fixture
def sender(listener: TicketListener) -> BulkSender:
    return BulkSender(listener)


@pytest.fixture
def receiver() -> Iterator[BulkReceiver]:
    made = BulkReceiver()
    yield made
    made.close()


def test_what_is_offered_is_fetched_once(sender: BulkSender, receiver: BulkReceiver) -> None:
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


def test_wrong_tickets_and_closed_senders(listener: TicketListener, sender: BulkSender, receiver: BulkReceiver) -> None:
    where = sender.offer(np.zeros(4, np.uint8))
    assert where is not None
    with socket.create_connection((LOOPBACK, int.from_bytes(where[:2], "big"))) as stranger:
        stranger.sendall(bytes(16))
        assert stranger.recv(1) == b""
    found = np.ones(4, np.uint8)
    receiver.fetch(LOOPBACK, where, found)
    assert not found.any()
    gone = sender.offer(np.zeros(4, np.uint8))
    listener.close()
    assert gone is not None and sender.offer(np.zeros(4, np.uint8)) is None
    with pytest.raises(UnavailableError):
        receiver.fetch(LOOPBACK, gone, found)


def test_where_too_many_are_offered_tensors_come_in_the_response(sender: BulkSender, receiver: BulkReceiver) -> None:
    """None is lost for it: the first that is asked for is the first that is fetched."""
    value = np.arange(LEAST, dtype=np.uint8)
    offers = [tensors.write_response(value, bulk=sender) for _ in range(MOST_TICKETS)]
    beside = tensors.write_response(value, bulk=sender)
    assert all(map(tensors.is_offer, offers)) and not tensors.is_offer(beside)
    for data in (offers[0], beside, tensors.write_response(value, bulk=sender)):
        assert np.array_equal(tensors.read_response(data, receiver)[0], value)


def test_an_array_lives_until_it_is_fetched(sender: BulkSender, receiver: BulkReceiver) -> None:
    for _ in range(2):  # the second over the connection of the first, which stays open
        value = np.zeros(LEAST, np.uint8)
        gone = weakref.ref(value)
        where = sender.offer(value)
        del value
        assert where is not None and gone() is not None
        receiver.fetch(LOOPBACK, where, np.empty(LEAST, np.uint8))
        patience.until(lambda gone=gone: gone() is None, "nobody has it any more")


def test_the_end_ends_a_transfer(listener: TicketListener, receiver: BulkReceiver) -> None:
    came = threading.Event()

    def never_send(connection: socket.socket) -> bool:
        came.set()
        return connection.recv(1) == b""

    where = listener.invite(never_send, patience.HUNG)
    failed: list[str] = []

    def fetch() -> None:
        with pytest.raises(UnavailableError) as error:
            receiver.fetch(LOOPBACK, where, np.empty(4, np.uint8))
        failed.append(str(error.value))

    thread = threading.Thread(target=fetch, daemon=True)
    thread.start()
    assert came.wait(patience.HUNG)
    receiver.close()
    thread.join(patience.HUNG)
    assert "could not be fetched" in failed[0]
    with pytest.raises(UnavailableError, match="this task ends"):
        receiver.fetch(LOOPBACK, listener.invite(lambda connection: True, patience.HUNG), np.empty(4, np.uint8))


def test_malformed_offers(receiver: BulkReceiver) -> None:
    message = RecvTensorResponse()
    message.transport_options.type_url = BULK
    with pytest.raises(InvalidArgumentError, match="malformed"):
        tensors.read_response(message.SerializeToString(), receiver)
    message.tensor.dtype = 7  # type: ignore[assignment]
    message.tensor.tensor_shape.SetInParent()
    with pytest.raises(InvalidArgumentError, match="cannot be string"):
        tensors.read_response(message.SerializeToString(), receiver)


def test_texts_that_look_like_offers_are_none(receiver: BulkReceiver) -> None:
    data = tensors.write_response(np.array(BULK.encode(), object))
    assert not tensors.is_offer(data) and tensors.read_response(data, receiver)[0][()] == BULK.encode()


@pytest.mark.parametrize("is_bulk", [False, True])
@pytest.mark.parametrize("kind", ["bfloat16", "half"])
def test_float32_in_16_bits(kind: str, is_bulk: bool, sender: BulkSender, receiver: BulkReceiver) -> None:
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
