"""Input by queues whose batches are of elements alike: of a bucket, of about one length (`tf.contrib.training`)."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from typing import Any

from schemas import error_codes_pb2
from toolkit.client import ops
from toolkit.client.arrays import array_ops
from toolkit.client.construction.convert import as_shape, constant, convert_to_tensor
from toolkit.client.construction.grouping import group
from toolkit.client.construction.scopes import name_scope
from toolkit.client.construction.static_values import static_value
from toolkit.client.construction.tensor import Tensor, TensorLike
from toolkit.client.flow import control_flow
from toolkit.client.inputs.pipelines import as_given, leaves_of
from toolkit.client.inputs.queues import FIFOQueue, PaddingFIFOQueue, Queue, QueueRunner, add_queue_runner
from toolkit.client.math import math_ops
from toolkit.client.summaries import summary
from toolkit.errors import GraphError
from toolkit.graph import dtypes
from toolkit.graph.shape import Shape

#: what says that no more input comes
_ENDS = (error_codes_pb2.OUT_OF_RANGE, error_codes_pb2.CANCELLED)


def bucket(
    tensors: Any, which_bucket: TensorLike, batch_size: Any, num_buckets: int, num_threads: int = 1,
    capacity: int = 32, bucket_capacities: Sequence[int] | None = None, shapes: Any = None, dynamic_pad: bool = False,
    allow_smaller_final_batch: bool = False, keep_input: Any = True, shared_name: str | None = None,
    name: str | None = None,
) -> tuple[Tensor, Any]:  # fmt: skip
    """Batches of elements of one bucket each.

    Args:
        tensors: an element: a tensor, a list, or a dict.
        which_bucket: its bucket, an int32 below `num_buckets`.
        batch_size: a number, or one for each bucket.
        capacity: of the queue of batches; `bucket_capacities`: of those of elements, by default the same.
        dynamic_pad: elements of a batch are filled up to the longest.
        keep_input: a bool; elements where it is false go into no batch.

    Returns:
        The number of the bucket, and the batch.

    Raises:
        ValueError: there is no tensor, or not a size or a capacity for each bucket.
        GraphError: without `dynamic_pad`, a shape that is not known.
    """
    sizes: list[Any] = list(batch_size) if _is_many(batch_size) else [batch_size] * num_buckets
    places: list[Any] = [capacity] * num_buckets if bucket_capacities is None else list(bucket_capacities)
    for label, given in (("batch_size", sizes), ("bucket_capacities", places)):
        if len(given) != num_buckets:
            raise ValueError(f"{label}: expected one for each of {num_buckets} buckets, got {len(given)}")
    flat = leaves_of(tensors, tensors)
    if not flat:
        raise ValueError("tensors: a bucket needs at least one")
    with name_scope(name, "bucket", flat):
        elements = [convert_to_tensor(each) for each in flat]
        known = [each.static_shape for each in elements] if shapes is None else [as_shape(each) for each in shapes]
        if not dynamic_pad and not all(shape.is_fully_defined for shape in known):
            raise GraphError(f"without dynamic_pad all shapes have to be known: {', '.join(map(str, known))}")
        which = convert_to_tensor(which_bucket, dtypes.int32, name="which_bucket")
        kind: Any = PaddingFIFOQueue if dynamic_pad else FIFOQueue
        types = [each.dtype.base for each in elements]
        queues: list[Queue] = [
            kind(
                places[i], types, known, shared_name=None if shared_name is None else f"{shared_name}_{i}",
                name=f"bucket_queue_{i}",
            )
            for i in range(num_buckets)
        ]  # fmt: skip
        size = None if allow_smaller_final_batch or _is_many(batch_size) else static_value(batch_size)
        rows = None if size is None else int(size)
        batches = [Shape([rows]).concatenate(shape) for shape in known]
        top = PaddingFIFOQueue(
            capacity, [dtypes.int32, *types], [Shape([]), *batches], shared_name=shared_name, name="top_queue"
        )
        _fill(queues, top, elements, which, keep_input, num_threads)
        _join(queues, top, sizes, allow_smaller_final_batch)
        for queue in queues:
            summary.scalar(f"bucket/{queue.name}/size", math_ops.cast(queue.size(), dtypes.float32))
        full = math_ops.cast(top.size(), dtypes.float32) * (1.0 / capacity)
        summary.scalar(f"bucket/{top.name}/fraction_of_{capacity}_full", full)
        found, *taken = top.dequeue(name="dequeue_top")
        is_many = isinstance(tensors, dict | list | tuple)
        return found, as_given(taken if is_many else taken[0], tensors)


def _is_many(value: Any) -> bool:
    return isinstance(value, list | tuple)


def _fill(
    queues: list[Queue], top: Queue, elements: list[Tensor], which: Tensor, keep_input: Any, threads: int
) -> None:
    """Threads that put elements into the queue of their bucket."""

    def put() -> Any:
        return group(
            [
                control_flow.cond(ops.equal(which, i), lambda queue=queue: queue.enqueue(elements), ops.no_op)
                for i, queue in enumerate(queues)
            ],
            name="group_enqueues",
        )

    keep = convert_to_tensor(keep_input)
    known = static_value(keep)
    enqueue: Any = control_flow.cond(keep, put, ops.no_op) if known is None else put() if known else ops.no_op()
    close = group([queue.close() for queue in queues])
    cancel = group([queue.close(cancel_pending_enqueues=True) for queue in queues])
    add_queue_runner(QueueRunner(top, [getattr(enqueue, "op", enqueue)] * threads, close, cancel, _ENDS))


def _join(queues: list[Queue], top: Queue, sizes: list[Any], smaller: bool) -> None:
    """A thread for each bucket that puts its batches into one queue."""
    moves: list[Any] = []
    for i, (queue, size) in enumerate(zip(queues, sizes, strict=True)):
        take = queue.dequeue_up_to if smaller else queue.dequeue_many
        taken: Any = take(size, name=f"read_bucket_{i}")
        parts: list[Any] = taken if _is_many(taken) else [taken]
        moves.append(top.enqueue([constant(i), *parts], name=f"enqueue_from_bucket_{i}"))
    cancel = top.close(cancel_pending_enqueues=True)
    add_queue_runner(QueueRunner(queues[0], moves, top.close(), cancel, _ENDS))


def bucket_by_sequence_length(
    input_length: TensorLike, tensors: Any, batch_size: Any, bucket_boundaries: Sequence[int], num_threads: int = 1,
    capacity: int = 32, bucket_capacities: Sequence[int] | None = None, shapes: Any = None, dynamic_pad: bool = False,
    allow_smaller_final_batch: bool = False, keep_input: Any = True, shared_name: str | None = None,
    name: str | None = None,
) -> tuple[Tensor, Any]:  # fmt: skip
    """Batches of sequences of about one length.

    Args:
        bucket_boundaries: rising lengths; each begins a bucket.
        All else is as of `bucket`.

    Returns:
        The lengths, [batch], and the batch.

    Raises:
        TypeError: boundaries are no list of integers. ValueError: there is none, or they do not rise.
    """
    if not isinstance(bucket_boundaries, list | tuple):
        raise TypeError(f"bucket_boundaries: expected a list, got {bucket_boundaries!r}")
    if not bucket_boundaries:
        raise ValueError("bucket_boundaries: there is none")
    if not all(isinstance(each, int) for each in bucket_boundaries):
        raise TypeError(f"bucket_boundaries: expected integers, got {list(bucket_boundaries)}")
    if any(one >= other for one, other in pairwise(bucket_boundaries)):
        raise ValueError(f"bucket_boundaries: expected lengths that rise, got {list(bucket_boundaries)}")
    flat = leaves_of(tensors, tensors)
    with name_scope(name, "bucket_by_sequence_length", [input_length, *flat]):
        length = convert_to_tensor(input_length, dtypes.int32, name="input_length")
        lows = [dtypes.int32.min, *bucket_boundaries]
        highs = [*bucket_boundaries, dtypes.int32.max]
        inside = ops.logical_and(ops.less_equal(lows, length), ops.less(length, highs))
        which = math_ops.cast(math_ops.reduce_min(array_ops.where(inside)), dtypes.int32)
        _, taken = bucket(
            [length, *flat], which, batch_size, len(bucket_boundaries) + 1, num_threads, capacity, bucket_capacities,
            None if shapes is None else [Shape([]), *shapes], dynamic_pad, allow_smaller_final_batch, keep_input,
            shared_name,
        )  # fmt: skip
        lengths, *rest = taken
        is_many = isinstance(tensors, dict | list | tuple)
        return lengths, as_given(rest if is_many else rest[0], tensors)
