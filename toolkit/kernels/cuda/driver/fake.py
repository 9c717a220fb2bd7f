"""A driver that needs no GPU: kernels run on the SIMT machine, and whatever CUDA leaves undefined goes wrong.

Memory that nobody has written, or that was freed, holds garbage; what is copied out is garbage until somebody has
waited for it; streams are done in random order (`fake_schedule`); what a real driver would only do on some days (an
allocation that fails, a launch that goes wrong) can be asked for (`Faults`). A program that is right here has
synchronised all that it must.
"""

from __future__ import annotations

import operator
import threading
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np

from toolkit.errors import GraphmillError
from toolkit.kernels.cuda.driver.base import (
    CONDITIONS_FROM,
    Argument,
    DeviceProperties,
    DriverError,
    OutOfDeviceMemory,
    lacks_conditions,
)
from toolkit.kernels.cuda.driver.fake_memory import AddressSpace, aligned_bytes, poison
from toolkit.kernels.cuda.driver.fake_schedule import Capture, FakeEvent, FakeGraph, FakeStream, Schedule, Work
from toolkit.kernels.cuda.driver.linked import library
from toolkit.kernels.cuda.simt import machine
from toolkit.kernels.cuda.simt.arithmetic import DTYPES
from toolkit.kernels.cuda.simt.ir import FLOATING, SIZES, KernelBuffer, SimtKernel, Value
from toolkit.kernels.types import Array

_MOST_BLOCKS = 2**31 - 1
MEMORY = 8 << 30  # bytes of a fake GPU, as small ones have; only what is written is taken from the host
_CAPABILITY = (9, 0)


@dataclass(slots=True)
class Faults:
    """What is to go wrong on a fake GPU.

    Attributes:
        every: each allocation with a number that this divides fails; 0 for none.
        armed: for each of the driver's calls, how many more go well, the error that comes then, how often, and
            whether it comes late, with the work.
    """

    every: int = 0
    armed: dict[str, tuple[int, str, int, bool]] = field(default_factory=dict[str, tuple[int, str, int, bool]])
    _allocations: int = 0

    def arm(self, call: str, error: str, *, after: int = 0, times: int = 1, late: bool = False) -> None:
        """Have a call fail, when it was made `after` times more."""
        self.armed[call] = (after, error, times, late)

    def taken(self, call: str) -> tuple[str, bool] | None:
        """The error that this call is to fail with, and whether late."""
        if call not in self.armed:
            return None
        after, error, times, late = self.armed[call]
        if after:
            self.armed[call] = (after - 1, error, times, late)
            return None
        if times > 1:
            self.armed[call] = (0, error, times - 1, late)
        else:
            del self.armed[call]
        return error, late

    def is_refused(self) -> bool:
        """Whether the next allocation fails."""
        self._allocations += 1
        return bool(self.every) and self._allocations % self.every == 0


class _Memory(NamedTuple):
    """A buffer that a kernel is given: where, how many bytes, and of which type."""

    address: int
    nbytes: int
    type: str


class FakeFunction:
    """A kernel on a fake GPU. Nothing is compiled: the machine has as many registers as are wanted."""

    registers = spills = 0

    def __init__(self, kernel: SimtKernel, capability: tuple[int, int]):
        self.kernel = kernel
        self.name = kernel.name
        self.shared = kernel.shared_bytes
        self._capability = capability

    @property
    def ptx(self) -> str:
        from toolkit.kernels.cuda.simt import ptx  # which needs LLVM, as nothing else here does

        return ptx.write(self.kernel, self._capability)


class FakeContext:
    """A fake GPU.

    Attributes:
        memory: its allocations.
        faults: what is to go wrong.
        lost: the error after which nothing works any more.
    """

    poisons = True

    def __init__(self, index: int, properties: DeviceProperties, schedule: Schedule):
        self.index = index
        self.properties = properties
        self.memory = AddressSpace(index, properties.memory)
        self.faults = Faults()
        self.lost: DriverError | None = None
        self.measures = False
        self._late = ""  # the error with which the work of this call is to end
        self._schedule = schedule
        self._lock = schedule.lock
        self._functions: dict[str, FakeFunction] = {}
        self._captures: list[Capture] = []

    def _enter(self, call: str) -> None:
        """What any call does first.

        Raises:
            DriverError: the context is lost, or the call was asked to fail.
        """
        if self.lost is not None:
            raise DriverError(call, self.lost.error, self.lost.text)
        fault = self.faults.taken(call) if self.faults.armed else None
        if fault is not None:
            error, late = fault
            if not late:
                raise self._failed(DriverError(call, error, "as was asked for"))
            self._late = error

    def _failed(self, error: DriverError) -> DriverError:
        if error.is_sticky and self.lost is None:
            self.lost = error
            self._schedule.drop(self.index)
        return error

    def _on_error(self, call: str, error: Exception) -> None:
        """Work went wrong: the context is lost."""
        if self.lost is not None:
            return
        if not isinstance(error, DriverError):
            told = error.message if isinstance(error, GraphmillError) else f"{type(error).__name__}: {error}"
            found = DriverError(call, "CUDA_ERROR_LAUNCH_FAILED", told)
            found.__cause__ = error
            error = found
        self.lost = error
        self._schedule.drop(self.index)

    def submit(self, call: str, run: Callable[[], None], stream: FakeStream, before: Any = None) -> None:
        """Put work into a stream; libraries do so, too."""
        if self._late:
            error, self._late = DriverError(call, self._late, "as was asked for"), ""

            def fail() -> None:
                raise error

            run = fail
        self._schedule.put(stream, Work(call, run, before))

    def bytes_at(self, address: int, nbytes: int, call: str) -> Array:
        """The bytes at an address, for work that is being done."""
        return self.memory.bytes_at(address, nbytes, call)

    def poison(self, address: int, nbytes: int, stream: FakeStream) -> None:
        if self.lost is None:
            self._schedule.put(stream, Work("poison", lambda: poison(self.bytes_at(address, nbytes, "poison"))))

    # -- memory --------------------------------------------------------------------------------------------------

    def allocate(self, nbytes: int) -> int:
        self._enter("cuMemAlloc")
        with self._lock:
            if self.faults.is_refused():
                raise OutOfDeviceMemory("cuMemAlloc", "CUDA_ERROR_OUT_OF_MEMORY", "as was asked for")
            return self.memory.allocate(nbytes)

    def free(self, address: int) -> None:
        self._enter("cuMemFree")
        with self._lock:
            self.memory.free(address)

    def memory_info(self) -> tuple[int, int]:
        self._enter("cuMemGetInfo")
        return self.memory.size - self.memory.used, self.memory.size

    def pinned(self, nbytes: int) -> Array:
        self._enter("cuMemHostAlloc")
        return aligned_bytes(nbytes)

    # -- streams and events --------------------------------------------------------------------------------------

    def stream(self) -> FakeStream:
        self._enter("cuStreamCreate")
        return FakeStream(self.index, self._on_error)

    def event(self, *, timing: bool = False) -> FakeEvent:
        self._enter("cuEventCreate")
        return FakeEvent(timing=timing)

    def record(self, event: FakeEvent, stream: FakeStream) -> None:
        self._enter("cuEventRecord")
        self._schedule.record(event, stream)

    def wait(self, stream: FakeStream, event: FakeEvent) -> None:
        self._enter("cuStreamWaitEvent")
        self._schedule.wait(stream, event)

    def done(self, event: FakeEvent) -> bool:
        self._enter("cuEventQuery")
        if event.captured is not None:
            raise self._not_captured("cuEventQuery", event.captured[0])
        self._schedule.advance()
        self._enter("cuEventQuery")
        return event.is_done

    def synchronize(self, what: FakeStream | FakeEvent | None = None) -> None:
        if isinstance(what, FakeEvent):
            call, capture = "cuEventSynchronize", what.captured and what.captured[0]
        elif what is not None:
            call, capture = "cuStreamSynchronize", what.capture
        else:
            call, capture = "cuCtxSynchronize", self._captures[0] if self._captures else None

        def is_done() -> bool:
            if what is None:
                return not self._schedule.is_busy(self.index)
            return what.is_done if isinstance(what, FakeEvent) else not what.queue

        self._enter(call)
        if capture is not None:
            raise self._not_captured(call, capture)
        self._schedule.until(is_done, call)
        self._enter(call)

    def _not_captured(self, call: str, capture: Capture) -> DriverError:
        capture.invalid = f"{call} was called"
        return DriverError(call, "CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED", "nothing can be waited for while recording")

    def elapsed(self, start: FakeEvent, end: FakeEvent) -> float:
        self._enter("cuEventElapsedTime")
        if not (start.timing and end.timing and start.recorded and end.recorded):
            raise DriverError("cuEventElapsedTime", "CUDA_ERROR_INVALID_HANDLE", "an event has no time")
        if not (start.is_done and end.is_done):
            raise DriverError("cuEventElapsedTime", "CUDA_ERROR_NOT_READY", "an event is not done")
        return end.time - start.time

    # -- copies --------------------------------------------------------------------------------------------------

    def copy_in_bytes(self, address: int, host: Array, stream: FakeStream) -> None:
        self.copy_in(address, host.copy(), stream)

    def copy_in(self, address: int, host: Array, stream: FakeStream) -> None:
        call = "cuMemcpyHtoDAsync"
        self._enter(call)
        _check_host(call, host)

        def run() -> None:
            self.bytes_at(address, host.size, call)[:] = host

        self.submit(call, run, stream)

    def copy_out(self, host: Array, address: int, stream: FakeStream) -> None:
        call = "cuMemcpyDtoHAsync"
        self._enter(call)
        _check_host(call, host)

        def run() -> None:
            host[:] = self.bytes_at(address, host.size, call)

        self.submit(call, run, stream, lambda: poison(host))

    def copy(self, to: int, source: int, nbytes: int, stream: FakeStream) -> None:
        call = "cuMemcpyDtoDAsync"
        self._enter(call)

        def run() -> None:
            self.bytes_at(to, nbytes, call)[:] = self.bytes_at(source, nbytes, call)

        self.submit(call, run, stream)

    def copy_peer(self, to: int, to_context: Any, source: int, nbytes: int, stream: FakeStream) -> None:
        call = "cuMemcpyPeerAsync"
        self._enter(call)
        if stream.capture is not None and stream.capture.outer is not None:
            raise DriverError(call, "CUDA_ERROR_NOT_SUPPORTED", "a body has kernels, copies and fills of one GPU alone")

        def run() -> None:
            to_context.bytes_at(to, nbytes, call)[:] = self.bytes_at(source, nbytes, call)

        self.submit(call, run, stream)

    def fill(self, address: int, byte: int, nbytes: int, stream: FakeStream) -> None:
        call = "cuMemsetD8Async"
        self._enter(call)

        def run() -> None:
            self.bytes_at(address, nbytes, call)[:] = byte

        self.submit(call, run, stream)

    # -- kernels -------------------------------------------------------------------------------------------------

    def function(self, kernel: SimtKernel) -> FakeFunction:
        found = self._functions.get(kernel.text)
        if found is None:
            self._enter("cuModuleLoadData")
            most = self.properties.shared_per_block
            if kernel.shared_bytes > most:
                raise DriverError(
                    f"cuModuleLoadData of kernel {kernel.name}", "CUDA_ERROR_INVALID_PTX",
                    f"{kernel.shared_bytes} bytes of shared memory; a block may have {most}",
                )  # fmt: skip
            found = self._functions[kernel.text] = FakeFunction(kernel, self.properties.capability)
        return found

    def launch(self, function: FakeFunction, blocks: int, arguments: Sequence[Argument], stream: FakeStream) -> None:
        call = f"cuLaunchKernel of {function.name}"
        self._enter("cuLaunchKernel")
        kernel = function.kernel
        if not 1 <= blocks <= _MOST_BLOCKS:
            raise DriverError(call, "CUDA_ERROR_INVALID_VALUE", f"{blocks} blocks; expected 1 to {_MOST_BLOCKS}")
        if len(arguments) != len(kernel.parameters):
            count = len(kernel.parameters)
            raise DriverError(call, "CUDA_ERROR_INVALID_VALUE", f"{len(arguments)} arguments; it takes {count}")
        given: list[Any] = [
            _argument(call, one, value) for one, value in zip(kernel.parameters, arguments, strict=True)
        ]

        def run() -> None:
            machine.run(
                kernel, blocks, [self._buffer(call, one) if isinstance(one, _Memory) else one for one in given],
                condition=self._schedule.set_condition if self._schedule.conditions else None,
            )  # fmt: skip

        self.submit("cuLaunchKernel", run, stream)

    def _buffer(self, call: str, given: _Memory) -> Array:
        address, nbytes, type = given
        if address % SIZES[type]:
            raise DriverError(call, "CUDA_ERROR_MISALIGNED_ADDRESS", f"{address:#x} for a buffer of {type}")
        return self.bytes_at(address, nbytes // SIZES[type] * SIZES[type], call).view(DTYPES[type])

    # -- graphs --------------------------------------------------------------------------------------------------

    def begin_capture(self, stream: FakeStream) -> None:
        self._enter("cuStreamBeginCapture")
        with self._lock:
            if stream.capture is not None:
                raise DriverError("cuStreamBeginCapture", "CUDA_ERROR_ILLEGAL_STATE", "the stream is being recorded")
            stream.capture = Capture(stream, threading.get_ident())
            stream.capture.last[stream] = frozenset()
            self._captures.append(stream.capture)

    def end_capture(self, stream: FakeStream) -> FakeGraph:
        call = "cuStreamEndCapture"
        self._enter(call)
        with self._lock:
            capture = stream.capture
            if capture is None or capture.origin is not stream or capture.outer is not None:
                raise DriverError(call, "CUDA_ERROR_ILLEGAL_STATE", "no recording began in this stream")
            if capture.thread != threading.get_ident():
                raise DriverError(call, "CUDA_ERROR_STREAM_CAPTURE_WRONG_THREAD", "another thread began the recording")
            self._captures.remove(capture)
            for one in capture.last:
                one.capture = None
            if capture.open:
                capture.invalid = "the body of a conditional node has no end"
            if capture.invalid:
                raise DriverError(call, "CUDA_ERROR_STREAM_CAPTURE_INVALIDATED", capture.invalid)
            if capture.unjoined():
                raise DriverError(call, "CUDA_ERROR_STREAM_CAPTURE_UNJOINED", "another stream's work is not waited for")
            return FakeGraph(capture.works, capture.conditions)

    def is_recorded(self, stream: FakeStream) -> bool:
        self._enter("cuStreamIsCapturing")
        return stream.capture is not None

    def replay(self, graph: FakeGraph, stream: FakeStream) -> None:
        self._enter("cuGraphLaunch")
        if not graph.is_alive:
            raise DriverError("cuGraphLaunch", "CUDA_ERROR_INVALID_VALUE", "the graph was freed")
        self._schedule.replay(graph, stream)

    def free_graph(self, graph: FakeGraph) -> None:
        graph.is_alive = False

    @property
    def no_conditions(self) -> str:
        return lacks_conditions(self.properties.driver)

    def condition(self, stream: FakeStream) -> int:
        call = "cuGraphConditionalHandleCreate"
        self._enter(call)
        return self._schedule.condition(self._recorded(call, stream))

    def begin_body(self, stream: FakeStream, condition: int, body: FakeStream, *, repeats: bool) -> None:
        self._enter("cuGraphAddNode")
        capture = self._recorded("cuGraphAddNode", stream)
        self._schedule.begin_body(capture, stream, condition, body, repeats)

    def end_body(self, body: FakeStream) -> None:
        call = "cuStreamEndCapture"
        self._enter(call)
        with self._lock:
            capture = self._recorded(call, body)
            if capture.origin is not body or capture.outer is None:
                raise DriverError(call, "CUDA_ERROR_ILLEGAL_STATE", "no body began in this stream")
            for one in capture.last:
                one.capture = None
            outer = capture.outer
            outer.open -= 1
            if not capture.invalid and (capture.open or capture.unjoined()):
                capture.invalid = "a body has work that its end does not wait for"
            if capture.invalid:
                outer.invalid = capture.invalid
                raise DriverError(call, "CUDA_ERROR_STREAM_CAPTURE_INVALIDATED", capture.invalid)

    def _recorded(self, call: str, stream: FakeStream) -> Capture:
        if self.no_conditions:
            raise DriverError(call, "CUDA_ERROR_NOT_SUPPORTED", self.no_conditions)
        if stream.capture is None:
            raise DriverError(call, "CUDA_ERROR_ILLEGAL_STATE", "the stream is not being recorded")
        return stream.capture

    # -- libraries -----------------------------------------------------------------------------------------------

    @cached_property
    def blas(self) -> Any:
        return library("blas", self, fake=True)[0]

    @cached_property
    def dnn(self) -> Any:
        return library("dnn", self, fake=True)[0]


def _check_host(call: str, host: Array) -> None:
    if host.dtype != np.uint8 or host.ndim != 1 or not host.flags.c_contiguous:
        raise DriverError(call, "CUDA_ERROR_INVALID_VALUE", f"host memory as {host.dtype}{list(host.shape)}, not bytes")


def _argument(call: str, parameter: KernelBuffer | Value, value: Any) -> Any:
    """What the machine is given; of a buffer its address, bytes and type.

    Raises:
        DriverError: the parameter is of another kind.
    """
    if isinstance(parameter, KernelBuffer):
        if hasattr(value, "address") and hasattr(value, "nbytes"):
            return _Memory(int(value.address), int(value.nbytes), parameter.type)
        expected = "memory of the GPU"
    elif parameter.type in FLOATING:
        if hasattr(value, "__float__") and not isinstance(value, bool):
            return float(value)
        expected = "a number"
    elif parameter.type == "i1":
        if value in (False, True):
            return int(value)
        expected = "a bool"
    else:
        bits = 8 * SIZES[parameter.type]
        if hasattr(value, "__index__") and -(1 << (bits - 1)) <= (number := operator.index(value)) < 1 << bits:
            return number - (number >> (bits - 1) << bits if number > 0 else 0)
        expected = f"an integer of {bits} bits"
    raise DriverError(
        call, "CUDA_ERROR_INVALID_VALUE", f"argument {parameter.name.lstrip('%')} is {value!r}; expected {expected}"
    )


class FakeDriver:
    """A driver of fake GPUs.

    Args:
        count: how many there are.
        seed: of the order in which work is done.
        memory: bytes of each.
        capability: of each.
        version: of CUDA, 12040 for 12.4.
    """

    def __init__(
        self, count: int = 1, *, seed: int = 0, memory: int = MEMORY, capability: tuple[int, int] = _CAPABILITY,
        version: int = CONDITIONS_FROM,
    ):  # fmt: skip
        self._schedule = Schedule(seed)
        self._properties = DeviceProperties(
            name="Fake GPU", memory=memory, capability=capability, multiprocessors=4, shared_per_block=48 << 10,
            l2=4 << 20, clock=1_000_000, driver=version, runtime="fake",
        )  # fmt: skip
        self._contexts = [FakeContext(index, self._properties, self._schedule) for index in range(count)]

    def count(self) -> int:
        return len(self._contexts)

    def properties(self, index: int) -> DeviceProperties:
        return self.open(index).properties

    def open(self, index: int) -> FakeContext:
        if not 0 <= index < len(self._contexts):
            raise DriverError("cuDeviceGet", "CUDA_ERROR_INVALID_DEVICE", f"there is no GPU {index}")
        return self._contexts[index]
