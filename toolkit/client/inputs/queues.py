"""Queues and the runners that fill them."""

from __future__ import annotations

import functools
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from schemas import error_codes_pb2, queue_runner_pb2
from toolkit.client import ops
from toolkit.client.arrays import array_ops
from toolkit.client.construction.context import get_default_graph
from toolkit.client.construction.convert import as_dtype, as_shape, convert_to_tensor
from toolkit.client.construction.operation import Operation
from toolkit.client.construction.scopes import name_scope
from toolkit.client.construction.tensor import Tensor, TensorLike
from toolkit.client.random.seeds import get_seed
from toolkit.errors import GraphError
from toolkit.graph import dtypes
from toolkit.graph.dtypes import DType
from toolkit.graph.metagraph import GraphKeys
from toolkit.graph.shape import Shape

Components = Any


class Queue:
    """A queue resource. Elements have one component per type; `names` makes them mappings."""

    def __init__(
        self,
        handle: Tensor,
        component_types: Sequence[DType],
        shapes: Sequence[Shape] | None,
        names: Sequence[str] | None = None,
    ):
        self.handle = handle
        self.types = list(component_types)
        self.shapes = list(shapes) if shapes else [Shape(None)] * len(self.types)
        self.names = list(names) if names is not None else None

    @property
    def name(self) -> str:
        return self.handle.op.name

    @property
    def op(self) -> Operation:
        return self.handle.op

    @property
    def _label(self) -> str:
        """What the names of its operations begin with."""
        return self.name.rpartition("/")[2]

    def _components(self, values: Components, shapes: Sequence[Shape]) -> list[Tensor]:
        if self.names is not None:
            if not isinstance(values, Mapping) or set(values) != set(self.names):  # type: ignore[arg-type]
                raise GraphError(f"queue '{self.name}' takes a mapping with the keys {', '.join(self.names)}")
            parts: list[Any] = [values[name] for name in self.names]
        else:
            parts = list(values) if isinstance(values, list | tuple) else [values]  # type: ignore[arg-type]
        if len(parts) != len(self.types):
            raise GraphError(f"queue '{self.name}' takes {len(self.types)} component(s), got {len(parts)}")
        tensors: list[Tensor] = []
        for i, (part, dtype, shape) in enumerate(zip(parts, self.types, shapes, strict=True)):
            tensor = convert_to_tensor(part, dtype, name=f"component_{i}")
            if not tensor.static_shape.is_compatible_with(shape):
                raise GraphError(f"component {i} of queue '{self.name}' has shape {shape}, got {tensor.static_shape}")
            tensors.append(tensor)
        return tensors

    def enqueue(self, values: Components, name: str | None = None) -> Operation:
        """Add one element; waits while the queue is full."""
        with name_scope(name, f"{self._label}_enqueue", [self.handle]) as scope:
            return ops.queue_enqueue_v2(self.handle, self._components(values, self.shapes), name=scope)

    def enqueue_many(self, values: Components, name: str | None = None) -> Operation:
        """Add the rows of the components as elements."""
        shapes = [Shape(None) if s.dims is None else Shape([None, *s.dims]) for s in self.shapes]
        with name_scope(name, f"{self._label}_EnqueueMany", [self.handle]) as scope:
            return ops.queue_enqueue_many_v2(self.handle, self._components(values, shapes), name=scope)

    def _result(self, tensors: Tensor | list[Tensor], count: int | str | None) -> Components:
        flat = tensors if isinstance(tensors, list) else [tensors]
        for tensor, shape in zip(flat, self.shapes, strict=True):
            if shape.dims is not None:
                tensor.set_shape(shape if count == "one" else Shape([count, *shape.dims]))  # type: ignore[list-item]
        if self.names is not None:
            return dict(zip(self.names, flat, strict=True))
        return flat[0] if len(flat) == 1 else flat

    def dequeue(self, name: str | None = None) -> Components:
        """Take one element; waits while the queue is empty, and fails (out of range) once it is closed."""
        found = ops.queue_dequeue_v2(self.handle, component_types=self.types, name=name or f"{self._label}_Dequeue")
        return self._result(found, "one")

    def dequeue_many(self, n: TensorLike, name: str | None = None) -> Components:
        """Take n elements as rows."""
        label = name or f"{self._label}_DequeueMany"
        found = ops.queue_dequeue_many_v2(self.handle, n, component_types=self.types, name=label)
        return self._result(found, n if isinstance(n, int) else None)

    def dequeue_up_to(self, n: TensorLike, name: str | None = None) -> Components:
        """Take n elements as rows, or what is left once the queue is closed."""
        label = name or f"{self._label}_DequeueUpTo"
        found = ops.queue_dequeue_up_to_v2(self.handle, n, component_types=self.types, name=label)
        return self._result(found, None)

    @staticmethod
    def from_list(index: TensorLike, queues: Sequence[Queue]) -> Queue:
        """The queue at a place of a list that is known when a step runs.

        Raises:
            GraphError: the queues have elements of other types or names.
        """
        if not queues:
            raise GraphError("from_list needs at least one queue")
        first = queues[0]
        if any(queue.types != first.types or queue.names != first.names for queue in queues[1:]):
            raise GraphError("queues of one list must have components of the same types and names")
        shapes = [
            functools.reduce(Shape.most_specific_common, each)
            for each in zip(*(queue.shapes for queue in queues), strict=True)
        ]
        chosen = array_ops.gather(array_ops.stack([queue.handle for queue in queues]), index)
        return Queue(chosen, first.types, shapes, first.names)

    def close(self, cancel_pending_enqueues: bool = False, name: str | None = None) -> Operation:
        label = name or f"{self._label}_Close"
        return ops.queue_close_v2(self.handle, cancel_pending_enqueues=cancel_pending_enqueues, name=label)

    def size(self, name: str | None = None) -> Tensor:
        return ops.queue_size_v2(self.handle, name=name or f"{self._label}_Size")

    def is_closed(self, name: str | None = None) -> Tensor:
        return ops.queue_is_closed_v2(self.handle, name=name or f"{self._label}_Is_Closed")


def _types(values: Any) -> list[DType]:
    return [as_dtype(v) for v in values] if isinstance(values, list | tuple) else [as_dtype(values)]  # type: ignore[misc]


def _shapes(values: Any, count: int) -> list[Shape] | None:
    if values is None:
        return None
    alone = isinstance(values, Shape) or (count == 1 and (not values or isinstance(values[0], int | None)))
    shapes = [as_shape(values)] if alone else [as_shape(v) for v in values]
    if len(shapes) != count:
        raise GraphError(f"{count} component types need as many shapes, not {len(shapes)}")
    return shapes


def FIFOQueue(  # noqa: N802 (the field's own name)
    capacity: int, component_types: Any, shapes: Any = None, names: Sequence[str] | None = None,
    shared_name: str | None = None, name: str | None = "fifo_queue",
) -> Queue:  # fmt: skip
    """First in, first out; at most `capacity` elements (-1: no limit)."""
    types = _types(component_types)
    known = _shapes(shapes, len(types))
    handle = ops.fifo_queue_v2(
        component_types=types, shapes=known or [], capacity=capacity, shared_name=shared_name or "", name=name
    )
    return Queue(handle, types, known, names)


def PaddingFIFOQueue(  # noqa: N802
    capacity: int, component_types: Any, shapes: Any, names: Sequence[str] | None = None,
    shared_name: str | None = None, name: str = "padding_fifo_queue",
) -> Queue:  # fmt: skip
    """As FIFOQueue; unknown sizes in `shapes` may differ between elements, dequeue_many pads them with zeros."""
    types = _types(component_types)
    known = _shapes(shapes, len(types))
    handle = ops.padding_fifo_queue_v2(
        component_types=types, shapes=known or [], capacity=capacity, shared_name=shared_name or "", name=name
    )
    return Queue(handle, types, known, names)


def PriorityQueue(  # noqa: N802
    capacity: int, component_types: Any, shapes: Any = None, names: Sequence[str] | None = None,
    shared_name: str | None = None, name: str = "priority_queue",
) -> Queue:  # fmt: skip
    """The smallest first component (an int64, added to the components) comes first."""
    types = _types(component_types) if component_types else []
    known = _shapes(shapes, len(types)) or []
    handle = ops.priority_queue_v2(
        component_types=types, shapes=known, capacity=capacity, shared_name=shared_name or "", name=name
    )
    return Queue(handle, [dtypes.int64, *types], [Shape(()), *known] if known or not types else None, names)


def RandomShuffleQueue(  # noqa: N802
    capacity: int, min_after_dequeue: int, component_types: Any, shapes: Any = None,
    names: Sequence[str] | None = None, seed: int | None = None, shared_name: str | None = None,
    name: str = "random_shuffle_queue",
) -> Queue:  # fmt: skip
    """Elements come out in random order; dequeues wait until `min_after_dequeue` stay behind."""
    types = _types(component_types)
    known = _shapes(shapes, len(types))
    first, second = get_seed(seed)
    handle = ops.random_shuffle_queue_v2(
        component_types=types, shapes=known or [], capacity=capacity, min_after_dequeue=min_after_dequeue,
        seed=first, seed2=second, shared_name=shared_name or "", name=name,
    )  # fmt: skip
    return Queue(handle, types, known, names)


@dataclass
class QueueRunner:
    """What a session's threads run to keep a queue full (QueueRunnerDef).

    Attributes:
        enqueue_ops: one thread runs each of them over and over.
        close_op: run when they end; cancel_op: run when the step is to stop.
        closed_codes: canonical status codes that mean "no more input".
    """

    queue: Queue
    enqueue_ops: Sequence[Operation]
    close_op: Operation = field(default=None)  # type: ignore[assignment]
    cancel_op: Operation = field(default=None)  # type: ignore[assignment]
    closed_codes: Sequence[int] = (error_codes_pb2.OUT_OF_RANGE,)

    def __post_init__(self) -> None:
        self.close_op = self.close_op or self.queue.close()
        self.cancel_op = self.cancel_op or self.queue.close(cancel_pending_enqueues=True)

    @property
    def name(self) -> str:
        return self.queue.name

    def to_proto(self) -> queue_runner_pb2.QueueRunnerDef:
        return queue_runner_pb2.QueueRunnerDef(
            queue_name=self.queue.name,
            enqueue_op_name=[op.name for op in self.enqueue_ops],
            close_op_name=self.close_op.name,
            cancel_op_name=self.cancel_op.name,
            queue_closed_exception_types=list(self.closed_codes),  # type: ignore[arg-type]
        )


def add_queue_runner(runner: QueueRunner, collection: str = GraphKeys.QUEUE_RUNNERS) -> None:
    get_default_graph().add_to_collection(collection, runner)


def read(reader: Tensor, queue: Queue, name: str | None = None) -> tuple[Tensor, Tensor]:
    """The next record (key, value) of a reader (`ops.tf_record_reader_v2()`, ...) over the files in the queue."""
    return ops.reader_read_v2(reader, queue.handle, name=name)
