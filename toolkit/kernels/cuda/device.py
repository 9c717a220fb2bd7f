"""A GPU as kernels see it: its streams, its memory, and launches."""

from __future__ import annotations

import copy
import math
import os
import threading
from collections.abc import Callable, Generator, Sequence
from contextlib import contextmanager
from typing import Any

import numpy as np

from toolkit.errors import InternalError
from toolkit.graph.device import DeviceSpec
from toolkit.graph.node import Node
from toolkit.kernels.cuda import settings
from toolkit.kernels.cuda.driver import choose
from toolkit.kernels.cuda.driver.base import Argument, Context, DeviceProperties, DriverError, Event, Stream
from toolkit.kernels.cuda.filling import filled_by
from toolkit.kernels.cuda.memory import SMALL, GpuArray, GpuMemory
from toolkit.kernels.cuda.pool import Budget, Pool
from toolkit.kernels.cuda.recording import Recording
from toolkit.kernels.cuda.simt.ir import SimtKernel
from toolkit.kernels.cuda.staging import SECTION, Buffers, Ring
from toolkit.kernels.types import Array

_Shape = Sequence[int]
#: says that kernels whose results depend on the order of threads are not to be used; TensorFlow's variable
DETERMINISTIC = "TF_DETERMINISTIC_OPS"


class _Shared:
    """What changes, of which all views of a device have one."""

    def __init__(self) -> None:
        self.deterministic = os.environ.get(DETERMINISTIC, "").lower() in ("1", "true")
        self.recording: dict[int, Stream] = {}  # by thread
        self.reached = 0  # the last ticket (`Pool.tickets`) of which everything before it is done
        self.events: list[Event] = []  # to be used again
        self.copies = False  # whether there may be work in the streams of copies


class CudaDevice:
    """One GPU.

    Kernels have views of it that know their node (`device_of`), for messages.

    Attributes:
        index: its number.
        name: "/device:GPU:0".
        context: of the driver.
        properties: what it is.
        copy_in_stream, copy_out_stream: copies of what is large.
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
        self.copy_in_stream = context.stream()
        self.copy_out_stream = context.stream()
        self.pool = Pool(context, self._compute, Budget(limit), self.name, grows=grows)
        self._ring = Ring(context, self.copy_in_stream)
        self._buffers = Buffers(context)
        self._shared = _Shared()
        self.memory = GpuMemory(self)

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
    def deterministic(self) -> bool:
        """Whether a kernel must give the same bits each time."""
        return self._shared.deterministic

    @deterministic.setter
    def deterministic(self, value: bool) -> None:
        self._shared.deterministic = value

    @property
    def is_recording(self) -> bool:
        """Whether this thread records a graph."""
        return threading.get_ident() in self._shared.recording

    # -- tensors -------------------------------------------------------------------------------------------------

    def empty(self, shape: _Shape, dtype: Any) -> GpuArray:
        """A tensor of which nothing is written.

        Raises:
            ResourceExhaustedError: there is no room for it.
        """
        dtype, shape = np.dtype(dtype), tuple(map(int, shape))
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
        raw = host.reshape(-1).view(np.uint8)
        if made.nbytes <= SMALL:
            self.context.copy_in_bytes(made.address, raw, self._compute)
            return made
        stream, ring = self.copy_in_stream, self._ring
        self._behind_compute(stream, made)
        for start in range(0, made.nbytes, SECTION):
            part = raw[start : start + SECTION]
            with ring.lock:
                pinned = ring.take(part.size)
                pinned[:] = part
                self.context.copy_in(made.address + start, pinned, stream)
                ring.put()
        self._order(stream, self._compute)
        self._shared.copies = True
        return made

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
        made = np.empty(array.shape, array.dtype)
        if not array.nbytes:
            return lambda: made
        self._not_recording("copied out")
        context, ticket = self.context, next(self.pool.tickets)
        stream = self._compute
        if array.nbytes > SMALL:
            stream = self.copy_out_stream
            self._order(self._compute, stream)
            self._shared.copies = True
        buffer = self._buffers.take(array.nbytes)
        pinned = buffer[: array.nbytes]
        done = self._event()
        context.copy_out(pinned, array.address, stream)
        context.record(done, stream)
        if stream is not self._compute and array.block is not None:
            array.block.used_until(done)  # which is this copy's until `wait` is through

        def wait() -> Array:
            context.synchronize(done)
            made.reshape(-1).view(np.uint8)[:] = pinned
            self._buffers.give(buffer)
            if stream is self._compute:
                self._shared.events.append(done)
            self._shared.reached = max(self._shared.reached, ticket)
            return made

        return wait

    def synchronize(self) -> None:
        """Wait until everything is done that was asked of this device.

        Raises:
            DriverError: some of it went wrong.
        """
        ticket, shared = next(self.pool.tickets), self._shared
        self.context.synchronize(self._compute)
        if shared.copies:
            shared.copies = False
            self.context.synchronize(self.copy_in_stream)
            self.context.synchronize(self.copy_out_stream)
        shared.reached = max(shared.reached, ticket)

    def _from_peer(self, array: GpuArray) -> GpuArray:
        """A tensor of another GPU."""
        source, made = array.device, self.empty(array.shape, array.dtype)
        if not made.nbytes or array.block is None:
            return made
        self._not_recording("copied from another GPU")
        stream = source.copy_out_stream
        for device in (source, self):
            event = device._event()
            device.context.record(event, device._compute)
            source.context.wait(stream, event)
            device._shared.events.append(event)
        source.context.copy_peer(made.address, self.context, array.address, made.nbytes, stream)
        done = source.context.event()
        source.context.record(done, stream)
        self.context.wait(self._compute, done)
        array.block.used_until(done)
        source._shared.copies = True
        return made

    def _behind_compute(self, stream: Stream, made: GpuArray) -> None:
        """What comes next in a stream waits for whoever had a new tensor's memory before."""
        assert made.block is not None
        if made.block.ticket > self._shared.reached:
            self._order(self._compute, stream)

    def _order(self, first: Stream, second: Stream) -> None:
        """What is put into the second stream from now on comes behind what is in the first."""
        event = self._event()
        self.context.record(event, first)
        self.context.wait(second, event)
        self._shared.events.append(event)

    def _event(self) -> Event:
        """An event that nobody waits for any more; a wait is for the record before it, so it may be recorded anew."""
        events = self._shared.events
        try:
            return events.pop()
        except IndexError:
            return self.context.event()

    def _not_recording(self, what: str) -> None:
        if self.is_recording:
            raise InternalError(f"a tensor was {what} while a graph is recorded on {self.name}", node=self.node or None)

    # -- graphs --------------------------------------------------------------------------------------------------

    @contextmanager
    def recording(self) -> Generator[Recording]:
        """What this thread launches within becomes a CUDA graph and is not done; its tensors have memory of their own.

        Behind it `Recording.replay` does it.
        """
        if self.is_recording:
            raise InternalError(f"a graph is recorded on {self.name} while another one is")
        stream = self.context.stream()
        made = Recording(self.context, self._compute)
        with self.pool.capturing(stream) as private:
            made.private = private
            self.context.begin_capture(stream)
            self._shared.recording[threading.get_ident()] = stream
            try:
                yield made
            finally:
                del self._shared.recording[threading.get_ident()]
                graph = None
                try:
                    graph = self.context.end_capture(stream)
                finally:
                    made.graph = graph


# -- which devices there are ---------------------------------------------------------------------------------------

_lock = threading.RLock()


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
