"""Sessions over GPUs, on the fake driver: which there are, what is said about them, what runs where."""

# lambdas over tensors of the client, whose parameters have no types
# pyright: reportUnknownVariableType=false, reportUnknownMemberType=false, reportUnknownArgumentType=false

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

from tests.gpu.driver import VARIABLE
from toolkit import client as gm
from toolkit.errors import ResourceExhaustedError, UsageError
from toolkit.kernels import device_types
from toolkit.kernels.cuda import device, settings
from toolkit.kernels.cuda.driver import choose
from toolkit.kernels.cuda.driver.fake import FakeDriver
from toolkit.kernels.device_options import DeviceOptions, parse_memory, parse_visible
from toolkit.runtime.session import Session

ops = gm.ops
GPU = "/device:GPU:0"
X = np.linspace(-1, 1, 6, dtype=np.float32).reshape(2, 3)
MEMORY = 1 << 20


@pytest.fixture
def gpus() -> Iterator[FakeDriver]:
    """A driver with three small devices, of which nothing was said."""
    driver = FakeDriver(3, memory=MEMORY)
    with choose.using(driver):
        yield driver
    settings.forget()


def handed_on() -> tuple[Any, Any, Any]:
    """A graph on the GPU of kernels that every device has."""
    with gm.Graph().as_default() as graph:
        x = gm.placeholder(gm.float32, [None, 3])
        with graph.device(GPU):
            y = ops.identity(ops.identity(x), name="y")
    return graph, x, y


@pytest.mark.usefixtures("gpus")
def test_a_tensor_goes_there_and_back() -> None:
    graph, x, y = handed_on()
    with Session(graph, devices={"GPU": 1}) as session:
        np.testing.assert_array_equal(session.run(y, {x: X}), X)
        assert session.moved() == []
        (known,) = session.device_statistics().values()
    assert (known.copies_in, known.copies_out, known.in_use, known.limit) == (1, 1, 0, MEMORY)


def test_without_a_gpu_who_asks_for_one_is_told_what_is_missing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(VARIABLE, "off")
    graph, x, y = handed_on()
    with pytest.raises(UsageError, match="there is no GPU here: GRAPHMILL_CUDA is off"):
        Session(graph, devices={"GPU": 1})
    assert device_types.there("GPU") == 0
    with Session(graph) as session:  # a graph that asks for one runs all the same
        np.testing.assert_array_equal(session.run(y, {x: X}), X)
        assert "asked for /device:GPU:0 and run on" in session.moved()[0]


@pytest.mark.usefixtures("gpus")
def test_more_gpus_than_there_are() -> None:
    with pytest.raises(UsageError, match="there cannot be 4 devices of type GPU here; there is GPU:0 to GPU:2"):
        Session(gm.Graph(), devices={"GPU": 4})


@pytest.mark.parametrize(("said", "limit"), [(100_000, 100_000), (0.25, MEMORY // 4), (1.0, MEMORY), (1 << 40, MEMORY)])
@pytest.mark.usefixtures("gpus")
def test_how_much_memory_tensors_may_take(said: int | float, limit: int) -> None:
    graph, x, y = handed_on()
    with Session(graph, devices={"GPU": 1}, device_options=DeviceOptions(memory=said)) as session:
        session.run(y, {x: X})
        (known,) = session.device_statistics().values()
        assert known.limit == limit
        large = np.zeros((limit // 12 + 100, 3), np.float32)
        with pytest.raises(ResourceExhaustedError, match=f"GPU:0 has no room for {large.nbytes} bytes"):
            session.run(y, {x: large})
        np.testing.assert_array_equal(session.run(y, {x: X}), X)


@pytest.mark.usefixtures("gpus")
def test_memory_that_does_not_grow_is_taken_at_once() -> None:
    graph, x, y = handed_on()
    options = DeviceOptions(memory=0.5, grows=False)
    with Session(graph, devices={"GPU": 1}, device_options=options) as session:
        session.run(y, {x: X})
        assert device.device(0).pool.budget.reserved == MEMORY // 2
    with Session(graph, devices={"GPU": 1}) as session:  # what was said holds for the process
        session.run(y, {x: X})
        assert device.device(0).pool.budget.limit == MEMORY // 2


def test_visible_devices_have_the_names(gpus: FakeDriver) -> None:
    graph, x, y = handed_on()
    with Session(graph, devices={"GPU": 2}, device_options=DeviceOptions(visible=(2, 0))) as session:
        session.run(y, {x: X})
        assert [each.index for each in settings.opened()] == [0]
        assert device.device(0).context is gpus.open(2) and device.device(1).context is gpus.open(0)
    with pytest.raises(UsageError, match="there cannot be 3 devices of type GPU here; there is GPU:0 to GPU:1"):
        Session(graph, devices={"GPU": 3})
    with pytest.raises(UsageError, match="/device:GPU:0 is in use: which GPU it is was said before"):
        Session(graph, devices={"GPU": 1}, device_options=DeviceOptions(visible=(1,)))
    with pytest.raises(UsageError, match="there is no GPU number 5 here to be visible; the machine has 3"):
        Session(graph, devices={"GPU": 1}, device_options=DeviceOptions(visible=(5,)))


@pytest.mark.usefixtures("gpus")
def test_determinism_is_handed_to_the_device() -> None:
    graph, x, y = handed_on()
    with Session(graph, devices={"GPU": 1}) as session:
        session.run(y, {x: X})
        assert not device.device(0).deterministic
    with Session(graph, devices={"GPU": 1}, device_options=DeviceOptions(deterministic=True)):
        assert device.device(0).deterministic


@pytest.mark.parametrize(
    ("text", "amount"),
    [("0.5", 0.5), ("1", 1.0), ("8G", 8 << 30), ("512MiB", 512 << 20), ("4096", 4096), ("1.5K", 1536)],
)
def test_amounts_of_memory(text: str, amount: int | float) -> None:
    found = parse_memory(text)
    assert (found, type(found)) == (amount, type(amount))


@pytest.mark.parametrize("text", ["", "half", "0", "-1", "1.5", "3X", "nan", "inf"])
def test_what_is_no_amount_of_memory(text: str) -> None:
    with pytest.raises(UsageError):
        parse_memory(text)


def test_lists_of_visible_devices() -> None:
    assert parse_visible("") is None and parse_visible("1, 0") == (1, 0)
    for text in ("a", "1,,2", "-1", "1.5"):
        with pytest.raises(UsageError, match="visible_device_list"):
            parse_visible(text)
    with pytest.raises(UsageError, match="each once"):
        DeviceOptions(visible=(1, 1))
