"""A GPU's memory as the runtime and kernels use it, on fake GPUs in many orders of their streams."""

from __future__ import annotations

import sys
import threading
from collections.abc import Iterator
from typing import Any

import ml_dtypes
import numpy as np
import pytest

from tests.kernels.cuda.simple import blocks, combine
from toolkit.errors import InternalError, ResourceExhaustedError, UsageError
from toolkit.graph.graph import Graph
from toolkit.kernels import device_types
from toolkit.kernels.boundary import memory_of
from toolkit.kernels.cuda import device as devices
from toolkit.kernels.cuda import settings, transfers
from toolkit.kernels.cuda.device import CudaDevice, device, device_of
from toolkit.kernels.cuda.driver import choose
from toolkit.kernels.cuda.driver.base import DriverError
from toolkit.kernels.cuda.driver.fake import FakeContext, FakeDriver
from toolkit.kernels.cuda.memory import GpuArray
from toolkit.kernels.cuda.staging import SECTION
from toolkit.kernels.cuda.transfers import SMALL
from toolkit.kernels.device_options import DeviceOptions

LARGE = 3 * SMALL // 4  # int32 numbers of what is copied in streams of its own


@pytest.fixture(params=range(5))
def gpu(request: pytest.FixtureRequest) -> Iterator[CudaDevice]:
    with choose.using(FakeDriver(2, seed=request.param)):
        yield device(0)


@pytest.fixture
def one() -> Iterator[CudaDevice]:
    with choose.using(FakeDriver(1)):
        yield device(0)


def _numbers(count: int, seed: int = 0) -> Any:
    return np.random.default_rng(seed).integers(-1000, 1000, count, np.int32)


def _fake(of: CudaDevice) -> FakeContext:
    assert isinstance(of.context, FakeContext)
    return of.context


@pytest.mark.parametrize(
    "dtype", ["bool", "int8", "uint16", "int64", "float16", "bfloat16", "float32", "float64", "complex64", "complex128"]
)
@pytest.mark.parametrize("shape", [(), (3,), (2, 0, 3), (4, 5), (300, 301)])
def test_tensors_go_there_and_back(one: CudaDevice, dtype: str, shape: tuple[int, ...]) -> None:
    numbers = np.random.default_rng(1).integers(0, 2, shape)
    array = numbers.astype(ml_dtypes.bfloat16 if dtype == "bfloat16" else dtype)
    there = one.memory.copy_in(array)
    assert (there.dtype, there.shape, there.nbytes) == (array.dtype, array.shape, array.nbytes)
    back = one.memory.copy_out(there)
    assert back.dtype == array.dtype and back.flags.writeable and back.flags.owndata
    np.testing.assert_array_equal(back, array)


@pytest.mark.parametrize("count", [100, LARGE, SECTION, 5 * SECTION // 4 + 7])
def test_host_memory_may_change_at_once(gpu: CudaDevice, count: int) -> None:
    array = _numbers(count)
    there = gpu.memory.copy_in(given := array.copy())
    given[:] = 0
    np.testing.assert_array_equal(gpu.memory.copy_out(there), array)


def test_host_memory_may_have_any_strides(one: CudaDevice) -> None:
    array = _numbers(60).reshape(3, 4, 5)
    for view in (array.transpose(), array[:, ::2], array[::-1], array[1], np.asfortranarray(array), array[0, 0, 0]):
        np.testing.assert_array_equal(one.memory.copy_out(one.memory.copy_in(view)), view)


@pytest.mark.parametrize("count", [100, LARGE])
def test_steps_that_feed_compute_and_fetch(gpu: CudaDevice, count: int) -> None:
    """Memory goes round: what is copied in lies where a kernel just read, what is copied out is given back at once."""
    waits: list[tuple[Any, Any]] = []
    for step in range(8):
        x, y = _numbers(count, step), _numbers(count, 100 + step)
        a, b = gpu.memory.copy_in(x), gpu.memory.copy_in(y)
        made = gpu.copied(b)
        gpu.launch(combine(), blocks(count), a, made, 3, -1, count)
        waits.append((gpu.memory.begin_copy_out(made), 3 * x - y))
        del a, b, made
    gpu.memory.synchronize()
    for wait, expected in waits:
        np.testing.assert_array_equal(wait(), expected)
    del wait
    waits.clear()
    assert gpu.memory.statistics().in_use == 0


@pytest.mark.parametrize("count", [SECTION, 5 * SECTION // 8 + 7])
def test_what_is_very_large_comes_in_parts(gpu: CudaDevice, count: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(transfers, "LARGE", SECTION)
    array, made = _numbers(count), gpu.zeros((count,), np.int32)
    gpu.context.copy(made.address, gpu.memory.copy_in(array).address, made.nbytes, gpu.compute)
    wait = gpu.memory.begin_copy_out(made)
    gpu.full((100,), np.int32, 3)
    np.testing.assert_array_equal(wait(), array)


@pytest.mark.parametrize("count", [100, LARGE])
def test_what_is_being_copied_is_nobody_s_own(gpu: CudaDevice, count: int) -> None:
    array, other = gpu.zeros((count,), np.int32), device(1)
    alone = sys.getrefcount(array)
    wait = gpu.memory.begin_copy_out(array)
    assert (sys.getrefcount(array) > alone) == (
        array.nbytes > SMALL
    )  # what is small comes before what is computed next
    wait()
    del wait
    assert sys.getrefcount(array) == alone
    there = [other.copied(array)]
    assert sys.getrefcount(array) > alone
    gpu.synchronize()
    assert sys.getrefcount(array) == alone
    there += [other.copied(array) for _ in range(3)]
    gpu.context.synchronize()
    there.append(other.copied(array))
    assert sys.getrefcount(array) == alone + 1  # the last copy's


def test_what_another_gpu_has_copied_is_given_back(gpu: CudaDevice) -> None:
    """Nobody asks this device for anything behind the copy."""
    source = gpu.memory.copy_in(_numbers(LARGE))
    there = device(1).copied(source)
    del source
    gpu.context.synchronize()
    assert gpu.pool.budget.in_use == 0 and there.nbytes


def test_where_memory_is_short_copies_of_other_gpus_are_waited_for() -> None:
    with choose.using(FakeDriver(2, memory=4 << 20)):
        gpu, other = device(0), device(1)
        for _ in range(3):
            there = other.copied(gpu.empty((3 << 20,), np.int8))
            del there


def test_two_threads_wait_for_what_another_gpu_copies(gpu: CudaDevice, monkeypatch: pytest.MonkeyPatch) -> None:
    """One of them finds that the other has let the tensor go, which still was there when it began to wait."""
    other, synchronize = device(1), FakeContext.synchronize
    there = other.copied(gpu.memory.copy_in(_numbers(LARGE)))

    def meanwhile(self: FakeContext, what: Any = None) -> None:
        if what is gpu.copy_out_stream:
            monkeypatch.setattr(FakeContext, "synchronize", synchronize)
            gpu._transfers._is_busy = True  # pyright: ignore[reportPrivateUsage] -- by a copy to the host, say
            thread = threading.Thread(target=gpu.synchronize)
            thread.start()
            thread.join()
        synchronize(self, what)

    monkeypatch.setattr(FakeContext, "synchronize", meanwhile)
    gpu.synchronize()
    assert there.nbytes and gpu.pool.budget.in_use == 0


def test_what_is_fetched_is_what_it_was_then(gpu: CudaDevice) -> None:
    array = gpu.memory.copy_in(_numbers(LARGE))
    wait = gpu.memory.begin_copy_out(array)
    del array
    for _ in range(4):
        gpu.full((LARGE,), np.int32, 7)  # in the memory that was given back, if it was
    np.testing.assert_array_equal(wait(), _numbers(LARGE))


@pytest.mark.parametrize("count", [100, LARGE])
def test_copies_between_gpus(gpu: CudaDevice, count: int) -> None:
    other, x = device(1), _numbers(count)
    for _ in range(4):
        source = gpu.memory.copy_in(x)
        made = gpu.zeros((count,), np.int32)
        gpu.launch(combine(), blocks(count), source, made, 2, 0, count)
        other.full((count,), np.int32, 6)  # in the memory that the copy gets
        there = other.memory.copy_across(made, gpu.memory)
        del made
        gpu.full((count,), np.int32, 5)
        result = other.zeros((count,), np.int32)
        other.launch(combine(), blocks(count), there, result, 1, 0, count)
        np.testing.assert_array_equal(other.memory.copy_out(result), 2 * x)
    assert other.memory.statistics().copies_across == 4
    with pytest.raises(InternalError, match="/device:GPU:1 was asked to copy what is not in the memory of that GPU"):
        other.memory.copy_across(result, gpu.memory)
    assert other.copied(gpu.zeros((0,), np.int32)).nbytes == 0


@pytest.mark.parametrize(
    ("dtype", "value"),
    [("float32", 1.5), ("float32", 0), ("int64", -3), ("uint8", 255), ("bool", True), ("float16", -2.5),
     ("complex64", 1 + 2j), ("complex128", 1 + 2j), ("complex128", 0)],
)  # fmt: skip
def test_tensors_of_one_number(one: CudaDevice, dtype: str, value: Any) -> None:
    for shape in ((), (0, 2), (3, 5), (300_000,)):
        np.testing.assert_array_equal(one.to_host(one.full(shape, dtype, value)), np.full(shape, value, dtype))
    np.testing.assert_array_equal(one.to_host(one.zeros((2, 3), dtype)), np.zeros((2, 3), dtype))


def test_shapes_and_parts_share_the_memory(one: CudaDevice) -> None:
    array = one.memory.copy_in(_numbers(24).reshape(4, 6))
    turned, part = array.reshaped((2, 3, 4)), array.viewed("int16", (2, 2), 8)
    assert (turned.shape, turned.size, turned.ndim, part.nbytes) == ((2, 3, 4), 24, 3, 8)
    assert one.memory.statistics().allocations == 1
    del array
    np.testing.assert_array_equal(one.to_host(turned), _numbers(24).reshape(2, 3, 4))
    np.testing.assert_array_equal(one.to_host(part), _numbers(24)[2:4].view(np.int16).reshape(2, 2))
    with pytest.raises(InternalError, match=r"<int32\[2, 3, 4\] in /device:GPU:0> cannot have the shape \[5\]"):
        turned.reshaped((5,))
    for dtype, shape, offset in (("int32", (2,), 93), ("int64", (1,), 4), ("int8", (1,), -1)):
        with pytest.raises(InternalError, match="at byte"):
            turned.viewed(dtype, shape, offset)


def test_host_code_does_not_look_into_tensors(one: CudaDevice) -> None:
    array = one.zeros((2,), np.float32)
    for look in (np.asarray, bool, len, lambda x: x + np.ones(2, np.float32)):
        with pytest.raises((InternalError, TypeError), match=r"host code|unsupported operand"):
            look(array)
    assert repr(array) == "<float32[2] in /device:GPU:0>"


def test_what_belongs_to_others_is_refused(gpu: CudaDevice) -> None:
    other = device(1)
    array = other.zeros((2,), np.float32)
    assert other.memory.owns(array) and not gpu.memory.owns(array) and not gpu.memory.owns(np.zeros(2))
    with pytest.raises(InternalError, match="/device:GPU:0 was asked to copy out what is not in its memory: <float32"):
        gpu.memory.copy_out(array)
    with pytest.raises(InternalError, match="/device:GPU:0 was asked to copy out <float32"):
        gpu.to_host(array)


def test_texts_stay_on_the_host(one: CudaDevice) -> None:
    with pytest.raises(InternalError, match=r"object\[1\] was to be copied to /device:GPU:0; it holds no numbers"):
        one.memory.copy_in(np.array([b"a"], object))


def test_statistics_count() -> None:
    with choose.using(FakeDriver(memory=16 << 20)):
        memory = device(0).memory
        held = [memory.copy_in(_numbers(n)) for n in (10, 100)]
        memory.copy_out(held[0])
        del held[1]
        found = memory.statistics()
    assert (found.in_use, found.peak, found.limit, found.allocations) == (40, 440, 16 << 20, 2)
    assert (found.copies_in, found.copies_out, found.copies_across) == (2, 1, 0)


# -- devices and nodes -------------------------------------------------------------------------------------------------


def _node(name: str = "y") -> Any:
    graph = Graph()
    node = graph.add("NoOp", name)
    node.device = "/job:localhost/replica:0/task:0/device:GPU:1"
    return node


def test_devices_are_made_once() -> None:
    with choose.using(FakeDriver(2)):
        node = _node()
        assert device_of(node).pool is device(1).pool is device_of(node).pool
        assert device_types.memory("GPU", 1) is memory_of(node) is device(1).memory
        assert device_of(node).zeros((1,), np.float32).device is device(1)
        with pytest.raises(UsageError, match="there is no GPU:2 here; there is GPU:0 to GPU:1"):
            device(2)
    with (
        choose.using(FakeDriver(1)),
        pytest.raises(UsageError, match="there is no GPU:3 here; there is one GPU, GPU:0"),
    ):
        device(3)


def test_messages_name_the_node() -> None:
    with choose.using(FakeDriver(2, memory=4 << 20)):
        found = device_of(_node("big"))
        held = found.zeros((100,), np.float32)
        with pytest.raises(ResourceExhaustedError, match=r"node 'big'.*float32\[100\] of node 'big'"):
            found.empty((2 << 20,), np.float32)
        _fake(found).faults.arm("cuLaunchKernel", "CUDA_ERROR_LAUNCH_OUT_OF_RESOURCES")
        with pytest.raises(DriverError, match="node 'big': cuLaunchKernel failed"):
            found.launch(combine(), 1, held, held, 1, 1, 0)
        _fake(found).faults.arm("cuMemsetD8Async", "CUDA_ERROR_INVALID_VALUE")
        with pytest.raises(DriverError, match="node 'big': cuMemsetD8Async failed"):
            found.zeros((2,), np.float32)


def test_no_blocks_launch_nothing(one: CudaDevice) -> None:
    empty = one.zeros((0,), np.int32)
    one.launch(combine(), 0, empty, empty, 1, 1, 0)
    one.synchronize()


def test_a_launch_that_goes_wrong_is_told_when_it_is_waited_for(one: CudaDevice) -> None:
    x, y = one.zeros((10,), np.int32), one.zeros((10,), np.int32)
    wait = one.memory.begin_copy_out(y)
    one.launch(combine(), 1, x, y, 1, 1, 11)
    with pytest.raises(DriverError, match="kernel combine: element 10 of x, which has 10"):
        one.synchronize()
        wait()


def test_what_decides_the_order_of_sums(one: CudaDevice, monkeypatch: pytest.MonkeyPatch) -> None:
    assert not one.deterministic
    one.for_node("y").deterministic = True
    assert one.deterministic
    monkeypatch.setenv(devices.DETERMINISTIC, "1")
    with choose.using(FakeDriver()):
        assert device(0).deterministic


@pytest.mark.parametrize(
    ("options", "limit", "reserved"),
    [
        (DeviceOptions(memory=0.25), 4 << 20, 2 << 20),
        (DeviceOptions(memory=8 << 20, grows=False), 8 << 20, 8 << 20),
    ],
)
def test_limits_are_those_that_sessions_say(options: DeviceOptions, limit: int, reserved: int) -> None:
    with choose.using(FakeDriver(memory=16 << 20)):
        settings.configure(options)
        try:
            held = device(0).zeros((2,), np.float32)
            assert device(0).memory.statistics().limit == limit
            assert device(0).pool.budget.reserved == reserved and held.nbytes
        finally:
            settings.forget()


# -- graphs ------------------------------------------------------------------------------------------------------------


def test_a_recorded_step_is_done_again_and_again(gpu: CudaDevice) -> None:
    count = 200
    x = gpu.memory.copy_in(_numbers(count))
    with gpu.recording() as recording:
        assert gpu.is_recording
        made = x
        for _ in range(3):
            made, before = gpu.zeros((count,), np.int32), made
            gpu.launch(combine(), blocks(count), before, made, 2, 1, count)
            del before
    assert not gpu.is_recording and recording.graph is not None
    for seed in range(4):
        new = _numbers(count, seed)
        gpu.context.copy_in_bytes(x.address, new.view(np.uint8), gpu.compute)
        recording.replay()
        np.testing.assert_array_equal(gpu.memory.copy_out(made), 8 * new)
    del made
    recording.close()
    recording.close()
    del x
    assert gpu.memory.statistics().in_use == 0


def test_recordings_one_after_the_other_have_one_stream(one: CudaDevice) -> None:
    streams: list[Any] = []
    for _ in range(3):
        with one.recording() as recording:
            streams.append(one.compute)
        recording.close()
    assert len({stream.handle for stream in streams}) == 1 and one.compute not in streams


def test_other_threads_launch_while_a_graph_is_recorded(gpu: CudaDevice) -> None:
    x, results = gpu.memory.copy_in(_numbers(100)), list[Any]()

    def other() -> None:
        made = gpu.zeros((100,), np.int32)
        gpu.launch(combine(), blocks(100), x, made, 5, 0, 100)
        results.append(gpu.memory.copy_out(made))

    with gpu.recording() as recording:
        made = gpu.zeros((100,), np.int32)
        thread = threading.Thread(target=other)
        thread.start()
        thread.join()
    np.testing.assert_array_equal(results[0], 5 * _numbers(100))
    assert recording.graph is not None and recording.graph.operations == 1 and isinstance(made, GpuArray)


def test_host_memory_is_out_of_reach_while_a_graph_is_recorded(gpu: CudaDevice) -> None:
    there, x = gpu.zeros((3,), np.int32), device(1).zeros((3,), np.int32)
    with gpu.recording():
        for wrong in (
            lambda: gpu.memory.copy_in(np.ones(3)),
            lambda: gpu.memory.copy_out(there),
            lambda: gpu.copied(x),
        ):
            with pytest.raises(
                InternalError, match=r"a tensor was copied .* while a graph is recorded on /device:GPU:0"
            ):
                wrong()
        with (
            pytest.raises(InternalError, match="a graph is recorded on /device:GPU:0 while another one is"),
            gpu.recording(),
        ):
            pass


def test_a_recording_that_fails_leaves_the_device_as_it_was(gpu: CudaDevice) -> None:
    with pytest.raises(ZeroDivisionError), gpu.recording() as recording:
        gpu.zeros((3,), np.int32)
        raise ZeroDivisionError
    assert not gpu.is_recording
    recording.close()
    np.testing.assert_array_equal(gpu.to_host(gpu.full((3,), np.int32, 2)), [2, 2, 2])
