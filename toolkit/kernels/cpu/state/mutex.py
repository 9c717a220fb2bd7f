"""Locks that steps hold: MutexV2, MutexLock, ConsumeMutexLock."""

from __future__ import annotations

from typing import Any

from toolkit.errors import InvalidArgumentError
from toolkit.kernels.context import Cancellation, Done, StepContext
from toolkit.kernels.queues.waiting import NOT_YET, Waiting
from toolkit.kernels.registry import Compute, KernelNode, Kind, kernel
from toolkit.kernels.resources.handles import ResourceHandle, lookup, resource_name


class Mutex(Waiting):
    """A lock that is handed on in the order in which it was asked for."""

    def __init__(self) -> None:
        super().__init__(in_order=True)
        self._is_held = False

    def acquire(self, cancellation: Cancellation, done: Done) -> None:
        """Call `done` with a `Held` once nobody else holds it."""

        def trial() -> Any:
            if self._is_held:
                return NOT_YET
            self._is_held = True
            return Held(self)

        self.attempt(trial, cancellation, done, "MutexLock")

    def release(self) -> None:
        with self.lock:
            self._is_held = False
        self.changed()


class Held:
    """One hold of a mutex; it ends when it is consumed, or when nobody has it any more."""

    def __init__(self, mutex: Mutex):
        self._mutex: Mutex | None = mutex

    def end(self) -> None:
        mutex, self._mutex = self._mutex, None
        if mutex is not None:
            mutex.release()

    __del__ = end


@kernel("MutexV2", kind=Kind.STATEFUL)
def mutex(op: KernelNode) -> Compute:
    container, name = resource_name(op)
    handle = ResourceHandle(container, name, "Mutex")

    def compute(step: StepContext) -> Any:
        step.resources.get_or_create(container, name, Mutex, Mutex)
        return handle

    return compute


@kernel("MutexLock", kind=Kind.ASYNC)
def mutex_lock(op: KernelNode) -> Compute:
    def compute(step: StepContext, done: Done, handle: Any) -> None:
        lookup(step, handle, Mutex).acquire(step.cancellation, done)

    return compute


@kernel("ConsumeMutexLock", kind=Kind.STATEFUL)
def consume_mutex_lock(op: KernelNode) -> Compute:
    def compute(step: StepContext, held: Any) -> None:
        if not isinstance(held, Held):
            raise InvalidArgumentError(f"expected the hold of a mutex, got a variant of type {type(held).__name__}")
        held.end()

    return compute
