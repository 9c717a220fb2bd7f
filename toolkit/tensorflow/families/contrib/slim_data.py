# TensorFlow's arguments may be anything, so what they are is for tests to say, not for types.
# pyright: basic
"""tf.contrib.slim: files of examples, read by several readers into a queue, and decoded into items."""

from __future__ import annotations

import abc
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from toolkit.client import ops
from toolkit.client.arrays import array_ops
from toolkit.client.construction.scopes import name_scope
from toolkit.client.flow.control_flow import case, cond
from toolkit.client.flow.functional_ops import map_fn
from toolkit.client.math import math_ops
from toolkit.client.sparse import sparse_ops
from toolkit.client.sparse import tensor as sparse
from toolkit.client.summaries import summary
from toolkit.graph import dtypes
from toolkit.tensorflow import names
from toolkit.tensorflow.families.data import queues as families
from toolkit.tensorflow.families.train.coordinators import Coordinator
from toolkit.tensorflow.families.train.training import add_queue_runner, start_queue_runners


def _tf(name: str) -> Any:
    """What TensorFlow has under a name."""
    return names.find(name)


# -- items -----------------------------------------------------------------------------------------------------------


class DataDecoder(abc.ABC):
    """Makes items of what a reader gives."""

    @abc.abstractmethod
    def decode(self, data: Any, items: Any) -> Any:
        """The tensors of some items."""

    @abc.abstractmethod
    def list_items(self) -> Any:
        """The names of all items."""


class ItemHandler(abc.ABC):
    """Makes an item of the features with some keys."""

    def __init__(self, keys: Any):
        self._keys = list(keys) if isinstance(keys, list | tuple) else [keys]

    @property
    def keys(self) -> Any:
        return self._keys

    @abc.abstractmethod
    def tensors_to_item(self, keys_to_tensors: Any) -> Any:
        """The item, of a dictionary of features."""


class ItemHandlerCallback(ItemHandler):
    """An item that a function makes of a dictionary of features."""

    def __init__(self, keys: Any, func: Any):
        super().__init__(keys)
        self._func = func

    def tensors_to_item(self, keys_to_tensors: Any) -> Any:
        return self._func(keys_to_tensors)


class BoundingBox(ItemHandler):
    """Boxes [count, 4] of a feature for each side."""

    def __init__(self, keys: Any = None, prefix: str = ""):
        sides = ["ymin", "xmin", "ymax", "xmax"] if keys is None else list(keys)
        if len(sides) != 4:
            raise ValueError(f"keys: expected those of 4 sides, got {len(sides)}")
        super().__init__([prefix + side for side in sides])

    def tensors_to_item(self, keys_to_tensors: Any) -> Any:
        sides = [keys_to_tensors[key] for key in self._keys]
        plain = [side.values if isinstance(side, sparse.SparseTensor) else side for side in sides]
        return array_ops.transpose(array_ops.concat([array_ops.expand_dims(side, 0) for side in plain], 0))


def _dense(x: Any, default: Any = None) -> Any:
    if not isinstance(x, sparse.SparseTensor):
        return x
    return sparse_ops.to_dense(x) if default is None else sparse_ops.to_dense(x, default)


class Tensor(ItemHandler):
    """A feature as a dense tensor, of a fixed shape or of one that other features say."""

    def __init__(self, tensor_key: Any, shape_keys: Any = None, shape: Any = None, default_value: Any = 0):
        if shape_keys and shape is not None:
            raise ValueError("give shape_keys or shape, not both")
        sizes = list(shape_keys) if isinstance(shape_keys, list) else [shape_keys] if shape_keys else []
        super().__init__([tensor_key, *sizes])
        self._tensor_key, self._shape_keys, self._shape = tensor_key, sizes, shape
        self._default = default_value

    def tensors_to_item(self, keys_to_tensors: Any) -> Any:
        tensor, shape = keys_to_tensors[self._tensor_key], self._shape
        if self._shape_keys:
            sizes = [_dense(keys_to_tensors[key]) for key in self._shape_keys]
            shape = array_ops.reshape(array_ops.stack(sizes), [-1])
        if isinstance(tensor, sparse.SparseTensor):
            return _dense(tensor if shape is None else sparse_ops.reshape(tensor, shape), self._default)
        return tensor if shape is None else array_ops.reshape(tensor, shape)


class LookupTensor(Tensor):
    """A feature looked up in a table."""

    def __init__(self, tensor_key: Any, table: Any, shape_keys: Any = None, shape: Any = None, default_value: Any = ""):
        super().__init__(tensor_key, shape_keys, shape, default_value)
        self._table = table

    def tensors_to_item(self, keys_to_tensors: Any) -> Any:
        return self._table.lookup(super().tensors_to_item(keys_to_tensors))


class BackupHandler(ItemHandler):
    """One item, or another where the first is empty."""

    def __init__(self, handler: Any, backup: Any):
        for each, what in ((handler, "handler"), (backup, "backup")):
            if not isinstance(each, ItemHandler):
                raise ValueError(f"{what}: expected an ItemHandler, got {type(each).__name__}")
        super().__init__([*handler.keys, *backup.keys])
        self._handler, self._backup = handler, backup

    def tensors_to_item(self, keys_to_tensors: Any) -> Any:
        item = self._handler.tensors_to_item(keys_to_tensors)
        is_empty = math_ops.equal(math_ops.reduce_prod(array_ops.shape(item)), 0)
        return cond(is_empty, lambda: self._backup.tensors_to_item(keys_to_tensors), lambda: item)


class SparseTensor(ItemHandler):
    """A sparse tensor of features that say the last index and the value of each entry."""

    def __init__(
        self, indices_key: Any = None, values_key: Any = None, shape_key: Any = None, shape: Any = None,
        densify: bool = False, default_value: Any = 0,
    ):  # fmt: skip
        self._indices, self._values, self._shape_key = indices_key or "indices", values_key or "values", shape_key
        super().__init__([self._indices, self._values, *([shape_key] if shape_key else [])])
        self._shape, self._densify, self._default = shape, densify, default_value

    def tensors_to_item(self, keys_to_tensors: Any) -> Any:
        places, values = keys_to_tensors[self._indices], keys_to_tensors[self._values]
        if self._shape_key:
            shape = _dense(keys_to_tensors[self._shape_key])
        else:
            shape = self._shape or places.dense_shape
        rank = array_ops.shape(places.indices)[1]
        last = array_ops.reshape(math_ops.cast(places.values, dtypes.int64), [-1, 1])
        before = array_ops.slice(places.indices, [0, 0], array_ops.stack([-1, rank - 1]))
        found = sparse.SparseTensor(array_ops.concat([before, last], 1), values.values, shape)
        return _dense(found, self._default) if self._densify else found


class Image(ItemHandler):
    """An image, decoded by what its format says: JPEG, PNG, GIF, BMP or raw."""

    def __init__(
        self, image_key: Any = None, format_key: Any = None, shape: Any = None, channels: Any = 3,
        dtype: Any = dtypes.uint8, repeated: bool = False, dct_method: str = "",
    ):  # fmt: skip
        self._image, self._format = image_key or "image/encoded", format_key or "image/format"
        super().__init__([self._image, self._format])
        self._shape, self._channels, self._dtype = shape, channels, dtype
        self._repeated, self._dct = repeated, dct_method

    def tensors_to_item(self, keys_to_tensors: Any) -> Any:
        image, kind = keys_to_tensors[self._image], keys_to_tensors[self._format]
        if self._repeated:
            return map_fn(lambda each: self._decoded(each, kind), image, dtype=self._dtype)
        return self._decoded(image, kind)

    def _decoded(self, data: Any, kind: Any) -> Any:
        def jpeg() -> Any:
            found = ops.decode_jpeg(data, channels=self._channels, dct_method=self._dct)
            return math_ops.cast(found, self._dtype)

        def other() -> Any:
            return math_ops.cast(_tf("io.decode_image")(data, channels=self._channels), self._dtype)

        def pictures() -> Any:
            return cond(_tf("io.is_jpeg")(data), jpeg, other, name="cond_jpeg")

        is_raw = ops.logical_or(math_ops.equal(kind, "raw"), math_ops.equal(kind, "RAW"))
        image = case(
            [(is_raw, lambda: ops.decode_raw(data, out_type=self._dtype))], default=pictures, exclusive=True
        )  # fmt: skip
        image.set_shape([None, None, self._channels])
        return image if self._shape is None else array_ops.reshape(image, self._shape)


class TFExampleDecoder(DataDecoder):
    """Items of serialized Examples: how to parse the features, and what to make of them."""

    def __init__(self, keys_to_features: Any, items_to_handlers: Any):
        self._features, self._handlers = keys_to_features, items_to_handlers

    def list_items(self) -> list[Any]:
        return list(self._handlers)

    def decode(self, serialized_example: Any, items: Any = None) -> list[Any]:  # pyright: ignore[reportIncompatibleMethodOverride]  # TensorFlow's name
        example = _tf("io.parse_single_example")(serialized_example, self._features)
        for key in sorted(self._features):
            feature = self._features[key]
            if isinstance(feature, _tf("io.FixedLenFeature")):
                example[key] = array_ops.reshape(example[key], feature.shape)
        handlers = [self._handlers[item] for item in items or self._handlers]
        return [handler.tensors_to_item({key: example[key] for key in handler.keys}) for handler in handlers]


# -- files -----------------------------------------------------------------------------------------------------------


class Dataset:
    """Where examples are, how they are read and decoded, and how many there are."""

    def __init__(
        self, data_sources: Any, reader: Any, decoder: Any, num_samples: Any, items_to_descriptions: Any, **kwargs: Any
    ):
        self.__dict__.update(
            kwargs, data_sources=data_sources, reader=reader, decoder=decoder, num_samples=num_samples,
            items_to_descriptions=items_to_descriptions,
        )  # fmt: skip


def get_data_files(data_sources: Any) -> list[str]:
    """The files of paths and patterns."""
    sources = list(data_sources) if isinstance(data_sources, list | tuple) else [data_sources]
    found: list[str] = []
    for source in sources:
        if isinstance(source, list | tuple):
            found.extend(get_data_files(source))
        elif any(mark in source for mark in "*?["):
            matches = _tf("gfile.Glob")(source)
            if not matches:
                raise ValueError(f"data_sources: {source} matches no file")
            found.extend(matches)
        else:
            found.append(source)
    if not found:
        raise ValueError(f"data_sources: there are no files in {data_sources!r}")
    return found


class ParallelReader:
    """Several readers that fill one queue."""

    def __init__(self, reader_class: Any, common_queue: Any, num_readers: int = 4, reader_kwargs: Any = None):
        if [each.base for each in common_queue.dtypes] != [dtypes.string] * 2:
            raise TypeError(f"common_queue: expected one of two texts, got one of {common_queue.dtypes}")
        self._readers = [reader_class(**(reader_kwargs or {})) for _ in range(num_readers)]
        self._common_queue = common_queue

    @property
    def num_readers(self) -> int:
        return len(self._readers)

    @property
    def common_queue(self) -> Any:
        return self._common_queue

    def read(self, queue: Any, name: Any = None) -> Any:
        """The next key and value."""
        self._fill(queue)
        return self._common_queue.dequeue(name=name)

    def read_up_to(self, queue: Any, num_records: Any, name: Any = None) -> Any:
        """Keys and values."""
        self._fill(queue)
        return self._common_queue.dequeue_up_to(num_records, name)

    def _fill(self, queue: Any) -> None:
        filled = [self._common_queue.enqueue(reader.read(queue)) for reader in self._readers]
        add_queue_runner(families.QueueRunner(self._common_queue, filled))

    def num_records_produced(self, name: Any = None) -> Any:
        return math_ops.add_n([reader.num_records_produced() for reader in self._readers], name=name)

    def num_work_units_completed(self, name: Any = None) -> Any:
        return math_ops.add_n([reader.num_work_units_completed() for reader in self._readers], name=name)


def _fill_summary(queue: Any, capacity: int) -> None:
    share = math_ops.cast(queue.size(), dtypes.float32) * (1.0 / capacity)
    summary.scalar(f"fraction_of_{capacity}_full", share)


def parallel_read(
    data_sources: Any, reader_class: Any, num_epochs: Any = None, num_readers: int = 4, reader_kwargs: Any = None,
    shuffle: bool = True, dtypes: Any = None, capacity: int = 256, min_after_dequeue: int = 128, seed: Any = None,
    scope: Any = None,
) -> Any:  # fmt: skip
    """Keys and values of files, read by several readers."""
    from toolkit.graph.dtypes import string

    files = get_data_files(data_sources)
    with name_scope(scope or "parallel_read"):
        paths = _tf("train.string_input_producer")(
            files, num_epochs=num_epochs, shuffle=shuffle, seed=seed, name="filenames"
        )
        kinds = dtypes or [string, string]
        if shuffle:
            queue = families.RandomShuffleQueue(
                capacity=capacity, min_after_dequeue=min_after_dequeue, dtypes=kinds, seed=seed, name="common_queue"
            )
        else:
            queue = families.FIFOQueue(capacity=capacity, dtypes=kinds, name="common_queue")
        _fill_summary(queue, capacity)
        return ParallelReader(reader_class, queue, num_readers, reader_kwargs).read(paths)


def single_pass_read(data_sources: Any, reader_class: Any, reader_kwargs: Any = None, scope: Any = None) -> Any:
    """Keys and values of files, in their order, once."""
    files = get_data_files(data_sources)
    with name_scope(scope or "single_pass_read"):
        paths = _tf("train.string_input_producer")(files, num_epochs=1, shuffle=False, capacity=1, name="filenames")
        return reader_class(**(reader_kwargs or {})).read(paths)


class DataProvider:
    """Named tensors of one example for each step, and how many examples there are."""

    def __init__(self, items_to_tensors: Any, num_samples: Any):
        self._items_to_tensors = items_to_tensors
        self._num_samples = num_samples

    def get(self, items: Any) -> list[Any]:
        """The tensors of some items.

        Raises:
            ValueError: there is no such item, or no list of them is given.
        """
        if not isinstance(items, list | tuple):
            raise ValueError(f"items: expected a list of names, got {type(items).__name__}")
        for item in items:
            if item not in self._items_to_tensors:
                raise ValueError(f"items: there is no '{item}'; there are {', '.join(self._items_to_tensors)}")
        return [self._items_to_tensors[item] for item in items]

    def list_items(self) -> Any:
        return self._items_to_tensors.keys()

    def num_samples(self) -> Any:
        return self._num_samples


class DatasetDataProvider(DataProvider):
    """The items of a dataset as tensors, of one example for each step."""

    def __init__(
        self, dataset: Any, num_readers: int = 1, reader_kwargs: Any = None, shuffle: bool = True,
        num_epochs: Any = None, common_queue_capacity: int = 256, common_queue_min: int = 128,
        record_key: str = "record_key", seed: Any = None, scope: Any = None,
    ):  # fmt: skip
        key, data = parallel_read(
            dataset.data_sources, dataset.reader, num_epochs, num_readers, reader_kwargs, shuffle, None,
            common_queue_capacity, common_queue_min, seed, scope,
        )  # fmt: skip
        items = dataset.decoder.list_items()
        if record_key in items:
            raise ValueError(f"record_key: '{record_key}' is an item of the dataset; choose another name")
        tensors = dict(zip(items, dataset.decoder.decode(data, items), strict=True))
        super().__init__({**tensors, record_key: key}, dataset.num_samples)


def prefetch_queue(
    tensors: Any, capacity: int = 8, num_threads: int = 1, dynamic_pad: bool = False, shared_name: Any = None,
    name: Any = None,
) -> Any:  # fmt: skip
    """A queue that threads fill with tensors, given as a list or as a dictionary."""
    keys = sorted(tensors) if isinstance(tensors, dict) else None
    listed = list(tensors) if keys is None else [tensors[key] for key in keys]
    kind = families.PaddingFIFOQueue if dynamic_pad else families.FIFOQueue
    with name_scope(name, "prefetch_queue", listed):
        queue = kind(
            capacity=capacity, dtypes=[each.dtype for each in listed], shapes=[each.get_shape() for each in listed],
            names=keys, shared_name=shared_name,
        )  # fmt: skip
        add_queue_runner(families.QueueRunner(queue, [queue.enqueue(tensors)] * num_threads))
        _fill_summary(queue, capacity)
        return queue


# -- threads ---------------------------------------------------------------------------------------------------------


class NestedQueueRunnerError(Exception):
    """`QueueRunners` inside of another."""


_running = threading.Lock()


@contextmanager
def QueueRunners(session: Any) -> Iterator[None]:  # noqa: N802 (TensorFlow's name)
    """The threads of all queue runners, inside of the block.

    Raises:
        NestedQueueRunnerError: they run already.
    """
    if not _running.acquire(blocking=False):
        raise NestedQueueRunnerError("QueueRunners: the threads of queue runners run already")
    coord = Coordinator()
    threads = start_queue_runners(session, coord)
    try:
        yield
    finally:
        coord.request_stop()
        coord.join(threads)
        _running.release()
