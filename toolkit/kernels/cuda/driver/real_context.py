"""The primary context of an NVIDIA GPU."""

from __future__ import annotations

import ctypes
import threading
import weakref
from collections import deque
from collections.abc import Generator, Sequence
from contextlib import contextmanager
from functools import cached_property
from typing import Any

import numpy as np

from toolkit.kernels.cuda.driver.base import Argument, DeviceProperties, DriverError, lacks_conditions
from toolkit.kernels.cuda.driver.calls import Calls
from toolkit.kernels.cuda.driver.linked import library
from toolkit.kernels.cuda.driver.real_function import CudaFunction
from toolkit.kernels.cuda.simt.ir import SimtKernel
from toolkit.kernels.types import Array

_NON_BLOCKING = 1  # CU_STREAM_NON_BLOCKING: does not wait for the legacy stream
_NO_TIMING = 2  # CU_EVENT_DISABLE_TIMING, which makes events cheap
_PORTABLE = 1  # CU_MEMHOSTALLOC_PORTABLE: pinned for all devices


class _Thread(threading.local):
    """Whose context is current in a thread."""

    context: CudaContext | None = None


_thread = _Thread()


class CudaStream:
    """A stream; destroyed some time after nobody refers to it."""

    __slots__ = ("_gone", "handle", "value")

    def __init__(self, value: Any, gone: deque[tuple[str, Any]]):
        self.value = value
        self.handle = int(value)
        self._gone = gone

    def __del__(self) -> None:
        self._gone.append(("cuStreamDestroy", self.value))


class CudaEvent:
    """An event; destroyed some time after nobody refers to it."""

    __slots__ = ("_gone", "handle", "value")

    def __init__(self, value: Any, gone: deque[tuple[str, Any]]):
        self.value = value
        self.handle = int(value)
        self._gone = gone

    def __del__(self) -> None:
        self._gone.append(("cuEventDestroy", self.value))


class CudaGraph:
    """A recorded graph, instantiated.

    Attributes:
        value: what is launched; None when it was freed.
        operations: nodes of it.
    """

    __slots__ = ("operations", "value")

    def __init__(self, value: Any, operations: int):
        self.value = value
        self.operations = operations


class CudaContext:
    """A GPU of this process."""

    poisons = False

    def __init__(self, calls: Calls, index: int, properties: DeviceProperties):
        self.index = index
        self.properties = properties
        self.lost: DriverError | None = None
        self.measures = False
        self._calls = calls
        self._success: Any = calls.success
        driver: Any = calls.module
        self._driver = driver
        # what each step calls, without a look for its name
        self._launch: Any = driver.cuLaunchKernel
        self._launch_graph: Any = driver.cuGraphLaunch
        self._await_stream: Any = driver.cuStreamSynchronize
        self._modes: Any = driver.CUstreamCaptureMode
        self._context: Any = calls("cuDevicePrimaryCtxRetain", calls("cuDeviceGet", index))
        self._functions: dict[SimtKernel, CudaFunction] = {}
        self._compiling = threading.Lock()
        self._gone: deque[tuple[str, Any]] = deque()  # what is to be destroyed
        self._peers: set[int] = set()

    def enter(self) -> None:
        """Make this the context of the calling thread; libraries ask for it."""
        if _thread.context is not self:
            self._calls("cuCtxSetCurrent", self._context)
            _thread.context = self

    def _call(self, name: str, *arguments: Any) -> Any:
        if _thread.context is not self:
            self.enter()
        try:
            return self._calls(name, *arguments)
        except DriverError as error:
            raise self._noted(error) from None

    def _noted(self, error: DriverError) -> DriverError:
        if error.is_sticky and self.lost is None:
            self.lost = error
        return error

    @contextmanager
    def _relaxed(self) -> Generator[None]:
        """What allocates is refused in a thread that records a graph, but for this."""
        before = self._call("cuThreadExchangeStreamCaptureMode", self._modes.CU_STREAM_CAPTURE_MODE_RELAXED)
        try:
            yield
        finally:
            self._call("cuThreadExchangeStreamCaptureMode", before)

    def _bury(self) -> None:
        """Destroy what nobody refers to."""
        while self._gone:
            try:
                name, value = self._gone.popleft()
            except IndexError:
                return  # another thread
            self._call(name, value)

    def poison(self, address: int, nbytes: int, stream: CudaStream) -> None:
        """Nothing: NVIDIA's memory keeps what is in it."""

    # -- memory --------------------------------------------------------------------------------------------------

    def allocate(self, nbytes: int) -> int:
        with self._relaxed():
            return int(self._call("cuMemAlloc", nbytes))

    def free(self, address: int) -> None:
        with self._relaxed():
            self._call("cuMemFree", address)

    def memory_info(self) -> tuple[int, int]:
        free, total = self._call("cuMemGetInfo")
        return int(free), int(total)

    def pinned(self, nbytes: int) -> Array:
        with self._relaxed():
            self._bury()
            address = int(self._call("cuMemHostAlloc", max(nbytes, 1), _PORTABLE))
        memory: Any = (ctypes.c_uint8 * nbytes).from_address(address)
        weakref.finalize(memory, self._gone.append, ("cuMemFreeHost", address)).atexit = False
        return np.frombuffer(memory, np.uint8)

    # -- streams and events --------------------------------------------------------------------------------------

    def stream(self) -> CudaStream:
        with self._relaxed():
            self._bury()
        return CudaStream(self._call("cuStreamCreate", _NON_BLOCKING), self._gone)

    def event(self, *, timing: bool = False) -> CudaEvent:
        return CudaEvent(self._call("cuEventCreate", 0 if timing else _NO_TIMING), self._gone)

    def record(self, event: CudaEvent, stream: CudaStream) -> None:
        self._call("cuEventRecord", event.value, stream.value)

    def wait(self, stream: CudaStream, event: CudaEvent) -> None:
        self._call("cuStreamWaitEvent", stream.value, event.value, 0)

    def done(self, event: CudaEvent) -> bool:
        if _thread.context is not self:
            self.enter()
        (status,) = self._driver.cuEventQuery(event.value)
        if status == self._success:
            return True
        if status == self._driver.CUresult.CUDA_ERROR_NOT_READY:
            return False
        raise self._noted(self._calls.error("cuEventQuery", status))

    def synchronize(self, what: CudaStream | CudaEvent | None = None) -> None:
        if isinstance(what, CudaStream):
            if _thread.context is not self:
                self.enter()
            (status,) = self._await_stream(what.value)
            if status is not self._success and status != self._success:
                raise self._noted(self._calls.error("cuStreamSynchronize", status))
        elif what is None:
            self._call("cuCtxSynchronize")
        else:
            self._call("cuEventSynchronize", what.value)

    def elapsed(self, start: CudaEvent, end: CudaEvent) -> float:
        return float(self._call("cuEventElapsedTime", start.value, end.value))

    # -- copies --------------------------------------------------------------------------------------------------

    def copy_in_bytes(self, address: int, host: Array, stream: CudaStream) -> None:
        # of pageable memory the driver takes a copy before it returns ("API synchronization behavior")
        self._call("cuMemcpyHtoDAsync", address, host, host.nbytes, stream.value)

    copy_in = copy_in_bytes

    def copy_out(self, host: Array, address: int, stream: CudaStream) -> None:
        self._call("cuMemcpyDtoHAsync", host, address, host.nbytes, stream.value)

    def copy(self, to: int, source: int, nbytes: int, stream: CudaStream) -> None:
        self._call("cuMemcpyDtoDAsync", to, source, nbytes, stream.value)

    def copy_peer(self, to: int, to_context: Any, source: int, nbytes: int, stream: CudaStream) -> None:
        if to_context.index not in self._peers:
            self._reach(to_context)
        self._call("cuMemcpyPeerAsync", to, to_context.primary, source, self._context, nbytes, stream.value)

    @property
    def primary(self) -> Any:
        """CUDA's context."""
        return self._context

    def _reach(self, other: CudaContext) -> None:
        """Have copies to another GPU go without host memory, where the machine can do that."""
        self._peers.add(other.index)
        here, there = (self._call("cuDeviceGet", one.index) for one in (self, other))
        if self._call("cuDeviceCanAccessPeer", here, there):
            try:
                self._call("cuCtxEnablePeerAccess", other.primary, 0)
            except DriverError as error:
                if error.error != "CUDA_ERROR_PEER_ACCESS_ALREADY_ENABLED":
                    raise

    def fill(self, address: int, byte: int, nbytes: int, stream: CudaStream) -> None:
        self._call("cuMemsetD8Async", address, byte, nbytes, stream.value)

    # -- kernels -------------------------------------------------------------------------------------------------

    def function(self, kernel: SimtKernel) -> CudaFunction:
        found = self._functions.get(kernel)
        if found is None:
            self.enter()
            with self._compiling:
                found = self._functions.get(kernel)
                if found is None:
                    with self._relaxed():
                        found = CudaFunction(self._calls, kernel, self.properties.capability)
                    self._functions[kernel] = found
        return found

    def launch(self, function: CudaFunction, blocks: int, arguments: Sequence[Argument], stream: CudaStream) -> None:
        if _thread.context is not self:
            self.enter()
        given: Any = arguments
        if len(given) != len(function.is_buffer):
            count = len(function.is_buffer)
            call = f"cuLaunchKernel of {function.name}"
            raise DriverError(call, "CUDA_ERROR_INVALID_VALUE", f"{len(given)} arguments; it takes {count}")
        packed = function.packed(
            [one.address if memory else one for memory, one in zip(function.is_buffer, given, strict=False)]
        )
        (status,) = self._launch(
            function.handle, blocks, 1, 1, function.block, 1, 1, 0, stream.value, packed.address, 0
        )  # fmt: skip
        function.spare.append(packed)
        if status != self._success:
            raise self._noted(self._calls.error(f"cuLaunchKernel of {function.name}", status))

    # -- graphs --------------------------------------------------------------------------------------------------

    def begin_capture(self, stream: CudaStream) -> None:
        self._call("cuStreamBeginCapture", stream.value, self._modes.CU_STREAM_CAPTURE_MODE_THREAD_LOCAL)

    def end_capture(self, stream: CudaStream) -> CudaGraph:
        graph = self._call("cuStreamEndCapture", stream.value)
        try:
            return CudaGraph(self._call("cuGraphInstantiate", graph, 0), int(self._call("cuGraphGetNodes", graph)[1]))
        finally:
            self._call("cuGraphDestroy", graph)

    def is_recorded(self, stream: CudaStream) -> bool:
        none = self._driver.CUstreamCaptureStatus.CU_STREAM_CAPTURE_STATUS_NONE
        return bool(self._call("cuStreamIsCapturing", stream.value) != none)

    def replay(self, graph: CudaGraph, stream: CudaStream) -> None:
        if graph.value is None:
            raise DriverError("cuGraphLaunch", "CUDA_ERROR_INVALID_VALUE", "the graph was freed")
        if _thread.context is not self:
            self.enter()
        (status,) = self._launch_graph(graph.value, stream.value)
        if status is not self._success and status != self._success:
            raise self._noted(self._calls.error("cuGraphLaunch", status))

    def free_graph(self, graph: CudaGraph) -> None:
        if graph.value is not None:
            value, graph.value = graph.value, None
            self._call("cuGraphExecDestroy", value)

    @property
    def no_conditions(self) -> str:
        if not hasattr(self._driver, "cuGraphConditionalHandleCreate"):
            return f"cuda-bindings {self.properties.runtime} has no conditional nodes; install 12.4 or later"
        return lacks_conditions(self.properties.driver)

    def condition(self, stream: CudaStream) -> int:
        graph, _ = self._recorded_graph(stream)
        return int(self._call("cuGraphConditionalHandleCreate", graph, self._context, 0, 0))

    def begin_body(self, stream: CudaStream, condition: int, body: CudaStream, *, repeats: bool) -> None:
        driver = self._driver
        graph, behind = self._recorded_graph(stream)
        kinds = driver.CUgraphConditionalNodeType
        asked = driver.CUgraphNodeParams()
        asked.type = driver.CUgraphNodeType.CU_GRAPH_NODE_TYPE_CONDITIONAL
        node = asked.conditional
        node.handle = driver.CUgraphConditionalHandle(condition)
        node.type = kinds.CU_GRAPH_COND_TYPE_WHILE if repeats else kinds.CU_GRAPH_COND_TYPE_IF
        node.size, node.ctx = 1, self._context
        made = self._call(self._versioned("cuGraphAddNode", 2), graph, *behind, asked)
        flag = driver.CUstreamUpdateCaptureDependencies_flags.CU_STREAM_SET_CAPTURE_DEPENDENCIES
        update = self._versioned("cuStreamUpdateCaptureDependencies", 2)
        self._call(update, stream.value, [made], None, 1, int(flag))
        inside = asked.conditional.phGraph_out[0]
        mode = self._modes.CU_STREAM_CAPTURE_MODE_THREAD_LOCAL
        self._call("cuStreamBeginCaptureToGraph", body.value, inside, None, None, 0, mode)

    def end_body(self, body: CudaStream) -> None:
        self._call("cuStreamEndCapture", body.value)  # the graph is its node's

    def _recorded_graph(self, stream: CudaStream) -> tuple[Any, tuple[Any, Any, int]]:
        """The graph that is recorded in a stream, and what comes next is behind: nodes, edges, how many."""
        _, _, graph, nodes, edges, count = self._call(self._versioned("cuStreamGetCaptureInfo", 3), stream.value)
        return graph, (nodes, edges or None, count)

    def _versioned(self, name: str, number: int) -> str:
        """A function that takes edges: in the bindings of CUDA 12 it has a number, in those of 13 none."""
        numbered = f"{name}_v{number}"
        return numbered if hasattr(self._driver, numbered) else name

    # -- libraries -----------------------------------------------------------------------------------------------

    @cached_property
    def blas(self) -> Any:
        return library("blas", self, self.enter, fake=False)[0]

    @cached_property
    def dnn(self) -> Any:
        return library("dnn", self, self.enter, fake=False)[0]
