"""The fake driver: what a program forgot shows, and what it did not forget comes out right in any order of streams."""

from __future__ import annotations

import random
import threading
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from tests.kernels.cuda.simple import blocks, combine, every_type
from toolkit.kernels.cuda.driver.base import DriverError, GpuSpan, OutOfDeviceMemory
from toolkit.kernels.cuda.driver.fake import FakeContext, FakeDriver
from toolkit.kernels.cuda.driver.fake_memory import POISON, aligned_bytes, poison
from toolkit.kernels.cuda.simt.builder import KernelBuilder

N = 100  # int32 numbers of most buffers
SEEDS = range(20)


def _bytes(values: Any) -> Any:
    return np.asarray(values, np.int32).view(np.uint8).copy()


def _read(context: FakeContext, address: int, count: int = N) -> Any:
    """Numbers in a context's memory, when everything is done."""
    context.synchronize()
    host, stream = np.empty(4 * count, np.uint8), context.stream()
    context.copy_out(host, address, stream)
    context.synchronize(stream)
    return host.view(np.int32).copy()


def _outcomes(run: Callable[[FakeContext], Any]) -> set[bytes]:
    """What a program gives for different orders of streams."""
    return {np.asarray(run(FakeDriver(seed=seed).open(0))).tobytes() for seed in SEEDS}


# -- programs at random, against what they mean in sequence --------------------------------------------------------


class _Program:
    """Copies, fills and launches at random over streams, with the events that make them right; and what they mean."""

    def __init__(self, seed: int, operations: int = 60):
        self._random = random.Random(seed)
        self._context = FakeDriver(seed=seed + 1).open(0)
        self._streams = [self._context.stream() for _ in range(3)]
        count = self._random.randint(2, 4)
        self._addresses = [self._context.allocate(4 * N) for _ in range(count)]
        self._values = [np.zeros(N, np.int32) for _ in range(count)]
        self._last: list[tuple[Any, Any] | None] = [None] * count  # stream and event of who used each buffer last
        self._read: list[tuple[Any, Any]] = []
        for address, stream in zip(self._addresses, self._streams * 2, strict=False):
            self._context.fill(address, 0, 4 * N, stream)
        self._context.synchronize()
        for _ in range(operations):
            self._random.choice([self._copy_in, self._copy_out, self._copy, self._fill, self._launch])()

    def check(self) -> None:
        """Everything is as in sequence."""
        self._context.synchronize()
        for got, expected in self._read:
            np.testing.assert_array_equal(got.view(np.int32), expected)
        for address, expected in zip(self._addresses, self._values, strict=True):
            np.testing.assert_array_equal(_read(self._context, address), expected)

    def _pick(self, *buffers: int) -> Any:
        """A stream, which waits for whoever used the buffers."""
        stream = self._random.choice(self._streams)
        for buffer in buffers:
            last = self._last[buffer]
            if last is not None and (last[0] is not stream or self._random.random() < 0.2):
                self._context.wait(stream, last[1])
        return stream

    def _used(self, stream: Any, *buffers: int) -> None:
        event = self._context.event()
        self._context.record(event, stream)
        for buffer in buffers:
            self._last[buffer] = (stream, event)

    def _buffer(self) -> int:
        return self._random.randrange(len(self._addresses))

    def _copy_in(self) -> None:
        to = self._buffer()
        values = np.array([self._random.randrange(1 << 20) for _ in range(N)], np.int32)
        stream = self._pick(to)
        self._context.copy_in(self._addresses[to], _bytes(values), stream)
        self._values[to] = values
        self._used(stream, to)

    def _copy_out(self) -> None:
        source = self._buffer()
        host, stream = self._context.pinned(4 * N), self._pick(source)
        self._context.copy_out(host, self._addresses[source], stream)
        self._read.append((host, self._values[source].copy()))
        self._used(stream, source)

    def _copy(self) -> None:
        to, source = self._buffer(), self._buffer()
        stream = self._pick(to, source)
        self._context.copy(self._addresses[to], self._addresses[source], 4 * N, stream)
        self._values[to] = self._values[source].copy()
        self._used(stream, to, source)

    def _fill(self) -> None:
        to, byte = self._buffer(), self._random.randrange(256)
        stream = self._pick(to)
        self._context.fill(self._addresses[to], byte, 4 * N, stream)
        self._values[to] = np.full(4 * N, byte, np.uint8).view(np.int32).copy()
        self._used(stream, to)

    def _launch(self) -> None:
        to, source = self._buffer(), self._buffer()
        if to == source:
            return
        a, b = self._random.randrange(-9, 9), self._random.randrange(-9, 9)
        stream = self._pick(to, source)
        spans = [GpuSpan(self._addresses[one], 4 * N) for one in (source, to)]
        self._context.launch(self._context.function(combine()), blocks(N), [*spans, a, b, N], stream)
        self._values[to] = self._values[source] * np.int32(a) + self._values[to] * np.int32(b)
        self._used(stream, to, source)


@pytest.mark.parametrize("seed", range(30))
def test_programs_with_events_are_what_they_are_in_sequence(seed: int) -> None:
    _Program(seed).check()


# -- what was forgotten ------------------------------------------------------------------------------------------------


def test_memory_that_nobody_wrote_is_garbage() -> None:
    context = FakeDriver().open(0)
    garbage = _read(context, context.allocate(4 * N))
    assert (garbage.view(np.uint16) == POISON).all()
    for dtype in (np.float16, np.float32, np.float64):
        assert np.isnan(garbage.view(dtype)).all()
    assert not set(garbage.view(np.uint8).tolist()) & {0, 1}  # no bool


def test_garbage_fits_any_bytes() -> None:
    for start in range(3):
        for size in range(6):
            memory = np.zeros(16, np.uint8)
            poison(memory[start : start + size])
            assert (memory[start : start + size] != 0).all() and memory.astype(bool).sum() == size
    assert aligned_bytes(5).ctypes.data % 256 == 0


def test_what_is_copied_out_is_garbage_until_it_is_waited_for() -> None:
    def run(context: FakeContext) -> Any:
        address, stream = context.allocate(4 * N), context.stream()
        context.copy_in(address, _bytes(np.arange(N)), stream)
        host = context.pinned(4 * N)
        context.copy_out(host, address, stream)
        return host.view(np.int32).copy()

    outcomes = _outcomes(run)
    assert np.full(2 * N, POISON, np.uint16).tobytes() in outcomes
    assert outcomes <= {np.full(2 * N, POISON, np.uint16).tobytes(), np.arange(N, dtype=np.int32).tobytes()}


def test_a_host_array_that_is_changed_before_its_copy_is_done() -> None:
    def run(context: FakeContext) -> Any:
        address, stream, host = context.allocate(4 * N), context.stream(), _bytes(np.arange(N))
        context.copy_in(address, host, stream)
        host[:] = 0
        context.synchronize(stream)
        return _read(context, address)

    assert np.zeros(N, np.int32).tobytes() in _outcomes(run)


def test_little_memory_may_be_changed_at_once() -> None:
    def run(context: FakeContext) -> Any:
        address, stream, host = context.allocate(4 * N), context.stream(), _bytes(np.arange(N))
        context.copy_in_bytes(address, host, stream)
        host[:] = 0
        context.synchronize(stream)
        return _read(context, address)

    assert _outcomes(run) == {np.arange(N, dtype=np.int32).tobytes()}


def test_streams_without_events_come_in_any_order() -> None:
    def run(context: FakeContext) -> Any:
        address, first, second = context.allocate(4 * N), context.stream(), context.stream()
        context.fill(address, 1, 4 * N, first)
        context.fill(address, 2, 4 * N, second)
        return _read(context, address)

    assert len(_outcomes(run)) == 2


def test_a_wait_is_for_what_was_recorded_before_it() -> None:
    def run(context: FakeContext) -> Any:
        address, first, second, event = context.allocate(4 * N), context.stream(), context.stream(), context.event()
        context.wait(second, event)  # recorded never: it waits for nothing
        context.fill(address, 1, 4 * N, first)
        context.record(event, first)
        context.wait(second, event)
        context.record(event, second)  # used again
        context.fill(address, 2, 4 * N, second)
        return _read(context, address)

    assert _outcomes(run) == {np.full(4 * N, 2, np.uint8).tobytes()}


def test_memory_that_was_freed() -> None:
    context = FakeDriver().open(0)
    address, stream = context.allocate(4 * N), context.stream()
    context.free(address)
    with pytest.raises(DriverError, match=r"cuMemFree failed: CUDA_ERROR_INVALID_VALUE .there is no allocation at 0x"):
        context.free(address)
    assert context.allocate(4 * N) != address
    context.fill(address, 0, 1, stream)
    with pytest.raises(
        DriverError, match=r"cuStreamSynchronize failed: CUDA_ERROR_ILLEGAL_ADDRESS .no allocation holds"
    ):
        context.synchronize(stream)


def test_memory_beyond_the_end_and_of_another_gpu() -> None:
    driver = FakeDriver(2)
    for index, address, told in ((0, driver.open(0).allocate(10) + 5, "no allocation holds the 6 bytes"),
                                 (1, driver.open(0).allocate(10), "GPU 1 does not own")):  # fmt: skip
        context = driver.open(index)
        stream = context.stream()
        context.fill(address, 0, 6, stream)
        with pytest.raises(DriverError, match=told):
            context.synchronize(stream)


# -- kernels ---------------------------------------------------------------------------------------------------------


def _launched(context: FakeContext, arguments: Any, count: int = 2) -> None:
    stream = context.stream()
    context.launch(context.function(combine()), count, arguments, stream)
    context.synchronize(stream)


def test_a_kernel_that_goes_out_of_bounds_is_named() -> None:
    context = FakeDriver().open(0)
    spans = [GpuSpan(context.allocate(4 * N), 4 * N) for _ in range(2)]
    with pytest.raises(DriverError, match=r"CUDA_ERROR_LAUNCH_FAILED .kernel combine: element 100 of x, which has 100"):
        _launched(context, [*spans, 1, 1, N + 1])
    assert context.lost is not None
    with pytest.raises(DriverError, match=r"cuMemAlloc failed: CUDA_ERROR_LAUNCH_FAILED.*the GPU's context is lost"):
        context.allocate(1)


@pytest.mark.parametrize(
    ("change", "told"),
    [
        (lambda given: given[:4], "4 arguments; it takes 5"),
        (lambda given: [1, *given[1:]], "argument x is 1; expected memory of the GPU"),
        (lambda given: [*given[:4], given[0]], "argument n is .*; expected an integer of 32 bits"),
        (lambda given: [*given[:4], 1.5], "argument n is 1.5; expected an integer of 32 bits"),
        (lambda given: [*given[:4], 1 << 32], "expected an integer of 32 bits"),
    ],
)
def test_arguments_are_checked(change: Callable[[list[Any]], list[Any]], told: str) -> None:
    context = FakeDriver().open(0)
    given = [GpuSpan(context.allocate(4 * N), 4 * N), GpuSpan(context.allocate(4 * N), 4 * N), 1, 1, N]
    with pytest.raises(DriverError, match=told):
        _launched(context, change(given))
    assert context.lost is None  # nothing was launched


def test_numbers_of_all_types_are_taken() -> None:
    context = FakeDriver().open(0)
    memory = GpuSpan(context.allocate(4), 4)
    for given in ([True, -1, 2, 0xFFFFFFFF, -4, 0.5, 1.5, 2.5, 3.5], [np.bool_(1), np.int8(1), 2, 3, 4, 1, 2, 3, 4]):
        context.launch(context.function(every_type()), 1, [memory, *given], context.stream())
    context.synchronize()
    for position, wrong in ((0, 2), (0, 0.5), (5, "a"), (6, True)):
        given = [True, 1, 2, 3, 4, 0.5, 1.5, 2.5, 3.5]
        given[position] = wrong  # type: ignore[call-overload]
        with pytest.raises(DriverError, match="argument a_"):
            context.launch(context.function(every_type()), 1, [memory, *given], context.stream())


@pytest.mark.parametrize("count", [0, -1, 2**31])
def test_numbers_of_blocks_are_checked(count: int) -> None:
    context = FakeDriver().open(0)
    memory = GpuSpan(context.allocate(4 * N), 4 * N)
    with pytest.raises(DriverError, match=f"{count} blocks; expected 1 to 2147483647"):
        _launched(context, [memory, memory, 1, 1, 0], count)


def test_memory_that_is_not_aligned() -> None:
    context = FakeDriver().open(0)
    address = context.allocate(4 * N)
    with pytest.raises(DriverError, match="CUDA_ERROR_MISALIGNED_ADDRESS"):
        _launched(context, [GpuSpan(address + 2, 40), GpuSpan(address, 40), 1, 1, 1])


def test_functions_are_loaded_once_for_each_text() -> None:
    context = FakeDriver().open(0)
    function = context.function(combine())
    assert context.function(combine()) is function
    assert (function.name, function.registers, function.spills, function.shared) == ("combine", 0, 0, 0)
    assert ".target sm_90" in function.ptx


def test_blocks_have_so_much_shared_memory() -> None:
    context = FakeDriver().open(0)
    for count, fits in ((6144, True), (6145, False)):
        k = KernelBuilder("much", block=64)
        k.shared("s", "double", count)
        if fits:
            assert context.function(k.finish()).shared == 48 << 10
        else:
            with pytest.raises(DriverError, match=r"kernel much failed: .*49160 bytes of shared memory"):
                context.function(k.finish())


# -- graphs ----------------------------------------------------------------------------------------------------------


def test_a_graph_over_two_streams_does_the_same_each_time() -> None:
    def run(context: FakeContext) -> Any:
        x, y = context.allocate(4 * N), context.allocate(4 * N)
        main, side, fork, join = context.stream(), context.stream(), context.event(), context.event()
        context.fill(x, 0, 4 * N, main)
        context.fill(y, 0, 4 * N, main)
        context.begin_capture(main)
        context.fill(x, 0, 4 * N, main)
        context.record(fork, main)
        context.wait(side, fork)
        context.copy_in(x, _bytes(np.full(N, 3)), side)
        context.record(join, side)
        context.wait(main, join)
        spans = [GpuSpan(x, 4 * N), GpuSpan(y, 4 * N)]
        context.launch(context.function(combine()), blocks(N), [*spans, 1, 2, N], main)
        graph = context.end_capture(main)
        assert graph.operations == 3
        assert (_read(context, y) == 0).all()  # it was not done
        for _ in range(3):
            context.replay(graph, main)
        return _read(context, y)

    assert _outcomes(run) == {np.full(N, 3 + 2 * (3 + 2 * 3), np.int32).tobytes()}


def test_a_graph_whose_memory_was_freed() -> None:
    context = FakeDriver().open(0)
    address, stream = context.allocate(4 * N), context.stream()
    context.begin_capture(stream)
    context.fill(address, 0, 4 * N, stream)
    graph = context.end_capture(stream)
    context.free(address)
    context.replay(graph, stream)
    with pytest.raises(DriverError, match="CUDA_ERROR_ILLEGAL_ADDRESS"):
        context.synchronize(stream)


def test_a_freed_graph_is_not_replayed() -> None:
    context = FakeDriver().open(0)
    stream = context.stream()
    context.begin_capture(stream)
    graph = context.end_capture(stream)
    context.free_graph(graph)
    with pytest.raises(DriverError, match="the graph was freed"):
        context.replay(graph, stream)


@pytest.mark.parametrize(
    ("wrong", "error"),
    [
        (lambda c, s, e: c.synchronize(s), "CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED"),
        (lambda c, s, e: c.synchronize(), "CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED"),
        (lambda c, s, e: (c.record(e, s), c.synchronize(e)), "CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED"),
        (lambda c, s, e: (c.record(e, s), c.done(e)), "CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED"),
        (lambda c, s, e: c.wait(s, c.event()), "CUDA_ERROR_STREAM_CAPTURE_ISOLATION"),
        (lambda c, s, e: c.begin_capture(s), "CUDA_ERROR_ILLEGAL_STATE"),
    ],
)
def test_what_a_recording_refuses(wrong: Callable[[Any, Any, Any], None], error: str) -> None:
    context = FakeDriver().open(0)
    stream, event = context.stream(), context.event()
    context.begin_capture(stream)
    with pytest.raises(DriverError, match=error):
        wrong(context, stream, event)
    if error == "CUDA_ERROR_ILLEGAL_STATE":
        context.end_capture(stream)
        return
    with pytest.raises(DriverError, match="CUDA_ERROR_STREAM_CAPTURE_INVALIDATED"):
        context.end_capture(stream)
    context.synchronize(stream)  # it is a stream as before


def test_a_stream_that_a_recording_does_not_come_back_from() -> None:
    context = FakeDriver().open(0)
    main, side, event = context.stream(), context.stream(), context.event()
    address = context.allocate(8)
    context.begin_capture(main)
    context.record(event, main)
    context.wait(side, event)
    context.fill(address, 0, 8, side)
    with pytest.raises(DriverError, match="CUDA_ERROR_ILLEGAL_STATE"):
        context.end_capture(side)
    with pytest.raises(DriverError, match="CUDA_ERROR_STREAM_CAPTURE_UNJOINED"):
        context.end_capture(main)


def test_two_recordings_do_not_meet() -> None:
    context = FakeDriver().open(0)
    first, second, event = context.stream(), context.stream(), context.event()
    context.begin_capture(first)
    context.begin_capture(second)
    context.record(event, first)
    with pytest.raises(DriverError, match="CUDA_ERROR_STREAM_CAPTURE_MERGE"):
        context.wait(second, event)


def test_another_thread_does_not_end_a_recording() -> None:
    context, told = FakeDriver().open(0), list[Exception]()
    stream = context.stream()
    context.begin_capture(stream)

    def end() -> None:
        try:
            context.end_capture(stream)
        except DriverError as error:
            told.append(error)

    thread = threading.Thread(target=end)
    thread.start()
    thread.join()
    assert "CUDA_ERROR_STREAM_CAPTURE_WRONG_THREAD" in str(told[0])


# -- faults ------------------------------------------------------------------------------------------------------------


def test_allocations_fail_at_the_limit_and_on_request() -> None:
    context = FakeDriver(memory=1000).open(0)
    held = context.allocate(900)
    with pytest.raises(OutOfDeviceMemory, match="101 bytes on GPU 0"):
        context.allocate(101)
    assert context.memory_info() == (100, 1000)
    context.free(held)
    context = FakeDriver().open(0)
    context.faults.every = 3
    for number in range(1, 10):
        if number % 3:
            context.allocate(1)
        else:
            with pytest.raises(OutOfDeviceMemory, match=r"CUDA_ERROR_OUT_OF_MEMORY .as was asked for"):
                context.allocate(1)
    with pytest.raises(DriverError, match="0 bytes were asked for"):
        FakeDriver().open(0).allocate(0)


_CALLS: dict[str, Callable[[FakeContext, Any, Any], Any]] = {
    "cuMemAlloc": lambda c, s, a: c.allocate(1),
    "cuMemFree": lambda c, s, a: c.free(a),
    "cuMemGetInfo": lambda c, s, a: c.memory_info(),
    "cuMemHostAlloc": lambda c, s, a: c.pinned(1),
    "cuStreamCreate": lambda c, s, a: c.stream(),
    "cuEventCreate": lambda c, s, a: c.event(),
    "cuEventRecord": lambda c, s, a: c.record(c.event(), s),
    "cuStreamWaitEvent": lambda c, s, a: c.wait(s, c.event()),
    "cuEventQuery": lambda c, s, a: c.done(c.event()),
    "cuEventSynchronize": lambda c, s, a: c.synchronize(c.event()),
    "cuStreamSynchronize": lambda c, s, a: c.synchronize(s),
    "cuCtxSynchronize": lambda c, s, a: c.synchronize(),
    "cuEventElapsedTime": lambda c, s, a: c.elapsed(c.event(), c.event()),
    "cuMemcpyHtoDAsync": lambda c, s, a: c.copy_in(a, np.zeros(4, np.uint8), s),
    "cuMemcpyDtoHAsync": lambda c, s, a: c.copy_out(np.zeros(4, np.uint8), a, s),
    "cuMemcpyDtoDAsync": lambda c, s, a: c.copy(a, a + 8, 4, s),
    "cuMemcpyPeerAsync": lambda c, s, a: c.copy_peer(a, c, a + 8, 4, s),
    "cuMemsetD8Async": lambda c, s, a: c.fill(a, 0, 4, s),
    "cuModuleLoadData": lambda c, s, a: c.function(combine()),
    "cuLaunchKernel": lambda c, s, a: c.launch(c.function(every_type()), 1, _every(a), s),
    "cuStreamBeginCapture": lambda c, s, a: c.begin_capture(s),
    "cuStreamEndCapture": lambda c, s, a: (c.begin_capture(s), c.end_capture(s)),
    "cuGraphLaunch": lambda c, s, a: (c.begin_capture(s), c.replay(c.end_capture(s), s)),
}


def _every(address: int) -> list[Any]:
    return [GpuSpan(address, 4), True, 1, 2, 3, 4, 0.5, 1.5, 2.5, 3.5]


@pytest.mark.parametrize("call", _CALLS)
def test_every_call_fails_on_request(call: str) -> None:
    context = FakeDriver().open(0)
    address, streams = context.allocate(16), [context.stream() for _ in range(3)]
    context.faults.arm(call, "CUDA_ERROR_UNKNOWN", times=2)
    for stream in streams[:2]:
        with pytest.raises(DriverError, match=f"{call} failed: CUDA_ERROR_UNKNOWN .as was asked for") as found:
            _CALLS[call](context, stream, address)
        assert not found.value.is_sticky
    if call != "cuEventElapsedTime":
        _CALLS[call](context, streams[2], address)


@pytest.mark.parametrize("late", [False, True])
def test_a_context_that_is_lost_stays_lost(late: bool) -> None:
    driver = FakeDriver(2)
    context, other = driver.open(0), driver.open(1)
    address, stream, waiting = context.allocate(16), context.stream(), other.stream()
    event = context.event()
    context.faults.arm("cuMemsetD8Async", "CUDA_ERROR_LAUNCH_FAILED", after=1, late=late)
    context.fill(address, 0, 4, stream)
    if late:
        context.fill(address, 0, 4, stream)
        context.record(event, stream)
        other.wait(waiting, event)
        with pytest.raises(DriverError, match=r"cuStreamSynchronize failed: CUDA_ERROR_LAUNCH_FAILED"):
            context.synchronize(stream)
        other.synchronize(waiting)  # nothing will come
    else:
        with pytest.raises(DriverError, match=r"cuMemsetD8Async failed: CUDA_ERROR_LAUNCH_FAILED.*context is lost"):
            context.fill(address, 0, 4, stream)
    for call in (
        lambda: context.allocate(1),
        lambda: context.synchronize(),
        lambda: context.fill(address, 0, 1, stream),
    ):
        with pytest.raises(DriverError, match="CUDA_ERROR_LAUNCH_FAILED"):
            call()
    other.allocate(1)


# -- the rest ----------------------------------------------------------------------------------------------------------


def test_events_are_asked_and_measured() -> None:
    context = FakeDriver().open(0)
    stream, start, end = context.stream(), context.event(timing=True), context.event(timing=True)
    assert context.done(start)  # as one that was never recorded
    with pytest.raises(DriverError, match="an event has no time"):
        context.elapsed(start, end)
    context.record(start, stream)
    context.fill(context.allocate(1), 0, 1, stream)
    context.record(end, stream)
    with pytest.raises(DriverError, match="CUDA_ERROR_NOT_READY"):
        while True:
            context.elapsed(start, end)
            context.record(end, stream)
    while not context.done(end):
        pass
    assert context.elapsed(start, end) > 0


def test_host_memory_is_bytes() -> None:
    context = FakeDriver().open(0)
    for wrong in (np.zeros(4, np.float32), np.zeros((2, 2), np.uint8), np.zeros(8, np.uint8)[::2]):
        with pytest.raises(DriverError, match="not bytes"):
            context.copy_in(context.allocate(16), wrong, context.stream())


def test_copies_between_gpus() -> None:
    driver = FakeDriver(2)
    first, second = driver.open(0), driver.open(1)
    source, to, stream = first.allocate(4 * N), second.allocate(4 * N), first.stream()
    first.copy_in(source, _bytes(np.arange(N)), stream)
    first.copy_peer(to, second, source, 4 * N, stream)
    first.synchronize(stream)
    np.testing.assert_array_equal(_read(second, to), np.arange(N))


def test_there_are_as_many_gpus_as_were_asked_for() -> None:
    driver = FakeDriver(2, capability=(8, 0))
    assert driver.count() == 2 and driver.open(1) is driver.open(1) is not driver.open(0)
    assert driver.properties(1).capability == (8, 0)
    with pytest.raises(DriverError, match="there is no GPU 2"):
        driver.open(2)
