"""What is asked of a CUDA driver, under CUDA's names: contexts, streams, events, memory, functions, graphs.

`real` asks NVIDIA's, `fake` needs no GPU and is stricter. Work is put into streams and done later, in order within a
stream; between streams only events say what comes first. Nothing here checks twice what the driver checks.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple, Protocol, TypeAlias

from toolkit.errors import InternalError
from toolkit.kernels.cuda.simt.ir import SimtKernel
from toolkit.kernels.types import Array

#: statuses after which a context can do nothing more (CUDA's "sticky" errors), by name
STICKY = frozenset({
    "CUDA_ERROR_ECC_UNCORRECTABLE", "CUDA_ERROR_NVLINK_UNCORRECTABLE", "CUDA_ERROR_ILLEGAL_ADDRESS",
    "CUDA_ERROR_LAUNCH_TIMEOUT", "CUDA_ERROR_ASSERT", "CUDA_ERROR_HARDWARE_STACK_ERROR",
    "CUDA_ERROR_ILLEGAL_INSTRUCTION", "CUDA_ERROR_MISALIGNED_ADDRESS", "CUDA_ERROR_INVALID_ADDRESS_SPACE",
    "CUDA_ERROR_INVALID_PC", "CUDA_ERROR_LAUNCH_FAILED", "CUDA_ERROR_TENSOR_MEMORY_LEAK",
})  # fmt: skip


#: the first version of CUDA whose graphs have conditional nodes
CONDITIONS_FROM = 12040


def dotted(version: int) -> str:
    """A version of CUDA: 12040 as "12.4"."""
    return f"{version // 1000}.{version % 1000 // 10}"


def lacks_conditions(version: int) -> str:
    """Why graphs of a driver for a version of CUDA have no conditional nodes; "" where they have."""
    if version >= CONDITIONS_FROM:
        return ""
    least = dotted(CONDITIONS_FROM)
    return f"NVIDIA's driver is for CUDA {dotted(version)}; graphs have conditional nodes from {least} on"


class DriverError(InternalError):
    """A call of the driver, or of a library over it, that failed.

    Attributes:
        call: "cuLaunchKernel", with what it was about.
        error: the name of its status: "CUDA_ERROR_ILLEGAL_ADDRESS".
        text: the driver's words.
        is_sticky: nothing more can be done in the context.
    """

    def __init__(self, call: str, error: str, text: str, *, node: str | None = None):
        self.call, self.error, self.text = call, error, text
        self.is_sticky = error in STICKY
        lost = "; the GPU's context is lost, start the program anew" if self.is_sticky else ""
        super().__init__(f"{call} failed: {error}{f' ({text})' if text else ''}{lost}", node=node)


class OutOfDeviceMemory(DriverError):  # noqa: N818 as CUDA calls it
    """There is no room for an allocation."""


@dataclass(frozen=True, slots=True)
class DeviceProperties:
    """Attributes:
    name: "NVIDIA H100 80GB HBM3".
    memory: bytes.
    capability: (9, 0) is sm_90.
    multiprocessors: how many there are.
    shared_per_block: bytes of shared memory that a block may have without asking for more.
    l2: bytes of the second cache.
    clock: in kHz.
    driver: the version of CUDA that the driver brings, 12040 is 12.4.
    runtime: the version of the bindings or of what stands for them, "13.0.3".
    """

    name: str
    memory: int
    capability: tuple[int, int]
    multiprocessors: int
    shared_per_block: int
    l2: int
    clock: int
    driver: int
    runtime: str


class GpuSpan(NamedTuple):
    """Memory of a GPU: an argument of a kernel. Whatever has these two attributes will do."""

    address: int
    nbytes: int


class Span(Protocol):
    """What has an address and a size: a `GpuSpan`, a `GpuArray`."""

    @property
    def address(self) -> int: ...

    @property
    def nbytes(self) -> int: ...


#: of a kernel, by its parameters: memory for buffers, numbers for scalars
Argument: TypeAlias = Span | int | float


#: what a context makes, of a class of each driver's own:
#: work that is done in order; `handle` is CUDA's number of it, for libraries
Stream: TypeAlias = Any
#: a point in a stream; it has a `handle`, too
Event: TypeAlias = Any
#: work that was recorded, ready to be done again and again; `operations` says how many there are in it
CapturedGraph: TypeAlias = Any
#: a kernel, compiled and loaded: `name`; `registers` and `spills` (bytes that found no register) of a thread; `shared`,
#: bytes of a block; `ptx`, what was compiled
LoadedKernel: TypeAlias = Any


class Context(Protocol):
    """A device of a process (CUDA's primary context), used by any thread.

    Every call raises `DriverError` when the driver refuses it. An error of work that was put into a stream is told by
    any later call.
    """

    @property
    def index(self) -> int:
        """The number of the device."""
        ...

    @property
    def properties(self) -> DeviceProperties: ...

    @property
    def poisons(self) -> bool:
        """Whether memory that is free is to be filled with garbage (`poison`), so that whoever uses it is found."""
        ...

    def poison(self, address: int, nbytes: int, stream: Stream) -> None:
        """Fill memory with NaNs, behind what is in the stream."""
        ...

    #: whether libraries may choose how they compute something by measuring it; not at first, the device says so
    measures: bool

    # -- memory

    def allocate(self, nbytes: int) -> int:
        """The address of new memory, a multiple of 256.

        Raises:
            OutOfDeviceMemory: there is no room.
        """
        ...

    def free(self, address: int) -> None: ...

    def memory_info(self) -> tuple[int, int]:
        """Bytes that are free, and bytes that there are."""
        ...

    def pinned(self, nbytes: int) -> Array:
        """Host memory of which copies are asynchronous: uint8, freed with the array."""
        ...

    # -- streams and events

    def stream(self) -> Stream:
        """A new stream that waits for no other."""
        ...

    def event(self, *, timing: bool = False) -> Event:
        """A new event, done at first."""
        ...

    def record(self, event: Event, stream: Stream) -> None:
        """The event is done when all is done that is in the stream now."""
        ...

    def wait(self, stream: Stream, event: Event) -> None:
        """What is put into the stream from now on waits for the event as recorded last, on whatever device."""
        ...

    def done(self, event: Event) -> bool: ...

    def synchronize(self, what: Stream | Event | None = None) -> None:
        """Wait for a stream, an event, or everything."""
        ...

    def elapsed(self, start: Event, end: Event) -> float:
        """Milliseconds between two events with timing that are done."""
        ...

    # -- copies; host arrays are bytes, of pinned memory, and must stay as they are until the copy is done

    def copy_in_bytes(self, address: int, host: Array, stream: Stream) -> None:
        """A copy of little host memory of any kind, which may be changed as soon as this returns."""
        ...

    def copy_in(self, address: int, host: Array, stream: Stream) -> None: ...

    def copy_out(self, host: Array, address: int, stream: Stream) -> None: ...

    def copy(self, to: int, source: int, nbytes: int, stream: Stream) -> None: ...

    def copy_peer(self, to: int, to_context: Context, source: int, nbytes: int, stream: Stream) -> None:
        """From this device to another one; `stream` is of this one."""
        ...

    def fill(self, address: int, byte: int, nbytes: int, stream: Stream) -> None: ...

    # -- kernels

    def function(self, kernel: SimtKernel) -> LoadedKernel:
        """Compiled and loaded once for each text.

        Raises:
            DriverError: the driver cannot compile it; its words are in the message.
        """
        ...

    def launch(self, function: LoadedKernel, blocks: int, arguments: Sequence[Argument], stream: Stream) -> None:
        """Run a kernel in so many blocks (1 at least)."""
        ...

    # -- graphs

    def begin_capture(self, stream: Stream) -> None:
        """From now on what is put into the stream is recorded and not done."""
        ...

    def end_capture(self, stream: Stream) -> CapturedGraph: ...

    def is_recorded(self, stream: Stream) -> bool:
        """Whether what is put into the stream now is recorded."""
        ...

    def replay(self, graph: CapturedGraph, stream: Stream) -> None:
        """Do what was recorded, with the same memory and numbers."""
        ...

    def free_graph(self, graph: CapturedGraph) -> None: ...

    # -- conditional nodes: bodies of a graph that are done, or done again, by what kernels of it compute

    @property
    def no_conditions(self) -> str:
        """Why graphs have no conditional nodes here, in a few words; "" where they have."""
        ...

    def condition(self, stream: Stream) -> int:
        """A new condition of the graph that is recorded in a stream, for one conditional node in it or in a body of it.

        Kernels set it (`KernelBuilder.set_condition`); each replay begins with any value.
        """
        ...

    def begin_body(self, stream: Stream, condition: int, body: Stream, *, repeats: bool) -> None:
        """Put a conditional node behind what is recorded in `stream`: what is put into `body` from now on.

        Args:
            condition: looked at when what is before the node is done.
            body: a stream that is not recorded.
            repeats: the body is done as long as the condition is not 0 (WHILE), else once if it is not (IF).
        """
        ...

    def end_body(self, body: Stream) -> None: ...

    # -- libraries (`toolkit.kernels.cuda.libraries.base`), None where they are not installed

    @property
    def blas(self) -> Any: ...

    @property
    def dnn(self) -> Any: ...


class Driver(Protocol):
    """A CUDA driver."""

    def count(self) -> int:
        """How many devices there are."""
        ...

    def properties(self, index: int) -> DeviceProperties: ...

    def open(self, index: int) -> Context:
        """The context of a device, the same each time."""
        ...
