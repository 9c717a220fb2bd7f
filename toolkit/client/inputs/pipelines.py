"""Input by queues: producers of rows and file names, batches that threads collect (TensorFlow 1's train.input)."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, cast

from toolkit.client import ops
from toolkit.client.arrays import array_ops
from toolkit.client.construction.context import get_default_graph
from toolkit.client.construction.convert import as_shape, constant, convert_to_tensor
from toolkit.client.construction.scopes import device, name_scope
from toolkit.client.construction.tensor import Tensor, TensorLike
from toolkit.client.flow import control_flow
from toolkit.client.inputs.queues import (
    FIFOQueue,
    PaddingFIFOQueue,
    Queue,
    QueueRunner,
    RandomShuffleQueue,
    add_queue_runner,
)
from toolkit.client.math import math_ops
from toolkit.client.random import random_ops
from toolkit.client.summaries import summary
from toolkit.errors import GraphError, UsageError
from toolkit.graph import dtypes
from toolkit.graph.metagraph import GraphKeys
from toolkit.graph.shape import Shape

#: where TensorFlow puts queues of this kind
_CPU = "/device:CPU:*"


def on_cpu(make: Callable[..., Queue], *args: Any, **options: Any) -> Queue:
    """A queue on the CPU, wherever what is made around it goes."""
    with device(_CPU):
        return make(*args, **options)


# -- producers -----------------------------------------------------------------------------------------------------


def limit_epochs(tensor: TensorLike, num_epochs: int | None = None, name: str | None = None) -> Tensor:
    """`tensor`, `num_epochs` times; then out of range. The count is a local variable.

    Raises:
        ValueError: `num_epochs` is not positive.
    """
    if num_epochs is None:
        return tensor
    if num_epochs <= 0:
        raise ValueError(f"num_epochs must be at least 1, not {num_epochs}")
    from toolkit.client.variables.creation import Variable

    with name_scope(name, "limit_epochs", [tensor]) as scope:
        zero = constant(0, dtypes.int64)
        epochs: Any = Variable(zero, trainable=False, collections=[GraphKeys.LOCAL_VARIABLES], name="epochs")
        counter = epochs.count_up_to(num_epochs)
        with get_default_graph().control_dependencies([counter]):
            return array_ops.identity(tensor, name=scope)


def input_producer(
    input_tensor: TensorLike, element_shape: Any = None, num_epochs: int | None = None, shuffle: bool = True,
    seed: int | None = None, capacity: int = 32, shared_name: str | None = None, summary_name: str | None = None,
    name: str | None = None, cancel_op: Any = None,
) -> Queue:  # fmt: skip
    """A queue of the rows of a tensor, over and over, or `num_epochs` times.

    Raises:
        GraphError: the rows have no known shape.
    """
    with name_scope(name, "input_producer", [input_tensor]):
        rows = convert_to_tensor(input_tensor, name="input_tensor")
        shape = rows.static_shape.slice(1) if rows.static_shape.rank is not None else Shape(None)
        element = shape.merge(as_shape(element_shape))
        if not element.is_fully_defined:
            raise GraphError("rows need a known shape; give element_shape")
        if shuffle:
            rows = random_ops.random_shuffle(rows, seed)
        rows = limit_epochs(rows, num_epochs)
        queue = on_cpu(FIFOQueue, capacity, [rows.dtype.base], [element], shared_name=shared_name, name=name)
        enqueue = queue.enqueue_many([rows])
        add_queue_runner(QueueRunner(queue, [enqueue], cancel_op=cancel_op))
        if summary_name is not None:
            full = math_ops.cast(queue.size(), dtypes.float32) * (1.0 / capacity)
            summary.scalar(summary_name, full)
        return queue


def string_input_producer(
    string_tensor: TensorLike, num_epochs: int | None = None, shuffle: bool = True, seed: int | None = None,
    capacity: int = 32, shared_name: str | None = None, name: str | None = None, cancel_op: Any = None,
) -> Queue:  # fmt: skip
    """`input_producer` for texts, such as file names.

    Raises:
        ValueError: an empty list is given.
    """
    problem = "string_input_producer requires a non-null input tensor"
    if not isinstance(string_tensor, Tensor) and not string_tensor:
        raise ValueError("string_input_producer needs at least one text; the list is empty")
    with name_scope(name, "input_producer", [string_tensor]) as scope:
        texts = convert_to_tensor(string_tensor, dtypes.string)
        some = ops.greater(array_ops.size(texts), 0)
        with get_default_graph().control_dependencies([control_flow.Assert(some, [problem])]):
            texts = array_ops.identity(texts)
        return input_producer(
            texts, [], num_epochs, shuffle, seed, capacity, shared_name, f"fraction_of_{capacity}_full", scope,
            cancel_op,
        )  # fmt: skip


def range_input_producer(
    limit: TensorLike, num_epochs: int | None = None, shuffle: bool = True, seed: int | None = None,
    capacity: int = 32, shared_name: str | None = None, name: str | None = None,
) -> Queue:  # fmt: skip
    """`input_producer` for the numbers below a limit."""
    with name_scope(name, "input_producer", [limit]) as scope:
        numbers = math_ops.range(limit)
        label = f"fraction_of_{capacity}_full"
        return input_producer(numbers, [], num_epochs, shuffle, seed, capacity, shared_name, label, scope)


def slice_input_producer(
    tensor_list: Sequence[TensorLike], num_epochs: int | None = None, shuffle: bool = True, seed: int | None = None,
    capacity: int = 32, shared_name: str | None = None, name: str | None = None,
) -> list[Tensor]:  # fmt: skip
    """One row of each tensor at a time.

    Raises:
        ValueError: no tensors are given.
    """
    with name_scope(name, "input_producer", list(tensor_list)):
        tensors = [convert_to_tensor(tensor) for tensor in tensor_list]
        if not tensors:
            raise ValueError("slice_input_producer needs at least one tensor")
        count = array_ops.shape(tensors[0])[0]
        index = range_input_producer(count, num_epochs, shuffle, seed, capacity, shared_name).dequeue()
        return [array_ops.gather(tensor, index) for tensor in tensors]


# -- batches -------------------------------------------------------------------------------------------------------


def collected(
    tensors_list: Sequence[Any], batch_size: Any, keep_input: Any, *, capacity: int, enqueue_many: bool, shapes: Any,
    dynamic_pad: bool = False, allow_smaller_final_batch: bool = False, shared_name: str | None = None,
    name: str | None = None, default_name: str = "batch", num_threads: int = 1,
    shuffled: tuple[int, int | None] | None = None,
) -> Any:  # fmt: skip
    """Elements that threads collect into batches.

    Args:
        tensors_list: an element of each source; a source has a thread, one alone has `num_threads`.
        keep_input: True, or a bool that says of each element whether it goes into a batch.
        shuffled: how many elements stay behind, and the seed; None: in their order.

    Raises:
        GraphError: an element has a shape that is not known; sources differ.
        ValueError: no tensors are given.
    """
    if not tensors_list:
        raise ValueError("batches need at least one source of tensors")
    like = tensors_list[0]
    flat = [leaves_of(tensors, like) for tensors in tensors_list]
    with name_scope(name, default_name, [*(leaf for leaves in flat for leaf in leaves), keep_input]) as scope:
        sources = [[convert_to_tensor(leaf) for leaf in leaves] for leaves in flat]
        keep = convert_to_tensor(keep_input)
        types = [tensor.dtype.base for tensor in sources[0]]
        if any([tensor.dtype.base for tensor in source] != types for source in sources):
            raise GraphError("sources of one batch must have tensors of the same types")
        known = _element_shapes(sources, shapes, enqueue_many)
        queue = _queue(types, known, capacity, dynamic_pad, shared_name, shuffled)
        _enqueue(queue, sources, keep, enqueue_many, num_threads)
        _summary(queue, capacity, shuffled)
        take = queue.dequeue_up_to if allow_smaller_final_batch else queue.dequeue_many
        taken = take(batch_size, name=scope)
        return as_given(taken, like)


def leaves_of(tensors: Any, like: Any) -> list[Any]:
    """The tensors of a list or a mapping, in the order of the first source's keys."""
    if isinstance(tensors, dict):
        return [tensors[key] for key in sorted(like)]
    if not isinstance(tensors, list | tuple):
        return [tensors]
    return list(tensors)  # type: ignore[arg-type]


def as_given(taken: Any, like: Any) -> Any:
    if not isinstance(like, dict):
        return taken
    values = list(cast("list[Any]", taken)) if isinstance(taken, list) else [taken]
    return dict(zip(sorted(like), values, strict=True))  # type: ignore[arg-type]


def _element_shapes(sources: list[list[Tensor]], shapes: Any, many: bool) -> list[Shape]:
    """What is known of the shapes of one element."""
    if shapes is not None:
        return [as_shape(shape) for shape in shapes]
    found = [[_element(tensor, many) for tensor in source] for source in sources]
    common = found[0]
    for other in found[1:]:
        common = [one.most_specific_common(two) for one, two in zip(common, other, strict=True)]
    return common


def _element(tensor: Tensor, many: bool) -> Shape:
    if not many:
        return tensor.static_shape
    return tensor.static_shape.slice(1) if tensor.static_shape.rank is not None else Shape(None)


def _queue(
    types: list[Any], shapes: list[Shape], capacity: int, dynamic_pad: bool, shared_name: str | None,
    shuffled: tuple[int, int | None] | None,
) -> Queue:  # fmt: skip
    if shuffled is not None:
        _require_known(shapes)
        least, seed = shuffled
        return RandomShuffleQueue(capacity, least, types, shapes, seed=seed, shared_name=shared_name)
    if dynamic_pad:
        return PaddingFIFOQueue(capacity, types, shapes, shared_name=shared_name)
    _require_known(shapes)
    return on_cpu(FIFOQueue, capacity, types, shapes, shared_name=shared_name)


def _require_known(shapes: list[Shape]) -> None:
    if not all(shape.is_fully_defined for shape in shapes):
        raise GraphError(f"all shapes must be fully known to be batched: {', '.join(map(str, shapes))}")


def _enqueue(queue: Queue, sources: list[list[Tensor]], keep: Tensor, many: bool, threads: int) -> None:
    always = keep.graph.shapes.constant(keep.output)
    if many and keep.static_shape.rank == 1:
        sources = [[array_ops.boolean_mask(tensor, keep) for tensor in source] for source in sources]
        always = True

    def put(source: list[Tensor]) -> Any:
        enqueue = queue.enqueue_many if many else queue.enqueue
        if always is not None:
            return enqueue(source) if always else ops.no_op()
        return control_flow.cond(keep, lambda: enqueue(source), ops.no_op)

    if len(sources) == 1:
        enqueues = [put(sources[0])] * threads
    else:
        enqueues = [put(source) for source in sources]
    add_queue_runner(QueueRunner(queue, enqueues))


def _summary(queue: Queue, capacity: int, shuffled: tuple[int, int | None] | None) -> None:
    """How full a queue is, above what stays behind."""
    if shuffled is None:
        full = math_ops.cast(queue.size(), dtypes.float32) * (1.0 / capacity)
        summary.scalar(f"fraction_of_{capacity}_full", full)
        return
    least = shuffled[0]
    free = capacity - least
    if free <= 0:
        raise UsageError(f"capacity ({capacity}) must be larger than min_after_dequeue ({least})")
    over = math_ops.maximum(0, queue.size() - least)
    full = math_ops.cast(over, dtypes.float32) * (1.0 / free)
    summary.scalar(f"fraction_over_{least}_of_{free}_full", full)


def batch(
    tensors: Any, batch_size: Any, num_threads: int = 1, capacity: int = 32, enqueue_many: bool = False,
    shapes: Any = None, dynamic_pad: bool = False, allow_smaller_final_batch: bool = False,
    shared_name: str | None = None, name: str | None = None,
) -> Any:  # fmt: skip
    """Elements collected into batches by a queue of their own."""
    return collected(
        [tensors], batch_size, True, capacity=capacity, enqueue_many=enqueue_many, shapes=shapes,
        dynamic_pad=dynamic_pad, allow_smaller_final_batch=allow_smaller_final_batch, shared_name=shared_name,
        name=name, num_threads=num_threads,
    )  # fmt: skip


def shuffle_batch(
    tensors: Any, batch_size: Any, capacity: int, min_after_dequeue: int, num_threads: int = 1,
    seed: int | None = None, enqueue_many: bool = False, shapes: Any = None, allow_smaller_final_batch: bool = False,
    shared_name: str | None = None, name: str | None = None,
) -> Any:  # fmt: skip
    """As `batch`, in random order."""
    return collected(
        [tensors], batch_size, True, capacity=capacity, enqueue_many=enqueue_many, shapes=shapes,
        allow_smaller_final_batch=allow_smaller_final_batch, shared_name=shared_name, name=name,
        default_name="shuffle_batch", num_threads=num_threads, shuffled=(min_after_dequeue, seed),
    )  # fmt: skip


def paths_once(pattern: TensorLike, name: str | None = None) -> Any:
    """The names of files that match, found once: a local variable."""
    from toolkit.client.variables.creation import Variable

    with name_scope(name, "matching_filenames", [pattern]) as scope:
        return Variable(
            ops.matching_files(pattern), trainable=False, collections=[GraphKeys.LOCAL_VARIABLES],
            validate_shape=False, name=scope,
        )  # fmt: skip
