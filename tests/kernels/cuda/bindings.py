"""What stands for `cuda.bindings.driver` where there is no GPU: its names, arguments and results, over host memory.

Everything is done at once. Each call is noted, so that tests see what was asked for, and in which context.
"""

from __future__ import annotations

import ctypes
import enum
import itertools
import threading
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import numpy as np

# The bindings' names are CUDA's own.


class CUresult(enum.IntEnum):
    CUDA_SUCCESS = 0
    CUDA_ERROR_INVALID_VALUE = 1
    CUDA_ERROR_OUT_OF_MEMORY = 2
    CUDA_ERROR_NO_DEVICE = 100
    CUDA_ERROR_INVALID_DEVICE = 101
    CUDA_ERROR_INVALID_CONTEXT = 201
    CUDA_ERROR_INVALID_PTX = 218
    CUDA_ERROR_UNSUPPORTED_PTX_VERSION = 222
    CUDA_ERROR_NOT_READY = 600
    CUDA_ERROR_ILLEGAL_ADDRESS = 700
    CUDA_ERROR_PEER_ACCESS_ALREADY_ENABLED = 704


class CUdevice_attribute(enum.IntEnum):  # noqa: N801
    CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR = 75
    CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR = 76
    CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT = 16
    CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK = 8
    CU_DEVICE_ATTRIBUTE_L2_CACHE_SIZE = 38
    CU_DEVICE_ATTRIBUTE_CLOCK_RATE = 13


class CUfunction_attribute(enum.IntEnum):  # noqa: N801
    CU_FUNC_ATTRIBUTE_SHARED_SIZE_BYTES = 1
    CU_FUNC_ATTRIBUTE_LOCAL_SIZE_BYTES = 3
    CU_FUNC_ATTRIBUTE_NUM_REGS = 4


class CUjit_option(enum.IntEnum):  # noqa: N801
    CU_JIT_ERROR_LOG_BUFFER = 5
    CU_JIT_ERROR_LOG_BUFFER_SIZE_BYTES = 6


class CUstreamCaptureMode(enum.IntEnum):
    CU_STREAM_CAPTURE_MODE_GLOBAL = 0
    CU_STREAM_CAPTURE_MODE_THREAD_LOCAL = 1
    CU_STREAM_CAPTURE_MODE_RELAXED = 2


class CUstreamCaptureStatus(enum.IntEnum):
    CU_STREAM_CAPTURE_STATUS_NONE = 0
    CU_STREAM_CAPTURE_STATUS_ACTIVE = 1


class CUgraphNodeType(enum.IntEnum):
    CU_GRAPH_NODE_TYPE_CONDITIONAL = 13


class CUgraphConditionalNodeType(enum.IntEnum):
    CU_GRAPH_COND_TYPE_IF = 0
    CU_GRAPH_COND_TYPE_WHILE = 1


class CUstreamUpdateCaptureDependencies_flags(enum.IntEnum):  # noqa: N801
    CU_STREAM_SET_CAPTURE_DEPENDENCIES = 1


class CUgraphNodeParams:
    """What a node of any type is asked for with; `cuGraphAddNode` fills `phGraph_out`."""

    def __init__(self) -> None:
        self.type: CUgraphNodeType | None = None
        self.conditional: Any = SimpleNamespace(phGraph_out=[0])


_OK = CUresult.CUDA_SUCCESS
#: functions that have a number in the bindings of CUDA 12, and none in those of 13
_NUMBERED = {"cuGraphAddNode": 2, "cuStreamUpdateCaptureDependencies": 2, "cuStreamGetCaptureInfo": 3}


_Answer = Callable[..., tuple[Any, ...]]
_table: dict[str, _Answer] = {}


def _answers(*names: str) -> Callable[[_Answer], _Answer]:
    """Register what functions of the driver give besides their status."""

    def register(run: _Answer) -> _Answer:
        _table.update(dict.fromkeys(names, run))
        return run

    return register


class Bindings:
    """The module.

    Attributes:
        calls: each call: its name and arguments.
        fails: the status that a call is to give, by name.
        log: what the compiler says when it fails.
        launches: blocks, threads of a block, and the first bytes of each argument.
        parameters: how many arguments the next launches have.
        has_conditions: whether they know conditional nodes.
    """

    CUgraphNodeType, CUgraphConditionalNodeType = CUgraphNodeType, CUgraphConditionalNodeType
    CUgraphNodeParams, CUgraphConditionalHandle = CUgraphNodeParams, int
    CUstreamUpdateCaptureDependencies_flags = CUstreamUpdateCaptureDependencies_flags

    CUresult, CUdevice_attribute, CUfunction_attribute = CUresult, CUdevice_attribute, CUfunction_attribute
    CUjit_option, CUstreamCaptureMode = CUjit_option, CUstreamCaptureMode
    CUstreamCaptureStatus = CUstreamCaptureStatus

    def __init__(self, *, devices: int = 2, version: int = 12040, numbered: bool = False):
        self.has_conditions = True
        self._numbered = numbered
        self.calls: list[tuple[str, tuple[Any, ...]]] = []
        self.fails: dict[str, CUresult] = {}
        self.log = b""
        self.launches: list[tuple[int, int, list[bytes]]] = []
        self.parameters = 0
        self._devices, self._version = devices, version
        self._handles = itertools.count(1000)
        self._memory: dict[int, Any] = {}
        self._current = threading.local()

    def __getattr__(self, name: str) -> Any:
        numbers = {f"{each}_v{number}": each for each, number in _NUMBERED.items()} if self._numbered else {}
        plain = numbers.get(name, name)
        if plain not in _table or (name == "cuGraphConditionalHandleCreate" and not self.has_conditions):
            raise AttributeError(name)

        def call(*arguments: Any) -> tuple[Any, ...]:
            self.calls.append((name, arguments))
            if name in self.fails:
                if name == "cuModuleLoadDataEx":
                    arguments[3][0][: len(self.log)] = self.log
                return self._failed(self.fails[name], name)
            if getattr(self._current, "context", None) is None and name in _IN_CONTEXT:
                return self._failed(CUresult.CUDA_ERROR_INVALID_CONTEXT, name)
            return (_OK, *_table[plain](self, *arguments))

        return call

    @staticmethod
    def _failed(status: CUresult, name: str) -> tuple[Any, ...]:
        return (status,) if _table[name] is Bindings._nothing or name == "cuLaunchKernel" else (status, None)

    def count(self, name: str) -> int:
        """How often something was called."""
        return sum(called == name for called, _ in self.calls)

    @_answers(
        "cuStreamCreate", "cuEventCreate", "cuStreamEndCapture", "cuModuleLoadDataEx", "cuModuleGetFunction"
    )  # fmt: skip
    def _new(self, *_: Any) -> tuple[int]:
        return (next(self._handles),)

    @_answers(
        "cuInit", "cuStreamSynchronize", "cuCtxSynchronize", "cuEventSynchronize", "cuEventRecord", "cuStreamWaitEvent",
        "cuEventQuery", "cuStreamBeginCapture", "cuGraphLaunch", "cuGraphDestroy", "cuGraphExecDestroy",
        "cuStreamDestroy", "cuEventDestroy", "cuMemFreeHost", "cuCtxEnablePeerAccess",
        "cuStreamUpdateCaptureDependencies", "cuStreamBeginCaptureToGraph",
    )  # fmt: skip
    def _nothing(self, *_: Any) -> tuple[()]:
        return ()

    @_answers("cuStreamIsCapturing")
    def _is_capturing(self, stream: Any) -> tuple[CUstreamCaptureStatus]:
        asked = [name for name, given in self.calls if name in _CAPTURES and given[0] is stream]
        recorded = asked[-1:] == ["cuStreamBeginCapture"]
        status = CUstreamCaptureStatus
        return (status.CU_STREAM_CAPTURE_STATUS_ACTIVE if recorded else status.CU_STREAM_CAPTURE_STATUS_NONE,)

    @_answers("cuGetErrorName")
    def _get_error_name(self, status: CUresult) -> tuple[bytes]:
        return (status.name.encode(),)

    @_answers("cuGetErrorString")
    def _get_error_string(self, status: CUresult) -> tuple[bytes]:
        return (f"words for {int(status)}".encode(),)

    @_answers("cuDriverGetVersion")
    def _driver_get_version(self) -> tuple[int]:
        return (self._version,)

    @_answers("cuDeviceGetCount")
    def _device_get_count(self) -> tuple[int]:
        return (self._devices,)

    @_answers("cuDeviceGet")
    def _device_get(self, index: int) -> tuple[int]:
        return (index,)

    @_answers("cuDeviceGetName")
    def _device_get_name(self, length: int, device: int) -> tuple[bytes]:
        return (f"GPU of tests {device}".encode().ljust(length, b"\0"),)

    @_answers("cuDeviceTotalMem")
    def _device_total_mem(self, device: int) -> tuple[int]:
        return (1 << 30,)

    @_answers("cuDeviceGetAttribute")
    def _device_get_attribute(self, attribute: CUdevice_attribute, device: int) -> tuple[int]:
        return ({75: 9, 76: 0}.get(int(attribute), int(attribute)),)

    @_answers("cuDevicePrimaryCtxRetain")
    def _device_primary_ctx_retain(self, device: int) -> tuple[str]:
        return (f"context {device}",)

    @_answers("cuCtxSetCurrent")
    def _ctx_set_current(self, context: str) -> tuple[()]:
        self._current.context = context
        return ()

    @_answers("cuThreadExchangeStreamCaptureMode")
    def _thread_exchange_stream_capture_mode(self, mode: CUstreamCaptureMode) -> tuple[CUstreamCaptureMode]:
        before = getattr(self._current, "mode", CUstreamCaptureMode.CU_STREAM_CAPTURE_MODE_GLOBAL)
        self._current.mode = mode
        return (before,)

    @_answers("cuMemGetInfo")
    def _mem_get_info(self) -> tuple[int, int]:
        return (1 << 29, 1 << 30)

    @_answers("cuMemAlloc")
    def _mem_alloc(self, nbytes: int) -> tuple[int]:
        raw = np.zeros(nbytes + 256, np.uint8)
        address = raw.ctypes.data + -raw.ctypes.data % 256
        self._memory[address] = raw
        return (address,)

    @_answers("cuMemHostAlloc")
    def _mem_host_alloc(self, nbytes: int, flags: int) -> tuple[int]:
        return self._mem_alloc(nbytes)

    @_answers("cuMemFree")
    def _mem_free(self, address: int) -> tuple[()]:
        del self._memory[address]
        return ()

    @_answers("cuMemcpyHtoDAsync")
    def _memcpy_in(self, to: int, host: Any, nbytes: int, stream: int) -> tuple[()]:
        ctypes.memmove(to, np.asarray(host).ctypes.data, nbytes)
        return ()

    @_answers("cuMemcpyDtoHAsync")
    def _memcpy_out(self, host: Any, source: int, nbytes: int, stream: int) -> tuple[()]:
        ctypes.memmove(np.asarray(host).ctypes.data, source, nbytes)
        return ()

    @_answers("cuMemcpyDtoDAsync")
    def _memcpy_within(self, to: int, source: int, nbytes: int, stream: int) -> tuple[()]:
        ctypes.memmove(to, source, nbytes)
        return ()

    @_answers("cuMemcpyPeerAsync")
    def _memcpy_peer_async(self, to: int, there: str, source: int, here: str, nbytes: int, stream: int) -> tuple[()]:
        return self._memcpy_within(to, source, nbytes, stream)

    @_answers("cuDeviceCanAccessPeer")
    def _device_can_access_peer(self, here: int, there: int) -> tuple[int]:
        return (1,)

    @_answers("cuMemsetD8Async")
    def _memset_d8_async(self, address: int, byte: int, nbytes: int, stream: int) -> tuple[()]:
        ctypes.memset(address, byte, nbytes)
        return ()

    @_answers("cuFuncGetAttribute")
    def _func_get_attribute(self, attribute: CUfunction_attribute, function: int) -> tuple[int]:
        return (10 * int(attribute),)

    @_answers("cuEventElapsedTime")
    def _event_elapsed_time(self, start: int, end: int) -> tuple[float]:
        return (1.5,)

    @_answers("cuGraphInstantiate")
    def _graph_instantiate(self, graph: int, flags: int) -> tuple[int]:
        return (graph + 1,)

    @_answers("cuGraphGetNodes")
    def _graph_get_nodes(self, graph: int) -> tuple[list[Any], int]:
        return ([], 7)

    @_answers("cuGraphConditionalHandleCreate")
    def _graph_conditional_handle_create(self, graph: str, context: str, default: int, flags: int) -> tuple[int]:
        return (next(self._handles),)

    @_answers("cuStreamGetCaptureInfo")
    def _stream_get_capture_info(self, stream: int) -> tuple[Any, ...]:
        return (1, 5, "graph", ["before"], [], 1)

    @_answers("cuGraphAddNode")
    def _graph_add_node(self, graph: str, nodes: Any, edges: Any, count: int, asked: CUgraphNodeParams) -> tuple[str]:
        asked.conditional.phGraph_out = ["body"]
        return ("node",)

    @_answers("cuLaunchKernel")
    def _launch_kernel(self, function: int, *rest: Any) -> tuple[()]:
        blocks, _, _, threads, _, _, shared, stream, pointers, extra = rest
        assert shared == 0 and extra == 0 and stream
        array = (ctypes.c_void_p * self.parameters).from_address(pointers)
        given = [ctypes.string_at(place or 0, 8) for place in array]
        self.launches.append((blocks, threads, given))
        return ()


_CAPTURES = ("cuStreamBeginCapture", "cuStreamEndCapture")
#: calls that a thread makes in a context only
_IN_CONTEXT = frozenset({
    "cuStreamCreate", "cuEventCreate", "cuMemAlloc", "cuMemHostAlloc", "cuMemGetInfo", "cuModuleLoadDataEx",
    "cuCtxSynchronize", "cuMemcpyHtoDAsync", "cuLaunchKernel",
})  # fmt: skip
