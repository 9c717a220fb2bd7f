"""The ops that make queues."""

from __future__ import annotations

import weakref
from collections.abc import Callable
from typing import Any

from toolkit.errors import InvalidArgumentError
from toolkit.graph.dtypes import DType
from toolkit.graph.shape import Shape
from toolkit.kernels.context import StepContext
from toolkit.kernels.cpu.common import require
from toolkit.kernels.queues.base import UNBOUNDED, QueueResource
from toolkit.kernels.queues.elements import whole_shapes
from toolkit.kernels.queues.kinds import PaddingFIFOQueue, PriorityQueue, RandomShuffleQueue
from toolkit.kernels.registry import Compute, KernelNode, Kind, kernel
from toolkit.kernels.resources.handles import ResourceHandle, handle_names, resource_name, string_handle


def _plain(kind: type[QueueResource]) -> Callable[[KernelNode], Callable[[], QueueResource]]:
    def prepare(op: KernelNode) -> Callable[[], QueueResource]:
        name = resource_name(op)[1]
        types: list[DType] = op.attr("component_types")
        shapes: list[Shape] = op.attr("shapes")
        shapes = shapes if kind is PaddingFIFOQueue else whole_shapes(shapes)
        capacity = op.int32("capacity")
        require(bool(shapes) or kind is not PriorityQueue, "PriorityQueue needs the shapes of its components: has none")
        require(
            len(shapes) == len(types) or (not shapes and kind is not PaddingFIFOQueue),
            f"{kind.kind} needs one shape per component: {len(types)} types, {len(shapes)} shapes",
        )
        for shape in shapes:
            known = shape.dims is not None if kind is PaddingFIFOQueue else shape.is_fully_defined
            require(known, f"{kind.kind} cannot hold components of shape {shape}; their sizes must be known")
        return lambda: kind(name, types, shapes, capacity)

    return prepare


def _shuffling(op: KernelNode) -> Callable[[], QueueResource]:
    _plain(RandomShuffleQueue)(op)
    name = resource_name(op)[1]
    keep, capacity = op.int32("min_after_dequeue"), op.int32("capacity")
    require(keep >= 0, f"min_after_dequeue {keep} must be >= 0")
    capacity = UNBOUNDED if capacity < 0 else capacity
    require(keep < capacity, f"min_after_dequeue {keep} must be < capacity {capacity}")
    types: list[DType] = op.attr("component_types")
    shapes = whole_shapes(op.attr("shapes"))
    seed, seed2 = op.attr("seed"), op.attr("seed2")
    return lambda: RandomShuffleQueue(name, types, shapes, capacity, keep, seed, seed2)


_KINDS: dict[str, Callable[[KernelNode], Callable[[], QueueResource]]] = {
    "FIFOQueue": _plain(QueueResource),
    "PaddingFIFOQueue": _plain(PaddingFIFOQueue),
    "PriorityQueue": _plain(PriorityQueue),
    "RandomShuffleQueue": _shuffling,
}


def _check_shared(queue: QueueResource, wanted: QueueResource) -> None:
    """Ops that share a queue must agree on what it is.

    Raises:
        InvalidArgumentError: the queue that exists is another one than this op describes.
    """
    checks: list[tuple[str, Any, Any]] = [
        ("type", queue.kind, wanted.kind),
        ("capacity", queue.capacity, wanted.capacity),
        ("component types", [str(t) for t in queue.types], [str(t) for t in wanted.types]),
        ("component shapes", [str(s) for s in queue.shapes or ()], [str(s) for s in wanted.shapes or ()]),
    ]
    if isinstance(queue, RandomShuffleQueue) and isinstance(wanted, RandomShuffleQueue):
        checks.append(("min_after_dequeue", queue.min_after_dequeue, wanted.min_after_dequeue))
        if any(wanted.seeds):  # a request without seeds is content with any
            checks.append(("random seeds", queue.seeds, wanted.seeds))
    for what, have, want in checks:
        if have != want:
            raise InvalidArgumentError(f"Shared queue '{queue.name}' has {what} {have} but requested {what} was {want}")


@kernel(*_KINDS, *(f"{kind}V2" for kind in _KINDS), kind=Kind.STATEFUL)
def make_queue(op: KernelNode) -> Compute:
    """The handle of a queue, made when it is first asked for and kept as long as its container."""
    is_resource = op.op.endswith("V2")
    make = _KINDS[op.op.removesuffix("V2")](op)
    container, name = resource_name(op)
    wanted = make()
    handle: Any = ResourceHandle(container, name, wanted.kind) if is_resource else string_handle(container, name)
    checked: weakref.ref[QueueResource] | None = None

    def compute(step: StepContext) -> Any:
        nonlocal checked
        queue = step.resources.get_or_create(container, name, QueueResource, make)
        if checked is None or checked() is not queue:
            _check_shared(queue, wanted)
            checked = weakref.ref(queue)
        return handle

    return compute


@kernel("FakeQueue")
def fake_queue(op: KernelNode) -> Compute:
    """A string handle for the queue of a resource handle."""

    def compute(handle: Any) -> Any:
        return string_handle(*handle_names(handle))

    return compute
