"""A GPU as kernels see it: its streams, its memory, and launches."""

from __future__ import annotations

import copy
import math
import os
import threading
from collections.abc import Callable, Generator, Sequence
from contextlib import contextmanager, nullcontext
from typing import Any

import numpy as np

from toolkit.errors import InternalError
from toolkit.forks import held_over_forks
from toolkit.graph.device import DeviceSpec
from toolkit.graph.node import Node
from toolkit.kernels.cuda import settings
from toolkit.kernels.cuda.checks import Checks
from toolkit.kernels.cuda.draws import Draws
from toolkit.kernels.cuda.driver import choose
from toolkit.kernels.cuda.driver.base import Argument, Context, DeviceProperties, DriverError, Stream
from toolkit.kernels.cuda.filling import filled_by
from toolkit.kernels.cuda.memory import GpuArray, GpuMemory
from toolkit.kernels.cuda.pool import Budget, Pool
from toolkit.kernels.cuda.recording import Recording
from toolkit.kernels.cuda.simt.ir import SimtKernel
from toolkit.kernels.cuda.transfers import Transfers
from toolkit.kernels.types import Array

_Shape = Sequence[int]
#: says that kernels whose results depend on the order of threads are not to be used; TensorFlow's variable
DETERMINISTIC = "TF_DETERMINISTIC_OPS"
#: says, with 0, that no way to compute something is chosen by measuring; TensorFlow's variable
AUTOTUNE = "TF_CUDNN_USE_AUTOTUNE"


class _Shared:
    """What changes, of which all views of a device have one."""

    def __init__(self) -> None:
        self.deterministic = os.environ.get(DETERMINISTIC, "").lower() in ("1", "true")
        self.recording: dict[int, Stream] = {}  # by thread
        self.largest_copy: dict[int, int] = {}  # likewise
        self.draws: dict[int, Draws] = {}  # likewise
        self.checks: dict[int, Checks] = {}  # likewise
        self.streams: list[Stream] = []  # that were recorded, to be used again: libraries keep memory for each


class CudaDevice:
    """One GPU.

    Kernels have views of it that know their node (`device_of`), for messages.

    Attributes:
        index: its number.
        name: "/device:GPU:0".
        context: of the driver.
        properties: what it is.
        pool: the allocator.
        memory: for the runtime.
        node: for which node this view of the device is, "" for none.
        root: the view that is for none, which arrays know.
    """

    def __init__(self, index: int, context: Context, limit: int, *, grows: bool = True):
        self.index = index
        self.name = f"/device:GPU:{index}"
        self.context = context
        self.properties: DeviceProperties = context.properties
        self.node = ""
        self.root = self
        self._compute = context.stream()
        self.pool = Pool(context, self._compute, Budget(limit), self.name, grows=grows)
        self._transfers = Transfers(context, self._compute, self.pool)
        self._shared = _Shared()
        self.memory = GpuMemory(self)
        self._let_measure()

    def _let_measure(self) -> None:
        """Have libraries choose by measuring, but for devices whose bits shall be the same each time."""
        wanted = os.environ.get(AUTOTUNE, "").lower() not in ("0", "false")
        self.context.measures = wanted and not self.deterministic

    def for_node(self, node: str) -> CudaDevice:
        """This device, with messages that name a node."""
        made = copy.copy(self)
        made.node = node
        return made

    @property
    def compute(self) -> Stream:
        """The stream of kernels; while this thread records a graph, the one that is recorded."""
        recording = self._shared.recording
        return recording.get(threading.get_ident(), self._compute) if recording else self._compute

    @property
    def copy_in_stream(self) -> Stream:
        """The stream of large copies from the host."""
        return self._transfers.into

    @property
    def copy_out_stream(self) -> Stream:
        """The stream of large copies to the host, and to other GPUs."""
        return self._transfers.out

    @property
    def deterministic(self) -> bool:
        """Whether a kernel must give the same bits each time."""
        return self._shared.deterministic

    @deterministic.setter
    def deterministic(self, value: bool) -> None:
        self._shared.deterministic = value
        self._let_measure()

    @property
    def is_recording(self) -> bool:
        """Whether this thread records a graph."""
        return threading.get_ident() in self._shared.recording

    @property
    def largest_copy(self) -> int:
        """While this thread records a graph: bytes that had better be copied into a variable, in every replay, than
        that the step is launched kernel by kernel because the variable was given another array."""
        return self._shared.largest_copy.get(threading.get_ident(), 0)

    @property
    def draws(self) -> Draws | None:
        """While this thread records a graph: what takes the random numbers of each replay; None where nothing does."""
        return self._shared.draws.get(threading.get_ident())

    @property
    def checks(self) -> Checks | None:
        """While this thread records a graph: what its replays look at; None where they look at nothing."""
        return self._shared.checks.get(threading.get_ident())

    @contextmanager
    def checking(self, *, saves: bool = False) -> Generator[Checks]:
        """While this thread records a graph: within, kernels may note what is wrong, and whoever replays looks.

        Args:
            saves: it keeps what variables were before.
        """
        made = self._shared.checks[threading.get_ident()] = Checks(self.zeros((1,), np.int32), saves=saves)
        try:
            yield made
        finally:
            del self._shared.checks[threading.get_ident()]

    # -- tensors -------------------------------------------------------------------------------------------------

    def empty(self, shape: _Shape, dtype: Any) -> GpuArray:
        """A tensor of which nothing is written.

        Raises:
            ResourceExhaustedError: there is no room for it.
        """
        if not isinstance(dtype, np.dtype):
            dtype = np.dtype(dtype)
        shape = tuple(map(int, shape))
        nbytes = math.prod(shape) * dtype.itemsize
        if not nbytes:
            return GpuArray(self.root, None, dtype, shape, 0)
        return GpuArray(self.root, self.pool.allocate(nbytes, shape, dtype, self.node), dtype, shape, nbytes)

    def zeros(self, shape: _Shape, dtype: Any) -> GpuArray:
        """A tensor of zeros."""
        made = self.empty(shape, dtype)
        if made.nbytes:
            self._about(self.context.fill, made.address, 0, made.nbytes, self.compute)
        return made

    def full(self, shape: _Shape, dtype: Any, value: Any) -> GpuArray:
        """A tensor of one number, which NumPy converts."""
        made = self.empty(shape, dtype)
        if made.nbytes:
            filled_by(self, made, np.asarray(value, made.dtype))
        return made

    def copied(self, array: GpuArray) -> GpuArray:
        """A tensor with the same content in memory of its own, on this device."""
        if array.device.index != self.index:
            return self._from_peer(array)
        made = self.empty(array.shape, array.dtype)
        if made.nbytes:
            self._about(self.context.copy, made.address, array.address, made.nbytes, self.compute)
        return made

    def launch(self, kernel: SimtKernel, blocks: int, *arguments: Argument) -> None:
        """Run a kernel behind what is in the compute stream; no blocks, nothing.

        Raises:
            DriverError: the driver refuses; it names the node.
        """
        if not blocks:
            return
        context = self.context
        if context.poisons:
            self.pool.collect()
        try:
            context.launch(context.function(kernel), blocks, arguments, self.compute)
        except DriverError as error:
            raise error.at(node=self.node or None) from error.__cause__

    def _about(self, call: Any, *arguments: Any) -> None:
        try:
            call(*arguments)
        except DriverError as error:
            raise error.at(node=self.node or None) from error.__cause__

    # -- between memories ----------------------------------------------------------------------------------------

    def to_device(self, array: Array) -> GpuArray:
        """A tensor from host memory, which may be changed as soon as this returns.

        Raises:
            InternalError: it has no numbers, or a graph is being recorded.
            ResourceExhaustedError: there is no room for it.
        """
        host = np.asarray(array)
        if not host.flags.c_contiguous:
            host = np.ascontiguousarray(host)
        if host.dtype.hasobject:
            raise InternalError(f"{host.dtype}{list(host.shape)} was to be copied to {self.name}; it holds no numbers")
        made = self.empty(host.shape, host.dtype)
        if not made.nbytes:
            return made
        self._not_recording("copied in")
        self._transfers.copy_in(made, host.reshape(-1).view(np.uint8))
        return made

    def refill(self, made: GpuArray, array: Array) -> None:
        """Other numbers from host memory into a tensor, behind what is in the compute stream.

        Args:
            array: of its shape and type; it may be changed as soon as this returns.
        """
        self._transfers.copy_over(made, np.ascontiguousarray(array).reshape(-1).view(np.uint8))

    def to_host(self, array: GpuArray) -> Array:
        """A tensor in host memory, an array of the caller's own. Waits for what is in the compute stream.

        Raises:
            InternalError: it is on another device, or a graph is being recorded.
        """
        return self.begin_to_host(array)()

    def begin_to_host(self, array: GpuArray) -> Callable[[], Array]:
        """Begin such a copy, behind what is in the compute stream now.

        Returns:
            what waits for it and gives the array; to be called once.

        Raises:
            InternalError: it is on another device, or a graph is being recorded.
        """
        if array.device.index != self.index:
            raise InternalError(f"{self.name} was asked to copy out {array!r}")
        if array.nbytes:
            self._not_recording("copied out")
        return self._transfers.begin_copy_out(array)

    def synchronize(self) -> None:
        """Wait until everything is done that was asked of this device.

        Raises:
            DriverError: some of it went wrong.
        """
        self._transfers.synchronize()

    def _from_peer(self, array: GpuArray) -> GpuArray:
        """A tensor of another GPU."""
        made = self.empty(array.shape, array.dtype)
        if made.nbytes:
            self._not_recording("copied from another GPU")
            self._transfers.copy_across(made, array, array.device._transfers)
        return made

    def _not_recording(self, what: str) -> None:
        if self.is_recording:
            raise InternalError(f"a tensor was {what} while a graph is recorded on {self.name}", node=self.node or None)

    # -- graphs --------------------------------------------------------------------------------------------------

    @contextmanager
    def recording(self, largest_copy: int = 0, draws: Draws | None = None) -> Generator[Recording]:
        """What this thread launches within becomes a CUDA graph and is not done; its tensors have memory of their own.

        Behind it `Recording.replay` does it.

        Args:
            largest_copy: bytes that are copied sooner than that nothing is recorded, see `largest_copy`.
            draws: random numbers may be drawn; whoever replays lets it take them.
        """
        if self.is_recording:
            raise InternalError(f"a graph is recorded on {self.name} while another one is")
        streams = self._shared.streams
        stream = streams.pop() if streams else self.context.stream()
        made = Recording(self.context, self._compute)
        with self.pool.capturing(stream) as private:
            made.private = private
            self.context.begin_capture(stream)
            self._shared.recording[threading.get_ident()] = stream
            self._shared.largest_copy[threading.get_ident()] = largest_copy
            if draws is not None:
                self._shared.draws[threading.get_ident()] = draws
            try:
                yield made
            finally:
                del self._shared.recording[threading.get_ident()], self._shared.largest_copy[threading.get_ident()]
                self._shared.draws.pop(threading.get_ident(), None)
                graph = None
                try:
                    graph = self.context.end_capture(stream)
                    streams.append(stream)
                finally:
                    made.graph = graph

    @contextmanager
    def body(self, condition: int, *, repeats: bool) -> Generator[None]:
        """While this thread records a graph: what it launches within is done if a condition is not 0.

        Args:
            condition: of `Context.condition`, set by what was launched before.
            repeats: again and again, as long as it is not; so the body sets it, too.
        """
        shared, thread = self._shared, threading.get_ident()
        outer = shared.recording[thread]
        stream = shared.streams.pop() if shared.streams else self.context.stream()
        self.context.begin_body(outer, condition, stream, repeats=repeats)
        draws = shared.draws.get(thread)
        shared.recording[thread] = stream
        try:
            with self.pool.redirected(stream), nullcontext() if draws is None else draws.decided():
                yield
        finally:
            shared.recording[thread] = outer
            self.context.end_body(stream)
            shared.streams.append(stream)


# -- which devices there are ---------------------------------------------------------------------------------------

_lock = held_over_forks()


def device(index: int) -> CudaDevice:
    """The GPU with a number, the same each time.

    Raises:
        UsageError: there is none; the message says what is missing.
    """
    driver = choose.driver()
    known = settings.used_with(driver)
    found = known.get(index)
    if found is None:
        with _lock:
            found = known.get(index)
            if found is None:
                context = driver.open(settings.number_of(index))
                made = CudaDevice(index, context, context.properties.memory, grows=settings.grows())
                settings.tell(made)
                found = known[index] = made
    return found


def device_of(node: Node) -> CudaDevice:
    """The GPU that a node is on, as its kernel uses it.

    Raises:
        UsageError: there is none.
    """
    return device_named(node.device).for_node(node.name)


def device_named(name: str) -> CudaDevice:
    """The GPU of a device name, in whole or part; GPU:0 where it has no number.

    Raises:
        UsageError: there is none.
    """
    return device(DeviceSpec.parse(name).device_index or 0)


def memory_of(index: int) -> GpuMemory:
    """The memory of the GPU with a number."""
    return device(index).memory
