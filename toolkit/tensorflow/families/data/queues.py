# TensorFlow's arguments may be anything, so what they are is for tests to say, not for types.
# pyright: basic
"""Queues, readers, accumulators, queue runners and the input pipelines made of them."""

from __future__ import annotations

from typing import Any

from toolkit.client import ops
from toolkit.client.construction.context import get_default_graph
from toolkit.client.construction.convert import as_dtype, as_shape, convert_to_tensor
from toolkit.client.construction.tensor import IndexedSlices
from toolkit.client.inputs import pipelines, queues
from toolkit.client.math import math_ops
from toolkit.client.metagraphs.messages import prepended, rename_all, stripped
from toolkit.errors import OutOfRangeError
from toolkit.graph import dtypes as types_
from toolkit.runtime.training import queue_runner


class QueueBase(queues.Queue):
    """Base of the queues."""

    def __init__(self, dtypes: Any, shapes: Any, names: Any, queue_ref: Any):
        super().__init__(queue_ref, dtypes, shapes, names)

    def _take(self, queue: queues.Queue) -> None:
        super().__init__(queue.handle, queue.types, queue.shapes, queue.names)

    @property
    def queue_ref(self) -> Any:
        return self.handle

    @property
    def dtypes(self) -> list[Any]:
        return self.types

    def enqueue(self, vals: Any, name: Any = None) -> Any:
        return super().enqueue(vals, name)

    def enqueue_many(self, vals: Any, name: Any = None) -> Any:
        return super().enqueue_many(vals, name)


class FIFOQueue(QueueBase):
    def __init__(
        self, capacity: Any, dtypes: Any, shapes: Any = None, names: Any = None, shared_name: Any = None,
        name: str = "fifo_queue",
    ):  # fmt: skip
        self._take(pipelines.on_cpu(queues.FIFOQueue, capacity, dtypes, shapes, names, shared_name, name))


class PaddingFIFOQueue(QueueBase):
    def __init__(
        self, capacity: Any, dtypes: Any, shapes: Any, names: Any = None, shared_name: Any = None,
        name: str = "padding_fifo_queue",
    ):  # fmt: skip
        self._take(queues.PaddingFIFOQueue(capacity, dtypes, shapes, names, shared_name, name))


class PriorityQueue(QueueBase):
    def __init__(
        self, capacity: Any, types: Any, shapes: Any = None, names: Any = None, shared_name: Any = None,
        name: str = "priority_queue",
    ):  # fmt: skip
        self._take(queues.PriorityQueue(capacity, types, shapes, names, shared_name, name))


class RandomShuffleQueue(QueueBase):
    def __init__(
        self, capacity: Any, min_after_dequeue: Any, dtypes: Any, shapes: Any = None, names: Any = None,
        seed: Any = None, shared_name: Any = None, name: str = "random_shuffle_queue",
    ):  # fmt: skip
        self._take(
            queues.RandomShuffleQueue(capacity, min_after_dequeue, dtypes, shapes, names, seed, shared_name, name)
        )


class QueueRunner(queue_runner.QueueRunner):
    """What a session's threads run to keep a queue full."""

    def __init__(
        self, queue: Any = None, enqueue_ops: Any = None, close_op: Any = None, cancel_op: Any = None,
        queue_closed_exception_types: Any = None, queue_runner_def: Any = None, import_scope: Any = None,
    ):  # fmt: skip
        if queue_runner_def is not None:
            if queue is not None or enqueue_ops is not None:
                raise ValueError("QueueRunner takes either a queue_runner_def or a queue with its enqueue operations")
            if import_scope:
                queue_runner_def = type(queue_runner_def).FromString(queue_runner_def.SerializeToString())
                rename_all(queue_runner_def, lambda name: prepended(name, import_scope))
            made = queue_runner.QueueRunner.from_proto(queue_runner_def)
            self.__dict__.update(made.__dict__)
            self._proto, self._queue, self._runs_by_name = queue_runner_def, None, made
            return
        if queue is None or not enqueue_ops:
            raise ValueError("QueueRunner needs a queue and the operations that fill it")
        kinds = queue_closed_exception_types or (OutOfRangeError,)
        codes = [kind.code for kind in kinds]
        described = queues.QueueRunner(queue, list(enqueue_ops), close_op, cancel_op, codes)
        self._proto, self._queue = described.to_proto(), queue
        #: what runs: it knows operations by their names, as threads have no default graph
        self._runs_by_name = queue_runner.QueueRunner.from_proto(self._proto)
        self.__dict__.update(self._runs_by_name.__dict__)

    def create_threads(  # pyright: ignore[reportIncompatibleMethodOverride]  # TensorFlow's names
        self, sess: Any, coord: Any = None, daemon: bool = False, start: bool = False
    ) -> list[Any]:
        """A thread for each enqueue operation, and one that ends them with the coordinator."""
        return self._runs_by_name.create_threads(sess, coord, daemon=daemon, start=start)

    @property
    def exceptions_raised(self) -> list[BaseException]:
        return self._runs_by_name.exceptions_raised

    @property
    def queue(self) -> Any:
        return self._queue

    @property
    def name(self) -> str:
        return self._proto.queue_name

    def _op(self, name: str) -> Any:
        return get_default_graph().get_operation_by_name(name)

    @property
    def enqueue_ops(self) -> list[Any]:
        return [self._op(name) for name in self._proto.enqueue_op_name]

    @property
    def close_op(self) -> Any:
        return self._op(self._proto.close_op_name)

    @property
    def cancel_op(self) -> Any:
        return self._op(self._proto.cancel_op_name)

    def to_proto(self, export_scope: Any = None) -> Any:
        """The message; with a scope, its names without it, or None where the queue is not in it."""
        if not export_scope:
            return self._proto
        if not self._proto.queue_name.startswith(export_scope):
            return None
        found = type(self._proto).FromString(self._proto.SerializeToString())
        rename_all(found, lambda name: stripped(name, export_scope))
        return found

    @classmethod
    def from_proto(cls, queue_runner_def: Any, import_scope: Any = None) -> QueueRunner:
        return cls(queue_runner_def=queue_runner_def, import_scope=import_scope)


# -- readers --------------------------------------------------------------------------------------------------------


class ReaderBase:
    """Base of the readers: they read the files whose names a queue holds."""

    def __init__(self, reader_ref: Any, supports_serialize: bool = False):
        self.reader_ref = reader_ref
        self.supports_serialize = supports_serialize

    def read(self, queue: Any, name: Any = None) -> Any:
        return ops.reader_read_v2(self.reader_ref, _queue_ref(queue), name=name)

    def read_up_to(self, queue: Any, num_records: Any, name: Any = None) -> Any:
        return ops.reader_read_up_to_v2(self.reader_ref, _queue_ref(queue), num_records, name=name)

    def num_records_produced(self, name: Any = None) -> Any:
        return ops.reader_num_records_produced_v2(self.reader_ref, name=name)

    def num_work_units_completed(self, name: Any = None) -> Any:
        return ops.reader_num_work_units_completed_v2(self.reader_ref, name=name)

    def serialize_state(self, name: Any = None) -> Any:
        return ops.reader_serialize_state_v2(self.reader_ref, name=name)

    def restore_state(self, state: Any, name: Any = None) -> Any:
        return ops.reader_restore_state_v2(self.reader_ref, state, name=name)

    def reset(self, name: Any = None) -> Any:
        return ops.reader_reset_v2(self.reader_ref, name=name)


def _queue_ref(queue: Any) -> Any:
    return queue.handle if isinstance(queue, queues.Queue) else queue


class TFRecordReader(ReaderBase):
    def __init__(self, name: Any = None, options: Any = None):
        kind = "" if options is None else getattr(options, "compression_name", options)
        super().__init__(ops.tf_record_reader_v2(name=name, compression_type=kind))


class WholeFileReader(ReaderBase):
    def __init__(self, name: Any = None):
        super().__init__(ops.whole_file_reader_v2(name=name), True)


class IdentityReader(ReaderBase):
    def __init__(self, name: Any = None):
        super().__init__(ops.identity_reader_v2(name=name), True)


class TextLineReader(ReaderBase):
    def __init__(self, skip_header_lines: Any = None, name: Any = None):
        super().__init__(ops.text_line_reader_v2(name=name, skip_header_lines=skip_header_lines or 0))


class FixedLengthRecordReader(ReaderBase):
    def __init__(
        self, record_bytes: Any, header_bytes: Any = None, footer_bytes: Any = None, hop_bytes: Any = None,
        name: Any = None, encoding: Any = None,
    ):  # fmt: skip
        made = ops.fixed_length_record_reader_v2(
            record_bytes=record_bytes, header_bytes=header_bytes or 0, footer_bytes=footer_bytes or 0,
            hop_bytes=hop_bytes or 0, encoding=encoding or "", name=name,
        )  # fmt: skip
        super().__init__(made)


# -- accumulators ---------------------------------------------------------------------------------------------------


class ConditionalAccumulatorBase:
    """Base of the accumulators of gradients."""

    def __init__(self, dtype: Any, shape: Any, accumulator_ref: Any):
        self.dtype = as_dtype(dtype)
        self._shape = as_shape(shape)
        self.accumulator_ref = accumulator_ref

    @property
    def name(self) -> str:
        return self.accumulator_ref.op.name

    def num_accumulated(self, name: Any = None) -> Any:
        label = f"{self.name}_NumAccumulated" if name is None else name
        return self._ops()["num_accumulated"](self.accumulator_ref, name=label)

    def set_global_step(self, new_global_step: Any, name: Any = None) -> Any:
        step = math_ops.cast(convert_to_tensor(new_global_step), types_.int64)
        return self._ops()["set_global_step"](self.accumulator_ref, step, name=name)

    def _ops(self) -> dict[str, Any]:
        raise NotImplementedError


class ConditionalAccumulator(ConditionalAccumulatorBase):
    def __init__(
        self, dtype: Any, shape: Any = None, shared_name: Any = None, name: str = "conditional_accumulator",
        reduction_type: str = "MEAN",
    ):  # fmt: skip
        made = ops.resource_conditional_accumulator(
            dtype=dtype, shape=as_shape(shape), shared_name=shared_name or "", reduction_type=reduction_type, name=name
        )
        super().__init__(dtype, shape, made)

    def _ops(self) -> dict[str, Any]:
        return {
            "num_accumulated": ops.resource_accumulator_num_accumulated,
            "set_global_step": ops.resource_accumulator_set_global_step,
        }

    def apply_grad(self, grad: Any, local_step: Any = 0, name: Any = None) -> Any:
        value = convert_to_tensor(grad, self.dtype)
        step = math_ops.cast(convert_to_tensor(local_step), types_.int64)
        return ops.resource_accumulator_apply_gradient(self.accumulator_ref, step, value, name=name)

    def take_grad(self, num_required: Any, name: Any = None) -> Any:
        taken = ops.resource_accumulator_take_gradient(self.accumulator_ref, num_required, dtype=self.dtype, name=name)
        taken.set_shape(self._shape)
        return taken


class SparseConditionalAccumulator(ConditionalAccumulatorBase):
    def __init__(
        self, dtype: Any, shape: Any = None, shared_name: Any = None, name: str = "sparse_conditional_accumulator",
        reduction_type: str = "MEAN",
    ):  # fmt: skip
        made = ops.sparse_conditional_accumulator(
            dtype=dtype, shape=as_shape(shape), shared_name=shared_name or "", reduction_type=reduction_type, name=name
        )
        super().__init__(dtype, shape, made)

    def _ops(self) -> dict[str, Any]:
        return {"num_accumulated": ops.accumulator_num_accumulated, "set_global_step": ops.accumulator_set_global_step}

    def apply_grad(
        self, grad_indices: Any, grad_values: Any, grad_shape: Any = None, local_step: Any = 0, name: Any = None
    ) -> Any:
        step = math_ops.cast(convert_to_tensor(local_step), types_.int64)
        shape = [] if grad_shape is None else grad_shape
        return ops.sparse_accumulator_apply_gradient(
            self.accumulator_ref, step, math_ops.cast(grad_indices, types_.int64), grad_values,
            math_ops.cast(shape, types_.int64), has_known_shape=grad_shape is not None, name=name,
        )  # fmt: skip

    def apply_indexed_slices_grad(self, grad: Any, local_step: Any = 0, name: Any = None) -> Any:
        return self.apply_grad(grad.indices, grad.values, grad.dense_shape, local_step, name)

    def take_grad(self, num_required: Any, name: Any = None) -> Any:
        return ops.sparse_accumulator_take_gradient(self.accumulator_ref, num_required, dtype=self.dtype, name=name)

    def take_indexed_slices_grad(self, num_required: Any, name: Any = None) -> Any:
        indices, values, shape = self.take_grad(num_required, name)
        return IndexedSlices(values, indices, shape)


# -- input pipelines ------------------------------------------------------------------------------------------------


def batch_join(
    tensors_list: Any, batch_size: Any, capacity: Any = 32, enqueue_many: bool = False, shapes: Any = None,
    dynamic_pad: bool = False, allow_smaller_final_batch: bool = False, shared_name: Any = None, name: Any = None,
) -> Any:  # fmt: skip
    return maybe_batch_join(
        tensors_list, True, batch_size, capacity, enqueue_many, shapes, dynamic_pad, allow_smaller_final_batch,
        shared_name, name,
    )  # fmt: skip


def maybe_batch_join(
    tensors_list: Any, keep_input: Any, batch_size: Any, capacity: Any = 32, enqueue_many: bool = False,
    shapes: Any = None, dynamic_pad: bool = False, allow_smaller_final_batch: bool = False, shared_name: Any = None,
    name: Any = None,
) -> Any:  # fmt: skip
    return pipelines.collected(
        tensors_list, batch_size, keep_input, capacity=capacity, enqueue_many=enqueue_many, shapes=shapes,
        dynamic_pad=dynamic_pad, allow_smaller_final_batch=allow_smaller_final_batch, shared_name=shared_name,
        name=name, default_name="batch_join",
    )  # fmt: skip


def maybe_batch(
    tensors: Any, keep_input: Any, batch_size: Any, num_threads: Any = 1, capacity: Any = 32,
    enqueue_many: bool = False, shapes: Any = None, dynamic_pad: bool = False, allow_smaller_final_batch: bool = False,
    shared_name: Any = None, name: Any = None,
) -> Any:  # fmt: skip
    return pipelines.collected(
        [tensors], batch_size, keep_input, capacity=capacity, enqueue_many=enqueue_many, shapes=shapes,
        dynamic_pad=dynamic_pad, allow_smaller_final_batch=allow_smaller_final_batch, shared_name=shared_name,
        name=name, num_threads=num_threads,
    )  # fmt: skip


def shuffle_batch_join(
    tensors_list: Any, batch_size: Any, capacity: Any, min_after_dequeue: Any, seed: Any = None,
    enqueue_many: bool = False, shapes: Any = None, allow_smaller_final_batch: bool = False, shared_name: Any = None,
    name: Any = None,
) -> Any:  # fmt: skip
    return maybe_shuffle_batch_join(
        tensors_list, batch_size, capacity, min_after_dequeue, True, seed, enqueue_many, shapes,
        allow_smaller_final_batch, shared_name, name,
    )  # fmt: skip


def maybe_shuffle_batch_join(
    tensors_list: Any, batch_size: Any, capacity: Any, min_after_dequeue: Any, keep_input: Any, seed: Any = None,
    enqueue_many: bool = False, shapes: Any = None, allow_smaller_final_batch: bool = False, shared_name: Any = None,
    name: Any = None,
) -> Any:  # fmt: skip
    return pipelines.collected(
        tensors_list, batch_size, keep_input, capacity=capacity, enqueue_many=enqueue_many, shapes=shapes,
        allow_smaller_final_batch=allow_smaller_final_batch, shared_name=shared_name, name=name,
        default_name="shuffle_batch_join", shuffled=(min_after_dequeue, seed),
    )  # fmt: skip


def maybe_shuffle_batch(
    tensors: Any, batch_size: Any, capacity: Any, min_after_dequeue: Any, keep_input: Any, num_threads: Any = 1,
    seed: Any = None, enqueue_many: bool = False, shapes: Any = None, allow_smaller_final_batch: bool = False,
    shared_name: Any = None, name: Any = None,
) -> Any:  # fmt: skip
    return pipelines.collected(
        [tensors], batch_size, keep_input, capacity=capacity, enqueue_many=enqueue_many, shapes=shapes,
        allow_smaller_final_batch=allow_smaller_final_batch, shared_name=shared_name, name=name,
        default_name="shuffle_batch", num_threads=num_threads, shuffled=(min_after_dequeue, seed),
    )  # fmt: skip
